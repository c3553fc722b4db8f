"""The columns that every entry has, by place.

A new one begins with a line in `COLUMNS`; docs/architecture.md says what else it touches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import GrowingArray

UNLABELLED, REMOVED, SEVERAL = -1, -2, -3
"""In place of a label's number: the entry has no label, was removed, or has several labels."""


class Column(NamedTuple):
    """What one field of entries is."""

    name: str
    dtype: type[np.generic]
    fill: int = 0
    """What an entry has until it is given something else."""
    stored: bool = True
    """Whether files keep it; the others follow from the rest."""
    likeness: bool = False
    """Whether it is the likeness code, which is as wide as the features ask for."""


COLUMNS = (
    Column("labels", np.int32, fill=UNLABELLED),
    Column("taught", np.bool_),
    Column("guesses", np.int32, fill=-1, stored=False),
    Column("distances", np.uint16, stored=False),
    Column("likeness", np.uint64, likeness=True),
)
"""labels: number of the label, or UNLABELLED, REMOVED, SEVERAL.
taught: the hasher has learned the entry with the labels it has.
guesses: number of the label an unlabelled entry is taken for; -1 if it is taken for none.
distances: of its word from the codeword of that label.
likeness: see `everhash.index.likeness`."""

Rows = dict[str, NDArray[Any]]
"""Columns by name, of some entries."""


class EntryTable:
    """The columns of all entries ever added, removed ones included, by place.

    Args:
        likeness_width: words of a likeness code; 0 if entries have none.

    >>> table = EntryTable(0)
    >>> table.grow_to(2)
    >>> table["labels"].tolist()
    [-1, -1]
    """

    def __init__(self, likeness_width: int) -> None:
        self.columns = tuple(c for c in COLUMNS if likeness_width or not c.likeness)
        self._arrays: dict[str, GrowingArray[Any]] = {
            c.name: GrowingArray((likeness_width,) if c.likeness else (), c.dtype)
            for c in self.columns
        }

    def __len__(self) -> int:
        return len(self._arrays["labels"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, as a view: writing to it writes to the table."""
        return self._arrays[name].rows

    def grow_to(self, length: int) -> None:
        """Append unlabelled entries up to this number."""
        for column in self.columns:
            array = self._arrays[column.name]
            first = len(array)  # columns that a file does not keep may be behind the others
            array.grow_to(length)
            if column.fill:
                array.rows[first:] = column.fill

    def stored(self, start: int, stop: int) -> Rows:
        """Return copies of the columns that files keep, of entries from start to stop."""
        return {c.name: self[c.name][start:stop].copy() for c in self.columns if c.stored}

    def append(self, rows: Rows) -> None:
        """Append entries, given by the columns that files keep."""
        first = len(self)
        if first == 0:  # a file just opened: take the arrays over instead of copying them
            for name, column in rows.items():
                self._arrays[name].replace(column)
        self.grow_to(first + len(rows["labels"]))
        for name, column in rows.items() if first else ():
            self[name][first:] = column
