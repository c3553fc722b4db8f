"""How right labels are told of rows that were learned: each by what all the others say of it.

Nothing is solved again for that. Of ridge, a row's own part in its score is its leverage h (Allen,
1974): without it the score of label y is t - (t - s) / (1 - h), t being its target. Of class means,
leaving out row z of label y, r from its label's mean m, moves that mean to m - u (z - m) and W by
-n / (n - 1) r r', whose inverse follows from S (Sherman and Morrison, 1950).

Rows without a label that help stay as they were shared out, so where they say most, with two or
three rows a label, this is too good by some hundredths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.learn.pool import Pool
from everhash.learn.ridge import FewRows, Solution
from everhash.learn.unlabelled import hashes_of

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAST = 1e-6
MOST = 200
"""Rows that are judged; those with the least hashes, so that it follows from the rows alone."""


def sample(rows: FewRows, X: NDArray[np.float32], counts: Counts) -> Counts:
    """Return the rows to judge: they have one label, and are not the only ones that have it.

    Args:
        rows: that were learned.
        X: the same as they came.
        counts: (n_labels,) rows of each label.
    """
    labels = rows.only_label
    able = np.flatnonzero((labels >= 0) & (counts[labels] > 1))
    chosen: Counts = able[np.argsort(hashes_of(X[able]), kind="stable")[:MOST]]
    return chosen


def right_without(
    rows: FewRows, solution: Solution, pool: Pool, counts: Counts, numbers: Counts, some: Counts
) -> int:
    """Return how many of some rows, each with one label that others have too, are told right.

    Args:
        rows: that were learned.
        solution: of them.
        pool: made of both.
        counts: (n_labels,) rows of each label.
        numbers: (n_labels,) the labels' numbers.
        some: numbers of rows.
    """
    labels = rows.only_label[some]
    by_ridge = _ridge(rows, solution, some)
    by_means = _means(rows, pool, counts, numbers, some, labels)
    scores = by_ridge * (pool.share / pool.ridge_unit)
    scores += (by_means - pool.offset) * ((1 - pool.share) / pool.means_unit)
    return int((scores.argmax(axis=1) == labels).sum())


def _ridge(rows: FewRows, solution: Solution, some: Counts) -> Doubles:
    """Return (m, n_labels) scores by ridge."""
    sought = rows.sought[some]
    kept = np.maximum(1 - solution.leverage[some], LEAST)
    scores: Doubles = sought - (sought - rows.centred[some] @ solution.weights) / kept[:, None]
    return scores


def _means(
    rows: FewRows, pool: Pool, counts: Counts, numbers: Counts, some: Counts, labels: Counts
) -> Doubles:
    """Return (m, n_labels) scores by class means."""
    assert pool.within is not None  # noqa: S101 - a pool that was solved has it
    solve, each = pool.within.solve, np.arange(len(some))
    means, total = pool.means(rows.sums, counts, numbers)
    own = rows.sums / np.maximum(counts, 1)  # without what rows without a label add
    Z = rows.centred[some].T
    SZ, S_means = solve(Z), solve(means)
    S_own = S_means if pool.hints is None else solve(own)
    spread, V = Z - own[:, labels], SZ - S_own[:, labels]
    n = counts[labels]
    a = n / (n - 1)
    bend = a / np.maximum(1 - a * _dots(spread, V), LEAST)
    VZ, V_means = _dots(V, Z), V.T @ means
    squares = _dots(means, S_means)
    scores = Z.T @ S_means + (bend * VZ)[:, None] * V_means
    scores -= (squares + bend[:, None] * V_means**2) / 2
    # of its own label the mean has moved, too, by -u (z - m)
    weight = 1.0 if pool.hints is None else pool.hints.weight
    u = weight / np.maximum(total[labels] - weight, LEAST)
    away, S_away = Z - means[:, labels], SZ - S_means[:, labels]
    moved_V = V_means[each, labels] - u * _dots(V, away)
    moved_Z = _dots(Z, S_means[:, labels]) - u * _dots(Z, S_away)
    moved = squares[labels] - 2 * u * _dots(means[:, labels], S_away) + u**2 * _dots(away, S_away)
    scores[each, labels] = moved_Z + bend * moved_V * VZ - (moved + bend * moved_V**2) / 2
    return scores


def _dots(one: Doubles, other: Doubles) -> Doubles:
    """Return the products of columns."""
    dots: Doubles = np.einsum("dn,dn->n", one, other)
    return dots
