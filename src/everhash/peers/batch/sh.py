"""Spectral Hashing (Weiss, Torralba, Fergus, NIPS 2008). Needs no labels.

    paper               here
    principal axes      axes            (k, d)
    a, b                low, high       ends of the box that rows fill along each axis
    k pi / (b - a)      frequencies     of mode k along an axis
    Phi_k(x)            a cosine        sin(pi/2 + k pi / (b - a) x), x measured from a

A good code gives similar rows similar bits, with bits balanced and independent: eigenvectors of a
graph's Laplacian, thresholded at zero. Were rows spread evenly over a box with its edges along the
principal axes, these would be eigenfunctions known in closed form: cosines along one axis, with a
whole number k of half waves from wall to wall, and the smoother the smaller k / (b - a). So:

    1. PCA to min(bits, d) axes
    2. the box: least and greatest value along each axis
    3. of all waves, 1 to K_i on axis i, the `bits` of least frequency, without the constant one
    4. a bit is the sign of its wave

K_i + 1 = ceil((bits + 1) (b_i - a_i) / max_j (b_j - a_j)), beyond which no wave can be among the
first. A long axis so gets several bits, at ever finer steps, before a short one gets its first.

There is nothing to choose but the bits, and nothing is drawn at random.

Where we differ, on purpose:
  * In form: a bit is not the sign of a linear function of the row, so rows are seen as waves
    (`Waves`), and functions are the identity, one for each wave.
  * Products of waves along several axes are eigenfunctions too. The paper leaves them out, and so
    do we.
  * The authors widen the box by the smallest number there is. Ours has sides of `THINNEST` at
    least, so that frequencies stay finite where all rows are one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from everhash.learn.model_format import require
from everhash.learn.views import View
from everhash.peers.batch_method import BatchMethod, Report
from everhash.peers.description import Description
from everhash.peers.eigen import top_directions
from everhash.peers.method import Counts, Doubles, Floats, Layout
from everhash.peers.options import matrix_bits, option
from everhash.peers.waves import Waves

THINNEST = 1e-6
"""Side that a box has at least. Rows have unit length."""


@dataclass(eq=False, repr=False)
class SH(BatchMethod):
    """Signs of the smoothest waves in the box that rows fill."""

    about: ClassVar = Description(
        name="sh",
        title="Spectral Hashing",
        year=2008,
        citation="Y. Weiss, A. Torralba, R. Fergus: Spectral Hashing, Advances in Neural "
        "Information Processing Systems, 2008",
        online=False,
        supervised=False,
        needs="nothing",
        codewords=False,
    )
    bits: int = option(32, matrix_bits)
    waves_: Floats = field(init=False)
    """(bits, d) the direction of each wave, as long as its frequency."""
    phases_: Floats = field(init=False)
    """(bits,) where each wave stands at the centre."""

    def _layout(self) -> Layout:
        bits = self._begun["bits"]
        return super()._layout() | {
            "waves_": (np.float32, (bits, self.n_features_in_)),
            "phases_": (np.float32, (bits,)),
        }

    @property
    def _seen_width(self) -> int:
        return int(self._begun["bits"])

    @property
    def _view(self) -> View:
        return Waves(self.mean_, self.waves_, self.phases_)

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:  # noqa: ARG002
        """Fit the box, and take the smoothest waves in it."""
        X, bits = Z.astype(np.float64), self._begun["bits"]
        spread = X - X.mean(axis=0)
        axes = top_directions(spread.T @ spread / len(X), min(bits, X.shape[1]))[1]
        report(0.5)
        along = X @ axes.T
        low = along.min(axis=0)
        sides = np.maximum(along.max(axis=0) - low, THINNEST)
        which, frequencies = smoothest(sides, bits)
        self.waves_[:] = axes[which] * frequencies[:, None]
        self.phases_[:] = -low[which] * frequencies
        self.functions_[:] = np.eye(bits)
        report(1.0)

    def _check_state(self) -> None:
        super()._check_state()
        require(self._view.is_sound(), "wave frequencies are out of range")


def smoothest(sides: Doubles, bits: int) -> tuple[Counts, Doubles]:
    """Return the axis and the frequency of each of the `bits` slowest waves in a box.

    >>> axes, frequencies = smoothest(np.array([1.0, 0.4]), 3)
    >>> axes.tolist(), (frequencies / np.pi).tolist()
    ([0, 0, 1], [1.0, 2.0, 2.5])
    """
    most = np.ceil((bits + 1) * sides / sides.max()).astype(np.int64) - 1
    axes = np.repeat(np.arange(len(sides)), most)
    modes = np.concatenate([np.arange(1, count + 1) for count in most])
    frequencies = modes * np.pi / sides[axes]
    first = frequencies.argsort(kind="stable")[:bits]
    return axes[first], frequencies[first]
