"""Turning what a call changed into parts of the file, and keeping those few and large."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.collection.formats import (
    Lesson,
    pack_change,
    pack_codes,
    pack_entries,
    pack_features,
    pack_lesson,
    pack_mapping,
    weight,
)
from everhash.collection.stored_features import FiledFeatures
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.index.records import CodeRecords, LabelChange, codes_of, records_of
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher
from everhash.store.parts import PartKey
from everhash.store.transaction import Transaction

Counts = NDArray[np.int64]

PIECE = 64 << 20
"""Bytes of a model or mapping in one part: SQLite's blobs have a limit."""
ENTRIES = 65_536
"""Entries in one part, at most."""
BLOCK_BYTES = 8 << 20
"""Bytes of features in one part, about."""
ALIKE = 8
"""Parts of a size that become one."""
SMALL = 4096
"""Lessons or changes that may wait before they are taken up."""


class Recorder:
    """Writes what has changed since the last commit.

    The hasher is written whole only when the rows learned since weigh more than it does; before
    that the rows themselves are, and learned again when the file is opened. New entries become a
    part of their own; eight parts of a size become one. New labels and removals wait as changes
    until they are worth writing their entries again.
    """

    def __init__(self, hasher: StreamHasher, index: Index, features: FiledFeatures) -> None:
        self._hasher, self._index, self._features = hasher, index, features
        self._places = 0
        self._mapping: FrozenMapping | None = None
        self._stamp = stamp_of(hasher)
        self._dead: dict[int, int] = {}
        self._touched: set[int] = set()
        self._block = max(1, min(ENTRIES, BLOCK_BYTES // (2 * hasher.n_features_in_ + 32)))

    def mark_saved(self) -> None:
        """Mark the current state as saved."""
        self._places = len(self._index._ids)
        self._mapping = self._index.coded_by
        self._stamp = stamp_of(self._hasher)

    @property
    def in_step(self) -> bool:
        """Whether nobody has taught the hasher behind the collection's back."""
        return stamp_of(self._hasher) == self._stamp

    # The hasher

    def write_hasher(
        self, change: Transaction, lesson: Lesson | None, new: int, *, whole: bool
    ) -> None:
        """Write a lesson with so many new labels, or the hasher if lessons weigh more than it.

        `whole` if the hasher has learned more than the lesson.
        """
        if lesson is None:
            if whole:
                self._write_model(change)
            return
        about = change.about
        total = about["lesson_bytes"] + weight(lesson, new, self._hasher)
        if whole or total > about["model_bytes"] or about["lessons"] == SMALL:
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
        """Write the mapping of the unlabelled entries, and all their codes, if it is another."""
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
        for start in range(self._places, stop, ENTRIES):
            self._write_range(change, start, min(start + ENTRIES, stop))
        self._merge_entries(change)
        self._write_blocks(change, codes_of(self._index, self._places, stop))
        self._merge_blocks(change)
        change.about["places"] = stop

    def _write_blocks(self, change: Transaction, codes: CodeRecords) -> None:
        """Write the codes and features of entries that are new."""
        pending, self._features.pending = self._features.pending, None
        for first in range(0, len(codes.places), self._block):
            part = slice(first, first + self._block)
            start, n = int(codes.places[first]), len(codes.places[part])
            change.put(PartKey("codes", start), n, pack_codes(_slice(codes, part), start))
            if pending is not None:
                data = pack_features(pending[0][part], pending[1][part], start)
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
        """Make one part of the last ones where there are many."""
        for starts in iter(lambda: many_small(change, "entries", ENTRIES), []):
            for start in starts:
                change.delete(PartKey("entries", start))
                self._touched.discard(start)
            self._write_range(change, starts[0], len(self._index._ids))

    def _merge_blocks(self, change: Transaction) -> None:
        for starts in iter(lambda: many_small(change, "codes", self._block), []):
            self._rewrite(change, starts, len(self._index._ids))

    def _rewrite(self, change: Transaction, starts: list[int], stop: int) -> None:
        """Make one block of those that start here, without entries that are gone."""
        codes = codes_of(self._index, starts[0], stop)
        keys = [PartKey("features", start) for start in starts if self._index.keep_features]
        parts = [self._features.part(key, change.parts[key]) for key in keys]
        for start in starts:
            change.delete(PartKey("codes", start))
            self._dead.pop(start, None)
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
        """Write new labels or removals; `coded` are those places that had no label before."""
        about = change.about
        change.put(PartKey("change", about["changes"]), len(what.places), pack_change(what))
        about["changes"] += 1
        about["changed"] += len(what.places)
        self.touch(change.parts.starts("entries"), what.places)
        if about["changed"] > max(SMALL, self._places // 8) or about["changes"] > SMALL:
            self._fold(change)
        self._bury(change, coded)

    def touch(self, starts: list[int], places: Counts) -> None:
        """Remember which parts hold entries that have changed since."""
        at = np.searchsorted(starts, places, side="right") - 1
        self._touched.update(starts[i] for i in np.unique(at).tolist())

    def _fold(self, change: Transaction) -> None:
        """Write the entries again that changes touched; the changes go."""
        stops = dict(pairwise([*change.parts.starts("entries"), self._places]))
        for start in sorted(self._touched):
            self._write_range(change, start, stops[start])
        self._touched = set()
        delete_all(change, "change")
        change.about.update(changes=0, changed=0, folds=change.about["folds"] + 1)

    def _bury(self, change: Transaction, coded: Counts) -> None:
        """Count entries that left their block; a block that lost a quarter is written again."""
        starts = change.parts.starts("codes")
        at = np.searchsorted(starts, coded, side="right") - 1
        for i, lost in zip(*np.unique(at, return_counts=True), strict=True):
            self.lose(starts[i], int(lost))
        kind = "features" if self._index.keep_features else "codes"
        stops = dict(pairwise([*starts, self._places]))
        for start, lost in list(self._dead.items()):
            if 4 * lost >= change.parts[PartKey(kind, start)].rows:
                self._rewrite(change, [start], stops[start])

    def lose(self, start: int, lost: int) -> None:
        """Remember that entries of a block are gone."""
        if lost:
            self._dead[start] = self._dead.get(start, 0) + lost


def stamp_of(hasher: StreamHasher) -> tuple[Any, ...]:
    """Return what differs whenever a hasher has learned something."""
    params = {name: str(value) for name, value in hasher.get_params().items()}
    return hasher.version_, len(hasher.words_), hasher.lessons_, params


def many_small(change: Transaction, kind: str, most: int) -> list[int]:
    """Return the starts of the last parts, if there are many none of which is large.

    Parts are sorted into sizes that differ eightfold; those of an eighth of `most` stay as they
    are. So a row is written again at most once a size.
    """
    starts: list[int] = []
    largest = 0
    for start in reversed(change.parts.starts(kind)):
        rows = change.parts[PartKey(kind, start)].rows
        size = (max(rows, 1).bit_length() + 2) // 3
        full = rows * ALIKE >= most
        if len(starts) >= ALIKE and (full or size > largest):
            break
        if full:
            return []
        largest = max(largest, size)
        starts.append(start)
    return starts[::-1] if len(starts) >= ALIKE else []


def write_pieces(change: Transaction, kind: str, data: bytes) -> None:
    """Write bytes in place of what a kind held, in as many parts as it takes."""
    delete_all(change, kind)
    for key, piece in pieces_of(kind, data).items():
        change.put(key, 0, piece)


def pieces_of(kind: str, data: bytes) -> dict[PartKey, bytes]:
    """Cut bytes into parts."""
    starts = range(0, len(data), PIECE)
    return {PartKey(kind, i): data[start : start + PIECE] for i, start in enumerate(starts)}


def delete_all(change: Transaction, kind: str) -> None:
    """Delete all parts of a kind."""
    for start in change.parts.starts(kind):
        change.delete(PartKey(kind, start))


def _slice(codes: CodeRecords, part: slice) -> CodeRecords:
    return CodeRecords(codes.places[part], codes.homes[part], codes.words[part])
