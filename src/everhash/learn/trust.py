"""How often a row has the label of the codeword that its word is nearest to, by their distance.

Rows are counted when they are scored before they are learned (see `record`), so trust is what a
word at some distance was worth when nobody knew its row's label. While few rows were counted, the
table stays near a prior; it never rises with the distance.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import copied

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

ROW = 2**16
"""Units that a row counts for: counts are whole numbers and can still be halved often."""
PRIOR_ROWS = 4
"""Rows that the prior counts for at each distance."""
NEAR, FAR = 0.9, 0.05
"""The prior at distance 0, and from half of all bits on; it falls evenly in between."""


class Trust:
    """Rows by the distance of their word to the nearest codeword, and how many had its label."""

    def __init__(self, bits: int) -> None:
        self.rows: Counts = np.zeros(bits + 1, np.int64)
        """(bits + 1,) in units of 1 / ROW."""
        self.right: Counts = np.zeros(bits + 1, np.int64)
        self._table: tuple[Counts, Floats] | None = None
        """The table, and the right rows it was made of."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    def take(self, distances: Counts, right: NDArray[np.bool_]) -> None:
        """Count rows."""
        size = len(self.rows)
        self.replace(
            self.rows + ROW * np.bincount(distances, minlength=size),
            self.right + ROW * np.bincount(distances[right], minlength=size),
        )

    def halve(self) -> None:
        """Let the rows so far count half."""
        self.replace(self.rows // 2, self.right // 2)

    def merge(self, other: Trust) -> None:
        """Add the rows of another."""
        self.replace(self.rows + other.rows, self.right + other.right)

    def replace(self, rows: Counts, right: Counts) -> None:
        """Hold these counts instead."""
        self.rows, self.right = rows, right

    @property
    def table(self) -> Floats:
        """(bits + 1,) the share of rows with the nearest codeword's label; not to write to."""
        made, right = self._table, self.right
        if made is None or made[0] is not right:
            prior = prior_trust(len(right) - 1).astype(np.float64)
            weights = self.rows / ROW + PRIOR_ROWS
            shares = (right / ROW + PRIOR_ROWS * prior) / weights
            table = _falling(shares, weights).astype(np.float32)
            table.flags.writeable = False
            self._table = made = (right, table)
        return made[1]


@lru_cache(maxsize=64)
def prior_trust(bits: int) -> Floats:
    """Return (bits + 1,) the trust there is before any row was counted; not to write to."""
    way = np.minimum(1, np.arange(bits + 1) / max(0.5, bits / 2))
    table: Floats = (NEAR - (NEAR - FAR) * way).astype(np.float32)
    table.flags.writeable = False
    return table


def _falling(shares: Doubles, weights: Doubles) -> Doubles:
    """Return the nearest shares that never rise: neighbours in the wrong order are pooled."""
    pools: list[tuple[float, float, int]] = []
    for share, weight in zip(shares.tolist(), weights.tolist(), strict=True):
        pool = (share, weight, 1)
        while pools and pools[-1][0] < pool[0]:
            pool = _pooled(pools.pop(), pool)
        pools.append(pool)
    return np.repeat([share for share, _, _ in pools], [length for _, _, length in pools])


def _pooled(
    one: tuple[float, float, int], other: tuple[float, float, int]
) -> tuple[float, float, int]:
    weight = one[1] + other[1]
    return (one[0] * one[1] + other[0] * other[1]) / weight, weight, one[2] + other[2]
