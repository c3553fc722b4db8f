"""The rules of a reader: answers of several shards count only if all are of one number.

Plain Python without Ray, threads or a clock; see `messages`.
"""

from __future__ import annotations

from everhash.cluster.messages import Told

OVERTAKEN = 3
"""Times that a write came in between, after which a reader asks the lead to pause."""


class Reading:
    """One question to several shards.

    Args:
        shards: their numbers.
        table: version of the table that named them.
        seq: the answers have to know of all writes up to this one.
    """

    def __init__(self, shards: list[int], table: int, seq: int) -> None:
        self.seq = seq
        self.told: dict[int, Told] = {}
        self.overtaken = 0
        """How often answers became useless because another shard had a later one."""
        self.outdated = False
        """Whether the table has changed: another question has to be asked, by the new one."""
        self._shards, self._table = shards, table

    def ask(self) -> list[int]:
        """Return the shards to ask: those that are missing."""
        return self.missing

    def take(self, shard: int, told: Told) -> None:
        """Take an answer; one of a later number makes all earlier ones useless.

        Late answers to a question that was asked by an older table do not count.
        """
        if told.seq < self.seq or told.table < self._table or shard not in self._shards:
            return
        if told.seq > self.seq:
            self.overtaken += bool(self.told)
            self.seq, self.told = told.seq, {}
        if told.table == self._table:
            self.told[shard] = told
        else:
            self.outdated = True

    @property
    def complete(self) -> bool:
        """Whether every shard has answered by the same number."""
        return not self.missing

    @property
    def missing(self) -> list[int]:
        """The shards without an answer that counts."""
        return [shard for shard in self._shards if shard not in self.told]

    @property
    def wants_pause(self) -> bool:
        """Whether writes came in between too often; a shard that is silent is no reason."""
        return self.overtaken >= OVERTAKEN and not self.complete
