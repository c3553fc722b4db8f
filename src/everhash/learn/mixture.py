"""Rows without a label that help to place the means of labels, while labelled ones are few.

Expectation and maximisation on the sphere: each row belongs to each label with a probability that
follows from its cosine with the label's mean, and each mean is made again of its rows, eight times.
A row that is like no label belongs to none of them: it may have one that nobody has named yet.

    P(y | u) = exp(20 cos(u, m_y)) / (exp(20 · 0.2) + sum over labels of exp(20 cos(u, m)))
    m_y      = weight · sum of its labelled rows + sum over the others of P(y | u) u
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.learn.pool import HELPING, Hints, in_order, usual_rows
from everhash.learn.ridge import Moments
from everhash.learn.row_memory import RowMemory

Floats = NDArray[np.float32]

SHARPNESS = np.float32(20)
ELSEWHERE = np.float32(0.2)
"""The cosine with a mean at which a row is as likely to have none of the labels."""
ROUNDS = 8
COUNTS = 3
"""A labelled row counts for so many of them times the rows of a usual label."""


def hints_of(rows: Floats, memory: RowMemory, moments: Moments) -> Hints | None:
    """Return what rows without a label say of the means of labels, if they still help.

    Args:
        rows: that have no label.
        memory: of the others, with the view that all are seen by.
        moments: of the others.
    """
    view, counts = memory.view, memory.counts.rows
    usual, known = usual_rows(counts), np.flatnonzero(counts)
    if len(rows) == 0 or usual >= HELPING:
        return None
    known, weight = known[in_order(moments.sums, counts[known])], COUNTS * usual
    Z = view.of(rows)[:, :-1]
    turned = slice(view.turned)
    totals = memory.totals[known][:, turned] * (weight * view.steps[turned])
    unit = np.ascontiguousarray(Z[:, turned]) / np.float32(view.constant)
    likely = memberships(unit, (totals / view.constant).astype(np.float32))
    belonging = likely.sum(axis=0, dtype=np.float64)
    sums, mine = np.zeros((len(counts), Z.shape[1])), np.zeros(len(counts))
    sums[known] = likely.T @ Z - belonging[:, None] * moments.mean
    mine[known] = belonging
    return Hints(weight, sums, mine)


def memberships(rows: Floats, sums: Floats) -> Floats:
    """Return (n, n_labels) the probability that each row belongs to each label.

    Args:
        rows: (n, d) unit rows without a label.
        sums: (n_labels, d) of the labelled rows, times what one of them counts for.

    >>> rows = np.array([[1, 0], [0.9, 0.43], [-1, 0]], np.float32)
    >>> memberships(rows, np.array([[0, 1], [2, 0]], np.float32)).round(1).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]
    """
    likely = np.zeros((len(rows), len(sums)), np.float32)
    for _ in range(ROUNDS):
        means = sums + likely.T @ rows
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.float32(1e-12))
        np.matmul(rows, means.T, out=likely)
        likely -= ELSEWHERE
        likely *= SHARPNESS
        np.exp(likely, out=likely)
        likely /= 1 + likely.sum(axis=1, keepdims=True)
    return likely
