"""What a collection on one machine would have, after each write of a simulated cluster.

Made from the lead's records in their order: the calls say what entries there are, the effects on
shards only where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from everhash.cluster.writes import Record
from everhash.errors import EverhashError
from tests.cluster.toy import Add, Call, Change, Effects, Entry, Learn, Mapping, Remove, Sums


class ViolationError(AssertionError):
    """A promise of the cluster that a run has broken."""

    def __init__(self, promise: str, details: str) -> None:
        super().__init__(f"{promise}: {details}")
        self.promise = promise


def demand(holds: bool, promise: str, details: object) -> None:
    """Raise unless a promise holds."""
    if not holds:
        raise ViolationError(promise, str(details))


@dataclass(frozen=True)
class Snapshot:
    """The collection after one write."""

    entries: dict[int, Entry]
    where: dict[int, int]
    """The shard of each entry."""
    shards: tuple[int, ...]
    mapping: Mapping
    sums: Sums


class Model:
    """All snapshots of a run; building it checks that each write was decided rightly."""

    def __init__(self, records: list[Record], calls: dict[str, Call]) -> None:
        self._entries: dict[int, Entry] = {}
        self._where: dict[int, int] = {}
        self._shards: tuple[int, ...] = ()
        self._arrivals = 0
        self._sums, self._mapping = Sums(), Mapping(0, Sums())
        self.snapshots: dict[int, Snapshot] = {}
        for seq, record in enumerate(records, 1):
            demand(record.seq == seq, "each number is one write", f"{record} is write {seq}")
            if not isinstance(record.answer, EverhashError):
                self._call(calls.get(record.request), record)
                for shard, effects in record.effects.items():
                    self._place(shard, effects)
                self._check_mapping(record)
            else:
                self._check_refusal(calls[record.request], record)
            self.snapshots[seq] = Snapshot(
                dict(self._entries), dict(self._where), self._shards, self._mapping, self._sums
            )

    @property
    def last(self) -> Snapshot:
        return self.snapshots[len(self.snapshots)]

    def _call(self, call: Call | None, record: Record) -> None:
        demand(self._is_possible(call), "writes are refused only and always with reason", record)
        match call:
            case Add(ids, values):
                for one, value in zip(ids, values, strict=True):
                    self._entries[one] = Entry(self._arrivals, one, value)
                    self._arrivals += 1
                self._sums = self._sums.plus(values)
            case Remove(ids):
                for one in ids:
                    del self._entries[one]
            case Change(ids, values):
                for one, value in zip(ids, values, strict=True):
                    entry = self._entries[one]
                    self._entries[one] = entry._replace(value=entry.value + value)
            case Learn(values):
                self._sums = self._sums.plus(values)

    def _is_possible(self, call: Call | None) -> bool:
        match call:
            case Add(ids):
                return not any(one in self._entries for one in ids)
            case Remove(ids) | Change(ids):
                return all(one in self._entries for one in ids)
        return True

    def _check_refusal(self, call: Call, record: Record) -> None:
        wrong = isinstance(call, Add | Remove | Change) and self._is_possible(call)
        demand(not wrong, "writes are refused only and always with reason", record)
        demand(not record.effects, "a refused write changes nothing", record)

    def _place(self, shard: int, effects: Effects) -> None:
        if effects.begin:
            self._shards += (shard,)
        for entry in effects.add:
            self._where[entry.id] = shard
        for one in effects.remove:
            if self._where.get(one) == shard:
                del self._where[one]

    def _check_mapping(self, record: Record) -> None:
        published = {
            shard: effects.mapping
            for shard, effects in record.effects.items()
            if effects.mapping is not None and not effects.begin
        }
        if published:
            self._mapping = Mapping(self._mapping.version + 1, self._sums)
            expected = dict.fromkeys(sorted(self._shards), self._mapping)
            demand(
                dict(sorted(published.items())) == expected,
                "shards learn together what one machine learns alone",
                f"write {record.seq} publishes {published} instead of {expected}",
            )
