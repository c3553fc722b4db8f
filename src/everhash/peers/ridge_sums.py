"""Methods that find codes for a batch, and fit functions to the codes of all rows so far.

With rows X and codes B of every batch, W = (X^T X + ridge I)^-1 X^T B needs nothing of them but

    gram_       (d, d)      sum of X^T X
    aims_       (bits, d)   sum of B^T X

Batches add to these, so neither memory nor time a batch grows with the stream, and the fit is the
one to all rows at once. What a batch has added stays: codes that labels get later do not change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from everhash.learn import seeds
from everhash.learn.model_format import require
from everhash.peers.batched import BatchedMethod, batch_size
from everhash.peers.method import UNIT, Counts, Doubles, Layout
from everhash.peers.options import matrix_bits, option, size

MIN_RIDGE = 1e-9
"""Least ridge, as a share of the rows, so that rows that are alike leave a system to solve."""
FAINT = 1e-12
"""What is less than this share of the largest value is a rounding error."""
ROUNDED = 1.001
"""How far a sum may be beyond its bound, by rounding."""


@dataclass(eq=False, repr=False)
class RidgeSumsMethod(BatchedMethod):
    """A method whose functions are a ridge fit, from sums over all batches."""

    bits: int = option(32, matrix_bits)
    batch: int = option(500, batch_size)
    ridge: float = option(1.0, size)
    gram_: Doubles = field(init=False)
    aims_: Doubles = field(init=False)

    def _layout(self) -> Layout:
        bits, d = self._begun["bits"], self._seen_width
        return super()._layout() | {
            "gram_": (np.float64, (d, d)),
            "aims_": (np.float64, (bits, d)),
        }

    def _start(self) -> None:
        self.functions_[:] = self._random_functions()

    @property
    def _batches(self) -> int:
        """Batches learned: each of them changes every function."""
        return int(self.updates_[0])

    @property
    def _rows(self) -> int:
        """Rows in the sums."""
        return self._batches * int(self._begun["batch"])

    def _drawn(self) -> Doubles:
        """Return (batch, bits) codes of fair bits to start from, others for each batch."""
        rng = seeds.generator(self._begun["random_state"], seeds.WORDS, self._batches)
        return rng.choice(np.array([-1.0, 1.0]), (self._begun["batch"], self._begun["bits"]))

    def _factor(self) -> Any:
        return factor_of(self.gram_, self._begun["ridge"], self._rows)

    def _serve(self, factor: Any) -> None:
        """Take the functions that fit all codes best."""
        self.functions_[:] = solved(factor, self.aims_.T).T
        self.updates_ += 1

    def _check_state(self) -> None:
        super()._check_state()
        require(bool((self.updates_ == self._batches).all()), "functions differ in their batches")
        self._require_within(UNIT**2 * self._rows, "gram_", "aims_")
        self._require_factor(self.gram_, self._begun["ridge"])

    def _require_within(self, most: Any, *names: str) -> None:
        """Refuse sums that so many rows cannot have."""
        for name in names:
            within = bool((np.abs(getattr(self, name)) <= ROUNDED * most).all())
            require(within, f"{name} is larger than its rows allow")

    def _require_factor(self, products: Doubles, ridge: float) -> None:
        """Refuse a sum of products of rows with themselves that is none."""
        try:
            factor_of(products, ridge, self._rows)
        except np.linalg.LinAlgError:
            possible = False
        else:
            possible = True
        require(possible, "a sum of products is not one of rows")


def factor_of(products: Doubles, ridge: float, rows: int) -> Any:
    """Return the Cholesky factor of products + ridge I."""
    from scipy.linalg import cho_factor

    ridge = max(ridge, MIN_RIDGE * rows)
    return cho_factor(products + ridge * np.eye(len(products)), lower=True)


def solved(factor: Any, right: Doubles) -> Doubles:
    """Return the solution for each column on the right."""
    from scipy.linalg import cho_solve

    solution: Doubles = cho_solve(factor, right)
    return solution


def balanced(Z: Doubles, weights: Doubles) -> Doubles:
    """Return V with sum V = 0 and V^T V = n I, as near to Z as that allows: centred and whitened.

    Row i stands for `weights[i]` equal ones, n in all. In directions in which rows of Z do not vary
    V is zero.

    >>> balanced(np.array([[3.0, 1.0], [1.0, 1.0]]), np.ones(2)).round(9).tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """
    n = weights.sum()
    centred = Z - weights @ Z / n
    variances, axes = np.linalg.eigh((weights[:, None] * centred).T @ centred)
    kept = variances > FAINT * n * np.abs(Z).max() ** 2
    axes = axes[:, kept]
    V: Doubles = centred @ (axes * np.sqrt(n / variances[kept])) @ axes.T
    return V


def unless_faint(values: Doubles, otherwise: Doubles) -> Doubles:
    """Return values, and `otherwise` in the place of those that are next to nothing.

    >>> unless_faint(np.array([2.0, -3.0, 1e-20]), np.array([1.0, 1.0, -1.0])).tolist()
    [2.0, -3.0, -1.0]
    """
    return np.where(np.abs(values) > FAINT * np.abs(values).max(), values, otherwise)


def label_means(values: Doubles, which: Counts, rows: Doubles) -> Doubles:
    """Return the mean of the values of each label's rows.

    >>> label_means(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1]), np.array([2, 1])).tolist()
    [[2.0], [5.0]]
    """
    means = np.zeros((len(rows), values.shape[1]))
    np.add.at(means, which, values)
    return means / rows[:, None]
