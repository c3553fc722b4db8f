"""Entries known by their label: one posting list a label, no codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Counts, Floats, Words, kernel_array

MANY = 16
"""Postings from which on it is worth making all lists anew for them."""


class PostingMatches(NamedTuple):
    """Entries found, with the label under which each was found."""

    distances: Any
    places: Counts
    labels: Counts


class PostingMatchesWithin(NamedTuple):
    """Entries within a radius: those of query j are offsets[j] .. offsets[j + 1]."""

    offsets: Counts
    distances: Any
    places: Counts
    labels: Counts


class Postings:
    """Places by label. An entry may have several labels; it is found once, under its nearest.

    Appending a place after all others of its label, or removing one, never moves the rest:
    amortised O(1) and O(log n). An older place goes to a short second list of its label, which is
    merged when it outgrows the square root of the first. A posting costs 4 bytes, with the slack of
    doubling 6 to 12, and an entry 4 more for the number of its labels.
    """

    def __init__(self) -> None:
        self._runs: Counts = np.zeros((0, 3), np.int64)
        self._arena: NDArray[np.int32] = np.empty(0, np.int32)
        self._counts: Counts = np.zeros(3, np.int64)
        """Slots of the arena in use, entries, entries with several labels."""
        self._live: Counts = np.zeros(0, np.int64)
        self._labels_of: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._postings = self._dead = 0

    def __len__(self) -> int:
        """Number of entries, each counted once."""
        return int(self._counts[1])

    def count(self, label: int) -> int:
        """Number of entries under a label."""
        return int(self._live[label]) if label < len(self._live) else 0

    def places(self, label: int) -> Counts:
        """Return the places under a label, ascending."""
        runs = self._runs[2 * label : 2 * label + 2, :2].tolist()
        found = [self._arena[start : start + length] for start, length in runs]
        places = np.concatenate([*found, _NONE[0]])
        return np.sort(places[places >= 0])

    def append(self, labels: Counts, places: Counts) -> None:
        """Add each place to the list of its label; it must not be there already.

        Args:
            labels: (n,) numbers of labels, from 0.
            places: (n,) below 2**31, in any order; ascending is fastest.
        """
        labels, places = kernel_array(labels, np.int64), kernel_array(places, np.int64)
        if len(labels) == 0:
            return
        self._reserve(int(labels.max()) + 1, int(places.max()) + 1)
        if len(self._arena) == 0 and _sort_at_once(labels, places, len(self._live)):
            self._fill(labels, places)
            return
        if len(labels) > MANY and 4 * len(labels) > self._postings:
            self._rebuild(labels)
        insert, done = kernels.load_search().insert_postings, 0
        while True:
            arrays = self._runs, self._arena, self._counts, self._live, self._labels_of
            done = insert(labels, places, done, *arrays)
            if done == len(labels):
                break
            self._rebuild(labels[done:])
        self._postings += len(labels)

    def remove(self, label: int, place: int) -> bool:
        """Remove a place from the list of a label; return whether it was there."""
        if label >= len(self._live):
            return False
        at = kernels.load_search().find_posting(self._runs, self._arena, label, place)
        if at < 0:
            return False
        self._arena[at] = ~place
        self._live[label] -= 1
        self._postings -= 1
        self._dead += 1
        self._labels_of[place] -= 1
        self._counts[1] -= self._labels_of[place] == 0
        self._counts[2] -= self._labels_of[place] == 1
        if self._dead > 64 + self._postings:
            self._rebuild(np.empty(0, np.int64))
        return True

    def nearest(
        self, distances: NDArray[Any], k: int, only: Counts | None = None
    ) -> PostingMatches:
        """Return the k nearest entries, given the distance of each label.

        Args:
            distances: (q, L) int64 below 2**31 in size, or float32; L covers all labels in use.
            k: results wanted, at least 1; may exceed the number of entries.
            only: numbers of the labels to search under; None for all.

        Returns:
            (q, k) distances, places and labels by (distance, place); each entry under its nearest
            label, ties to the smallest number. Padded with place and label -1, distance -1 or inf.
        """
        floats = distances.dtype.kind == "f"
        if distances.shape[1] > len(self._live):
            self._reserve(distances.shape[1], 0)
        if floats:  # adding 0 turns -0.0 into 0.0
            ranks = (kernel_array(distances, np.float32) + np.float32(0)).view(np.int32)
        else:
            ranks = kernel_array(distances, np.int32)
        search = kernels.load_search().search_lists
        far, places, labels = search(ranks, int(floats), *self._lists(only), k)
        return PostingMatches(_floats(far, places) if floats else far, places, labels)

    def nearest_hamming(
        self,
        codewords: Words,
        label_cycles: Counts,
        queries: Words,
        bits: int,  # noqa: ARG002
        k: int,
        only: Counts | None = None,
    ) -> PostingMatches:
        """Return what `nearest` returns for the Hamming distances of codewords, in one pass.

        Args:
            codewords: (L, W) packed; L covers all labels in use.
            label_cycles: (L,) cycle of each label.
            queries: (q, n_cycles, W) a query's word in each cycle.
            bits: width of a word; not used, since bits beyond it are zero.
            k: results wanted, at least 1.
            only: as for `nearest`.
        """
        if len(codewords) > len(self._live):
            self._reserve(len(codewords), 0)
        found = kernels.load_search().search_codewords(
            kernel_array(codewords.T, np.uint64),
            kernel_array(label_cycles, np.int64),
            kernel_array(queries, np.uint64),
            *self._lists(only),
            k,
        )
        return PostingMatches(*found)

    def within(
        self, distances: NDArray[Any], radius: float, only: Counts | None = None
    ) -> PostingMatchesWithin:
        """Return all entries whose nearest label is at most `radius` away, by (distance, place).

        Args:
            distances: (q, L) int64 or float32; L covers all labels in use.
            radius: compared exactly, not rounded to float32.
            only: as for `nearest`.
        """
        self._reserve(distances.shape[1], 0)
        parts = [self._within(row, radius, only) for row in distances]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(places) for _, places, _ in parts], out=offsets[1:])
        nothing = [(distances[0, :0] if len(distances) else distances.ravel(), *_NONE)]
        far, places, labels = (np.concatenate(part) for part in zip(*parts, *nothing, strict=True))
        return PostingMatchesWithin(offsets, far, places, labels)

    def _within(
        self, row: NDArray[Any], radius: float, only: Counts | None
    ) -> tuple[NDArray[Any], Counts, Counts]:
        wanted = self._wanted(only)[: len(row)] > 0
        near = np.flatnonzero((row.astype(np.float64) <= radius) & wanted)
        runs = np.stack([2 * near, 2 * near + 1], axis=1).ravel()
        start, length = self._runs[runs, 0], self._runs[runs, 1]
        labels = np.repeat(runs // 2, length)
        ends = np.cumsum(length)
        at = np.repeat(start - (ends - length), length) + np.arange(len(labels))
        places = self._arena[at].astype(np.int64)
        labels, places = labels[places >= 0], places[places >= 0]
        order = np.lexsort((labels, row[labels], places))
        _, first = np.unique(places[order], return_index=True)
        best = order[first]
        best = best[np.lexsort((places[best], row[labels[best]]))]
        return row[labels[best]] + row.dtype.type(0), places[best], labels[best]

    def lists(self, n_labels: int, only: Counts | None = None) -> tuple[Any, ...]:
        """Return runs, arena, entries of each label and how many have several, for kernels.

        There is room for n_labels; labels that are not among `only` have 0 entries.
        """
        if n_labels > len(self._live):
            self._reserve(n_labels, 0)
        return self._lists(only)

    def _lists(self, only: Counts | None) -> tuple[Any, ...]:
        """Return what the search kernels take, from `runs` to `several`."""
        return self._runs, self._arena, self._wanted(only), int(self._counts[2])

    def _wanted(self, only: Counts | None) -> Counts:
        """Return (L,) entries of each label; 0 for labels that are not searched."""
        if only is None:
            return self._live
        only = only[only < len(self._live)]
        wanted = np.zeros_like(self._live)
        wanted[only] = self._live[only]
        return wanted

    def _reserve(self, n_labels: int, n_places: int) -> None:
        """Make room for so many labels and places, at least doubling."""
        more = max(n_labels, 2 * len(self._live)) - len(self._live)
        if n_labels > len(self._live):
            self._live = np.concatenate([self._live, np.zeros(more, np.int64)])
            self._runs = np.concatenate([self._runs, np.zeros((2 * more, 3), np.int64)])
        more = max(n_places, 2 * len(self._labels_of)) - len(self._labels_of)
        if n_places > len(self._labels_of):
            self._labels_of = np.concatenate([self._labels_of, np.zeros(more, np.uint32)])

    def _rebuild(self, coming: Counts) -> None:
        """Drop removed places, merge second lists, and make room for postings of these labels."""
        want = self._runs[:, 1].reshape(-1, 2).sum(axis=1)
        want += np.bincount(coming, minlength=len(want))
        runs, arena, used = _room_for(want)
        kernels.load_search().copy_postings(self._runs, self._arena, runs, arena)
        self._runs, self._arena, self._dead = runs, arena, 0
        self._counts[0] = used

    def _fill(self, labels: Counts, places: Counts) -> None:
        """Make the first lists, of a file just opened, by sorting: no kernel has to be there."""
        sizes = np.bincount(labels, minlength=len(self._live))
        self._runs, self._arena, self._counts[0] = _room_for(sizes)
        order = np.argsort(labels.astype(np.uint16), kind="stable")
        gaps = self._runs[::2, 0] - (np.cumsum(sizes) - sizes)
        self._arena[np.repeat(gaps, sizes) + np.arange(len(order))] = places[order]
        self._runs[::2, 1] = self._live = sizes
        self._labels_of += np.bincount(places, minlength=len(self._labels_of)).astype(np.uint32)
        self._counts[1] = np.count_nonzero(self._labels_of)
        self._counts[2] = np.count_nonzero(self._labels_of > 1)
        self._postings = len(labels)


_NONE: tuple[Counts, Counts] = (np.empty(0, np.int64), np.empty(0, np.int64))


def _sort_at_once(labels: Counts, places: Counts, n_labels: int) -> bool:
    """Whether sorting makes lists of these, and fast: NumPy's sort of small numbers is linear."""
    return len(labels) > MANY and n_labels <= 2**16 and bool((np.diff(places) >= 0).all())


def _room_for(sizes: Counts) -> tuple[Counts, NDArray[np.int32], int]:
    """Return empty runs and an arena for lists of these sizes, with slack, and slots in use."""
    capacity = np.where(sizes > 0, sizes + sizes // 4 + 2, 0)
    runs = np.zeros((2 * len(sizes), 3), np.int64)
    runs[::2, 0], runs[::2, 2] = np.cumsum(capacity) - capacity, capacity
    used = int(capacity.sum())
    return runs, np.empty(2 * used + 1024, np.int32), used


def _floats(ranks: Counts, places: Counts) -> Floats:
    """Return the distances that ranks stand for; inf where nothing was found."""
    distances = np.where(ranks >= 0, ranks, ranks ^ 0x7FFFFFFF).astype(np.int32).view(np.float32)
    distances[places < 0] = np.inf
    return distances
