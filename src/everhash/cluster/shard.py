"""The rules of a shard: which writes it applies, which questions it answers.

Plain Python without Ray, threads, files or a clock. Whoever runs a shard carries out the writes
that `handle` returns, and only then sends the answers; should that fail, the shard ends, and a new
one starts from what the storage has.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from everhash.cluster.messages import Applied, Apply, Ask, Behind, Told, Unfit

NOTHING = Apply(0, None)
"""Changes nothing, and is answered with the number that a shard has reached."""


class Entries(Protocol):
    """What a shard keeps."""

    @property
    def seq(self) -> int:
        """The last write that was applied; 0 before the first."""
        ...

    @property
    def mark(self) -> str:
        """The mark of that write; see `messages`."""
        ...

    @property
    def table(self) -> int:
        """Version of the table of shards after it."""
        ...

    def answer(self, question: Any) -> Any:
        """Answer a question by the entries there are; errors are answers too."""
        ...

    def begins_with(self, effects: Any) -> bool:
        """Whether an empty shard may begin with these effects, whatever their number."""
        ...


class Handled(NamedTuple):
    """What follows from a message to a shard."""

    answers: list[Any]
    """To be sent once the writes are on the storage."""
    writes: list[Apply]


class Shard:
    """Applies writes in order, each once; answers questions between two writes."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self._is_unfit = False
        """Whether the lead has other writes than this copy, which therefore answers nobody."""

    def handle(self, message: Any, now: float) -> Handled:  # noqa: ARG002 - a shard has no timers
        """Return the answers to a message, and the writes to carry out before."""
        if isinstance(message, Apply | Unfit):
            self._is_unfit = isinstance(message, Unfit)
            return self._apply(message if isinstance(message, Apply) else NOTHING)
        assert isinstance(message, Ask)  # noqa: S101 - there is nothing else to say to a shard
        seq = self.entries.seq
        if seq < message.seq or seq == 0 or self._is_unfit:
            return Handled([Behind(message.number, seq)], [])
        answer = self.entries.answer(message.question)
        return Handled([Told(message.number, seq, self.entries.table, answer)], [])

    def _apply(self, write: Apply) -> Handled:
        """Apply the next write; one that came before is only answered, a later one has to wait."""
        seq = self.entries.seq
        follows = write.seq == seq + 1 and write.before == self.entries.mark and seq > 0
        if follows or (seq == 0 and self.entries.begins_with(write.effects)):
            return Handled([Applied(write.seq, write.mark, write.asked)], [write])
        return Handled([Applied(seq, self.entries.mark, write.asked)], [])
