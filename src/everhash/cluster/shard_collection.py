"""A shard's collection: entries and sums of its own, everything else as the lead has decided it.

Its file is one of a collection, with two kinds of parts more:

shard      0    the last write that was applied, the version of the table, all entries that arrived
arrivals   s    numbers of arrival, among those of all shards, of the entries from place s on
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from everhash.cluster.effects import (
    Common,
    Part,
    Start,
    read_common,
    read_effects,
    read_part,
)
from everhash.cluster.moved import Moved
from everhash.cluster.shard_index import ShardIndex
from everhash.collection.attachments import at_places, cleared_at
from everhash.collection.changeset import Changeset
from everhash.collection.collection import Collection
from everhash.collection.formats import Lesson
from everhash.collection.loading import fresh_about
from everhash.collection.pieces import many_small, pieces_of
from everhash.index.arrays import Counts, Floats
from everhash.index.export import LabelChange
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.learn.following import follow
from everhash.learn.growing import GrowingArray
from everhash.learn.hasher import OnlineHasher
from everhash.store.parts import PartKey, about_of, pack
from everhash.store.store import Store
from everhash.store.transaction import Transaction
from everhash.stream import Labels
from everhash.wire.ids import IdList

OPTIONS = {"coding": "home", "keep_features": "all", "certify": True, "likeness": True}
STATE = PartKey("shard", 0)
PART_ENTRIES = 65_536


class ShardState(NamedTuple):
    """What a shard knows besides its entries."""

    seq: int = 0
    table: int = 0
    arrived: int = 0


class ShardCollection(Collection):
    """A collection that applies what a lead has decided."""

    _make_index: ClassVar[type[Index]] = ShardIndex

    def __init__(self, store: Store) -> None:
        self.state = ShardState()
        self.arrivals: GrowingArray[np.int64] = GrowingArray((), np.int64)
        """(n,) number of arrival of the entry at each place, ascending."""
        self._written = 0
        super().__init__(store, auto_refresh=False)
        with self._store.reading():
            self._read_state()

    @classmethod
    def begin(cls, path: Path | None, seq: int, start: Start, durability: str) -> ShardCollection:
        """Create the file of a new shard."""
        about = {**fresh_about(dict(OPTIONS)), "model_bytes": len(start.model)}
        parts = pieces_of("model", start.model) | pieces_of("mapping", start.mapping)
        parts[STATE] = _pack_state(ShardState(seq, start.table, start.arrived))
        if path is not None:
            path.unlink(missing_ok=True)
        collection = cls(Store.create(path, about, parts, durability=durability))
        if start.direction.any():
            with collection._writing(refreshing=True) as call:
                call.begin()
                collection._shard_index.turn_to(start.direction)
        return collection

    @classmethod
    def open_shard(cls, path: Path, durability: str) -> ShardCollection:
        """Open the file of a shard."""
        return cls(Store.open(path, durability=durability))

    def _read_state(self) -> None:
        store = self._store
        if STATE in store.parts:
            self.state = ShardState(**about_of(store.read(STATE), STATE))
        for start in store.starts("arrivals"):
            part = store.read(PartKey("arrivals", start))["arrivals"]
            self.arrivals.grow_to(start + len(part))
            self.arrivals.rows[start:] = part
        self._written = len(self.arrivals)

    @property
    def _shard_index(self) -> ShardIndex:
        with self._in_memory() as state:
            assert isinstance(state.index, ShardIndex)  # noqa: S101 - made by `_make_index`
            return state.index

    @property
    def _follower(self) -> OnlineHasher:
        hasher = self.hasher
        assert isinstance(hasher, OnlineHasher)  # noqa: S101 - a shard begins with one
        return hasher

    # What questions need

    @property
    def store(self) -> Store:
        """The file."""
        return self._store

    @property
    def index(self) -> ShardIndex:
        """The index; only between two writes."""
        return self._shard_index

    def find(self, ids: IdList) -> Counts:
        """Return the place of each id, -1 if no entry has it."""
        return self._shard_index.places_of(ids)

    def stored_at(self, places: Counts) -> StoredFeatures:
        """Return the features of entries as they are stored, given by ascending places."""
        if len(places) == 0:
            return StoredFeatures.room_for((0, self.hasher.n_features_in_))
        with self._in_file(), self._in_memory():
            return self._shard_index.stored_at(places)

    def in_file(self) -> AbstractContextManager[None]:
        """Keep the file at the state that memory has, to read features from it."""
        return self._in_file()

    # Applying writes

    def apply(self, seq: int, effects: bytes | None) -> None:
        """Apply a write; when this returns, the file has it. One without effects only counts."""
        if effects is None:
            with self._writing(refreshing=True) as call:
                call.begin().also = self._write_state
                self.state = self.state._replace(seq=seq)
            return
        first, second = read_effects(effects)
        with self._writing(refreshing=True) as call:
            common = read_common(first, self._follower)
            part = read_part(second) if second else Part()
            changes = call.begin()
            changes.also = self._write_state
            self._sum_existing(changes, part)
            self._remove(changes, part.removed)
            self._follow(changes, common)
            self._sum_new(changes, part)
            self._relabel(changes, part)
            self._attach(changes, part)
            if part.added is not None:
                self._add_moved(changes, part.added)
            self._finish(changes, common)
            self.state = ShardState(seq, common.table, common.arrived)

    def _write_state(self, change: Transaction) -> None:
        """Write what the file has besides that of a collection."""
        change.put(STATE, 0, _pack_state(self.state))
        arrivals, written = self.arrivals.rows, self._written
        if len(arrivals) > written:
            new = arrivals[written:]
            change.put(PartKey("arrivals", written), len(new), pack({"arrivals": new}))
            self._written = len(arrivals)
        for starts in iter(lambda: many_small(change, "arrivals", PART_ENTRIES), []):
            for start in starts:
                change.delete(PartKey("arrivals", start))
            part = arrivals[starts[0] :]
            change.put(PartKey("arrivals", starts[0]), len(part), pack({"arrivals": part}))

    def _follow(self, changes: Changeset, common: Common) -> None:
        """Serve what the lead serves from now on."""
        changes.lessons.append(common.solved)
        follow(self._follower, common.solved)
        index = self._shard_index
        if common.direction is not None:
            index.turn_to(common.direction)
        if common.renamed:
            index.labels_changed()
        if common.rebase:
            index.rebase()

    def _finish(self, changes: Changeset, common: Common) -> None:
        index = self._shard_index
        if common.renamed:
            index.labels_changed()
        if common.refresh:
            index.refresh_all()
            changes.refreshed = index.last_refresh

    # Sums

    def _sum_existing(self, changes: Changeset, part: Part) -> None:
        """Let rows of entries enter the sums or leave them, before the entries change."""
        for sign in (1, -1):
            chosen = np.flatnonzero(part.signs == sign)
            if len(chosen):
                places = self._places(part.summed)[chosen]
                self._sum(changes, self._shard_index.features_at(places), sign)

    def _sum_new(self, changes: Changeset, part: Part) -> None:
        """Let rows that come with a write enter the sums or leave them."""
        if part.loose is not None:
            self._sum(changes, part.loose.rows, part.sign)
        if part.added is not None and part.adds_up:
            taught = np.flatnonzero(part.added.labels.taught)
            stored = part.added.stored
            rows = StoredFeatures(stored.halves[taught], stored.scales[taught]).rows
            self._sum(changes, rows, 1)

    def _sum(self, changes: Changeset, rows: Floats, sign: int) -> None:
        """Add rows to the sums; for a file they are a lesson, whatever their labels."""
        if len(rows) == 0:
            return
        hasher = self._follower
        some = next(name for name in hasher.labels_ if name is not None)
        numbers = np.arange(len(rows))
        lesson = Lesson(rows, Labels([some], numbers, np.zeros_like(numbers)), forget=sign < 0)
        (hasher.forget_rows if sign < 0 else hasher.learn_rows)(lesson.rows, lesson.labels)
        changes.lessons.append(lesson)

    # Entries

    def _places(self, ids: IdList) -> Counts:
        return self._shard_index.find(ids)

    def _remove(self, changes: Changeset, ids: IdList) -> None:
        if len(ids) == 0:
            return
        index, places = self._shard_index, np.unique(self._places(ids))
        changes.codes_lost = np.append(changes.codes_lost, index.coded_among(places))
        changes.changes.append(LabelChange.removal(places))
        changes.attached |= cleared_at(places)
        index.forget(places)

    def _relabel(self, changes: Changeset, part: Part) -> None:
        """Give entries other labels, or take all away."""
        index, labels = self._shard_index, part.labels
        if len(part.relabelled) == 0:
            return
        places = self._places(part.relabelled)
        order = np.argsort(places)
        places, labels = places[order], labels.part(order)
        named = np.zeros(len(places), np.bool_)
        named[labels.rows] = True
        cleared, given = np.flatnonzero(~named), np.flatnonzero(named)
        if len(cleared):
            index.clear_labels(places[cleared])
            changes.codes_gained = places[cleared]
            changes.changes.append(LabelChange.clearing(places[cleared]))
        for taught in (False, True):
            some = given[labels.taught[given] == taught]
            if len(some):
                changes.codes_lost = np.append(changes.codes_lost, index.coded_among(places[some]))
                mine = labels.part(some)
                index.relabel(places[some], mine.named(self._follower.labels_), taught=taught)
                changes.changes.append(
                    LabelChange(places[some], mine.rows, mine.numbers, taught=taught)
                )

    def _attach(self, changes: Changeset, part: Part) -> None:
        if part.blobs:
            changes.attached |= at_places(part.blobs, self._places(part.attached))

    def _add_moved(self, changes: Changeset, moved: Moved) -> None:
        index, first = self._shard_index, self._shard_index.arrived
        index.add_checked(moved.checked(self._follower.labels_), taught=moved.labels.taught)
        places = first + np.arange(len(moved))
        changes.attached |= at_places(moved.blobs, places)
        self.arrivals.grow_to(first + len(moved))
        self.arrivals.rows[first:] = moved.arrivals

    # What is in the file

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions of this shard."""
        return {**super().stats(), **self.state._asdict()}


def _pack_state(state: ShardState) -> bytes:
    return pack({}, state._asdict())
