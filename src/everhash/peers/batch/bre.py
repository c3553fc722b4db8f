"""Learning to Hash with Binary Reconstructive Embeddings (Kulis, Darrell, NIPS 2009), supervised.

    paper               here
    x_{p1} ... x_{ps}   rows_of_bit     `anchors` training rows that function p is made of
    kappa               x · y           a linear kernel
    W                   folded into functions_: w_p = sum_q W_pq x_{pq}, (bits, d)
    h_p                 a column of H   (n, bits) what the functions say of the rows, here -1 or +1
    d                   0 for a pair of rows with one label, 1 otherwise
    d~                  their Hamming distance / bits
    O                   `unexplained`   what is minimised

Codes are to rebuild distances: min sum_{i,j} (d - d~)^2. One weight W_pq is set at a time, to the
best value there is. While it goes from -inf to inf by delta, row i turns its bit once, where
    w_p·x_i + delta x_{pq}·x_i = 0,
so that n rows leave n + 1 values to try, and the best of them is exact.

With signs for bits, d~ - d = (S - H H^T / bits) / 2, S being +1 for a pair with one label and -1
otherwise: supervised BRE minimises what KSH does. What function p should say is the residual
R = bits S - sum h h^T over the others, and turning the rows F changes h^T R h by -4 times the cut
    sum_{i in F, j not in F} h_i h_j R_ij.
R is a sum of few products of a vector with itself, each of which has the cut a (t - a) where a is
the sum over F, and t that over all rows. Running sums over the rows in the order they turn so give
the cuts of all n + 1 values by about n bits additions. They are whole numbers, hence exact.

A sweep sets one random weight of each function. Sweeps end when one takes less than 4e-5 off the
mean of (d - d~)^2: the end in the authors' code, a gain of 1 for half the sum over 50,000 pairs.

Defaults: a linear kernel and 20 rows a function, as the version of the authors' code in
ZJULearning/MatlabFunc runs it. At most 200 sweeps, which is ours: 2,000 rows of CIFAR-10 and 8 to
64 bits (two seeds) take 14 to 26 with GIST and 24 to 53 with CNN features. With 32 bits, 50 or 300
rows a function instead of 20 give the same mAP with GIST features, .18, and .69 or .70 instead of
.66 with CNN features.

Where we differ, on purpose:
  * All pairs count. That code draws a twentieth of them and adds pair by pair, which costs more as
    soon as there are 20 rows a bit.
  * All training rows take part; there 1,000 are drawn.
  * Rows that turn at the same weight turn together; there they are counted one by one.
  * Functions have unit length. It changes no sign, and no weight can outgrow the others for good.
  * A row with several labels counts as one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from everhash.learn import seeds
from everhash.peers.batch_method import BatchMethod, Report
from everhash.peers.description import Description
from everhash.peers.method import Counts, Doubles, Floats
from everhash.peers.options import option, whole

TOLERANCE = 4e-5
"""What a sweep must take off the mean cost of a pair for another one to follow."""
EDGE = 1e-3
"""How far a weight may go beyond the first or last row that turns; functions have unit length."""
MIN_PRODUCT = 1e-6
"""Product of two rows below which its sign, in single precision, is rounding."""
TOGETHER = 1e-9
"""Share of a weight by which two rows must turn apart for a weight to lie between them."""


@dataclass(eq=False, repr=False)
class BRE(BatchMethod):
    """Linear hash functions made of few rows, by exact search of one weight at a time."""

    about: ClassVar = Description(
        name="bre",
        title="Binary Reconstructive Embeddings",
        year=2009,
        citation="B. Kulis, T. Darrell: Learning to Hash with Binary Reconstructive Embeddings, "
        "Advances in Neural Information Processing Systems, 2009",
        online=False,
        codewords=False,
    )
    anchors: int = option(20, whole(1, 10_000))
    sweeps: int = option(200, whole(1, 1_000_000))

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:
        """Sweep over the functions until there is little left to gain."""
        begun = self._begun
        X = Z.astype(np.float64)  # so that rows that turn together can be told from others
        functions, rows_of_bit = self._first_functions(X)
        margins = X @ functions.T
        H = signs(margins)
        rng = seeds.generator(begun["random_state"], seeds.PAIRS)
        cost = unexplained(H, labels)
        for sweep in range(begun["sweeps"]):
            for bit, q in enumerate(rng.integers(0, begun["anchors"], len(functions))):
                anchor = X[rows_of_bit[bit, q]]
                K = X @ anchor
                delta = best_change(K, margins[:, bit], np.delete(H, bit, axis=1), labels)
                changed = functions[bit] + delta * anchor
                length = np.linalg.norm(changed) or 1.0
                functions[bit] = changed / length
                margins[:, bit] = (margins[:, bit] + delta * K) / length
                H[:, bit] = signs(margins[:, bit])
            before, cost = cost, unexplained(H, labels)
            if before - cost <= TOLERANCE:
                break
            report((sweep + 1) / (begun["sweeps"] + 1))
        self.functions_[:] = functions
        report(1.0)

    def _first_functions(self, X: Doubles) -> tuple[Doubles, Counts]:
        """Return (bits, d) functions with random weights, and (bits, anchors) rows they are of."""
        bits, s = len(self.functions_), self._begun["anchors"]
        rng = seeds.generator(self._begun["random_state"], seeds.WEIGHTS)
        rows_of_bit = np.stack([np.resize(rng.permutation(len(X)), s) for _ in range(bits)])
        weights = rng.standard_normal((bits, s))
        functions = np.stack([w @ X[rows] for w, rows in zip(weights, rows_of_bit, strict=True)])
        lengths = np.linalg.norm(functions, axis=1, keepdims=True)
        return functions / np.where(lengths > 0, lengths, 1), rows_of_bit


def signs(margins: Doubles) -> Doubles:
    """Return -1 or +1."""
    return np.where(margins > 0, 1.0, -1.0)


def best_change(K: Doubles, margins: Doubles, others: Doubles, labels: Counts) -> float:
    """Return what to add to a weight so that its function says most of what others do not.

    Args:
        K: (n,) products of the rows with the row whose weight it is.
        margins: (n,) of the function as it is.
        others: (n, bits - 1) what the other functions say.
        labels: (n,) of the rows, by number.
    """
    turning = np.flatnonzero(np.abs(K) > MIN_PRODUCT)
    if len(turning) == 0:
        return 0.0
    at = -margins[turning] / K[turning]
    order = np.argsort(at, kind="stable")
    at, turning = at[order], turning[order]
    h = signs(margins)
    h[turning] = -signs(K[turning])  # what a weight of -inf says
    cut = cuts(h, turning, others, labels)
    cut[1:-1][np.diff(at) <= TOGETHER * (1 + np.abs(at[1:]))] = np.inf
    best = int(np.argmin(cut))
    edges = np.concatenate([[at[0] - EDGE], at, [at[-1] + EDGE]])
    return float(edges[best] + edges[best + 1]) / 2


def cuts(h: Doubles, turning: Counts, others: Doubles, labels: Counts) -> Doubles:
    """Return (m + 1,) sum h_i h_j R_ij between the first 0, 1, ... m turning rows and all others.

    R is (bits S - others others^T), S = 2 [same label] - 1. All values are whole numbers.
    """
    turned, bits = h[turning], others.shape[1] + 1
    said = others[turning] * turned[:, None]
    np.cumsum(said, axis=0, out=said)
    by_function = said @ (h @ others) - np.einsum("ij,ij->i", said, said)
    running = np.cumsum(turned)
    by_pair = running * (h.sum() - running)
    cut = bits * (2 * label_cuts(h, turning, labels) - by_pair) - by_function
    return np.concatenate([[0.0], cut])


def label_cuts(h: Doubles, turning: Counts, labels: Counts) -> Doubles:
    """Return (m,) sum h_i h_j over pairs of one label, between the first 1, ... m rows and others.

    Turning row i adds h_i (t - 2 a) + 1, where a is the sum over the turned rows of its label, its
    own included, and t that over all of them.
    """
    order = np.argsort(labels[turning], kind="stable")
    x, own = h[turning[order]], labels[turning[order]]
    running = np.cumsum(x)
    starts = np.searchsorted(own, own)
    a = running - running[starts] + x[starts]
    gains = np.empty_like(x)
    gains[order] = x * (np.bincount(labels, h)[own] - 2 * a) + 1
    return np.cumsum(gains)


def unexplained(H: Doubles, labels: Counts) -> float:
    """Return the mean of (d - d~)^2 over all pairs of rows: |bits S - H H^T|^2 / (2 bits n)^2."""
    n, bits = H.shape
    by_label = np.zeros((int(labels.max()) + 1, bits))
    np.add.at(by_label, labels, H)
    agreed = 2 * (by_label**2).sum() - (H.sum(axis=0) ** 2).sum()
    square = bits**2 * n**2 - 2 * bits * agreed + ((H.T @ H) ** 2).sum()
    return float(square / (2 * bits * n) ** 2)
