"""Writing what a call has changed as parts of the file, and keeping those few and large."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.collection.formats import (
    Lesson,
    lesson_bytes,
    pack_change,
    pack_codes,
    pack_entries,
    pack_features,
    pack_lesson,
    pack_mapping,
)
from everhash.collection.stored_features import FeatureStore
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.index.records import CodeRecords, LabelChange, codes_of, records_of
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher
from everhash.store.parts import PartKey
from everhash.store.transaction import Transaction

Counts = NDArray[np.int64]

PIECE_BYTES = 64 << 20
"""Bytes of a model or mapping in one part: SQLite's blobs have a limit."""
PART_ENTRIES = 65_536
"""Entries in one part, at most."""
BLOCK_BYTES = 8 << 20
"""Bytes of features in one part, about."""
MERGED_PARTS = 8
"""So many parts of a size become one."""
MAX_WAITING = 4096
"""Lessons, changes or changed entries that may wait before the model or the entries are written."""


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
        self._lost: dict[int, int] = {}
        """Entries of each block that have left it but still take space there."""
        self._touched: set[int] = set()
        """Starts of the parts whose entries have changed since they were written."""
        self._block = max(1, min(PART_ENTRIES, BLOCK_BYTES // (2 * hasher.n_features_in_ + 32)))

    def mark_saved(self) -> None:
        """Mark the current state as saved."""
        self._places = len(self._index._ids)
        self._mapping = self._index.coded_by
        self._stamp = stamp_of(self._hasher)

    @property
    def hasher_is_saved(self) -> bool:
        """Whether the hasher has learned nothing that the file does not have."""
        return stamp_of(self._hasher) == self._stamp

    # The hasher

    def write_hasher(
        self, change: Transaction, lesson: Lesson | None, new: int, *, whole: bool
    ) -> None:
        """Write a lesson with so many new labels, or the hasher once lessons take more bytes.

        `whole` if the hasher has learned more than the lesson.
        """
        if lesson is None:
            if whole:
                self._write_model(change)
            return
        about = change.about
        total = about["lesson_bytes"] + lesson_bytes(lesson, new, self._hasher)
        if whole or total > about["model_bytes"] or about["lessons"] == MAX_WAITING:
            self._write_model(change)
            return
        change.put(PartKey("lesson", about["lessons"]), len(lesson.rows), pack_lesson(lesson))
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

    # Entries

    def write_entries(self, change: Transaction) -> None:
        """Write entries that are new."""
        stop = len(self._index._ids)
        for start in range(self._places, stop, PART_ENTRIES):
            self._write_range(change, start, min(start + PART_ENTRIES, stop))
        self._merge_entries(change)
        self._write_blocks(change, codes_of(self._index, self._places, stop))
        self._merge_blocks(change)
        change.about["places"] = stop

    def _write_blocks(self, change: Transaction, codes: CodeRecords) -> None:
        """Write the codes and features of entries that are new."""
        features, self._features.unwritten = self._features.unwritten, None
        for first in range(0, len(codes.places), self._block):
            part = slice(first, first + self._block)
            start, n = int(codes.places[first]), len(codes.places[part])
            change.put(PartKey("codes", start), n, pack_codes(_slice(codes, part), start))
            if features is not None:
                data = pack_features(features[0][part], features[1][part], start)
                change.put(PartKey("features", start), n, data)

    def _write_range(self, change: Transaction, start: int, stop: int) -> None:
        records = records_of(self._index, start, stop)
        change.put(PartKey("entries", start), stop - start, pack_entries(records, start))

    def _write_codes(self, change: Transaction, start: int, stop: int) -> None:
        codes = codes_of(self._index, start, stop)
        key = PartKey("codes", start)
        if len(codes.places) == 0:
            change.delete(key)
            if PartKey("features", start) in change.parts:
                change.delete(PartKey("features", start))
        else:
            change.put(key, len(codes.places), pack_codes(codes, start))

    def _merge_entries(self, change: Transaction) -> None:
        """Merge the last parts into one where there are many small ones."""
        for starts in iter(lambda: many_small(change, "entries", PART_ENTRIES), []):
            for start in starts:
                change.delete(PartKey("entries", start))
                self._touched.discard(start)
            self._write_range(change, starts[0], len(self._index._ids))

    def _merge_blocks(self, change: Transaction) -> None:
        for starts in iter(lambda: many_small(change, "codes", self._block), []):
            self._rewrite(change, starts, len(self._index._ids))

    def _rewrite(self, change: Transaction, starts: list[int], stop: int) -> None:
        """Write these blocks as one, without entries that have left them."""
        codes = codes_of(self._index, starts[0], stop)
        keys = [PartKey("features", start) for start in starts if self._index.keep_features]
        parts = [self._features.part(key, change.parts[key]) for key in keys]
        for start in starts:
            change.delete(PartKey("codes", start))
            self._lost.pop(start, None)
        for key in keys:
            change.delete(key)
        if len(codes.places) == 0:
            return
        first, n = starts[0], len(codes.places)
        change.put(PartKey("codes", first), n, pack_codes(codes, first))
        if keys:
            alive = [np.isin(places, codes.places, assume_unique=True) for places, _ in parts]
            stored = StoredFeatures(
                np.concatenate([s.halves[a] for (_, s), a in zip(parts, alive, strict=True)]),
                np.concatenate([s.scales[a] for (_, s), a in zip(parts, alive, strict=True)]),
            )
            change.put(PartKey("features", first), n, pack_features(codes.places, stored, first))

    # Changes

    def write_change(self, change: Transaction, what: LabelChange, coded: Counts) -> None:
        """Write new labels or removals; `coded` are the places that had their own bits before."""
        about = change.about
        change.put(PartKey("change", about["changes"]), len(what.places), pack_change(what))
        about["changes"] += 1
        about["changed"] += len(what.places)
        self.touch(change.parts.starts("entries"), what.places)
        if about["changed"] > max(MAX_WAITING, self._places // 8) or about["changes"] > MAX_WAITING:
            self._fold(change)
        self._compact(change, coded)

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

    def _compact(self, change: Transaction, coded: Counts) -> None:
        """Count entries that left their block; write a block again that has lost a quarter."""
        starts = change.parts.starts("codes")
        at = np.searchsorted(starts, coded, side="right") - 1
        for i, lost in zip(*np.unique(at, return_counts=True), strict=True):
            self.count_lost(starts[i], int(lost))
        kind = "features" if self._index.keep_features else "codes"
        stops = dict(pairwise([*starts, self._places]))
        for start, lost in list(self._lost.items()):
            if 4 * lost >= change.parts[PartKey(kind, start)].rows:
                self._rewrite(change, [start], stops[start])

    def count_lost(self, start: int, lost: int) -> None:
        """Note that entries have left a block."""
        if lost:
            self._lost[start] = self._lost.get(start, 0) + lost


def stamp_of(hasher: StreamHasher) -> tuple[Any, ...]:
    """Return a value that is another one after a hasher has learned something."""
    params = {name: str(value) for name, value in hasher.get_params().items()}
    return hasher.version_, len(hasher.words_), hasher.lessons_, params


def many_small(change: Transaction, kind: str, most: int) -> list[int]:
    """Return the starts of the last parts to be merged; none if they are few or large.

    Parts are sorted into sizes that differ eightfold; those of an eighth of `most` rows stay as
    they are. So a row is written again at most once a size.
    """
    starts: list[int] = []
    largest = 0
    for start in reversed(change.parts.starts(kind)):
        rows = change.parts[PartKey(kind, start)].rows
        size = (max(rows, 1).bit_length() + 2) // 3
        full = rows * MERGED_PARTS >= most
        if len(starts) >= MERGED_PARTS and (full or size > largest):
            break
        if full:
            return []
        largest = max(largest, size)
        starts.append(start)
    return starts[::-1] if len(starts) >= MERGED_PARTS else []


def write_pieces(change: Transaction, kind: str, data: bytes) -> None:
    """Replace all parts of a kind by these bytes, cut into pieces."""
    delete_all(change, kind)
    for key, piece in pieces_of(kind, data).items():
        change.put(key, 0, piece)


def pieces_of(kind: str, data: bytes) -> dict[PartKey, bytes]:
    """Cut bytes into parts."""
    starts = range(0, len(data), PIECE_BYTES)
    return {PartKey(kind, i): data[start : start + PIECE_BYTES] for i, start in enumerate(starts)}


def delete_all(change: Transaction, kind: str) -> None:
    """Delete all parts of a kind."""
    for start in change.parts.starts(kind):
        change.delete(PartKey(kind, start))


def _slice(codes: CodeRecords, part: slice) -> CodeRecords:
    return CodeRecords(codes.places[part], codes.homes[part], codes.words[part])
