"""Cells: entries listed by the centroid that they are nearest to, so that a search looks at few.

Cells follow from features alone: learning never makes them stale. How they are searched says
`everhash.kernels.likeness.cells`, how they are made `everhash.index.clustering`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Counts, Floats, Words
from everhash.learn.centering import unit_rows
from everhash.learn.growing import GrowingArray
from everhash.learn.views import margins_by

BLOCK = 64
"""Entries of a block; see `everhash.kernels.likeness.cells`."""
FIRST = 4
"""Cells that every search looks into."""
OFF_CENTRE = ((0.9, 0.32), (0.95, 0.44), (0.98, 0.56), (0.99, 0.64), (1.0, 0.72))
"""Cosine of what query and entry have besides their cell's centroid; see `Cells.bounds`. Searches
that reckon with the second number find the share of the nearest entries that is the first."""
STEP = 0.08
"""By how much it grows with each effort more."""
Numbers = NDArray[np.int32]
"""Cells by number, -1 for none."""


class Cells:
    """The centroids, the cell of each entry, and the entries of each cell with their signs.

    Args:
        centroids: (C, d) of unit length.
        middles: (C,) cosine of a centroid and the entries of its cell, on average.
        width: words of an entry's signs.
        made_at: entries that there were when the centroids were chosen.
    """

    def __init__(self, centroids: Floats, middles: Floats, width: int, made_at: int) -> None:
        self.centroids, self.middles, self.made_at = centroids, middles, made_at
        self.effort = 1
        """1, or more if usual searches found too little."""
        self.recall = 1.0
        """Share of the nearest entries that a sample of entries has found."""
        self._of: GrowingArray[np.int32] = GrowingArray((), np.int32)
        self._slots: GrowingArray[np.int32] = GrowingArray((), np.int32)
        self._words: GrowingArray[np.uint64] = GrowingArray((width * BLOCK,), np.uint64)
        self._places: GrowingArray[np.int32] = GrowingArray((BLOCK,), np.int32)
        self._following: GrowingArray[np.int32] = GrowingArray((), np.int32)
        # of each cell: its first block, its last one, and the slots that are taken
        self._heads, self._tails = (np.full(len(centroids), -1, np.int32) for _ in range(2))
        self._sizes = np.zeros(len(centroids), np.int32)

    def __len__(self) -> int:
        return len(self.centroids)

    @property
    def numbers(self) -> Numbers:
        """(n,) the cell of each entry, by place; -1 for removed ones."""
        return self._of.rows

    def bounds(self, queries: Floats, recall: float) -> Floats:
        """Return (q, C) how large a cosine with a query is expected in each cell at the most.

        Query and entry are parts along the centroid and parts across it. If the parts across had
        the same direction, the cosine would be that of the difference of two angles. They seldom
        do: of their cosine only as much counts as it takes to find the share `recall` of the
        nearest entries.
        """
        usual = next(cosine for least, cosine in OFF_CENTRE if recall <= least)
        across = np.float32(min(1.0, usual + STEP * (self.effort - 1)))
        along, middles = self.nearness(queries), self.middles
        rest = np.sqrt(np.maximum(0, 1 - along**2)) * np.sqrt(np.maximum(0, 1 - middles**2))
        bounds: Floats = (along * middles + across * rest).astype(np.float32, copy=False)
        return bounds

    def nearest(self, rows: Floats) -> Numbers:
        """Return the cell that each row belongs to; it depends on the row only."""
        found: Numbers = self.nearness(unit(rows)).argmax(axis=1).astype(np.int32)
        return found

    def nearness(self, queries: Floats) -> Floats:
        """Return (q, C) cosines of queries of unit length and centroids."""
        return margins_by(self.centroids[None], queries)

    def append(self, numbers: Numbers) -> None:
        """Take up entries after those that are there, by their cells; -1 for removed ones."""
        first = len(self._of)
        self._of.grow_to(first + len(numbers))
        self._of.rows[first:] = numbers

    def remove(self, places: Counts) -> None:
        """Forget entries."""
        places = places[places < len(self._of)]
        self._of.rows[places] = -1
        slots = self._slots.rows[places[places < len(self._slots)]]
        self._places.rows.reshape(-1)[slots[slots >= 0]] = -1

    def lists(self, codes: Words) -> tuple[Words, Numbers, Numbers, Numbers, Numbers]:
        """Return entries by cell as the search takes them; `codes` are likeness codes by place.

        Entries that came since the last call are listed now: until somebody searches, a number is
        all that they cost.
        """
        if len(self._slots) < len(self._of):
            self._list(codes)
        blocks = self._words.rows, self._places.rows, self._following.rows
        return *blocks, self._heads, self._sizes

    def _list(self, codes: Words) -> None:
        first, stop = len(self._slots), len(self._of)
        self._slots.grow_to(stop)
        numbers = self._of.rows[first:]
        counts = np.bincount(numbers[numbers >= 0], minlength=len(self))
        taken = -(-self._sizes // BLOCK)
        blocks, new = len(self._places), int((-(-(self._sizes + counts) // BLOCK) - taken).sum())
        for array in (self._words, self._places, self._following):
            array.grow_to(blocks + new)
        self._places.rows[blocks:], self._following.rows[blocks:] = -1, -1
        kernels.load_likeness().list_entries(
            codes,
            first,
            numbers,
            self._words.rows,
            self._places.rows,
            self._following.rows,
            self._heads,
            self._tails,
            self._sizes,
            self._slots.rows,
            blocks,
        )

    def renumbered(self, kept: Counts) -> Cells:
        """Return the same cells of the entries at the places `kept`, which move up."""
        width = self._words.rows.shape[1] // BLOCK
        cells = Cells(self.centroids, self.middles, width, self.made_at)
        cells.effort, cells.recall = self.effort, self.recall
        cells.append(self._of.rows[kept])
        return cells


def unit(rows: Floats) -> Floats:
    """Return rows scaled to unit length; each depends on itself only."""
    return unit_rows(rows, np.zeros(rows.shape[1], np.float32))
