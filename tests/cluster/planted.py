"""Bugs planted into the rules of the cluster, to prove that the simulator finds them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from everhash.cluster.lead import Lead
from everhash.cluster.messages import Applied, Apply, Pause, Told, Write
from everhash.cluster.placement import Counts, Table
from everhash.cluster.reading import Reading
from everhash.cluster.shard import Handled, Shard
from everhash.cluster.writes import Handled as LeadHandled
from everhash.errors import EverhashError
from tests.cluster.toy import ToyDecider


def all_holders(table: Table, ids: Counts) -> list[int]:
    """Return the shards that may have these ids."""
    return list(table.holders(ids))


@dataclass(frozen=True)
class Rules:
    """The rules that a simulated cluster follows."""

    lead: type[Lead] = Lead
    shard: type[Shard] = Shard
    reading: type[Reading] = Reading
    decider: type[ToyDecider] = ToyDecider
    holders: Callable[[Table, Counts], list[int]] = all_holders
    lead_acknowledges_first: bool = False
    """Whether the lead sends its answers before its writes are on the disk."""
    shard_acknowledges_first: bool = False
    keeps_answers: bool = True
    """Whether a lead that starts again knows the answers of requests."""
    trims_early: bool = False
    """Whether records are dropped that some shard has not applied."""


class RelentingLead(Lead):
    """Decides a refused request anew if it comes again."""

    def _enqueue(self, client: Hashable, message: Write | Pause, out: LeadHandled) -> None:
        _, answer = self._answers.get(message.request, (0, None))
        if isinstance(answer, EverhashError):
            del self._answers[message.request]
        super()._enqueue(client, message, out)


class ForgetfulShard(Shard):
    """Applies a write as often as it comes."""

    def _apply(self, write: Apply) -> Handled:
        if write.seq == self.entries.seq != 0:
            return Handled([Applied(write.seq, write.mark, write.asked)], [write])
        return super()._apply(write)


class CarelessReading(Reading):
    """Takes every answer, whatever its number."""

    def take(self, shard: int, told: Told) -> None:
        self.told[shard] = told
        self.seq = max(self.seq, told.seq)


class HastyDecider(ToyDecider):
    """Puts new entries where their slot moves to."""

    def homes(self, ids: tuple[int, ...]) -> list[int]:
        homes: list[int] = self.table.targets(np.array(ids)).tolist()
        return homes


def old_holders(table: Table, ids: Counts) -> list[int]:
    """Return the shards that had these ids before entries began to move."""
    return list(dict.fromkeys(table.homes(ids).tolist()))


PLANTED = {
    "the lead acknowledges before it writes": Rules(lead_acknowledges_first=True),
    "a shard acknowledges before it writes": Rules(shard_acknowledges_first=True),
    "the lead decides a refused write anew": Rules(lead=RelentingLead),
    "a shard applies a write twice": Rules(shard=ForgetfulShard),
    "a reader mixes numbers": Rules(reading=CarelessReading),
    "the lead forgets answers when it restarts": Rules(keeps_answers=False),
    "the lead trims too early": Rules(trims_early=True),
    "new entries go to the new shard while slots move": Rules(decider=HastyDecider),
    "a reader asks only the old shard while slots move": Rules(holders=old_holders),
}
"""Each bug by its name."""
