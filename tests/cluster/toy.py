"""A toy collection for the simulated cluster: entries with integer values, learning by exact sums.

It stands for the real collection, which learns a mapping and keeps an index in files, and is cheap
enough to run thousands of simulated clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from everhash.cluster.messages import Apply
from everhash.cluster.placement import Table, slots_of
from everhash.cluster.writes import Decision
from everhash.errors import DuplicateIdError, OptionError, UnknownIdError


@dataclass(frozen=True)
class Add:
    """New entries, whose values are learned."""

    ids: tuple[int, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Remove:
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """Adds to the values of entries, so that a change that is applied twice shows."""

    ids: tuple[int, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Learn:
    """Values that are learned, without entries."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Publish:
    """All shards get a mapping made of all that was learned."""


@dataclass(frozen=True)
class Grow:
    shards: int


@dataclass(frozen=True)
class Move:
    """The first entries of moving slots go to their new shards."""

    limit: int


Call = Add | Remove | Change | Learn | Publish | Grow | Move


class Entry(NamedTuple):
    arrival: int
    id: int
    value: int


class Sums(NamedTuple):
    """What was learned: the real thing has matrices that add up exactly as well."""

    total: int = 0
    rows: int = 0

    def plus(self, values: Iterable[int]) -> Sums:
        values = list(values)
        return Sums(self.total + sum(values), self.rows + len(values))


class Mapping(NamedTuple):
    """What shards answer searches with."""

    version: int
    sums: Sums


NO_SUMS = Sums()
NO_MAPPING = Mapping(0, NO_SUMS)


@dataclass(frozen=True)
class Effects:
    """What a write changes on one shard."""

    begin: bool = False
    add: tuple[Entry, ...] = ()
    remove: tuple[int, ...] = ()
    change: tuple[tuple[int, int], ...] = ()
    teach: tuple[int, ...] = ()
    mapping: Mapping | None = None
    table: int | None = None


@dataclass(frozen=True)
class Question:
    """Which entries to answer with: some ids, all, or the first of moving slots."""

    ids: tuple[int, ...] | None = None
    slots: frozenset[int] | None = None
    limit: int = 0


class Answer(NamedTuple):
    entries: list[Entry]
    sums: Sums
    mapping: Mapping


@dataclass
class ToyEntries:
    """The entries of one shard, in the order in which it got them."""

    seq: int = 0
    table: int = 0
    mark: str = ""
    entries: dict[int, Entry] = field(default_factory=dict)
    sums: Sums = NO_SUMS
    mapping: Mapping = NO_MAPPING

    def begins_with(self, effects: Effects | None) -> bool:
        return effects is not None and effects.begin

    def answer(self, question: Question) -> Answer:
        found = list(self.entries.values())
        if question.ids is not None:
            found = [self.entries[one] for one in question.ids if one in self.entries]
        if question.slots is not None and found:
            slots = slots_of(np.array([entry.id for entry in found]))
            moving = [one for one, slot in zip(found, slots, strict=True) if slot in question.slots]
            found = sorted(moving)[: question.limit]
        return Answer(found, self.sums, self.mapping)

    def apply(self, write: Apply) -> None:
        self.seq, self.mark = write.seq, write.mark
        effects: Effects | None = write.effects
        if effects is None:
            return
        for one in effects.remove:
            self.entries.pop(one, None)
        for entry in effects.add:
            self.entries[entry.id] = entry
        for one, value in effects.change:
            if one in self.entries:
                entry = self.entries[one]
                self.entries[one] = entry._replace(value=entry.value + value)
        self.sums = self.sums.plus(effects.teach)
        self.mapping = effects.mapping or self.mapping
        self.table = effects.table or self.table


@dataclass
class ToyDecider:
    """Decides writes on the toy collection; its attributes are values, so that a copy is cheap."""

    table: Table
    arrivals: int = 0
    """Entries that ever came."""
    count: int = 0
    """Values that were learned."""
    mapping: Mapping = NO_MAPPING

    def begin(self) -> dict[int, Effects]:
        """Return what the shards of a new cluster begin with."""
        effects = Effects(begin=True, mapping=self.mapping, table=self.table.version)
        return dict.fromkeys(self.table.born, effects)

    def questions(self, call: Call) -> dict[int, Question]:
        ids = call.ids if isinstance(call, Add | Remove | Change) else ()
        asked = {}
        if self._publishes(call):
            asked = dict.fromkeys(self.table.born, Question(ids))
        elif ids:
            asked = dict.fromkeys(self.table.holders(np.array(ids)), Question(ids))
        elif isinstance(call, Move):
            moving = self.table.moving.tolist()
            givers = dict.fromkeys(self.table.slots[slot] for slot in moving)
            asked = dict.fromkeys(givers, Question(None, frozenset(moving), call.limit))
        return asked

    def decide(self, call: Call, told: dict[int, Answer], seq: int) -> Decision:
        where = {one.id: shard for shard in told for one in told[shard].entries}
        match call:
            case Add():
                decision = self._add(call, where, told)
            case Remove() | Change():
                decision = self._change(call, where)
            case Learn(values):
                self.count += len(values)
                decision = Decision(None, {seq % len(self.table.born): Effects(teach=values)})
            case Publish():
                self._publish(told, ())
                decision = Decision(None, dict.fromkeys(told, Effects(mapping=self.mapping)))
            case Grow(shards):
                old = self.table
                self.table = old.grown(shards, seq)
                known = dict.fromkeys(old.born, Effects(table=self.table.version))
                decision = Decision(None, self.begin() | known)
            case Move(limit):
                decision = self._move(limit, told)
        return decision

    def _add(self, call: Add, where: dict[int, int], told: dict[int, Answer]) -> Decision:
        for one in call.ids:
            if one in where:
                raise DuplicateIdError(one)
        entries: dict[int, list[Entry]] = {}
        for one, value, home in zip(call.ids, call.values, self.homes(call.ids), strict=True):
            entries.setdefault(home, []).append(Entry(self.arrivals, one, value))
            self.arrivals += 1
        effects = {
            shard: Effects(add=tuple(new), teach=tuple(entry.value for entry in new))
            for shard, new in entries.items()
        }
        publishes = self._publishes(call)
        self.count += len(call.ids)
        if publishes:
            self._publish(told, call.values)
            for shard in told:
                effects[shard] = replace(effects.get(shard, Effects()), mapping=self.mapping)
        return Decision(len(call.ids), effects)

    def homes(self, ids: tuple[int, ...]) -> list[int]:
        """Return the shard that each new entry goes to."""
        homes: list[int] = self.table.homes(np.array(ids)).tolist()
        return homes

    def _change(self, call: Remove | Change, where: dict[int, int]) -> Decision:
        effects: dict[int, Effects] = {}
        for place, one in enumerate(call.ids):
            if one not in where:
                raise UnknownIdError(one)
            mine = effects.get(where[one], Effects())
            if isinstance(call, Remove):
                mine = replace(mine, remove=(*mine.remove, one))
            else:
                mine = replace(mine, change=(*mine.change, (one, call.values[place])))
            effects[where[one]] = mine
        return Decision(len(call.ids), effects)

    def _publishes(self, call: Call) -> bool:
        """Whether a write publishes a mapping: by itself, or since much has come since the last."""
        if isinstance(call, Add):
            return self.count + len(call.ids) >= 1.5 * self.mapping.sums.rows
        return isinstance(call, Publish)

    def _publish(self, told: dict[int, Answer], values: tuple[int, ...]) -> None:
        sums = Sums(
            sum(answer.sums.total for answer in told.values()),
            sum(answer.sums.rows for answer in told.values()),
        ).plus(values)
        self.mapping = Mapping(self.mapping.version + 1, sums)

    def _move(self, limit: int, told: dict[int, Answer]) -> Decision:
        if self.table.target is None:
            raise OptionError("nothing moves", hint="grow the cluster first")
        found = sorted((one, shard) for shard in told for one in told[shard].entries)[:limit]
        remove: dict[int, list[int]] = {}
        add: dict[int, list[Entry]] = {}
        targets = self.table.targets(np.array([one.id for one, _ in found], np.int64)).tolist()
        for (one, shard), target in zip(found, targets, strict=True):
            remove.setdefault(shard, []).append(one.id)
            add.setdefault(target, []).append(one)
        settled = len(found) < limit
        if settled:
            self.table = self.table.settled()
        else:
            self.table = self.table.moved_to(found[-1][0].arrival + 1)
        effects = {
            shard: Effects(
                add=tuple(add.get(shard, ())),
                remove=tuple(remove.get(shard, ())),
                table=self.table.version,
            )
            for shard in self.table.born
        }
        return Decision(settled, effects)
