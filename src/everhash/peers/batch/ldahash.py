"""LDAHash (Strecha, Bronstein, Bronstein, Fua, TPAMI 2012).

    paper               here
    P, N                pairs of rows with one label, and of rows with two
    Sigma_P, Sigma_N    `alike`, `unlike`   (d, d) mean of (x - x')(x - x')^T over such pairs
    P = (p_1 .. p_m)    functions_[:, :-1]  a direction for each bit
    t_i                 -functions_[:, -1]  its threshold
    FN, FP              shares of pairs in P that a bit tells apart, and of pairs in N that it
                        does not

Directions and thresholds are found one after the other. Directions should leave pairs in P close
and bring pairs in N far apart, which without signs is linear discriminant analysis over pairs:

    Sigma_N p = l Sigma_P p, of which the largest l are taken.

The threshold of a bit, by itself, is where least pairs are judged wrongly: min over t of FN + FP.

All pairs count, and none is made. With n_y rows of label y, s_y their sum and M_y that of x x^T,
    sum over pairs in P = sum_y n_y M_y - s_y s_y^T,    over all pairs = n M - s s^T,
and as a threshold moves up past a row, the pairs it tells apart change by as many as lie above it
less those below: n - 1 - 2 (rows below), among all rows and likewise among the rows of its label.

Defaults: the ridge is ours. With 2,000 rows of CIFAR-10 and 10,000 entries, mAP for ridges of .1, 1
and 3 is .19, .18 and .16 with GIST features and 8 bits, .61, .67 and .62 with CNN features; .15,
.14 and .14, and .41, .44 and .40 with 32 bits.

Where we differ, on purpose:
  * All pairs instead of a sample of them.
  * Sigma_P has no inverse while rows are few: `ridge` of its mean diagonal is added.
  * The paper's other choice of directions (DIF, the top eigenvectors of Sigma_N - alpha Sigma_P) is
    left out. In the setting above, with alpha from .3 to 1.3, its mAP is .13 to .17 with GIST
    features and .33 to .61 with CNN features.
  * L labels give L - 1 directions in which Sigma_N is much larger than Sigma_P. The paper has so
    many labels (a point of a scene each) that it never runs out of them. With more bits than that
    the others follow what the rows at hand have by chance: 8 bits do better than 32 for 10 labels.
    They are taken as they come, as the method is what is to be compared.
  * Directions have unit length. It changes no sign.
  * A row with several labels counts as one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from everhash.learn.options import positive
from everhash.learn.views import margins_by
from everhash.peers.batch_method import Report, ThresholdMethod
from everhash.peers.description import Description
from everhash.peers.eigen import top_directions
from everhash.peers.method import Counts, Doubles, Floats
from everhash.peers.options import option


@dataclass(eq=False, repr=False)
class LDAHash(ThresholdMethod):
    """Directions that tell labels apart, each with the threshold that does it best."""

    about: ClassVar = Description(
        name="ldahash",
        title="LDAHash",
        year=2012,
        citation="C. Strecha, A. M. Bronstein, M. M. Bronstein, P. Fua: LDAHash: Improved Matching "
        "with Smaller Descriptors, IEEE Transactions on Pattern Analysis and Machine Intelligence, "
        "2012",
        online=False,
        needs="pairs",
        codewords=False,
    )
    direction_a_bit: ClassVar[bool] = True
    ridge: float = option(1.0, positive)

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:
        """Find all directions, then a threshold for each."""
        which = np.unique(labels, return_inverse=True)[1]
        alike, unlike = pair_moments(Z.astype(np.float64), which)
        bits, diagonal = self._begun["bits"], np.diag_indices(len(alike))
        alike[diagonal] += self._begun["ridge"] * np.trace(alike) / len(alike) or 1.0
        directions = top_directions(unlike, bits, alike)[1]
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self.functions_[:, :-1] = directions
        along = margins_by(np.ascontiguousarray(self.functions_[None, :, :-1]), Z)
        for bit in range(bits):
            self.functions_[bit, -1] = -best_threshold(along[:, bit], which)
            report((bit + 1) / bits)


def pair_moments(X: Doubles, which: Counts) -> tuple[Doubles, Doubles]:
    """Return the mean of (x - x')(x - x')^T over pairs of one label, and over pairs of two.

    Zeros where there is no such pair.
    """
    counts = np.bincount(which)
    sums = np.zeros((len(counts), X.shape[1]))
    np.add.at(sums, which, X)
    alike = (X * counts[which, None]).T @ X - sums.T @ sums
    total = sums.sum(axis=0)
    unlike = len(X) * (X.T @ X) - np.outer(total, total) - alike
    n_alike, n_unlike = pair_counts(counts)
    return alike / max(1, n_alike), unlike / max(1, n_unlike)


def pair_counts(counts: Counts) -> tuple[int, int]:
    """Return how many pairs of rows have one label, and how many have two.

    >>> pair_counts(np.array([2, 3]))
    (4, 6)
    """
    n = int(counts.sum())
    alike = int((counts * (counts - 1)).sum()) // 2
    return alike, n * (n - 1) // 2 - alike


def best_threshold(values: Floats, which: Counts) -> float:
    """Return the threshold that judges the smallest share of pairs wrongly.

    It lies half way between two values. The lowest of equally good ones is taken.

    >>> best_threshold(np.array([0.0, 1.0, 4.0, 9.0], np.float32), np.array([0, 0, 1, 1]))
    2.5
    """
    n, counts = len(values), np.bincount(which)
    order = values.argsort(kind="stable")
    ordered, labels = values[order].astype(np.float64), which[order]
    by_label = labels.argsort(kind="stable")
    own_below = np.empty(n, np.int64)
    starts = np.cumsum(counts) - counts
    own_below[by_label] = np.arange(n) - np.repeat(starts, counts)
    apart = np.cumsum(n - 1 - 2 * np.arange(n))
    alike_apart = np.cumsum(counts[labels] - 1 - 2 * own_below)
    n_alike, n_unlike = pair_counts(counts)
    gain = (apart - alike_apart) / max(1, n_unlike) - alike_apart / max(1, n_alike)
    between = np.flatnonzero(np.diff(ordered) > 0)  # rows of one value stay together
    if len(between) == 0:
        return float(ordered[0])
    best = between[gain[between].argmax()]
    return float(ordered[best] + ordered[best + 1]) / 2
