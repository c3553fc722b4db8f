"""Iterative Quantization (Gong, Lazebnik, CVPR 2011), by PCA without labels, by CCA with them.

The journal version is Gong, Lazebnik, Gordo, Perronnin: Iterative Quantization: A Procrustean
Approach to Learning Binary Codes for Large-Scale Image Retrieval, IEEE Transactions on Pattern
Analysis and Machine Intelligence, 2013.

    paper               here
    X, Y                Z, labels       rows, and what labels they have
    W                   `_embedding`    (k, d) directions, not whitened
    V = X W             V               (n, k) rows along them
    B                   B               (n, bits) codes of -1 and +1
    R                   R               (k, bits) the rotation
    W R                 functions_      (bits, d), a function a row

Rows are projected to k = bits directions, and turned there until they are as near to the corners of
a cube as a rotation can bring them: min |B - V R|^2. From a random rotation, `rounds` times,

    B = sgn(V R),    V^T B = P S Q^T  (singular values S),    R = P Q^T,

each of which is the best for the other standing still, so that the objective never rises.

ITQ takes the strongest directions of the rows (PCA). CCA-ITQ takes those that correlate most with
the labels: with y the row of zeros and a one for the label,

    C_xy (C_yy + g I)^-1 C_yx w = r^2 (C_xx + g I) w,

each scaled by its correlation r, as the authors' code does; g is `ridge`.

Defaults: 50 rounds and a ridge of .0001 as the authors use. With 2,000 rows of CIFAR-10 and 32 bits
a ridge of .001 does a little better, mAP .29 instead of .26 with GIST features and .84 instead of
.83 with CNN features (two seeds, 10,000 entries); .01 gives .26 and .81.

Where we differ, on purpose:
  * Rows are centred and then scaled to unit length, after which their mean is no longer quite zero.
    Moments C_xx are taken about the centre, where functions have their threshold.
  * L labels have L - 1 correlated directions. The authors' code goes on with directions whose
    correlation is zero but for rounding, and scales them by that. We leave them out: V has
    k = min(bits, L - 1) columns and R rotates them into `bits` dimensions, which is what zeros in
    their place would give. Functions are then more than directions, and not orthogonal.
  * C_yy is diagonal but for one product of vectors, and never made.
  * A row with several labels counts as one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from everhash.learn import seeds
from everhash.learn.options import positive
from everhash.peers.batch_method import BatchMethod, Report
from everhash.peers.description import Description
from everhash.peers.eigen import top_directions
from everhash.peers.method import Counts, Doubles, Floats
from everhash.peers.options import option, whole


@dataclass(eq=False, repr=False)
class ITQ(BatchMethod):
    """The strongest directions of the rows, rotated so that signs lose little."""

    about: ClassVar = Description(
        name="itq",
        title="Iterative Quantization",
        year=2011,
        citation="Y. Gong, S. Lazebnik: Iterative Quantization: A Procrustean Approach to Learning "
        "Binary Codes, IEEE Conference on Computer Vision and Pattern Recognition, 2011",
        online=False,
        supervised=False,
        needs="nothing",
        codewords=False,
    )
    direction_a_bit: ClassVar[bool] = True
    rounds: int = option(50, whole(1, 10_000))

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:
        """Find directions, then improve their rotation."""
        X = Z.astype(np.float64)
        W = self._embedding(X, labels)
        V = X @ W.T
        R = self._random_rotation(len(W))
        for done in range(self._begun["rounds"]):
            R = rotate(V, R)
            report((done + 1) / self._begun["rounds"])
        self.functions_[:] = R.T @ W

    def _embedding(self, X: Doubles, labels: Counts) -> Doubles:  # noqa: ARG002 - for CCA
        """Return (k, d) directions to project rows to."""
        return top_directions(X.T @ X / len(X), self._begun["bits"])[1]

    def _random_rotation(self, k: int) -> Doubles:
        """Return (k, bits) orthonormal rows, drawn uniformly."""
        rng = seeds.generator(self._begun["random_state"], seeds.ROTATION)
        Q, T = np.linalg.qr(rng.standard_normal((self._begun["bits"], k)))
        return np.asarray((Q * np.sign(np.diag(T))).T)


@dataclass(eq=False, repr=False)
class CCAITQ(ITQ):
    """The directions that correlate most with the labels, rotated so that signs lose little."""

    about: ClassVar = Description(
        name="cca-itq",
        title="Iterative Quantization after Canonical Correlation Analysis",
        year=2011,
        citation=ITQ.about.citation,
        online=False,
        codewords=False,
    )
    ridge: float = option(1e-4, positive)

    def _embedding(self, X: Doubles, labels: Counts) -> Doubles:
        seen, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
        ridge = self._begun["ridge"]
        moment = X.T @ X / len(X)
        moment[np.diag_indices(len(moment))] += ridge
        k = min(self._begun["bits"], max(1, len(seen) - 1))
        squares, W = top_directions(explained(X, which, counts / len(X), ridge), k, moment)
        return np.asarray(W * np.sqrt(np.maximum(squares, 0))[:, None])


def rotate(V: Doubles, R: Doubles) -> Doubles:
    """Return the rotation that brings V nearest to the codes it has under rotation R."""
    B = np.where(V @ R > 0, 1.0, -1.0)
    P, _, Qt = np.linalg.svd(V.T @ B, full_matrices=False)
    return np.asarray(P @ Qt)


def explained(X: Doubles, which: Counts, shares: Doubles, ridge: float) -> Doubles:
    """Return C_xy (C_yy + ridge I)^-1 C_yx, for rows that have label number `which`.

    With p the labels' shares of the rows, C_yy = diag(p) - p p^T. With D = diag(p) + ridge I the
    inverse therefore is D^-1 + D^-1 p p^T D^-1 / (1 - p^T D^-1 p).
    """
    sums = np.zeros((len(shares), X.shape[1]))
    np.add.at(sums, which, X)
    C = (sums - shares[:, None] * sums.sum(axis=0)) / len(X)
    scaled = C / (shares + ridge)[:, None]
    mixed = shares @ scaled
    rest = 1 - float(np.sum(shares**2 / (shares + ridge)))
    return np.asarray(C.T @ scaled + np.outer(mixed, mixed) / rest)
