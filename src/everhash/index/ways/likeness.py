"""By likeness: the cosine of query and entry, as a vector store ranks.

Where the features of all entries are kept, scores are cosines of features, and entries are found

    through cells        as many as it takes to find the share `recall` of the nearest entries;
    without cells, or    every entry whose estimated cosine is within the error bound of the k-th
    with recall=1        best is compared by its features; a miss has a chance below 1e-9 an entry;
    with exact=True      all entries are compared by their features.

Entries that a filter leaves are all compared if they are few. Where features are not kept, the
estimate ranks. Ties go to the entry added first. A query of zeros has cosine 0 with everything.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Counts, Floats
from everhash.index.cells import unit
from everhash.index.likeness import LikenessQueries
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way, no_likeness

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries

Alive = NDArray[np.uint8]
"""(n,) which entries are searched."""
FIRST_LOOK = 64
"""Best estimates that are compared by features first, to know what others must reach."""
FEW = 4096
"""So many entries are all compared by their features: looking for the best would take longer."""
BLOCK = 16_384
"""Entries that a batch of queries is multiplied with at a time."""
SLACK = 1e-5
"""How far such a product may be from the cosine, by rounding."""
MORE = 192
"""Room for entries beside four times the k best, before the worst of them are left out."""
BATCH = 8
"""Queries from which on products are faster than a cosine at a time."""


class ByLikeness(Way):
    """See the module."""

    name: ClassVar = "likeness"

    def __init__(self, query: Query, rows: Floats | None = None) -> None:
        self._rows = query.rows if rows is None else rows
        self._entries, self._exact = query.entries, query.exact
        self._recall = query.recall
        self.novelty = query.novelty
        self._units = unit(self._rows)
        self._codes = LikenessOf(query.entries, self._rows)

    def nearest(self, k: int, scope: Scope) -> Found:
        """See `Way.nearest`."""
        if not self._by_features(scope):
            return self._estimated(k, scope)
        cells = self._entries.cells
        if cells is not None and self._recall < 1 and not self._exact:
            if scope.everything:
                return self._in_cells(k)
            places = scope.places_in(self._entries)
            if len(places) > FEW:
                return self._in_cells(k, _mask(places, self._entries.arrived))
        else:
            places = scope.places_in(self._entries)
        if self._exact or not self._codes.there or len(places) <= max(FEW, 4 * k):
            return self._compared(k, places)
        return self._bounded(k, places)

    def within(self, r: float, scope: Scope) -> Found:
        """See `Way.within`."""
        places = scope.places_in(self._entries)
        alive, found = _mask(places, self._entries.arrived), []
        for row in range(len(self._rows)):
            if self._by_features(scope):
                near = self._candidates(row, r, places, alive)
                cosines = self._cosines(row, near)
            else:
                near, cosines = places, self._codes.of(places, slice(row, row + 1))[0]
            found.append(self._ranked(cosines, near, None, least=r))
        return Found.padded(found)

    def _by_features(self, scope: Scope) -> bool:
        """Whether features of all entries searched are kept."""
        keep = self._entries.keep_features
        kept = keep == "all" or (keep == "unlabelled" and scope.unlabelled)
        if not kept and not self._codes.there:
            raise no_likeness()
        return kept

    def _estimated(self, k: int, scope: Scope) -> Found:
        """Rank by estimates alone."""
        alive = _mask(scope.places_in(self._entries), self._entries.arrived)
        return self._found(*self._codes.nearest(alive, k))

    def _in_cells(self, k: int, allowed: Alive | None = None) -> Found:
        """Look into the cells that are nearest to each query."""
        entries = self._entries
        assert entries.cells is not None  # noqa: S101 - the caller has looked
        only = () if allowed is None else (allowed,)
        found = entries.search_cells(entries.cells, self._units, k, self._recall, *only)
        return self._found(*found[:2])

    def _found(self, scores: Floats, places: Counts) -> Found:
        """Return a table of entries that are in order, padded with place -1."""
        scores[places < 0] = np.nan
        return Found(scores, scores, places, self._entries.first_labels(places))

    def _compared(self, k: int, places: Counts) -> Found:
        """Compare all of these entries by their features."""
        rows = range(len(self._rows))
        if len(rows) < BATCH or len(places) <= k:
            return Found.padded([self._ranked(self._cosines(i, places), places, k) for i in rows])
        near = self._products(k, places)
        return Found.padded([self._ranked(self._cosines(i, near[i]), near[i], k) for i in rows])

    def _products(self, k: int, places: Counts) -> list[Counts]:
        """Return for each query the entries that may be its k best, by products of whole blocks."""
        best = Shortlists(len(self._rows), k)
        for start, stop in pairwise([*range(0, len(places), BLOCK), len(places)]):
            part = places[start:stop]
            best.offer(self._units @ self._entries.pages_of(part).units(part).T, part)
        return best.places(places)

    def _bounded(self, k: int, places: Counts) -> Found:
        """Compare the entries whose estimates are within the error bound of the k-th best."""
        alive = _mask(places, self._entries.arrived)
        first = self._codes.nearest(alive, max(FIRST_LOOK, 4 * k))[1]  # at once for all queries
        found = []
        for row in range(len(self._rows)):
            floor = np.sort(self._cosines(row, first[row]))[-k]
            near = self._codes.above(row, alive, float(floor))
            found.append(self._ranked(self._cosines(row, near), near, k))
        return Found.padded(found)

    def _candidates(self, row: int, floor: float, places: Counts, alive: Alive) -> Counts:
        """Return the entries whose cosine may be at least `floor`."""
        if self._exact or not self._codes.there:
            return places
        return self._codes.above(row, alive, floor)

    def _cosines(self, row: int, places: Counts) -> Floats:
        """Return the cosines of one query and entries."""
        pages = self._entries.pages_of(places)
        cosines: Floats = pages.cosines(self._units[row : row + 1], places)[0]
        return cosines

    def _ranked(
        self, cosines: Floats, places: Counts, k: int | None, least: float = -np.inf
    ) -> Found:
        if k is not None and len(cosines) > k:
            least = max(least, float(np.partition(cosines, -k)[-k]))
        near = cosines >= least
        cosines, places = cosines[near], places[near]
        return Found.ranked(cosines, cosines, places, self._entries.first_labels(places), k)


class Shortlists:
    """For each query of a batch the entries whose rounded cosine may be among the k best."""

    def __init__(self, n: int, k: int) -> None:
        room = 4 * k + MORE
        self._k = k
        self._floors, self._held = np.full(n, -np.inf, np.float32), np.zeros(n, np.int64)
        self._scores, self._places = np.empty((n, room), np.float32), np.empty((n, room), np.int64)

    def offer(self, scores: Floats, places: Counts) -> None:
        """Take up those of (n, m) scores that reach the best k so far, as far as rounding tells."""
        held = self._floors, self._held, self._scores, self._places
        offer = kernels.load_likeness().offer_products
        offer(scores, places, *held, self._k, np.float32(SLACK))

    def places(self, everywhere: Counts) -> list[Counts]:
        """Return the entries of each query, ascending; `everywhere` if too many are alike."""
        held = self._held.tolist()
        return [
            np.sort(self._places[row, :n]) if n >= 0 else everywhere for row, n in enumerate(held)
        ]


class LikenessOf:
    """Estimated cosines of a batch of queries, from the likeness codes of entries."""

    def __init__(self, entries: ReadableEntries, rows: Floats) -> None:
        coder = entries.coder
        self.there = coder is not None
        """Whether entries have likeness codes."""
        self.codes = entries.likeness_column
        self._size = 0 if coder is None else coder.size
        self._queries = _no_queries(len(rows)) if coder is None else coder.queries(rows)

    @property
    def queries(self) -> tuple[NDArray[Any], ...]:
        """What kernels take of the queries."""
        return self._queries[:4]

    def nearest(self, alive: Alive, k: int) -> tuple[Floats, Counts]:
        """Return the k best estimates and their places, padded with -inf and -1."""
        search = kernels.load_likeness().nearest_likeness
        scores, places = search(self.codes, alive, *self.queries, k)
        return scores, places

    def above(self, row: int, alive: Alive, floor: float) -> Counts:
        """Return the entries whose estimate and error bound reach `floor`, ascending."""
        query = tuple(column[row] for column in self._queries)
        search = kernels.load_likeness().above_likeness
        places: Counts = search(self.codes, alive, *query, self._size, np.float32(floor))
        return places

    def of(self, places: Counts, part: slice = slice(None)) -> Floats:
        """Return (q, m) estimates for the entries at these places; 0 without codes."""
        queries = [column[part] for column in self.queries]
        out = np.zeros((len(queries[1]), len(places)), np.float32)
        if self.there:
            at = np.ascontiguousarray(places, np.int64)
            kernels.load_likeness().estimates_at(self.codes, at, *queries, out)
        return out


def _no_queries(n: int) -> LikenessQueries:
    """Return queries that are like nothing."""
    zeros = np.zeros(n, np.float32)
    return LikenessQueries(
        np.zeros((n, 8, 1), np.uint64), np.zeros(n, np.int64), zeros, zeros, zeros
    )


def has_likeness(entries: ReadableEntries) -> bool:
    """Whether all entries can be searched by likeness."""
    return entries.coder is not None or entries.keep_features == "all"


def _mask(places: Counts, n: int) -> Alive:
    alive = np.zeros(n, np.uint8)
    alive[places] = 1
    return alive
