"""Writing what a call has changed as parts of the file."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import KINDS
from everhash.collection.cell_parts import write_cells
from everhash.collection.entry_formats import (
    pack_change,
    pack_codes,
    pack_entries,
    pack_features,
)
from everhash.collection.formats import (
    Lesson,
    lesson_bytes,
    pack_lesson,
    pack_likeness,
    pack_mapping,
)
from everhash.collection.part_arrays import require
from everhash.collection.pieces import delete_all, many_small, write_pieces
from everhash.collection.stored_features import FeatureStore, Loaded
from everhash.index.export import LabelChange
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.index.likeness import Likeness
from everhash.learn.following import Solved
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher
from everhash.store.parts import PartKey
from everhash.store.transaction import Transaction

Counts = NDArray[np.int64]

PART_ENTRIES = 65_536
"""Entries in one part, at most."""
BLOCK_BYTES = 8 << 20
"""Bytes of features in one part, about."""
MAX_WAITING = 4096
"""Lessons, changes or changed entries that may wait before the model or the entries are written."""
PUBLICATION = 4
"""Whoever opens the file makes the publications of its lessons again, which takes time: each counts
for one so-manieth of the bytes that lessons may take."""


class Recorder:
    """Writes what has changed since the last commit.

    The hasher is written whole only when the rows learned since take more bytes than it does; until
    then the rows are written, and learned again when the file is opened. New entries become a part
    of their own; eight parts of a size become one. New labels and removals are written as changes
    until there are enough of them to write their entries again.
    """

    def __init__(self, hasher: StreamHasher, index: Index, features: FeatureStore) -> None:
        self._hasher, self._index, self._features = hasher, index, features
        self._places = 0
        self._mapping: FrozenMapping | None = None
        self._stamp = stamp_of(hasher)
        self._published = publications(hasher)
        self._coder = coder_stamp(index.coder)
        self._cells = index.cells
        self._lost: dict[PartKey, int] = {}
        """Entries of each part of codes and features that have left it but still take space."""
        self._touched: set[int] = set()
        """Starts of the parts whose entries have changed since they were written."""
        self._block = max(1, min(PART_ENTRIES, BLOCK_BYTES // (2 * hasher.n_features_in_ + 32)))

    def mark_saved(self) -> None:
        """Mark the current state as saved."""
        self._places = self._index.arrived
        self._mapping = self._index.coded_by
        self._stamp = stamp_of(self._hasher)
        self._published = publications(self._hasher)
        self._coder = coder_stamp(self._index.coder)
        self._cells = self._index.cells

    @property
    def hasher_is_saved(self) -> bool:
        """Whether the hasher has learned nothing that the file does not have."""
        return stamp_of(self._hasher) == self._stamp

    # The hasher, and what makes codes

    def write_hasher(
        self, change: Transaction, lessons: list[Lesson | Solved], new: int, *, whole: bool
    ) -> None:
        """Write lessons with so many new labels, or the hasher once lessons take more bytes.

        `whole` if the hasher has learned more than the lessons.
        """
        about = change.about
        published = max(0, publications(self._hasher) - self._published)
        total = about["lesson_bytes"] + published * (about["model_bytes"] // PUBLICATION)
        for number, lesson in enumerate(lessons):
            total += lesson_bytes(lesson, 0 if number else new, self._hasher)
        full = total > about["model_bytes"] or about["lessons"] + len(lessons) > MAX_WAITING
        if whole or (lessons and full):
            self._write_model(change)
            return
        for lesson in lessons:
            key = PartKey("lesson", about["lessons"])
            rows = 0 if isinstance(lesson, Solved) else len(lesson.rows)
            change.put(key, rows, pack_lesson(lesson))
            about.update(lessons=about["lessons"] + 1, lesson_bytes=total)

    def _write_model(self, change: Transaction) -> None:
        delete_all(change, "lesson")
        data = self._hasher.to_bytes()
        write_pieces(change, "model", data)
        change.about.update(model_bytes=len(data), lesson_bytes=0, lessons=0)

    def write_mapping(self, change: Transaction) -> None:
        """Write the mapping of the unlabelled entries and all their codes, if it has changed."""
        mapping = self._index.coded_by
        if mapping is None or mapping is self._mapping:
            return
        write_pieces(change, "mapping", pack_mapping(mapping))
        change.about["epoch"] += 1
        for start, stop in pairwise([*change.parts.starts("codes"), self._places]):
            self._write_codes(change, start, stop)

    def write_likeness(self, change: Transaction) -> None:
        """Write what makes likeness codes, if it has changed, and the codes that it changed."""
        coder = self._index.coder
        if coder is None or coder_stamp(coder) == self._coder:
            return
        change.put(PartKey("likeness", 0), 0, pack_likeness(coder))
        if not coder.settled:
            return
        for start, stop in pairwise([*change.parts.starts("entries"), self._places]):
            if start < Likeness.FIRST:
                self._write_range(change, start, stop)
        change.about["folds"] += 1  # readers have the codes that were there before

    # Entries

    def write_entries(self, change: Transaction) -> None:
        """Write entries that are new, with their codes and features."""
        stop = self._index.arrived
        for start in range(self._places, stop, PART_ENTRIES):
            self._write_range(change, start, min(start + PART_ENTRIES, stop))
        for starts in iter(lambda: many_small(change, "entries", PART_ENTRIES), []):
            for start in starts:
                change.delete(PartKey("entries", start))
                self._touched.discard(start)
            self._write_range(change, starts[0], stop)
        self._write_new_codes(change)
        self._write_new_features(change)
        change.about["places"] = stop

    def _write_range(self, change: Transaction, start: int, stop: int) -> None:
        records = self._index.export(start, stop)
        change.put(PartKey("entries", start), stop - start, pack_entries(records, start))

    def _write_new_codes(self, change: Transaction) -> None:
        stop = self._index.arrived
        codes = self._index.export_codes(self._places, stop)
        for first in range(0, len(codes.places), PART_ENTRIES):
            part = codes.part(slice(first, first + PART_ENTRIES))
            start = int(part.places[0])
            change.put(PartKey("codes", start), len(part.places), pack_codes(part, start))
        for starts in iter(lambda: many_small(change, "codes", PART_ENTRIES), []):
            for start in starts:
                change.delete(PartKey("codes", start))
                self._lost.pop(PartKey("codes", start), None)
            self._write_codes(change, starts[0], stop)

    def _write_codes(self, change: Transaction, start: int, stop: int) -> None:
        """Write the codes of the entries from start to stop, in place of what was there."""
        codes, key = self._index.export_codes(start, stop), PartKey("codes", start)
        self._lost.pop(key, None)
        if len(codes.places):
            change.put(key, len(codes.places), pack_codes(codes, start))
        elif key in change.parts:
            change.delete(key)

    def _write_new_features(self, change: Transaction) -> None:
        new, self._features.unwritten = self._features.unwritten, None
        for first in range(0, 0 if new is None else len(new.places), self._block):
            assert new is not None  # noqa: S101 - the range would be empty
            part = slice(first, first + self._block)
            start, n = int(new.places[first]), len(new.places[part])
            data = pack_features(new.places[part], new.stored[part], start)
            change.put(PartKey("features", start), n, data)
        for starts in iter(lambda: many_small(change, "features", self._block), []):
            self._rewrite_features(change, starts)

    def _loaded(self, change: Transaction, key: PartKey) -> Loaded:
        """Return the features of one part, all of them of entries that have arrived."""
        part = self._features.part(key, change.parts[key])
        there = part.places.max(initial=-1) < self._index.arrived
        require(bool(there), key, "features of entries that are not there")
        return part

    def _rewrite_features(self, change: Transaction, starts: list[int]) -> None:
        """Write these parts as one, without entries that have left them."""
        keys = [PartKey("features", start) for start in starts]
        parts = [self._loaded(change, key) for key in keys]
        for key in keys:
            change.delete(key)
            self._lost.pop(key, None)
        places = np.concatenate([part.places for part in parts])
        kept = np.isin(places, self._index.with_features(places), assume_unique=True)
        if kept.any():
            stored = StoredFeatures(
                np.concatenate([part.stored.halves for part in parts])[kept],
                np.concatenate([part.stored.scales for part in parts])[kept],
            )
            data = pack_features(places[kept], stored, starts[0])
            change.put(keys[0], int(kept.sum()), data)

    def write_cells(self, change: Transaction) -> None:
        """Write the cells of new entries; those of all, and the centroids, if they are others."""
        cells = self._index.cells
        if cells is not None:
            first = 0 if cells is not self._cells else self._places
            write_cells(change, cells, first, whole=cells is not self._cells, most=PART_ENTRIES)

    # Compacting

    def compact(self, change: Transaction) -> int:
        """Drop removed entries for good: renumber all others, in memory and in the file."""
        before, kept = self._index.arrived, self._index.compact()
        self.write_likeness(change)  # it remembers the first rows by their places
        for kind in ("entries", "change", "codes"):
            delete_all(change, kind)
        for start in change.parts.starts("features"):
            self._renumber_features(change, PartKey("features", start), kept)
        change.renumber_attached(kept, KINDS)
        self._lost, self._touched, self._places = {}, set(), 0
        self.write_entries(change)
        self.write_cells(change)
        about = change.about
        about.update(changes=0, changed=0, folds=about["folds"] + 1, next_id=self._index.next_id)
        return before - len(kept)

    def _renumber_features(self, change: Transaction, key: PartKey, kept: Counts) -> None:
        """Write a part again with new places; they only go down, so no other part is in the way."""
        part = self._features.part(key, change.parts[key])
        change.delete(key)
        at = np.minimum(np.searchsorted(kept, part.places), max(0, len(kept) - 1))
        left = kept[at] == part.places if len(kept) else np.zeros(len(at), np.bool_)
        left &= np.isin(at, self._index.with_features(np.unique(at)))
        if left.any():
            stored, places = part.stored, at[left]
            stored = StoredFeatures(stored.halves[left], stored.scales[left])
            start = int(places[0])
            change.put(
                PartKey("features", start), len(places), pack_features(places, stored, start)
            )

    # Changes

    def write_change(self, change: Transaction, what: LabelChange) -> None:
        """Write new labels, their loss, or removals."""
        about = change.about
        change.put(PartKey("change", about["changes"]), len(what.places), pack_change(what))
        about["changes"] += 1
        about["changed"] += len(what.places)
        self.touch(change.parts.starts("entries"), what.places)
        if about["changed"] > max(MAX_WAITING, self._places // 8) or about["changes"] > MAX_WAITING:
            self._fold(change)

    def touch(self, starts: list[int], places: Counts) -> None:
        """Note which parts have entries that have changed since they were written."""
        at = np.searchsorted(starts, places, side="right") - 1
        self._touched.update(starts[i] for i in np.unique(at).tolist())

    def _fold(self, change: Transaction) -> None:
        """Write changed entries again, and delete the changes."""
        stops = dict(pairwise([*change.parts.starts("entries"), self._places]))
        for start in sorted(self._touched):
            self._write_range(change, start, stops[start])
        self._touched = set()
        delete_all(change, "change")
        change.about.update(changes=0, changed=0, folds=change.about["folds"] + 1)

    def write_code_changes(self, change: Transaction, gained: Counts, lost: Counts) -> None:
        """Write codes of old entries that are new, and make room where entries have left."""
        if len(gained):
            starts = change.parts.starts("codes")
            at = np.searchsorted(starts, gained, side="right") - 1
            stops = [*starts[1:], self._places] if starts else []
            for i in np.unique(at[at >= 0]).tolist():
                self._write_codes(change, starts[i], stops[i])
            if (at < 0).any():
                first = int(gained[0])
                self._write_codes(change, first, starts[0] if starts else self._places)
        self._count_lost(change, "codes", lost)
        stops_of = dict(pairwise([*change.parts.starts("codes"), self._places]))
        for key in self._worth_rewriting(change, "codes"):
            self._write_codes(change, key.start, stops_of[key.start])
        dropped, self._features.dropped = self._features.dropped, []
        for places in dropped:
            self._count_lost(change, "features", places[places < self._places])
        for key in self._worth_rewriting(change, "features"):
            self._rewrite_features(change, [key.start])

    def _count_lost(self, change: Transaction, kind: str, places: Counts) -> None:
        starts = change.parts.starts(kind)
        at = np.searchsorted(starts, places, side="right") - 1
        for i, lost in zip(*np.unique(at[at >= 0], return_counts=True), strict=True):
            self.count_lost(PartKey(kind, starts[i]), int(lost))

    def count_lost(self, key: PartKey, lost: int) -> None:
        """Note that entries have left a part."""
        if lost > 0:
            self._lost[key] = self._lost.get(key, 0) + lost

    def _worth_rewriting(self, change: Transaction, kind: str) -> list[PartKey]:
        """Return the parts of a kind that have lost a quarter of their entries."""
        lost = [key for key in self._lost if key.kind == kind and key in change.parts]
        return [key for key in lost if 4 * self._lost[key] >= change.parts[key].rows]


def publications(hasher: StreamHasher) -> int:
    """Return how often the exact learner has solved all labels; 0 for others, which do not."""
    return hasher.generation_ if getattr(hasher, "learner", None) == "exact" else 0


def stamp_of(hasher: StreamHasher) -> tuple[Any, ...]:
    """Return a value that is another one after a hasher has learned something."""
    params = {name: str(value) for name, value in hasher.get_params().items()}
    learned = hasher.lessons_, getattr(hasher, "helping_rows_", 0)
    return hasher.version_, len(hasher.words_), learned, params


def coder_stamp(coder: Likeness | None) -> tuple[bool, int]:
    """Return a value that is another one after what makes likeness codes has changed."""
    return (False, 0) if coder is None else (coder.settled, len(coder.first))
