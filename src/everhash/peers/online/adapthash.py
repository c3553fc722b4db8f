"""Adaptive Hashing for Fast Similarity Search (Cakir, Sclaroff, ICCV 2015).

    paper               here
    W                   functions_      (bits, d), a function a row
    x_i, x_j, s         pair, alike     two rows; s = 1 where alike, -1 otherwise
    D                   differ          where their codes differ; D is how often
    L                   loss            `excess` of D
    f                   codes           2 sigmoid(z) - 1 = tanh(z / 2), the stand-in of the sign
    alpha               alpha           share of the bits in which an unlike pair must differ
    lambda              lam             weight of the regulariser
    eta                 step            8 / bits where it is None

For a pair of b-bit codes the loss is L = max(0, D - (1 - alpha) b) where it is alike and
L = max(0, alpha b - D) where it is not. If L > 0, the functions that err (they differ on an alike
pair, or agree on another) are sorted by max(|w·x_i|, |w·x_j|), largest first, and the first ceil(L)
take a gradient step on (f(W x_i)·f(W x_j) - s b)^2. With u = f(W x_i), v = f(W x_j), p = u·v - s b:

    G_k = 2 p (v_k f'(w_k·x_i) x_i + u_k f'(w_k·x_j) x_j)  for the chosen k, 0 for the others;
    W <- W - eta G - lambda (W W^T - I) W,                 and every w_k scaled to unit length.

The regulariser keeps functions apart: it is the gradient of |W W^T - I|_F^2 / 4. Both it and the
scaling move every function, so a pair with a loss counts as a change of all of them.

Defaults: alpha 0.9 and lambda 0.01 as in the authors' release, and a step of 8 / b: at 32 bits that
is 0.25, their value for CIFAR-10. p, and so the gradient, grows with b, which a constant step does
not make up for: with 128 bits on 2,000 rows of CNN features of CIFAR-10 mAP is .51 at 8 / b and .39
at 0.25, with 8 bits .23 and .17. A small step does harm: what it first does to a function that errs
is to draw its values for both rows towards 0, and only a step that crosses 0 tells rows apart. With
32 bits mAP is .39 at 0.25, .35 at 0.1, .15 at 0.01, and .26 untrained.

Where we differ, on purpose:
  * Pairs are not given: a row meets one of a uniform sample of `sample` rows before it, half of
    the time one of its own label. The authors pair rows of the stream two by two, of which a tenth
    is alike with ten labels. More pairs a row gained nothing.
  * A function that a step would bring to nothing (possible with one or two features) stays.
  * A row with several labels is one pair for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from everhash.learn.views import margins_by
from everhash.peers.description import Description
from everhash.peers.method import Counts, Floats
from everhash.peers.options import CenterOption, option, optional, share, size
from everhash.peers.reservoir import PairMethod, excess, sample_count

STEP = 8.0
"""The default step times the bits."""


@dataclass(eq=False, repr=False)
class AdaptHash(PairMethod):
    """Functions that err on a pair follow its gradient, held apart from each other."""

    about: ClassVar = Description(
        name="adapthash",
        title="Adaptive Hashing",
        year=2015,
        citation="F. Cakir, S. Sclaroff: Adaptive Hashing for Fast Similarity Search, IEEE "
        "International Conference on Computer Vision, 2015",
        needs="pairs",
        codewords=False,
    )
    alpha: float = option(0.9, share)
    lam: float = option(0.01, share)
    step: float | None = option(None, optional(size))
    sample: int = option(200, sample_count)
    center: CenterOption = "warmup"

    def _start(self) -> None:
        self.functions_[:] = self._random_functions()

    def _learn_pair(self, pair: Floats, alike: bool) -> None:
        """Take a gradient step with the functions that err most surely."""
        margins = margins_by(self.functions_[None], pair)
        differ = (margins[0] > 0) != (margins[1] > 0)
        alpha, b = self._begun["alpha"], len(differ)
        loss = excess(int(np.count_nonzero(differ)), alike, (1 - alpha) * b, alpha * b)
        if loss > 0:
            wrong = np.flatnonzero(differ == alike)
            surest = np.argsort(-np.abs(margins[:, wrong]).max(axis=0), kind="stable")
            chosen = wrong[surest[: math.ceil(loss)]]
            self._move(chosen, slopes(margins, alike)[:, chosen], pair)

    def _move(self, chosen: Counts, by_margin: Floats, pair: Floats) -> None:
        """Step down the chosen slopes and the regulariser's, and scale to unit length."""
        W, begun = self.functions_, self._begun
        moved = W - np.float32(begun["lam"]) * regulariser(W)
        down = sum(slope[:, None] * z for slope, z in zip(by_margin, pair, strict=True))
        moved[chosen] -= np.float32(begun["step"] or STEP / len(W)) * down
        lengths = np.sqrt((moved * moved).sum(axis=1, keepdims=True))
        np.divide(moved, lengths, out=W, where=(lengths > 0) & (lengths < np.inf))
        self.updates_ += 1


def slopes(margins: Floats, alike: bool) -> Floats:
    """Return the derivative of (f(W x_i)·f(W x_j) - s b)^2 by each of (2, b) margins.

    >>> slopes(np.full((2, 1), np.log(3)), alike=True)[0].round(5).tolist()  # codes 1/2 and 1/2
    [-0.28125]
    """
    codes = np.tanh(margins / 2)
    target = margins.shape[1] if alike else -margins.shape[1]
    miss = (codes[0] * codes[1]).sum() - target
    down: Floats = miss * codes[::-1] * (1 - codes * codes)  # f' is (1 - f^2) / 2
    return down


def regulariser(W: Floats) -> Floats:
    """Return (W W^T - I) W of functions of unit length, as W (W^T W) - W where that is smaller.

    By our own kernel: for so small a product BLAS waits for its threads.
    """
    across = np.ascontiguousarray(W.T)
    if len(W) > W.shape[1]:
        return margins_by(margins_by(across[None], across)[None], W) - W
    overlap = margins_by(W[None], W)
    np.fill_diagonal(overlap, 0)  # which is W W^T - I at unit length
    return margins_by(across[None], overlap)
