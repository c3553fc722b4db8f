"""Writes as the lead decides and keeps them, who decides them, and the copies they go to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from everhash.cluster.messages import Write
from everhash.cluster.placement import Table


class Replica(NamedTuple):
    """One copy of a shard."""

    shard: int
    copy: int

    def __str__(self) -> str:
        return f"copy {self.copy} of shard {self.shard}"


class Decision(NamedTuple):
    """What a write does."""

    answer: Any
    effects: dict[int, Any]
    """For each shard; a shard that is not there has none, and only counts the write."""


@dataclass(frozen=True)
class Record:
    """A decided write, as the lead's storage keeps it until all shards have applied it."""

    seq: int
    request: str
    answer: Any
    """An `EverhashError` if the write was refused."""
    effects: dict[int, Any]
    before: str = ""
    """The mark of the write before; see `messages`."""
    mark: str = ""


class Handled(NamedTuple):
    """What follows from a message to the lead."""

    answers: list[tuple[Hashable, Any]]
    """To whom, and what; to be sent once the writes are on the storage."""
    writes: list[Record]


@dataclass
class Gathering:
    """A write that waits for answers of shards."""

    client: Hashable
    write: Write
    questions: dict[int, Any]
    told: dict[int, Any] = field(default_factory=dict)
    asked: float = 0.0


class Decider(Protocol):
    """What a lead knows of the collection; it changes when a write is decided."""

    @property
    def table(self) -> Table:
        """Which shards there are, and which of them has an entry."""
        ...

    def questions(self, call: Any) -> dict[int, Any]:
        """Return what has to be asked of which shard before a write can be decided.

        Raises nothing: a call that is wrong is refused by `decide`.
        """
        ...

    def decide(self, call: Any, told: dict[int, Any], seq: int) -> Decision:
        """Decide write `seq` by the answers, or raise an `EverhashError` and change nothing."""
        ...
