"""A lead and a shard with their storage: what Ray runs, and what tests run without it."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

from everhash.cluster.decider import CollectionDecider
from everhash.cluster.lead import Lead
from everhash.cluster.lead_contents import AskLead, LeadContents
from everhash.cluster.lead_file import LeadFile
from everhash.cluster.messages import Unfit
from everhash.cluster.shard import Shard
from everhash.cluster.shard_entries import ShardEntries
from everhash.errors import CollectionFileError


class LeadProcess:
    """A lead, and the file that it starts from."""

    def __init__(self, file: LeadFile) -> None:
        self.file = file
        self.lead: Lead = file.lead()

    def handle(self, sender: Hashable, message: Any, now: float) -> list[tuple[Hashable, Any]]:
        """Return whom to tell what, after the storage has what must be there."""
        if isinstance(message, AskLead):
            decider = self.lead.decider
            assert isinstance(decider, CollectionDecider)  # noqa: S101 - made by `LeadFile.lead`
            return [(sender, LeadContents.of(decider.state, message.request))]
        return self._carried_out(self.lead.handle(sender, message, now))

    def tick(self, now: float) -> list[tuple[Hashable, Any]]:
        """The same because time has passed."""
        return self._carried_out(self.lead.tick(now))

    def _carried_out(self, handled: Any) -> list[tuple[Hashable, Any]]:
        for record in handled.writes:
            self.file.append(record, self.lead)
        answers: list[tuple[Hashable, Any]] = handled.answers
        return answers

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class ShardProcess:
    """One copy of a shard, and its file."""

    def __init__(self, path: Path | None, durability: str = "commit") -> None:
        self.entries = ShardEntries(path, durability)
        self._shard = Shard(self.entries)

    def handle(self, message: Any, now: float) -> Any:
        """Return the answer, after the storage has what must be there.

        A write that cannot be applied changes nothing, and is answered with `Unfit`.
        """
        try:
            handled = self._shard.handle(message, now)
            ready = [self.entries.read(write) for write in handled.writes]
        except CollectionFileError as error:
            return Unfit(error)
        for write in ready:
            self.entries.carry_out(write)
        return handled.answers[0]

    def close(self) -> None:
        """Close the file."""
        self.entries.close()
