"""A shard's collection: entries and sums of its own, everything else as the lead has decided it.

Its file is one of a collection, with two kinds of parts more:

shard      0    the last write that was applied, the version of the table, all entries that arrived
arrivals   s    numbers of arrival, among those of all shards, of the entries from place s on
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from everhash.cluster.effects import Common, Part, Start
from everhash.cluster.effects_reading import check_arrivals, read_common, read_effects, read_part
from everhash.cluster.messages import Apply
from everhash.cluster.moved import Moved
from everhash.cluster.shard_index import ShardIndex
from everhash.cluster.shard_state import (
    STATE,
    ShardState,
    check_effects,
    pack_state,
    read_state,
)
from everhash.collection.attachments import at_places, cleared_at
from everhash.collection.changeset import Changeset
from everhash.collection.collection import Collection
from everhash.collection.formats import Lesson
from everhash.collection.loading import fresh_about
from everhash.collection.part_arrays import array_of, require
from everhash.collection.pieces import many_small, pieces_of
from everhash.index.arrays import Counts, Floats
from everhash.index.export import LabelChange
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.learn.following import follow
from everhash.learn.growing import GrowingArray
from everhash.learn.hasher import OnlineHasher
from everhash.matches import Matches
from everhash.store.parts import PartKey, pack
from everhash.store.store import Store
from everhash.store.transaction import Transaction
from everhash.stream import Labels
from everhash.wire.ids import IdList

OPTIONS = {"coding": "home", "keep_features": "all", "certify": True, "likeness": True}
PART_ENTRIES = 65_536


class Effects(NamedTuple):
    """A write that was read and checked, to be applied."""

    seq: int
    mark: str
    common: Common | None
    """None if the write only counts."""
    part: Part


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
    def begin(
        cls, path: Path | None, write: Apply, start: Start, durability: str
    ) -> ShardCollection:
        """Create the file of a new shard, given the write that it begins with."""
        state = ShardState(write.seq, start.table, start.arrived, mark=write.mark)
        about = {**fresh_about(dict(OPTIONS)), "model_bytes": len(start.model)}
        parts = pieces_of("model", start.model) | pieces_of("mapping", start.mapping)
        parts[STATE] = pack_state(state)
        collection = cls(Store.create(path, about, parts, durability=durability))
        if start.direction.any():
            with collection._writing(refreshing=True) as call:
                call.begin()
                collection._shard_index.turn_to(start.direction)
        return collection

    @classmethod
    def open_shard(cls, path: Path, durability: str) -> ShardCollection:
        """Open the file of a shard."""
        store = Store.open(path, durability=durability)
        try:
            return cls(store)
        except BaseException:
            store.close()
            raise

    def _read_state(self) -> None:
        store, places = self._store, self._shard_index.arrived
        require(STATE in store.parts, STATE, "it is missing: this is no file of a shard")
        self.state = read_state(store.read(STATE))
        for start in store.starts("arrivals"):
            key = PartKey("arrivals", start)
            require(start == len(self.arrivals), key, "it does not start where it should")
            part = array_of(store.read(key), "arrivals", key, np.int64, (store.parts[key].rows,))
            self.arrivals.grow_to(start + len(part))
            self.arrivals.rows[start:] = part
        self._written = len(self.arrivals)
        key, rows = PartKey("arrivals", 0), self.arrivals.rows
        require(len(rows) == places, key, f"{len(rows)} numbers of arrival for {places} entries")
        check_arrivals(rows, key)
        arrived = self.state.arrived
        require(int(rows.max(initial=-1)) < arrived, key, "more entries than have arrived")

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

    def pool(self, X: Any, k: Any, *, payloads: bool, **how: Any) -> Matches:
        """Return what a search by relevance chooses from; see `ShardIndex.pool`."""
        pool = self._shard_index.pool
        return self._search(lambda _: pool(X, k, **how), payloads=payloads, features=True)

    def pool_radius(self, X: Any, r: Any, *, payloads: bool, **how: Any) -> Matches:
        """Return what a search by relevance chooses from within a radius."""
        pool = self._shard_index.pool_radius
        return self._search(lambda _: pool(X, r, **how), payloads=payloads, features=True)

    # Applying writes

    def read(self, write: Apply) -> Effects:
        """Read a write and check it against what the shard has; nothing changes."""
        if write.effects is None:
            return Effects(write.seq, write.mark, None, Part())
        first, second = read_effects(write.effects)
        common = read_common(first, self._follower)
        part = read_part(second, self._follower.n_features_in_) if second else Part()
        check_effects(part, common, self)
        return Effects(write.seq, write.mark, common, part)

    def apply(self, effects: Effects) -> None:
        """Apply a write; when this returns, the file has it. One without effects only counts."""
        seq, mark, common, part = effects
        with self._writing(refreshing=True) as call:
            changes = call.begin()
            changes.also = self._write_state
            if common is None:
                self.state = self.state._replace(seq=seq, mark=mark)
                return
            self._sum_existing(changes, part)
            self._remove(changes, part.removed)
            self._follow(changes, common)
            self._sum_new(changes, part)
            self._relabel(changes, part)
            self._attach(changes, part)
            if part.added is not None:
                self._add_moved(changes, part.added)
            self._finish(changes, common)
            refreshed = seq if common.refresh else self.state.refreshed
            self.state = ShardState(seq, common.table, common.arrived, refreshed, mark)

    def _write_state(self, change: Transaction) -> None:
        """Write what the file has besides that of a collection."""
        change.put(STATE, 0, pack_state(self.state))
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
        """Return counts, sizes and versions of this shard, and which write refreshed it last."""
        stats, state = super().stats(), self.state
        if stats["last_refresh"] is not None:
            stats["last_refresh"] = {**stats["last_refresh"], "write": state.refreshed}
        return {**stats, "seq": state.seq, "table": state.table, "arrived": state.arrived}
