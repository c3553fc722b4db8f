"""Rows and labels of `large.py`: every real row first, then as many synthetic ones as are wanted.

Real are 181,208 rows of four sets of 512 features: CIFAR-10 and Caltech-256, by a network and as
GIST. Each set is centred and brought to unit spread; a PCA of all of them keeps 64 features. Their
534 labels are split into as many as are wanted: the largest group is cut in half across the
direction of the row farthest from its mean, again and again. Fewer than 534 are joined, by number.

A synthetic row lies between two real rows of one label, at a random place, with Gaussian noise of
a tenth of the features' spread.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.bench import datasets
from everhash.products import product

SETS = ("cifar10-cnn", "caltech256-cnn", "cifar10-gist", "caltech256-gist")
DIM, SEED = 64, 0
QUERIES = 1000
"""Real rows that are asked for, and never added."""
NOISE = 0.1
HIDDEN = 0.02
"""Share of entries without a label."""
SAMPLE = 40_000
"""Rows that the PCA is fitted on."""
Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class Call(NamedTuple):
    """Rows of one call, and the labels that come with them."""

    X: Floats
    y: list[int | None]


class Rows:
    """Real rows in random order, and synthetic ones after them.

    The same arguments give the same rows.

    Args:
        X: (n, d) real rows.
        y: (n,) their labels.
        labels: how many labels there are to be.
        seed: of the order and of what is drawn.
    """

    def __init__(self, X: Floats, y: Counts, labels: int, seed: int = SEED) -> None:
        self._rng = np.random.default_rng(seed)
        order = self._rng.permutation(len(X))
        groups = split(X, y, labels)[order]
        queries = min(QUERIES, len(X) // 10)
        self.queries, self.truth = X[order[:queries]], groups[:queries]
        self._X, self._y = X[order[queries:]], groups[queries:]
        self.real = len(self._X)
        self._sorted = np.argsort(self._y, kind="stable")
        self._starts = np.searchsorted(self._y[self._sorted], np.arange(labels + 1))
        self._spread = np.float32(NOISE) * X.std(axis=0)

    def calls(self, first: int, last: int, size: int) -> Iterator[Call]:
        """Yield the rows from one number to another, in calls of so many."""
        for start in range(first, last, size):
            n = min(size, last - start)
            real = max(0, min(n, self.real - start))
            X, y = self._synthetic(n - real)
            X = np.concatenate([self._X[start : start + real], X])
            y = np.concatenate([self._y[start : start + real], y])
            hidden = self._rng.random(n) < HIDDEN
            given = zip(y.tolist(), hidden.tolist(), strict=True)
            yield Call(X, [None if hide else label for label, hide in given])

    def _synthetic(self, n: int) -> tuple[Floats, Counts]:
        """Draw rows between two real rows of one label."""
        rng, one = self._rng, self._rng.integers(0, self.real, n)
        y = self._y[one]
        first, sizes = self._starts[y], self._starts[y + 1] - self._starts[y]
        other = self._sorted[first + (rng.random(n) * sizes).astype(np.int64)]
        X = self._X[one]
        X += rng.random((n, 1), np.float32) * (self._X[other] - X)
        X += self._spread * rng.standard_normal(X.shape, np.float32)
        return X, y


def real_rows() -> tuple[Floats, Counts]:
    """Return all rows of the four sets by their 64 main features, and their labels."""
    rows, labels, known = [], [], 0
    for name in SETS:
        data = datasets.load(name)
        X = data.X - data.X.mean(axis=0)
        rows.append(X / X.std())
        labels.append(data.y + known)
        known += int(data.y.max()) + 1
    return reduce(rows), np.concatenate(labels)


def reduce(sets: Sequence[Floats]) -> Floats:
    """Return the rows of all sets by the main features of a sample of them."""
    pick = np.random.default_rng(SEED).permutation(sum(map(len, sets)))[:SAMPLE]
    sample = np.concatenate(sets)[pick]
    _, axes = np.linalg.eigh(sample.T @ sample)
    main = axes[:, ::-1][:, :DIM]
    return np.concatenate([X @ main for X in sets])


def split(X: Floats, y: Counts, labels: int) -> Counts:
    """Return finer labels: the largest group is cut in half until there are enough."""
    found = np.unique(y, return_inverse=True)[1] % labels
    order = np.argsort(found, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(found))[:-1])
    heap = [(-len(part), number) for number, part in enumerate(parts)]
    heapq.heapify(heap)
    while len(parts) < labels:
        _, number = heapq.heappop(heap)
        parts[number], other = halves(X, parts[number])
        parts.append(other)
        for each in (number, len(parts) - 1):
            heapq.heappush(heap, (-len(parts[each]), each))
    finer = np.empty(len(y), np.int64)
    for number, part in enumerate(parts):
        finer[part] = number
    return finer


def halves(X: Floats, part: Counts) -> tuple[Counts, Counts]:
    """Cut rows in two across the direction from the mean to the row farthest from it."""
    rows = X[part] - X[part].mean(axis=0)
    far = rows[(rows**2).sum(axis=1).argmax()]
    order = np.argsort(product(rows, far), kind="stable")
    middle = len(part) // 2
    return part[order[:middle]], part[order[middle:]]
