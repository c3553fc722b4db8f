"""The rows without a label that a learner keeps: all of them while they are few, then a sample.

A row is kept while its hash is below a limit, which is halved whenever more than `MOST` rows are.
So which rows are kept depends on the rows alone: on no order, batch or machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import copied

Floats = NDArray[np.float32]
Hashes = NDArray[np.uint64]

MOST = 4096
"""Rows that are kept."""
ALL = 64
"""The limit of hashes, as a power of two, while all rows are kept."""


class Unlabelled:
    """Rows in the order of their hashes."""

    def __init__(self, n_features: int) -> None:
        self.rows: Floats = np.empty((0, n_features), np.float32)
        self.limit = ALL
        """Rows are kept whose hashes are below two to this power."""
        self.met = 0
        """How many came, less those that were taken away again."""
        self._hashes: Hashes = np.empty(0, np.uint64)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, X: Floats) -> None:
        """Add rows."""
        self.met += len(X)
        hashes = hashes_of(X)
        mine = self._below(hashes)
        self._take(
            np.concatenate([self.rows, X[mine]]), np.concatenate([self._hashes, hashes[mine]])
        )
        while len(self.rows) > MOST:
            self.limit -= 1
            mine = self._below(self._hashes)
            self.rows, self._hashes = self.rows[mine], self._hashes[mine]

    def remove(self, X: Floats) -> None:
        """Take away one row for each of these, where there is one like it."""
        stay = np.ones(len(self.rows), np.bool_)
        hashes = hashes_of(X)
        for row in np.flatnonzero(np.isin(hashes, self._hashes)):
            place = int(np.searchsorted(self._hashes, hashes[row]))
            while place < len(stay) and self._hashes[place] == hashes[row]:
                if stay[place] and np.array_equal(self.rows[place], X[row]):
                    stay[place] = False
                    break
                place += 1
        self.met -= int((~stay).sum())
        self.rows, self._hashes = self.rows[stay], self._hashes[stay]

    def merge(self, other: Unlabelled) -> None:
        """Add the rows of another."""
        met = self.met + other.met
        self.limit = min(self.limit, other.limit)
        mine = self._below(self._hashes)
        self.rows, self._hashes = self.rows[mine], self._hashes[mine]
        self.add(other.rows)
        self.met = met

    def restore(self, rows: Floats, limit: int, met: int) -> bool:
        """Hold rows as they were read from a file; return whether they can be what was kept."""
        self.limit, self.met = limit, met
        self._take(rows, hashes_of(rows))
        return bool(self._below(self._hashes).all()) and len(rows) <= min(MOST, met)

    def _below(self, hashes: Hashes) -> NDArray[np.bool_]:
        if self.limit == ALL:
            return np.ones(len(hashes), np.bool_)
        return hashes < np.uint64(1 << self.limit)

    def _take(self, rows: Floats, hashes: Hashes) -> None:
        order = np.argsort(hashes, kind="stable")
        self.rows, self._hashes = rows[order], hashes[order]


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
