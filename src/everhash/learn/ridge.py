"""Ridge regression of labels on rows, and its penalty by generalised cross-validation.

    Gc = sum (z - mu)(z - mu)'      r_y = sum over rows of y of (z - mu)
    a_y = (Gc + l I)^-1 r_y         the classifier of label y against all others

    RSS = sum_y |target - a_y z|^2   dof = 1 + tr(Gc (Gc + l I)^-1)
    GCV = (RSS / n) / (1 - dof / n)^2

The penalty l is one of `PENALTIES` times the mean eigenvalue tr(Gc) / D, the one with the least GCV
(Golub, Heath, Wahba, Technometrics 1979). Few rows are kept, so one eigendecomposition answers for
every penalty (`FewRows`); of many only sums are, and each penalty takes a Cholesky factor
(`ManyRows`), so that only those next to the last one are tried.

Both also give (W + l I)^-1, where W is the scatter of rows about the mean of their own label: the
class means of `pool` need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

PENALTIES = np.geomspace(1e-4, 30, 24)
"""In units of the mean eigenvalue."""
MIDDLE = 12
"""Where a search without a past begins."""
ALONE = 18
"""The least penalty of the inverse that few rows leave for labels that are solved alone: in
directions that none of them has, a smaller one would let scores soar."""


class Inverse(Protocol):
    """(Gc + l I)^-1, as it was when the functions were published."""

    def solve(self, R: Doubles) -> Doubles:
        """Return (Gc + l I)^-1 R of (D, m) right-hand sides."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """Classifiers of all labels under one penalty."""

    weights: Doubles
    """(D, n_labels)"""
    inverse: Inverse
    penalty: int
    """Its place among `PENALTIES`."""
    leverage: Doubles
    """(n,) of each row, where they are at hand: how much its own target decides its score."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The inverse by eigenvectors: of Gc, or of the products of a few rows with each other."""

    vectors: Doubles
    shrunk: Doubles
    """1 / (eigenvalue + l)"""
    rows: Doubles | None = None
    """(n, D) centred rows, where they are fewer than D."""
    penalty: float = 0.0

    def solve(self, R: Doubles) -> Doubles:
        """See `Inverse.solve`."""
        if self.rows is None:
            return self.vectors @ (self.shrunk[:, None] * (self.vectors.T @ R))
        inside = self.vectors @ (self.shrunk[:, None] * (self.vectors.T @ (self.rows @ R)))
        return (R - self.rows.T @ inside) / self.penalty


@dataclass(frozen=True, eq=False)
class Factor:
    """The inverse by a Cholesky factor, in float32: it only serves between two publications."""

    lower: NDArray[np.float32]
    """(D, D) in Fortran's order; what is above the diagonal means nothing."""

    def solve(self, R: Doubles) -> Doubles:
        """See `Inverse.solve`."""
        from scipy.linalg import cho_solve

        solved: Doubles = cho_solve((self.lower, True), R.astype(np.float32), check_finite=False)
        return solved.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Woodbury:
    """The inverse of a scatter of fewer rows than columns."""

    rows: Doubles
    """(n, D)"""
    factor: tuple[Doubles, bool]
    """Of the products of the rows with each other, and the penalty: see `cho_factor`."""
    penalty: float

    def solve(self, R: Doubles) -> Doubles:
        """See `Inverse.solve`."""
        from scipy.linalg import cho_solve

        inside = cho_solve(self.factor, self.rows @ R, check_finite=False)
        solved: Doubles = (R - self.rows.T @ inside) / self.penalty
        return solved


class Moments(Protocol):
    """Rows to solve for, at hand or as sums."""

    @property
    def mean(self) -> Doubles:
        """(D,) of the rows."""
        ...

    @property
    def sums(self) -> Doubles:
        """(D, n_labels) r_y, the sum of each label's rows about the mean."""
        ...

    def ridge(self, start: int, *, search: bool) -> Solution | None:
        """Solve all labels; None if there is nothing to tell apart.

        Args:
            start: the penalty to try first, a place among `PENALTIES`.
            search: whether to go on to better ones.
        """
        ...

    def within(self, penalty: float) -> Inverse:
        """Return (W + l I)^-1; the penalty is in units of the mean eigenvalue tr(Gc) / D."""
        ...


class FewRows:
    """Rows that are at hand; the best penalty of all is found, wherever the search starts.

    Args:
        Z: (n, D) rows.
        rows: the row of each of its labels.
        labels: and the label's number.
        n_labels: how many labels there are.
    """

    def __init__(self, Z: Doubles, rows: Counts, labels: Counts, n_labels: int) -> None:
        self.mean: Doubles = Z.mean(axis=0) if len(Z) else np.zeros(Z.shape[1])
        self.centred, self._of, self._labels = Z - self.mean, rows, labels
        targets = np.zeros((len(Z), n_labels))
        targets[rows, labels] = 1
        self.sums: Doubles = self.centred.T @ targets
        self.sought: Doubles = targets - (targets.mean(axis=0) if len(Z) else 0)

    @property
    def only_label(self) -> Counts:
        """(n,) the label of each row; -1 where it has several, or none."""
        labels: Counts = np.full(len(self.centred), -1)
        labels[self._of] = self._labels
        labels[np.bincount(self._of, minlength=len(labels)) != 1] = -1
        return labels

    def ridge(self, start: int, *, search: bool) -> Solution | None:  # noqa: ARG002
        """See `Moments.ridge`."""
        return self.solve()

    def solve(self, penalty: int | None = None) -> Solution | None:
        """Solve with a penalty, or with the best one."""
        rows, sought, (n, width) = self.centred, self.sought, self.centred.shape
        if not rows.any() or not sought.any():
            return None
        dual = n < width
        values, vectors = np.linalg.eigh(rows @ rows.T if dual else rows.T @ rows)
        values = np.maximum(values, 0)
        turned = vectors.T @ (sought if dual else rows.T @ sought)
        level = PENALTIES * values.sum() / width
        shrunk = 1 / (values + level[:, None])
        power = (turned**2).sum(axis=1)
        if dual:
            rss = level**2 * (shrunk**2 @ power)
        else:
            rss = (sought**2).sum() - 2 * shrunk @ power + shrunk**2 @ (values * power)
        gcv = _gcv(rss, 1 + shrunk @ values, n)
        best = int(gcv.argmin()) if penalty is None else penalty
        weights = vectors @ (shrunk[best][:, None] * turned)
        alone = max(best, ALONE)
        inverse = Spectrum(vectors, shrunk[alone], rows if dual else None, float(level[alone]))
        if dual:
            leverage = 1 - level[best] * (vectors**2 @ shrunk[best])
        else:
            leverage = (rows @ vectors) ** 2 @ shrunk[best]
        return Solution(rows.T @ weights if dual else weights, inverse, best, leverage + 1 / n)

    def within(self, penalty: float) -> Inverse:
        """See `Moments.within`."""
        from scipy.linalg import cho_factor

        counts = np.maximum(np.bincount(self._labels, minlength=self.sums.shape[1]), 1)
        spread = self.centred[self._of] - (self.sums / counts).T[self._labels]
        n, width = spread.shape
        level = penalty * float(np.vdot(self.centred, self.centred)) / width
        products = spread @ spread.T if n < width else spread.T @ spread
        products[np.diag_indices(len(products))] += level
        factor = cho_factor(products, lower=True, overwrite_a=True, check_finite=False)
        if n < width:
            return Woodbury(spread, factor, level)
        return Factor(factor[0].astype(np.float32, order="F"))


@dataclass(frozen=True, eq=False)
class ManyRows:
    """Rows that are summed up."""

    gram: Doubles
    """(D, D) Gc, in Fortran's order; what is above the diagonal means nothing."""
    sums: Doubles
    """(D, n_labels) r_y."""
    mean: Doubles
    """(D,)"""
    counts: Counts
    """(n_labels,) rows of each label."""
    n: int
    """Rows."""

    def ridge(self, start: int, *, search: bool) -> Solution | None:
        """See `Moments.ridge`."""
        from scipy.linalg.lapack import dpotrs

        if not self.gram.any() or not self.sums.any():
            return None
        best = start
        if search:
            # of the targets' squares about their means
            spread = float(self.counts.sum() - (self.counts.astype(np.float64) ** 2).sum() / self.n)
            best = _least_gcv(self.gram, self.sums, spread, self.n, start)
        _, lower = _factor(self.gram, _level(self.gram, best))
        weights = dpotrs(lower, self.sums, lower=1)[0]
        inverse = Factor(lower.astype(np.float32, order="F"))
        return Solution(weights, inverse, best, np.empty(0))

    def within(self, penalty: float) -> Inverse:
        """See `Moments.within`."""
        from scipy.linalg.blas import dsyrk

        level = penalty * np.trace(self.gram) / len(self.gram)
        once = min(1.0, self.n / max(1, self.counts.sum()))  # of rows with several labels
        order = np.lexsort((*self.sums[:3], self.counts))  # labels add up in any order of arrival
        means = self.sums[:, order] / np.sqrt(np.maximum(self.counts[order], 1))
        scatter = dsyrk(-once, means, 1.0, self.gram, lower=1)
        return Factor(_factor(scatter.astype(np.float32, order="F"), level)[1])


def _least_gcv(gram: Doubles, sums: Doubles, spread: float, n: int, start: int) -> int:
    """Go from one penalty to the next while GCV falls; judged in float32, which is enough."""
    narrow = gram.astype(np.float32), sums.astype(np.float32)
    best, least = start, _judge(*narrow, spread, n, start)
    for step in (-1, 1):
        place = best + step
        while 0 <= place < len(PENALTIES) and (gcv := _judge(*narrow, spread, n, place)) < least:
            best, least, place = place, gcv, place + step
        if best != start:
            break
    return best


def _judge(gram: Floats, sums: Floats, spread: float, n: int, penalty: int) -> float:
    """Return the GCV of one penalty."""
    from scipy.linalg.lapack import spotrs, strtri

    level, lower = _factor(gram, _level(gram, penalty))
    weights = spotrs(lower, sums, lower=1)[0]
    inverse = strtri(lower, lower=1, overwrite_c=1)[0]
    dof = 1 + len(gram) - level * float(np.vdot(inverse, inverse))
    rss = spread - float(np.vdot(weights, sums)) - level * float(np.vdot(weights, weights))
    return float(_gcv(np.array([rss]), np.array([dof]), n)[0])


def _level(gram: NDArray[Any], penalty: int) -> float:
    """Return l for one of the penalties."""
    return float(PENALTIES[penalty] * np.trace(gram) / len(gram))


def _factor(gram: NDArray[Any], level: float) -> tuple[float, NDArray[Any]]:
    """Return l, larger if it has to be, and the Cholesky factor of G + l I."""
    from scipy.linalg.lapack import dpotrf, spotrf

    factorise = spotrf if gram.dtype == np.float32 else dpotrf
    diagonal = np.arange(len(gram))
    while True:
        ridged = gram.copy(order="F")
        ridged[diagonal, diagonal] += level
        lower, failed = factorise(ridged, lower=1, overwrite_a=1, clean=1)
        if not failed:
            return level, lower
        level *= 2  # rounding, or a forged file, may leave a matrix that is not positive


def _gcv(rss: Doubles, dof: Doubles, n: int) -> Doubles:
    left = np.maximum(1 - dof / n, 1e-9)
    score: Doubles = np.maximum(rss, 0) / n / left**2
    return score
