"""The rows without a label that a learner keeps: all of them while they are few, then a sample.

Those with the least hashes are kept. So which rows are kept depends on the rows alone: on no order,
batch or machine.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import copied

Floats = NDArray[np.float32]
Hashes = NDArray[np.uint64]

MOST = 6000
"""Rows that are kept."""
TOGETHER = 256
"""Additions that are put in order together."""
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class Unlabelled:
    """Rows in the order of their hashes."""

    def __init__(self, n_features: int) -> None:
        self.met = 0
        """How many came, less those that were taken away again."""
        self._rows: Floats = np.empty((0, n_features), np.float32)
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._new: list[tuple[Floats, Hashes]] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    @property
    def rows(self) -> Floats:
        """(n, d) rows that are kept; not to write to."""
        if self._new:
            rows, hashes = zip(*self._new, strict=True)
            self._new = []
            self._hold(np.concatenate([self._rows, *rows]), np.concatenate([self._hashes, *hashes]))
        return self._rows

    def add(self, X: Floats) -> None:
        """Add rows."""
        self.met += len(X)
        hashes = hashes_of(X)
        if len(self._hashes) == MOST:
            small = hashes < self._hashes[-1]
            X, hashes = X[small], hashes[small]
        if len(X):
            self._new.append((X.copy(), hashes))
        if len(self._new) >= TOGETHER:
            self.rows  # noqa: B018 - puts them in order

    def remove(self, X: Floats) -> None:
        """Take away one row for each of these, where there is one like it."""
        stay, hashes = np.ones(len(self.rows), np.bool_), hashes_of(X)
        for row in np.flatnonzero(np.isin(hashes, self._hashes)):
            first, last = (np.searchsorted(self._hashes, hashes[row], s) for s in SIDES)
            alike = stay[first:last] & (self._rows[first:last] == X[row]).all(axis=1)
            stay[first + np.flatnonzero(alike)[:1]] = False
        self.met -= int((~stay).sum())
        self._rows, self._hashes = self._rows[stay], self._hashes[stay]

    def merge(self, other: Unlabelled) -> None:
        """Add the rows of another."""
        met = self.met + other.met
        self.add(other.rows)
        self.met = met

    def restore(self, rows: Floats, met: int) -> None:
        """Hold rows as they were read from a file."""
        self.met = met
        self._hold(rows, hashes_of(rows))

    def _hold(self, rows: Floats, hashes: Hashes) -> None:
        order = np.argsort(hashes, kind="stable")[:MOST]
        self._rows, self._hashes = rows[order], hashes[order]


def hashes_of(X: Floats) -> Hashes:
    """Return a hash of each row's bits.

    >>> one, two, again = hashes_of(np.array([[1, 2], [2, 1], [1, 2]], np.float32)).tolist()
    >>> one == again != two
    True
    """
    bits = np.ascontiguousarray(X + np.float32(0)).view(np.uint32).astype(np.uint64)  # -0 is 0
    odd = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    return _mixed((bits * odd).sum(axis=1, dtype=np.uint64))


def _mixed(numbers: Hashes) -> Hashes:
    """Return numbers whose every bit depends on all bits of these (SplitMix64, Steele 2014)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
