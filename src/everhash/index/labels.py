"""The label numbers of entries, by place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Counts
from everhash.learn.growing import GrowingArray

SCAN_ROWS = 65_536
"""Entries that `living` examines at a time."""

UNLABELLED, REMOVED, SEVERAL = -1, -2, -3
"""In place of a label's number: the entry has no label, was removed, or has several labels."""


class EntryLabels:
    """A column with the label of every entry ever added, by place."""

    def __init__(self) -> None:
        self._column: GrowingArray[np.int32] = GrowingArray((), np.int32)
        self.several: dict[int, tuple[int, ...]] = {}
        """The labels of entries that have more than one."""

    @property
    def rows(self) -> NDArray[np.int32]:
        """The column, as a view: writing to it writes to the labels."""
        return self._column.rows

    def grow_to(self, length: int) -> None:
        """Append unlabelled entries up to this number."""
        first = len(self._column)
        self._column.grow_to(length)
        self._column.rows[first:] = UNLABELLED

    def give(self, places: Counts, numbers: Counts) -> None:
        """Replace the labels of entries: one place for each label, so a place may repeat."""
        self.clear(places)
        distinct, counts = np.unique(places, return_counts=True)
        self.rows[places] = numbers
        for place in distinct[counts > 1].tolist():
            self.rows[place] = SEVERAL
            self.several[place] = tuple(numbers[places == place].tolist())

    def clear(self, places: Counts, mark: int = UNLABELLED) -> None:
        """Remove the labels of entries, and mark them as unlabelled or removed."""
        for place in places[self.rows[places] == SEVERAL].tolist():
            self.several.pop(place, None)
        self.rows[places] = mark

    def of(self, place: int) -> tuple[int, ...]:
        """Return the labels of an entry."""
        number = int(self.rows[place])
        if number == SEVERAL:
            return self.several[place]
        return () if number < 0 else (number,)

    def living(self, start: int, stop: int, limit: int, *, unlabelled: bool) -> list[int]:
        """Return the first places of entries that are not removed, or of those without a label."""
        found: list[int] = []
        while start < stop and len(found) < limit:
            rows = self.rows[start : min(start + SCAN_ROWS, stop)]
            wanted = rows == UNLABELLED if unlabelled else rows != REMOVED
            found += (start + np.flatnonzero(wanted)[: limit - len(found)]).tolist()
            start += SCAN_ROWS
        return found

    def first(self, places: Counts) -> Counts:
        """Return each entry's first label; -1 if it has none, and for place -1."""
        numbers = np.where(places >= 0, self.rows[places], UNLABELLED).astype(np.int64)
        for at in zip(*np.nonzero(numbers == SEVERAL), strict=True):
            numbers[at] = self.several[int(places[at])][0]
        return numbers

    def places_with(self, numbers: Counts) -> Counts:
        """Return the places of entries with one of these labels, ascending."""
        wanted = set(numbers.tolist())
        several = [place for place, of in self.several.items() if not wanted.isdisjoint(of)]
        found = np.flatnonzero(np.isin(self.rows, numbers))
        return np.union1d(found, np.array(several, np.int64))
