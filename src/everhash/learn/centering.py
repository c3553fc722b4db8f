"""Rows are centred and scaled to unit length before they are hashed.

The paper centres with the mean of all data, test rows included. A stream has no such mean: we
follow the running mean for the first `WARMUP` rows and then hold it still, so that bits stop moving
for a reason that has nothing to do with labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash import kernels

Floats = NDArray[np.float32]

WARMUP = 1000
"""Rows after which the running mean is frozen."""


class Center:
    """The point that rows are measured from: a running mean, a given point, or the origin."""

    def __init__(self, n_features: int, point: Floats | None = None, *, follows: bool) -> None:
        self.total = np.zeros(n_features, np.float64)
        self.count = 0
        self.follows = follows
        self.point: Floats = np.zeros(n_features, np.float32) if point is None else point

    @property
    def moves(self) -> int:
        """How many rows have moved the centre so far."""
        return self.count

    def follow(self, X: Floats) -> Floats:
        """Move through rows in order; return where the centre stood after each that moved it.

        There is at least one, the current centre. Row i belongs to entry min(i, last).
        """
        warm = X[: WARMUP - self.count] if self.follows else X[:0]
        if len(warm) == 0:
            return self.point[None]
        # cumsum adds row after row, so how rows fall into batches cannot change a digit
        totals = np.cumsum(np.vstack([self.total[None], warm]), axis=0)[1:]
        counts = self.count + np.arange(1, len(warm) + 1)
        points = (totals / counts[:, None]).astype(np.float32)
        self.total, self.count, self.point = totals[-1], int(counts[-1]), points[-1].copy()
        return points


def unit_rows(X: Floats, centers: Floats, which: NDArray[np.int64] | None = None) -> Floats:
    """Return rows of X measured from a centre and scaled to unit length.

    With several centres `which` says for each row which of them is its own. A row that lies on its
    centre stays zero.

    >>> unit_rows(np.array([[4, 4], [1, 0]], np.float32), np.array([1, 0], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    Z = np.empty_like(X)
    which = np.zeros(len(X), np.int64) if which is None else which
    ready = (np.require(array, requirements="W") for array in (X, np.atleast_2d(centers)))
    kernels.load().unit_rows(*ready, which, Z)  # which reads them, but Numba wants them writable
    return Z
