"""All the exact learner keeps of its rows: sums, in whole numbers.

    rows      n                 rows
    total     m  = sum q        (D,)
    gram      G  = sum q q'     (D, D)
    labels    s_y = sum q       (D,) over the rows of each label

A row enters as whole numbers q from -127 to 127, its place on a fixed grid (`Rotated.steps`), which
loses about what the smallest penalty adds. Sums of whole numbers are exact: no order, batch or
machine can change a digit of them, shards add up to what one would have, and a row that is
subtracted has never been there.

Products are made in float32 by BLAS. Partial sums of q_i q_j stay below the largest sum of q_j^2
(Cauchy-Schwarz), so they too are exact while that is below 2^24; then they move on to float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import GrowingArray, copied
from everhash.learn.rotated_view import GRID

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

GONE = -1
"""Stands for the number of a label that is gone; no row has it."""
BLOCK = 1024
"""Rows that wait to be multiplied together."""
EXACT = 2.0**24
"""Whole numbers below this are exact in float32."""


class Sums:
    """Sums of rows that can be added and taken away again."""

    def __init__(self, width: int) -> None:
        self.rows = 0
        self.total = np.zeros(width)
        self.labels: GrowingArray[np.float64] = GrowingArray((width,), np.float64)
        self._gram = np.zeros((width, width), order="F")
        self._recent = np.zeros((width, width), np.float32, order="F")
        self._squares = np.zeros(width)
        self._waiting = np.empty((BLOCK, width), np.float32)
        self._held = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    def add(self, Q: Floats, rows: Counts, labels: Counts, sign: int = 1) -> None:
        """Add rows on the grid, or with sign -1 take them away.

        Args:
            Q: (n, D) whole numbers.
            rows: the row of each of its labels, ascending.
            labels: and the label's number.
            sign: 1 or -1.
        """
        for start in range(0, len(Q), BLOCK):
            inside = slice(*np.searchsorted(rows, (start, start + BLOCK)))
            self._add(Q[start : start + BLOCK], rows[inside] - start, labels[inside], sign)

    def _add(self, Q: Floats, rows: Counts, labels: Counts, sign: int) -> None:
        """Add a block of rows, few enough for exact sums in float32."""
        self.rows += sign * len(Q)
        self.total += sign * Q.sum(axis=0)
        which, sums = label_sums(Q, rows, labels)
        self.labels.rows[which] += sign * sums
        self.add_products(Q, sign)

    def add_products(self, Q: Floats, sign: int) -> None:
        """Add the products of a block of rows, or take them away."""
        if sign > 0:
            self._wait(Q)
        else:
            self._gram -= Q.T @ Q

    def could_hold(self, Q: Floats, rows: Counts, labels: Counts, fewer: Counts) -> bool:
        """Whether these rows may be among those added: what is left must be sums of some rows.

        `fewer` counts the rows of each label that would be left.
        """
        n, total = self.rows - len(Q), self.total - Q.sum(axis=0, dtype=np.float64)
        squares = self.diagonal - np.einsum("ij,ij->j", Q, Q, dtype=np.float64)
        which, sums = label_sums(Q, rows, labels)
        left = np.abs(self.labels.rows[which] - sums).max(axis=1, initial=0)
        possible = (left <= GRID * fewer[which]).all() and (squares * max(n, 1) >= total**2).all()
        return bool(possible and (n > 0 or not squares.any()))

    @property
    def diagonal(self) -> Doubles:
        """(D,) the squares of all rows, summed up."""
        return self.gram.diagonal()

    def filed_products(self) -> Doubles:
        """(D, D) the products that a file holds."""
        return self.gram

    def merge(self, other: Sums, numbers: Counts) -> None:
        """Add another's sums; `numbers` are its labels' numbers here, or GONE."""
        self.rows += other.rows
        self.total += other.total
        named = numbers >= 0
        self.labels.rows[numbers[named]] += other.labels.rows[named]
        self._gram += other.gram

    @property
    def gram(self) -> Doubles:
        """(D, D) the products of all rows, in Fortran's order; only the lower triangle counts."""
        self._multiply()
        self._settle()
        return self._gram

    @gram.setter
    def gram(self, gram: Doubles) -> None:
        self._gram = gram

    def _wait(self, Q: Floats) -> None:
        """Keep rows until there are enough of them to multiply."""
        while len(Q):
            part = Q[: BLOCK - self._held]
            self._waiting[self._held : self._held + len(part)] = part
            self._held += len(part)
            Q = Q[len(part) :]
            if self._held == BLOCK:
                self._multiply()

    def _multiply(self) -> None:
        """Multiply the rows that wait."""
        if self._held == 0:
            return
        from scipy.linalg.blas import ssyrk  # only now: importing it takes a tenth of a second

        Q, self._held = self._waiting[: self._held], 0
        squares = np.einsum("ij,ij->j", Q, Q, dtype=np.float64)
        if (self._squares + squares).max() >= EXACT:
            self._settle()
        self._squares += squares
        self._recent = ssyrk(1.0, Q.T, 1.0, self._recent, lower=1, overwrite_c=1)

    def _settle(self) -> None:
        """Move what float32 has summed up on to float64."""
        if self._squares.any():
            self._gram += self._recent
            self._recent[:] = 0
            self._squares[:] = 0


def on_grid(Z: Floats, steps: Doubles) -> Floats:
    """Return seen rows, without their constant, as whole numbers of steps."""
    Q: Floats = Z[:, :-1] * (1 / steps).astype(np.float32)
    np.rint(Q, out=Q)
    return np.clip(Q, -GRID, GRID, out=Q)


def label_sums(Q: Floats, rows: Counts, labels: Counts) -> tuple[Counts, Doubles]:
    """Return the labels that occur, and the sum of each one's rows."""
    from scipy.sparse import csr_array

    which, numbers = np.unique(labels, return_inverse=True)
    ones, shape = np.ones(len(rows), np.float32), (len(which), len(Q))
    return which, (csr_array((ones, (numbers, rows)), shape=shape) @ Q).astype(np.float64)
