"""Self-Taught Hashing (Zhang, Wang, Cai, Lu, SIGIR 2010), with neighbours of the same label.

    paper               here
    X                   Z               rows
    N_k(x)              the `neighbours` nearest rows of the same label
    W                   W               (n, n) sparse: the cosine of two neighbours, 0 otherwise
    D, L                degrees, L = D - W
    y_1 .. y_l          columns of Y    (n, bits)
    w, b of an SVM      functions_      (bits, d + 1), the threshold last

Codes of the rows at hand are found first, whatever function could give them, and functions learn
them after that:

    1. neighbours should agree: L y = v D y, of which the smallest v are taken, the constant y not
    2. bits should be balanced: a bit is [y_i > median of y]
    3. for each bit, a linear SVM that tells rows with it from those without

In the paper neighbours are the nearest rows. The authors' code has a supervised form in which they
are the nearest of the same label, and that is ours.

Defaults: 25 neighbours as in the paper. The authors leave C at LIBLINEAR's 1; ours is .1.
With 2,000 rows of CIFAR-10 and 5,000 entries, mAP for C of .01, .1 and 1 is .19, .20 and .18 with
GIST features and 8 bits, .20, .20 and .19 with 32; .69, .75 and .76 with CNN features and 8 bits,
.71, .75 and .76 with 32.

Where we differ, on purpose:
  * Rows of two labels are never neighbours. The graph falls into parts, one a label or more, and
    all vectors that are constant on each of c parts have v = 0: the first c - 1 solutions are any
    basis of those. What a solver returns depends on its rounding errors; we draw a basis at random.
    Solutions after that are found part by part, and split a label: with 10 labels the bits after
    the ninth add nothing, as the figures above show.
  * Rows are centred, so that cosines may be below 0; those count as 0. A row without neighbours is
    a part of its own, of a small degree.
  * Where more than half of the rows share the largest value of y, none is above the median; the bit
    is [y_i = that value] then.
  * A row with several labels counts as one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.learn import seeds
from everhash.learn.options import positive
from everhash.peers.batch_method import Report, ThresholdMethod
from everhash.peers.description import Description
from everhash.peers.method import Counts, Doubles, Floats
from everhash.peers.options import option, whole

LEAST_DEGREE = 0.01
"""What a row without neighbours has for a degree, as in the authors' code."""
DENSE = 1000
"""Rows of a part up to which all its eigenvectors are found at once."""


@dataclass(eq=False, repr=False)
class STH(ThresholdMethod):
    """Codes that neighbours share, and a linear SVM to predict each bit."""

    about: ClassVar = Description(
        name="sth",
        title="Self-Taught Hashing",
        year=2010,
        citation="D. Zhang, J. Wang, D. Cai, J. Lu: Self-Taught Hashing for Fast Similarity "
        "Search, ACM SIGIR Conference on Research and Development in Information Retrieval, 2010",
        online=False,
        codewords=False,
    )
    neighbours: int = option(25, whole(1, 10_000))
    C: float = option(0.1, positive)

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:
        """Find codes of the rows, then a function for each bit."""
        bits = self._begun["bits"]
        if bits >= len(Z):
            raise OptionError(
                f"bits must be below the rows with labels, {len(Z)} sample(s), got {bits}"
            )
        order = labels.argsort(kind="stable")
        Z, labels = Z[order], labels[order]
        rng = seeds.generator(self._begun["random_state"], seeds.ROTATION)
        Y = smooth_vectors(label_graph(Z, labels, self._begun["neighbours"]), bits, rng)
        for bit in range(bits):
            self.functions_[bit] = linear_svm(Z, upper_half(Y[:, bit]), self._begun["C"])
            report((bit + 1) / bits)


def label_graph(Z: Floats, labels: Counts, k: int) -> Any:
    """Return W for rows in order of their labels: cosines of neighbours, symmetric and sparse."""
    from scipy.sparse import block_diag, coo_array, csr_array
    from sklearn.neighbors import kneighbors_graph

    blocks = []
    for rows in np.split(Z, np.flatnonzero(np.diff(labels)) + 1):
        if len(rows) == 1:
            blocks.append(coo_array((1, 1)))
            continue
        distances = kneighbors_graph(rows, min(k, len(rows) - 1), mode="distance")
        distances.data = np.maximum(1 - distances.data**2 / 2, 0)
        distances.eliminate_zeros()
        blocks.append(coo_array(distances))
    W = csr_array(block_diag(blocks))
    return W.maximum(W.T)


def smooth_vectors(W: Any, count: int, rng: np.random.Generator) -> Doubles:
    """Return (n, count) solutions of L y = v D y with the smallest v, without the constant one."""
    from scipy.sparse.csgraph import connected_components

    n_parts, part = connected_components(W, directed=False)
    degrees = np.maximum(np.asarray(W.sum(axis=1), np.float64), LEAST_DEGREE)
    volumes = np.bincount(part, degrees).astype(np.float64)
    flat = flat_vectors(volumes, rng)[:, :count]
    Y = np.zeros((W.shape[0], count))
    Y[:, : flat.shape[1]] = flat[part]
    left = count - flat.shape[1]
    if left == 0:
        return Y
    found = []
    for number in range(n_parts):
        rows = np.flatnonzero(part == number)
        values, vectors = inner_vectors(W[rows][:, rows], degrees[rows], left, rng)
        found += [(v, rows, y) for v, y in zip(values, vectors.T, strict=True)]
    found.sort(key=lambda solution: float(solution[0]))
    for place, (_, rows, y) in enumerate(found[:left], flat.shape[1]):
        Y[rows, place] = y
    return Y


def flat_vectors(volumes: Doubles, rng: np.random.Generator) -> Doubles:
    """Return (c, c - 1) values on parts of these volumes: the vectors with v = 0, a random basis.

    They are orthogonal to each other and to the constant, a part weighing as much as its volume.
    """
    c = len(volumes)
    drawn = rng.standard_normal((c, c - 1))
    drawn -= np.average(drawn, axis=0, weights=volumes)
    root = np.sqrt(volumes)[:, None]
    return np.asarray(np.linalg.qr(root * drawn)[0] / root)


def inner_vectors(
    W: Any, degrees: Doubles, count: int, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Return the smallest v of a connected part, above its 0, and their vectors as columns."""
    from scipy.linalg import eigh
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    n = len(degrees)
    root = np.sqrt(degrees)
    scaled = diags_array(1 / root) @ W @ diags_array(1 / root)  # I - this has the same v
    if n > max(DENSE, count + 1):
        start = rng.standard_normal(n)
        likeness, vectors = eigsh(scaled, count + 1, which="LA", v0=start, rng=rng)
    else:
        first = max(0, n - 1 - count)
        likeness, vectors = eigh(scaled.toarray(), subset_by_index=[first, n - 1])
    order = likeness.argsort(kind="stable")[::-1][1:]
    return 1 - likeness[order], vectors[:, order] / root[:, None]


def upper_half(y: Doubles) -> NDArray[np.bool_]:
    """Return which values are above the median, or as large where none is above it.

    >>> upper_half(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [False, False, True, True]
    >>> upper_half(np.array([1.0, 2.0, 2.0])).tolist()
    [False, True, True]
    """
    middle = np.median(y)
    above: NDArray[np.bool_] = y > middle
    return above if above.any() else y >= middle


def linear_svm(Z: Floats, wanted: NDArray[np.bool_], C: float) -> Doubles:
    """Return (d + 1,) a function, its threshold last, that is positive where it is wanted."""
    from sklearn.svm import LinearSVC

    if wanted.all():
        return np.append(np.zeros(Z.shape[1]), 1.0)
    svm = LinearSVC(C=C, dual=False).fit(Z.astype(np.float64), wanted)
    return np.append(svm.coef_[0], svm.intercept_)
