"""How each copy of each shard stands, for whoever runs a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from everhash.cluster.asking import Answered
from everhash.cluster.collection import ClusterCollection
from everhash.cluster.messages import Ask, Behind, Told
from everhash.cluster.questions import Call
from everhash.cluster.writes import Replica

SECONDS = 5.0
"""How long a copy may take to answer."""
STATS = Call("stats", (), {})


@dataclass(frozen=True)
class CopyStanding:
    """How a copy of a shard stands."""

    shard: int
    copy: int
    entries: int | None
    """None if it does not answer, or has not begun."""
    behind: int | None
    """Writes that it has not applied yet; None if it does not answer."""


def copies_of(collection: ClusterCollection) -> list[CopyStanding]:
    """Ask all copies of all shards how they stand, at the same time."""
    asker = collection._cluster
    replicas = [
        Replica(shard, copy)
        for shard in asker.table().shards
        for copy in range(asker.members.copies)
    ]
    newest = asker.newest()
    told = asker.members.ask({one: Ask("standing", 0, STATS) for one in replicas}, SECONDS)
    return [_standing(one, told.get(one), newest) for one in replicas]


def _standing(replica: Replica, told: Answered | None, newest: int) -> CopyStanding:
    behind = max(0, newest - told.seq) if isinstance(told, Told | Behind) else None
    entries = told.answer["entries"] if isinstance(told, Told) else None
    return CopyStanding(replica.shard, replica.copy, entries, behind)
