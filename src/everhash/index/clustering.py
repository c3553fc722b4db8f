"""Making cells: centroids by k-means on a sample, then the cell of each entry, a slice at a time.

The sample is chosen by a hash of the entries' likeness codes, so that cells depend neither on the
order of arrival nor on a seed. Centroids have unit length, as rows do when they are compared.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from everhash.index.arrays import Counts, Floats, Words
from everhash.index.cells import Cells, unit
from everhash.index.refresh import Steps
from everhash.learn.views import margins_by

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries

LEAST = 10_000
"""Entries from which on there is more than one cell."""
GROWTH = 4
"""Cells are made again when there are so many times the entries."""
SAMPLE = 32
"""Rows of the sample a cell."""
ROUNDS = 8
"""Of k-means."""
SLICE = 512
"""Rows that are compared with all centroids at a time."""
QUERIES = 128
"""Entries whose nearest others are searched to see what share of them is found."""
NEAREST = 10
"""How many of them."""
MOST_EFFORT = 6
"""No search takes more; see `Cells.bounds`."""
RECALL, ENOUGH = 0.98, 0.985
"""The share that searches promise, and what they have to find of the sample: queries of people are
less like entries than entries are, and some are only like those of far cells."""


class Truth(NamedTuple):
    """Some entries, and those that are nearest to them."""

    queries: Floats
    places: Counts
    scores: Floats
    """(q, NEAREST) best cosines so far."""
    nearest: Counts
    """(q, NEAREST) their places."""

    def meet(self, rows: Floats, places: Counts) -> None:
        """Compare the queries with more entries."""
        found = margins_by(self.queries[None], rows).T
        found[self.places[:, None] == places[None]] = -np.inf
        scores = np.concatenate([self.scores, found], axis=1)
        known = np.broadcast_to(places, found.shape)
        near = np.concatenate([self.nearest, known], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :NEAREST]
        self.scores[:] = np.take_along_axis(scores, best, axis=1)
        self.nearest[:] = np.take_along_axis(near, best, axis=1)


class Clustering:
    """The making of cells, under way: `steps` does it a slice at a time.

    Entries that come meanwhile are listed at the end, those removed meanwhile are not. The cells
    are `cells` once all steps were made.
    """

    def __init__(self, entries: ReadableEntries) -> None:
        self._entries = entries
        self.cells: Cells | None = None
        self._stopped = False

    def stop(self) -> None:
        """Make no more steps: places have changed."""
        self._stopped = True

    def remove(self, places: Counts) -> None:
        """Forget entries."""
        if self.cells is not None:
            self.cells.remove(places)

    @property
    def done(self) -> bool:
        """Whether all entries are listed."""
        listed = self.cells is not None and len(self.cells.numbers) == self._entries.arrived
        return listed and not self._stopped

    def steps(self) -> Steps:
        """Choose centroids, list entries and measure; yield the share done after each slice."""
        entries = self._entries
        made_at = len(entries)
        n_cells = round(made_at**0.5)
        places = chosen(entries, SAMPLE * n_cells + QUERIES)
        n_others = min(QUERIES, len(places) // 8)  # nothing is chosen to suit these
        if not len(places):  # all were removed since cells became due
            return
        sample = np.empty((len(places), entries.hasher.n_features_in_), np.float32)
        for start in range(0, len(places), SLICE):
            part = slice(start, start + SLICE)
            sample[part] = unit(entries.features_at(places[part]))
            yield 0.0
            if self._stopped:
                return
        some, others = np.split(sample, [len(sample) - n_others])
        centroids, middles = yield from _k_means(some, min(n_cells, len(some)))
        assert entries.coder is not None  # noqa: S101 - cells are due only where there is one
        self.cells = cells = Cells(centroids, middles, entries.coder.width - 1, made_at)
        truth = _truth(others, places[len(some) :])
        while not self._stopped and len(cells.numbers) < entries.arrived:
            self._list_some(cells, truth)
            yield 0.5 + 0.5 * len(cells.numbers) / entries.arrived
        if not self._stopped:
            self._settle(cells, truth)

    def _list_some(self, cells: Cells, truth: Truth) -> None:
        """List the entries of one slice."""
        first = len(cells.numbers)
        stop = min(first + SLICE, self._entries.arrived)
        places = self._entries.with_features(np.arange(first, stop))
        rows = unit(self._entries.features_at(places))
        numbers = np.full(stop - first, -1, np.int32)
        numbers[places - first] = cells.nearest(rows)
        cells.append(numbers)
        if len(places):
            truth.meet(rows, places)

    def _settle(self, cells: Cells, truth: Truth) -> None:
        """Choose the effort of searches: as little as finds what has to be found."""
        search = self._entries.search_cells
        living = self._entries.with_features(truth.places)
        mine = np.isin(truth.places, living)
        while True:
            _, found, _ = search(cells, truth.queries[mine], NEAREST + 1, RECALL)
            hits = [
                len(np.intersect1d(near, got))
                for near, got in zip(truth.nearest[mine], found, strict=True)
            ]
            cells.recall = float(np.mean(hits)) / NEAREST if hits else 1.0
            if cells.recall >= ENOUGH or cells.effort >= MOST_EFFORT:
                return
            cells.effort += 1


def _truth(queries: Floats, places: Counts) -> Truth:
    shape = len(queries), NEAREST
    return Truth(queries, places, np.full(shape, -np.inf, np.float32), np.full(shape, -1))


def chosen(entries: ReadableEntries, most: int) -> Counts:
    """Return the places of a sample of entries, in an order that follows from their codes."""
    places = entries.with_features(np.arange(entries.arrived))
    hashes = mixed(entries.likeness_column[places])
    order = np.lexsort((places, hashes)) if len(places) <= most else _smallest(hashes, most)
    return places[order]


def _smallest(hashes: Words, most: int) -> Counts:
    some = np.argpartition(hashes, most)[:most]
    return some[np.lexsort((some, hashes[some]))]


def mixed(codes: Words) -> Words:
    """Return (n,) a hash of each code."""
    total = np.zeros(len(codes), np.uint64)
    for column in codes.T:
        total = (total ^ column) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(32)
    return total


def _k_means(sample: Floats, n_cells: int) -> Generator[float, None, tuple[Floats, Floats]]:
    """Return centroids, and how near to them the rows of the sample are; see `Cells`."""
    centroids = sample[:n_cells].copy()
    numbers, cosines = np.empty(len(sample), np.int64), np.empty(len(sample), np.float32)
    for turn in range(ROUNDS + 1):
        if turn:
            _move(centroids, sample, numbers)
        for start in range(0, len(sample), SLICE):
            part = slice(start, start + SLICE)
            near = margins_by(centroids[None], sample[part])
            numbers[part], cosines[part] = near.argmax(axis=1), near.max(axis=1)
            yield 0.5 * turn / (ROUNDS + 1)
    counts = np.bincount(numbers, minlength=n_cells)
    sums = np.bincount(numbers, cosines, minlength=n_cells)
    middles = np.where(counts > 0, sums / np.maximum(counts, 1), cosines.mean())
    return centroids, middles.astype(np.float32)


def _move(centroids: Floats, sample: Floats, numbers: Counts) -> None:
    """Move centroids to the means of the rows nearest to them."""
    order = np.argsort(numbers, kind="stable")
    some, starts = np.unique(numbers[order], return_index=True)
    sums = np.add.reduceat(sample[order], starts, axis=0)
    means = unit(np.ascontiguousarray(sums))
    there = means.any(axis=1, keepdims=True)
    centroids[some] = np.where(there, means, centroids[some])
