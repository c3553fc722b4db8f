"""Search over coded entries: in a large segment, and in a small one for the newest entries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.codes import pack_bits
from everhash.index.arrays import Counts, Floats
from everhash.index.code_table import CodeTable
from everhash.index.segment import Segment
from everhash.learn.mapping import FrozenMapping

Queries = NDArray[Any]
"""(q, n_cycles, w) packed words, or (q, n_cycles, k) margins: the type says which distance."""
Nearest = tuple[Floats, Counts]
"""Distances and places: (q, k), padded with inf and -1; or those of one query."""

MAX_NEWEST = 8192
"""Entries of the small segment before all are put into one, or a quarter of the large one."""


class SearchPart(NamedTuple):
    """A segment over the slots from `start` to `end`."""

    start: int
    end: int
    segment: Segment


class CodeSearch:
    """Segments over a table of codes, built when a search needs them.

    Removed entries stay in a segment. They are left out of results, and only queries that lack
    results for that reason are searched again, for twice as many. No search moves entries to other
    slots: whoever changes the table does, and then makes a new `CodeSearch`.
    """

    def __init__(self, table: CodeTable, mapping: FrozenMapping, coding: str) -> None:
        self._table = table
        # no codeword is as wide as a code of all cycles, so full codes have none to be grouped by
        home = coding == "home"
        words = mapping.words[mapping.words.any(axis=1)]  # not every method has codewords
        self._cycles = mapping.label_cycles[: len(words)] if home else np.empty(0, np.int64)
        self._words = pack_bits(words > 0 if home else np.empty((0, table.bits), np.bool_))
        self._n_cycles = len(mapping.functions) if home else 1
        self._parts: list[SearchPart] = []

    def nearest(self, queries: Queries, k: int) -> Nearest:
        """Return the k nearest entries; queries are words or margins, one row a cycle."""
        found = [self._nearest_in(part, queries, k) for part in self._segments()]
        return merge(found, k) if found else _none(len(queries), k)

    def within(self, queries: Queries, radius: float) -> list[Nearest]:
        """Return for each query the distances and places of entries within `radius`."""
        within = int(np.clip(np.floor(radius), -1, self._table.bits))
        results: list[list[Nearest]] = [[] for _ in queries]
        for part in self._segments():
            start, segment = part.start, part.segment
            if queries.dtype == np.uint64:
                offsets, far, slots = segment.within_hamming(queries, within)
            else:
                offsets, far, slots = segment.within_margins(queries, radius)
            distances = far.astype(np.float32)
            for query, (a, b) in enumerate(pairwise(offsets)):
                alive = self._table.alive.rows[start + slots[a:b]]
                places = self._table.places.rows[start + slots[a:b]]
                results[query].append((distances[a:b][alive], places[alive]))
        return [join(parts) for parts in results]

    def distances_to(self, queries: Queries, places: Counts) -> Floats:
        """Return (q, m) distances to the entries at these places."""
        slots = self._table.slots(places)
        out = np.empty((len(queries), len(places)), np.float32)
        for part in self._segments():
            here = np.flatnonzero((slots >= part.start) & (slots < part.end))
            inside = slots[here] - part.start
            hamming = queries.dtype == np.uint64
            of = part.segment.hamming_of if hamming else part.segment.margins_of
            out[:, here] = of(queries, inside)
        return out

    def _nearest_in(self, part: SearchPart, queries: Queries, k: int) -> Nearest:
        """Search one segment; ask again where removed entries took the place of others."""
        inside = slice(part.start, part.end)
        alive, places = self._table.alive.rows[inside], self._table.places.rows[inside]
        segment = part.segment
        search = segment.nearest_hamming if queries.dtype == np.uint64 else segment.nearest_margins
        found = _none(len(queries), k)
        again, wanted = np.arange(len(queries)), k
        enough = min(k, int(alive.sum()))
        while len(again):
            asked = min(wanted, len(alive))
            distances, slots = search(queries[again], asked)
            missing = (slots < 0) | ~alive[slots]
            far = np.where(missing, np.float32(np.inf), distances.astype(np.float32))
            nearest = merge([(far, np.where(missing, -1, places[slots]))], k)
            found[0][again], found[1][again] = nearest
            again = again[(nearest[1] >= 0).sum(axis=1) < enough]
            if asked == len(alive):  # functions of a forged file may give distances of NaN
                break
            wanted *= 2
        return found

    def _segments(self) -> list[SearchPart]:
        """Return segments that cover all entries, building what is missing."""
        n = len(self._table)
        covered = self._parts[-1].end if self._parts else 0
        if covered < n:
            large = self._parts[0].end if self._parts else 0
            if n - large > max(MAX_NEWEST, large // 4):
                self._parts = [self._build(0, n)]
            else:
                self._parts = [*self._parts[:1], self._build(large, n)]
        return self._parts

    def _build(self, start: int, end: int) -> SearchPart:
        columns = self._table.columns
        segment = Segment.build(
            columns.words[start:end],
            columns.homes[start:end],
            self._words,
            self._cycles,
            self._n_cycles,
            self._table.bits,
        )
        return SearchPart(start, end, segment)


def merge(found: list[Nearest], k: int) -> Nearest:
    """Return the k nearest of several lists, ties to the smaller place; padded to k."""
    distances = np.concatenate([part[0] for part in found], axis=1)
    places = np.concatenate([part[1] for part in found], axis=1)
    if distances.shape[1] < k:
        return merge([(distances, places), _none(len(distances), k - distances.shape[1])], k)
    order = np.lexsort((places, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, 1), np.take_along_axis(places, order, 1)


def join(parts: list[Nearest]) -> Nearest:
    """Return the entries of several lists in one order, ties to the smaller place."""
    if not parts:
        return np.empty(0, np.float32), np.empty(0, np.int64)
    distances, places = (np.concatenate([part[i] for part in parts]) for i in range(2))
    order = np.lexsort((places, distances))
    return distances[order], places[order]


def _none(n: int, k: int) -> Nearest:
    return np.full((n, k), np.inf, np.float32), np.full((n, k), -1, np.int64)
