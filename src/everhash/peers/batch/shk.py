"""Supervised Hashing with Kernels (Liu, Wang, Ji, Jiang, Chang, CVPR 2012).

    paper               here
    x_(1) ... x_(m)     anchors_        (anchors, d) training rows drawn by the seed
    kappa               exp(-|x - x_(j)|^2 / (2 * 2)) of centred unit rows; see `learn.views`
    mu                  offset_         (anchors,) mean likeness to each anchor
    k-bar(x)            what `_view` makes of a row
    a_k                 functions_      (bits, anchors), a function a row
    S, R_{k-1}, phi     see `everhash.peers.ksh`, which learns one function

h_k(x) = sgn(a_k · k-bar(x)), and codes are to say S: min |H H^T / r - S|^2, H being the (n, r)
codes of the training rows. Function after function is learned on what the others leave over,
    R_0 = r S,    a_k = argmax h_k^T R_{k-1} h_k,    R_k = R_{k-1} - h_k h_k^T.

Defaults: 300 anchors, as the authors take.

Where we differ, on purpose:
  * Rows seen by anchors have unit length, as all our views give them. KSH does not ask for it.
  * The kernel's bandwidth is the mean squared distance of centred unit rows, which is 2. The
    authors measure it on the training rows.
  * mu is the mean over the anchors, which are a sample of the training rows.
  * Where there are fewer rows than anchors, rows are anchors more than once.
  * What `everhash.peers.ksh` differs in.
  * A row with several labels counts as one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from everhash.learn import seeds
from everhash.learn.model_format import require
from everhash.learn.views import Anchored, View
from everhash.peers.anchored import anchor_count
from everhash.peers.batch_method import BatchMethod, Report
from everhash.peers.description import Description
from everhash.peers.ksh import Residual, codes_of, learn_function
from everhash.peers.method import UNIT, Counts, Floats, Layout
from everhash.peers.options import option


@dataclass(eq=False, repr=False)
class SHK(BatchMethod):
    """Kernel hash functions, each learned on what those before it leave unexplained."""

    about: ClassVar = Description(
        name="shk",
        title="Supervised Hashing with Kernels",
        year=2012,
        citation="W. Liu, J. Wang, R. Ji, Y.-G. Jiang, S.-F. Chang: Supervised Hashing with "
        "Kernels, IEEE Conference on Computer Vision and Pattern Recognition, 2012",
        online=False,
        codewords=False,
    )
    anchors: int = option(300, anchor_count)
    anchors_: Floats = field(init=False)
    """(anchors, d) at unit length, as seen from the centre."""
    offset_: Floats = field(init=False)
    """(anchors,) what the likeness to each anchor is measured from."""

    def _layout(self) -> Layout:
        m = self._seen_width
        return super()._layout() | {
            "anchors_": (np.float32, (m, self.n_features_in_)),
            "offset_": (np.float32, (m,)),
        }

    @property
    def _seen_width(self) -> int:
        return int(self._begun["anchors"])

    @property
    def _view(self) -> View:
        return Anchored(self.mean_, self.anchors_, self.offset_)

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:
        """Draw anchors, then learn function after function."""
        view = Anchored.by(Z[self._draw_anchors(len(Z))], np.zeros_like(self.mean_))
        self.anchors_, self.offset_ = view.anchors, view.offset
        K = view.of(Z)
        residual = Residual(K, labels, len(self.functions_))
        for number in range(len(self.functions_)):
            function = learn_function(residual)
            residual.add(codes_of(function[None], K)[0])
            self.functions_[number] = function
            report((number + 1) / len(self.functions_))

    def _draw_anchors(self, n: int) -> Counts:
        """Return which of n rows are anchors: none twice before all are."""
        rng = seeds.generator(self._begun["random_state"], seeds.WEIGHTS)
        return np.resize(rng.permutation(n), self._seen_width)

    def _check_state(self) -> None:
        super()._check_state()
        lengths = np.linalg.norm(self.anchors_.astype(np.float64), axis=1)
        require(bool((lengths < UNIT).all()), "anchors are longer than 1")
        require(bool((np.abs(self.offset_) <= 1).all()), "mean similarities are above 1")
