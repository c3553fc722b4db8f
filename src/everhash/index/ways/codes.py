"""By distance of codes, as in the paper: asymmetric (the query's margins count) or Hamming.

Labelled entries are compared by their labels' codewords under the newest mapping, unlabelled ones
by their own bits under the mapping that made them. Both have k active bits, so their distances
compare; with full codes they are divided by the number of active bits. Ties go to the entry added
first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Counts, Floats
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way


class Ranked(NamedTuple):
    """(q, m) entries in order; padded with inf, -1 and -1."""

    distances: Floats
    places: Counts
    numbers: Counts
    """The label each entry was found by, or has; -1 for unlabelled entries."""

    @classmethod
    def of(cls, parts: list[Ranked], k: int | None = None) -> Ranked:
        """Merge rankings: by distance, ties to the entry added first."""
        columns = [np.concatenate([part[i] for part in parts], axis=1) for i in range(3)]
        order = np.lexsort((columns[1], columns[0]), axis=1)[:, :k]
        return cls(*(np.take_along_axis(column, order, 1) for column in columns))

    @classmethod
    def padded(cls, found: list[tuple[Floats, Counts, Counts]]) -> Ranked:
        """Return lists of different lengths, one a query, as one table."""
        shape = (len(found), max((len(part[0]) for part in found), default=0))
        distances = np.full(shape, np.inf, np.float32)
        places, numbers = np.full(shape, -1), np.full(shape, -1)
        for row, (far, where, which) in enumerate(found):
            distances[row, : len(far)] = far
            places[row, : len(far)] = where
            numbers[row, : len(far)] = which
        return cls(distances, places, numbers)

    def without_repeats(self) -> Ranked:
        """Keep each entry's first appearance, and turn the others into padding."""
        distances, places = self.distances.copy(), self.places.copy()
        numbers = self.numbers.copy()
        for row in range(len(places)):
            _, first = np.unique(places[row], return_index=True)
            again = np.ones(places.shape[1], np.bool_)
            again[first] = False
            distances[row, again], places[row, again], numbers[row, again] = np.inf, -1, -1
        return Ranked.of([Ranked(distances, places, numbers)])

    def found(self) -> Found:
        """Return what a way of searching returns: padded with NaN."""
        scores = np.where(self.places < 0, np.float32(np.nan), self.distances)
        nothing = np.full_like(scores, np.nan)
        return Found(scores.astype(np.float32), nothing, self.places, self.numbers)


class ByCodes(Way):
    """Ranks by a distance of codes."""

    def __init__(self, query: Query) -> None:
        self._entries = entries = query.entries
        self._queries, self.novelty = query.encoded(self.name), query.novelty
        self._coded = entries.coded
        form = self._queries.form(self._queries.for_codewords)
        self._to_labels = entries.codewords.distances(form)
        self._to_labels /= np.float32(self._divisor(self._queries.for_codewords))

    def nearest(self, k: int, scope: Scope) -> Found:
        """See `Way.nearest`."""
        if self._one_by_one(scope):
            return self._among(scope.places_in(self._entries), k, scope.labels).found()
        parts = []
        if not scope.unlabelled:
            lists = self._entries.given
            parts.append(Ranked(*lists.nearest(self._to_labels, k, scope.labels)))
        if scope.labels is None and self._coded is not None:
            parts.append(self._named(*self._coded.search.nearest(self._coded_form(), k)))
        if not parts:
            return Found.nothing(len(self._queries))
        return Ranked.of(parts, k).found()

    def within(self, r: float, scope: Scope) -> Found:
        """See `Way.within`."""
        if not scope.everything:
            ranked = self._among(scope.places_in(self._entries), None, scope.labels)
            beyond = ranked.distances > r
            distances = np.where(beyond, np.inf, ranked.distances).astype(np.float32)
            places, numbers = (
                np.where(beyond, -1, column) for column in (ranked.places, ranked.numbers)
            )
            ranked = Ranked(distances, places, numbers)
            return Ranked.of([ranked], int((~beyond).sum(axis=1).max(initial=0))).found()
        offsets, distances, places, numbers = self._entries.given.within(self._to_labels, r)
        found = [(distances[a:b], places[a:b], numbers[a:b]) for a, b in pairwise(offsets)]
        if self._coded is not None:
            divisor = self._divisor(self._queries.for_codes)
            reach = r * divisor + 1e-3 * (divisor > 1)
            for i, coded in enumerate(self._coded.search.within(self._coded_form(), reach)):
                far, where, which = self._named(*coded)
                near = far <= r
                found[i] = (
                    np.concatenate([found[i][0], far[near]]),
                    np.concatenate([found[i][1], where[near]]),
                    np.concatenate([found[i][2], which[near]]),
                )
        return Ranked.of([Ranked.padded(found)]).found()

    def _one_by_one(self, scope: Scope) -> bool:
        """Whether every distance is computed: to given entries, or where labels are only names."""
        only_names = not self._entries.hasher.assigns_codewords
        filtered = scope.labels is not None or scope.unlabelled
        return scope.places is not None or (only_names and filtered)

    def _among(self, places: Counts, k: int | None, labels: Counts | None) -> Ranked:
        """Rank a given set of entries by computing every distance."""
        coded = self._entries.coded_among(places)
        listed = np.setdiff1d(places, coded, assume_unique=True)
        at, numbers = self._entries.label_pairs(listed)
        if labels is not None:
            wanted = np.isin(numbers, labels)
            at, numbers = at[wanted], numbers[wanted]
        parts = []
        if len(at):
            far = self._to_labels[:, numbers]
            tables = (np.broadcast_to(column, far.shape) for column in (listed[at], numbers))
            parts.append(Ranked.of([Ranked(far, *tables)]).without_repeats())
        if len(coded) and self._coded is not None:
            far = self._coded.search.distances_to(self._coded_form(), coded)
            parts.append(self._named(far, np.broadcast_to(coded, far.shape)))
        return Ranked.of(parts, k) if parts else Ranked.padded([_NOTHING] * len(self._queries))

    def _coded_form(self) -> NDArray[Any]:
        """Return the queries as the coded entries' segments take them."""
        return self._queries.form(self._queries.for_codes)

    def _named(self, distances: Floats, places: Counts) -> Ranked:
        """Return coded entries with the labels they have; distances by the active bit if needed."""
        scaled = distances / np.float32(self._divisor(self._queries.for_codes))
        return Ranked(scaled, places, self._entries.first_labels(places))

    def _divisor(self, margins: Floats) -> int:
        """Return what to divide distances by: 1 if all entries have k active bits anyway."""
        return 1 if self._entries.coding == "home" else int(margins.shape[2])


class ByAsymmetric(ByCodes):
    """Minus the sum of the query's margins times the entry's bits."""

    name: ClassVar = "asymmetric"


class ByHamming(ByCodes):
    """The number of bits that differ."""

    name: ClassVar = "hamming"


_NOTHING = (np.empty(0, np.float32), np.empty(0, np.int64), np.empty(0, np.int64))
