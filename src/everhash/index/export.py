"""An index as plain columns: files are written from them, and an index is rebuilt from them.

Features do not come this way: they go to where `Index(features=...)` keeps them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Bools, Counts, Words
from everhash.index.cells import Cells
from everhash.index.columns import REMOVED, SEVERAL, UNLABELLED, Rows
from everhash.index.likeness import Likeness
from everhash.index.reading import ReadableEntries
from everhash.learn.mapping import FrozenMapping
from everhash.stream import Labels
from everhash.wire.ids import IdList, plain_ids


class Records(NamedTuple):
    """A range of entries, without codes and features."""

    columns: Rows
    """The columns of `everhash.index.columns` that files keep, by name."""
    several: Counts
    """(m, 2) place and label number, for entries with several labels."""
    ids: IdList | None
    """None if each entry's id is its place."""

    def __len__(self) -> int:
        return len(self.columns["labels"])

    def after(self, skip: int, place: int) -> Records:
        """Return the records without the first `skip` ones, the next being at this place."""
        columns = {name: column[skip:] for name, column in self.columns.items()}
        several = self.several[self.several[:, 0] >= place]
        return Records(columns, several, None if self.ids is None else self.ids[skip:])


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

    @classmethod
    def joined(cls, parts: list[CodeRecords]) -> CodeRecords:
        """Return the codes of several ranges as one."""
        if not parts:
            return cls.none()
        return cls(
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.homes for part in parts]),
            np.concatenate([part.words for part in parts]),
        )

    def part(self, chosen: slice | Bools) -> CodeRecords:
        """Return some of them."""
        return CodeRecords(self.places[chosen], self.homes[chosen], self.words[chosen])


class LabelChange(NamedTuple):
    """New labels of entries, the loss of their labels, or their removal."""

    places: Counts
    rows: Counts
    """Which of `places` each label is for; one that has no label here has none from now on."""
    numbers: Counts
    removed: bool = False
    taught: bool = False
    """Whether the hasher has learned the entries with these labels."""

    @classmethod
    def removal(cls, places: Counts) -> LabelChange:
        """Return the change that removes entries."""
        return cls(places, np.empty(0, np.int64), np.empty(0, np.int64), removed=True)

    @classmethod
    def clearing(cls, places: Counts) -> LabelChange:
        """Return the change that takes the labels of entries away."""
        return cls(places, np.empty(0, np.int64), np.empty(0, np.int64))

    def part(self, wanted: Bools) -> LabelChange:
        """Return the change restricted to some of its entries."""
        number = np.cumsum(wanted) - 1
        mine = wanted[self.rows]
        rows = number[self.rows[mine]]
        return self._replace(places=self.places[wanted], rows=rows, numbers=self.numbers[mine])


class RecordTable:
    """Records of many entries, read range by range and then changed change by change."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        """Place of the first entry."""
        self._parts: list[Records] = []
        self.columns: Rows = {"labels": np.empty(0, np.int32)}
        self.several: dict[int, tuple[int, ...]] = {}

    def extend(self, records: Records) -> None:
        """Append a range of entries."""
        self._parts.append(records)
        for place, number in records.several.tolist():
            self.several[place] = (*self.several.get(place, ()), number)

    def join(self) -> None:
        """Join all ranges into one, before the first change."""
        names = self._parts[0].columns if self._parts else ()
        for name in names:
            self.columns[name] = np.concatenate([part.columns[name] for part in self._parts])

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n,) labels by number, or marks."""
        labels: NDArray[np.int32] = self.columns["labels"]
        return labels

    def ids(self) -> list[IdList]:
        """Return the ids of each range."""
        found: list[IdList] = []
        start = self.first
        for part in self._parts:
            stop = start + len(part)
            found.append(np.arange(start, stop) if part.ids is None else part.ids)
            start = stop
        return found

    def change(self, change: LabelChange) -> None:
        """Give entries other labels or none, or mark them as removed."""
        slots = change.places - self.first
        for place in change.places[self.labels[slots] == SEVERAL].tolist():
            del self.several[place]
        self.labels[slots] = REMOVED if change.removed else UNLABELLED
        self.labels[slots[change.rows]] = change.numbers
        if not change.removed and "taught" in self.columns:
            self.columns["taught"][slots] = change.taught
        counts = np.bincount(change.rows, minlength=len(change.places))
        for row in np.flatnonzero(counts > 1).tolist():
            place = int(change.places[row])
            self.labels[place - self.first] = SEVERAL
            self.several[place] = tuple(change.numbers[change.rows == row].tolist())


class Exporting(ReadableEntries):
    """The third part of an `Index`: out to columns, and back from them."""

    def export(self, start: int, stop: int) -> Records:
        """Return the entries at places from start to stop."""
        columns = self._table.stored(start, stop)
        several = [
            (place, number)
            for place in (start + np.flatnonzero(columns["labels"] == SEVERAL)).tolist()
            for number in self._labels.several[place]
        ]
        pairs = np.array(several, np.int64).reshape(-1, 2)
        return Records(columns, pairs, self._ids.between(start, stop))

    def export_codes(self, start: int, stop: int) -> CodeRecords:
        """Return the codes of the entries at places from start to stop."""
        if self._coded is None:
            return CodeRecords.none()
        return CodeRecords(*self._coded.codes(start, stop))

    def restore(
        self,
        records: RecordTable,
        codes: CodeRecords,
        mapping: FrozenMapping | None,
        coder: Likeness | None,
    ) -> None:
        """Fill an empty index."""
        if mapping is not None:
            self._coded = self._new_coded(mapping)
        if self._coder is not None and coder is not None:
            self._coder = coder
        self.append(records, codes)

    def append(self, records: RecordTable, codes: CodeRecords) -> None:
        """Add entries after those that are there, with the codes of the unlabelled ones."""
        first, labels = self.arrived, records.labels  # groups wait until somebody asks for them
        for ids in records.ids():
            self._ids.extend(ids)
        self._table.append(records.columns)
        self._labels.several |= records.several
        self._removed += int((labels == REMOVED).sum())
        if self._coded is not None:
            living = self.has_code(labels[codes.places - first])
            self._coded.restore(*(codes if living.all() else codes.part(living)))

    def list_cells(self, cells: Cells, numbers: Counts) -> None:
        """Take over cells, and those of the entries that they do not list yet."""
        self._cells = cells
        cells.append(numbers.astype(np.int32))

    def apply(self, change: LabelChange) -> None:
        """Apply a change that another process made to entries that are here."""
        if change.removed:
            self.forget(change.places)
        elif len(change.rows) == 0:
            had = self._labels.rows[change.places] != UNLABELLED
            self.clear_labels(np.sort(change.places[had]))
        else:
            names = self.hasher.labels_
            values = [names[number] for number in change.numbers.tolist()]
            labels = Labels(values, change.rows, np.arange(len(values)))
            self.relabel(change.places, labels, taught=change.taught)

    def compact(self) -> Counts:
        """Drop removed entries for good, so that the others move up; return their old places."""
        labels, several = self.label_column, self._labels.several
        kept = np.flatnonzero(labels != REMOVED)
        columns = {
            name: column[kept] for name, column in self._table.stored(0, len(labels)).items()
        }
        pairs = [(place, number) for place, of in several.items() for number in of]
        moved = np.array(pairs, np.int64).reshape(-1, 2)
        moved[:, 0] = np.searchsorted(kept, moved[:, 0])
        records = RecordTable()
        records.extend(Records(columns, moved, self._ids.at(kept)))
        records.join()
        codes, mapping = self.export_codes(0, len(labels)), self.coded_by
        codes = codes._replace(places=np.searchsorted(kept, codes.places))
        next_id = self._ids.next
        if self._coded is not None:
            self._coded.stop_refresh()
        if self._clustering is not None:
            self._clustering.stop()
        self._empty()
        if self._cells is not None:
            self._cells = self._cells.renumbered(kept)
        if self._coder is not None:
            self._coder.first = self._coder.first[kept[kept < len(self._coder.first)]]
        self._features.renumber(kept)
        self.restore(records, codes, mapping, self._coder)
        self._ids.next = next_id
        self.numbering = object()
        return kept

    def continues(self, older: Exporting) -> bool:
        """Whether the entries of an older index have the same numbers here."""
        places = np.arange(min(older.arrived, self.arrived))
        before, now = older._ids.at(places), self._ids.at(places)
        return older.arrived <= self.arrived and plain_ids(before) == plain_ids(now)

    def continue_ids(self, next_id: int) -> None:
        """Let default ids go on from this one, if it is beyond all that are there."""
        self._ids.next = max(self._ids.next, next_id)

    def first_rows_fit(self) -> bool:
        """Whether the rows that wait for the likeness direction are those of the first entries."""
        coder = self._coder
        if coder is None or len(coder.first) == 0:
            return True
        codes = self.likeness_column[: len(coder.first)]
        return np.array_equal(codes, coder.encode(coder.first))

    def ids_are_distinct(self) -> bool:
        """Whether no two entries have the same id."""
        ids = self._ids.between(0, self.arrived)
        if ids is None or self._ids.never_came_again():
            return True
        places = np.arange(self.arrived)
        return bool((self._ids.find(ids) == places)[self._is_living(places)].all())
