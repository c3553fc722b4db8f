"""An index as plain columns, to write to a file and to rebuild from it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Counts, Words
from everhash.index.index import Index
from everhash.index.labels import REMOVED, SEVERAL
from everhash.learn.mapping import FrozenMapping
from everhash.stream import Labels
from everhash.wire.ids import IdList


class Records(NamedTuple):
    """A range of entries, without codes and features."""

    labels: NDArray[np.int32]
    """(n,) each one's label by number, or UNLABELLED, REMOVED or SEVERAL."""
    several: Counts
    """(m, 2) place and label number, for entries with several labels."""
    ids: IdList | None
    """None if each entry's id is its place."""


class CodeRecords(NamedTuple):
    """The codes of entries that keep bits of their own, by ascending place."""

    places: Counts
    homes: Counts
    words: Words
    """(n, w) packed bits."""

    @classmethod
    def none(cls) -> CodeRecords:
        """Return no codes."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 1), np.uint64))


class LabelChange(NamedTuple):
    """New labels of entries, or their removal."""

    places: Counts
    rows: Counts
    """Which of `places` each label is for; empty if they are removed."""
    numbers: Counts


def records_of(index: Index, start: int, stop: int) -> Records:
    """Return the entries at places from start to stop."""
    labels = index._labels.rows[start:stop].copy()
    several = [
        (place, number)
        for place in (start + np.flatnonzero(labels == SEVERAL)).tolist()
        for number in index._labels.several[place]
    ]
    pairs = np.array(several, np.int64).reshape(-1, 2)
    return Records(labels, pairs, index._ids.between(start, stop))


def codes_of(index: Index, start: int, stop: int) -> CodeRecords:
    """Return the codes of the entries at places from start to stop."""
    if index._coded is None:
        return CodeRecords.none()
    return CodeRecords(*index._coded.codes(start, stop))


def join_codes(parts: list[CodeRecords]) -> CodeRecords:
    """Return the codes of several ranges as one."""
    if not parts:
        return CodeRecords.none()
    return CodeRecords(
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.homes for part in parts]),
        np.concatenate([part.words for part in parts]),
    )


class EntryColumns:
    """Columns of all entries, read range by range and then changed change by change."""

    def __init__(self) -> None:
        self._labels: list[NDArray[np.int32]] = []
        self.labels: NDArray[np.int32] = np.empty(0, np.int32)
        self.several: dict[int, tuple[int, ...]] = {}

    def extend(self, records: Records, index: Index) -> None:
        """Append a range of entries; their ids are added to the index at once."""
        n, start = len(records.labels), len(index._ids)
        index._ids.extend(np.arange(start, start + n) if records.ids is None else records.ids)
        self._labels.append(records.labels)
        for place, number in records.several.tolist():
            self.several[place] = (*self.several.get(place, ()), number)

    def join(self) -> None:
        """Join all ranges into one column, before the first change."""
        self.labels = np.concatenate([np.empty(0, np.int32), *self._labels])
        self._labels = []

    def change(self, change: LabelChange, first: int = 0) -> None:
        """Give entries other labels, or mark them as removed; `first` is the place of row 0."""
        slots = change.places - first
        for place in change.places[self.labels[slots] == SEVERAL].tolist():
            del self.several[place]
        if len(change.numbers) == 0:
            self.labels[slots] = REMOVED
            return
        self.labels[slots[change.rows]] = change.numbers
        counts = np.bincount(change.rows, minlength=len(change.places))
        for row in np.flatnonzero(counts > 1).tolist():
            place = int(change.places[row])
            self.labels[place - first] = SEVERAL
            self.several[place] = tuple(change.numbers[change.rows == row].tolist())


def restore(
    index: Index, columns: EntryColumns, mapping: FrozenMapping | None, codes: CodeRecords
) -> None:
    """Fill an empty index that has the ids already."""
    if mapping is not None:
        index._coded = index._new_coded(mapping)
    append(index, columns, 0, codes)


def append(index: Index, columns: EntryColumns, first: int, codes: CodeRecords) -> None:
    """Add entries from place `first` on to an index that has their ids already."""
    labels = columns.labels
    index._labels.grow_to(first + len(labels))
    index._labels.rows[first:] = labels
    index._labels.several |= columns.several
    index._removed += int((labels == REMOVED).sum())
    pairs = [(place, number) for place, of in columns.several.items() for number in of]
    extra = np.array(pairs, np.int64).reshape(-1, 2)
    single = np.flatnonzero(labels >= 0)
    places = np.concatenate([first + single, extra[:, 0]])
    numbers = np.concatenate([labels[single].astype(np.int64), extra[:, 1]])
    order = np.argsort(places, kind="stable") if len(extra) else slice(None)
    if index.hasher.assigns_codewords:
        index._postings.append(numbers[order], places[order])
    if index._coded is not None:
        living = index.has_code(labels[codes.places - first])
        index._coded.restore(codes.places[living], codes.homes[living], codes.words[living])


def replay(index: Index, change: LabelChange, names: list[Hashable]) -> None:
    """Apply a change to an index."""
    if len(change.places) == 0:
        return
    if len(change.numbers) == 0:
        index.forget(change.places)
    else:
        values = [names[number] for number in change.numbers.tolist()]
        index.relabel(change.places, Labels(values, change.rows, np.arange(len(values))))
