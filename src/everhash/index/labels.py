"""The labels of entries: one by number in the table, several in a dictionary beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Counts
from everhash.index.columns import REMOVED, SEVERAL, UNLABELLED, EntryTable

SCAN_ROWS = 65_536
"""Entries that `living` examines at a time."""


class EntryLabels:
    """Reads and writes the column of labels."""

    def __init__(self, table: EntryTable) -> None:
        self._table = table
        self.several: dict[int, tuple[int, ...]] = {}
        """The labels of entries that have more than one."""

    @property
    def rows(self) -> NDArray[np.int32]:
        """The column, as a view: writing to it writes to the table."""
        return self._table["labels"]

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

    def pairs(self, places: Counts) -> tuple[Counts, Counts]:
        """Return (position in `places`, label number) for each label of these entries."""
        numbers = self.rows[places].astype(np.int64)
        single, several = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers == SEVERAL)
        extra = [(at, n) for at in several.tolist() for n in self.several[int(places[at])]]
        more = np.array(extra, np.int64).reshape(-1, 2)
        at = np.concatenate([single, more[:, 0]])
        order = np.argsort(at, kind="stable")
        return at[order], np.concatenate([numbers[single], more[:, 1]])[order]

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
        numbers = np.full(places.shape, UNLABELLED, np.int64)
        there = places >= 0
        numbers[there] = self.rows[places[there]]
        for at in zip(*np.nonzero(numbers == SEVERAL), strict=True):
            numbers[at] = self.several[int(places[at])][0]
        return numbers

    def places_with(self, numbers: Counts) -> Counts:
        """Return the places of entries with one of these labels, ascending."""
        wanted = set(numbers.tolist())
        several = [place for place, of in self.several.items() if not wanted.isdisjoint(of)]
        found = np.flatnonzero(np.isin(self.rows, numbers))
        return np.union1d(found, np.array(several, np.int64))
