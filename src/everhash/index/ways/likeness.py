"""By likeness: the cosine of query and entry, as a vector store ranks.

Where the features of all entries are kept, results are exact: every entry whose estimated cosine is
within the error bound of the k-th best is compared by its features. A miss has a chance below 1e-9
an entry; `exact=True` reads all features instead. Where they are not kept, the estimate ranks.
Ties go to the entry added first. A query of zeros has cosine 0 with everything.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Counts, Floats
from everhash.index.likeness import LikenessQueries
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way, no_likeness
from everhash.learn.centering import unit_rows
from everhash.learn.views import margins_by

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries

Alive = NDArray[np.uint8]
"""(n,) which entries are searched."""
FIRST_LOOK = 64
"""Best estimates that are compared by features first, to know what others must reach."""
BLOCK = 16_384
"""Entries whose features are read at a time."""


class ByLikeness(Way):
    """See the module."""

    name: ClassVar = "likeness"

    def __init__(self, query: Query) -> None:
        self._entries, self._rows, self._exact = query.entries, query.rows, query.exact
        self.novelty = query.novelty
        self._codes = LikenessOf(query.entries, query.rows)

    def nearest(self, k: int, scope: Scope) -> Found:
        """See `Way.nearest`."""
        if not self._by_features(scope):
            return self._estimated(k, scope)
        places, rows = scope.places_in(self._entries), range(len(self._rows))
        look = max(FIRST_LOOK, 4 * k)
        if self._exact or not self._codes.there or len(places) <= look:
            return Found.padded([self._best(row, k, places) for row in rows])
        alive = _mask(places, self._entries.arrived)
        first = self._codes.nearest(alive, look)[1]  # at once: codes are laid out once for all
        return Found.padded(
            [self._best(row, k, self._near(row, k, first[row], alive)) for row in rows]
        )

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
        scores, places = self._codes.nearest(alive, k)
        scores[places < 0] = np.nan
        return Found(scores, scores, places, self._entries.first_labels(places))

    def _best(self, row: int, k: int, near: Counts) -> Found:
        """Return the best of some entries for one query, by their features."""
        return self._ranked(self._cosines(row, near), near, k)

    def _near(self, row: int, k: int, first: Counts, alive: Alive) -> Counts:
        """Return the entries that may be among the k best, given those with the best estimates."""
        floor = np.sort(self._cosines(row, np.sort(first)))[-k]
        return self._codes.above(row, alive, float(floor))

    def _candidates(self, row: int, floor: float, places: Counts, alive: Alive) -> Counts:
        """Return the entries whose cosine may be at least `floor`."""
        if self._exact or not self._codes.there:
            return places
        return self._codes.above(row, alive, floor)

    def _cosines(self, row: int, places: Counts) -> Floats:
        """Return the cosines of one query and entries, given by ascending places."""
        cosines = np.empty(len(places), np.float32)
        for start, stop in pairwise([*range(0, len(places), BLOCK), len(places)]):
            features = self._entries.features_at(places[start:stop])
            cosines[start:stop] = cosines_of(self._rows[row : row + 1], features)[0]
        return cosines

    def _ranked(
        self, cosines: Floats, places: Counts, k: int | None, least: float = -np.inf
    ) -> Found:
        near = cosines >= least
        cosines, places = cosines[near], places[near]
        return Found.ranked(cosines, cosines, places, self._entries.first_labels(places), k)


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


def cosines_of(rows: Floats, features: Floats) -> Floats:
    """Return (q, n) cosines; each depends on its own query and entry only."""
    nowhere = np.zeros(rows.shape[1], np.float32)
    queries, entries = unit_rows(rows, nowhere), unit_rows(features, nowhere)
    return np.ascontiguousarray(margins_by(queries[None], entries).T)


def _mask(places: Counts, n: int) -> Alive:
    alive = np.zeros(n, np.uint8)
    alive[places] = 1
    return alive
