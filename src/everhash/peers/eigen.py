"""Strongest directions of a symmetric matrix, of which many methods are made."""

from __future__ import annotations

import numpy as np

from everhash.peers.method import Doubles


def top_directions(
    A: Doubles, count: int, metric: Doubles | None = None
) -> tuple[Doubles, Doubles]:
    """Return the `count` largest eigenvalues of A w = l M w, and (count, d) their eigenvectors.

    The strongest come first, with w^T M w = 1; M is the identity by default. An eigenvector has no
    sign of its own: its largest entry is above 0 here.

    >>> values, directions = top_directions(np.diag([1.0, 3.0]), 1)
    >>> values.tolist(), directions.tolist()
    ([3.0], [[0.0, 1.0]])
    """
    from scipy.linalg import eigh

    d = len(A)
    values, vectors = eigh(A, metric, subset_by_index=[d - count, d - 1])
    directions: Doubles = vectors.T[::-1]
    largest = np.abs(directions).argmax(axis=1)
    signs = np.where(directions[np.arange(count), largest] < 0, -1.0, 1.0)
    return values[::-1], directions * signs[:, None]
