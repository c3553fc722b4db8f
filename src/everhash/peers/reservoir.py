"""A uniform sample of the rows that have come, and pairs drawn from it: never a look ahead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.learn import seeds
from everhash.learn.model_format import require
from everhash.peers.method import Counts, Floats, Layout, Method
from everhash.peers.options import whole

sample_count = whole(1, 10_000)
"""Checks an option that is the number of sampled rows."""


class ReservoirMethod(Method):
    """A method that compares a new row with a sample of those before it, `sample` at most.

    The sample is uniform over all labelled rows so far (reservoir sampling). Rows are kept as they
    were seen when they came.
    """

    kept_: Floats
    """(size, w) sampled rows; the first `n_kept` of them count."""
    kept_labels_: Counts
    """(size,) their labels by number."""
    met_: Counts
    """(1,) rows that had a chance to be kept."""
    drawn_: Counts
    """(1,) lessons that random numbers were drawn for."""

    def _layout(self) -> Layout:
        size = self._begun["sample"]
        return {
            **super()._layout(),
            "kept_": (np.float32, (size, self._seen_width)),
            "kept_labels_": (np.int64, (size,)),
            "met_": (np.int64, (1,)),
            "drawn_": (np.int64, (1,)),
        }

    @property
    def _n_kept(self) -> int:
        return min(int(self.met_[0]), len(self.kept_))

    def _chances(self, n: int, each: int) -> NDArray[np.float64]:
        """Return (n, each) uniform numbers for the next n lessons, however these are batched."""
        steps = -(-each // 4)  # the stream moves four numbers a step
        stream = seeds.stream(self._begun["random_state"], seeds.PAIRS)
        stream.advance(int(self.drawn_[0]) * steps)
        self.drawn_ += n
        return np.random.Generator(stream).random((n, 4 * steps))[:, :each]

    def _keep(self, z: Floats, label: int, chance: float) -> None:
        """Give a row its chance to be kept, by a uniform number."""
        met = int(self.met_[0])
        slot = met if met < len(self.kept_) else int(chance * (met + 1))
        self.met_ += 1
        if slot < len(self.kept_):
            self.kept_[slot], self.kept_labels_[slot] = z, label

    def _partner(self, label: int, alike: float, which: float) -> tuple[int, bool] | None:
        """Return a kept row to pair a row of this label with, and whether they are alike.

        Two uniform numbers decide: the first whether it is to have the same label, half of the
        time, where rows of both kinds are kept; the second which. None while nothing is kept.
        """
        same = self.kept_labels_[: self._n_kept] == label
        n_same = int(np.count_nonzero(same))
        if len(same) == 0:
            return None
        wanted = alike < 0.5 if 0 < n_same < len(same) else n_same > 0
        found = (same == wanted).nonzero()[0]
        return int(found[int(which * len(found))]), wanted

    def _check_state(self) -> None:
        super()._check_state()
        known = self.kept_labels_[: self._n_kept].max(initial=-1) < len(self._numbers)
        require(bool(known), "the sample has unknown labels")
        require(bool((np.abs(self.kept_) < 2).all()), "sampled rows do not have unit length")


class PairMethod(ReservoirMethod):
    """A method that learns from pairs: each row with one that was sampled before it came.

    A pair is alike where both have the same label. Its Hamming distance should then be small, and
    otherwise large; `_learn_pair` corrects the functions where it is not.
    """

    def _learn_pair(self, pair: Floats, alike: bool) -> None:
        """Learn from (2, w) seen rows, the newer one first."""
        raise NotImplementedError

    def _learn(self, Z: Floats, labels: Counts) -> None:
        chances = self._chances(len(Z), 3).tolist()
        pair = np.empty((2, Z.shape[1]), np.float32)
        for z, label, (alike, which, keep) in zip(Z, labels.tolist(), chances, strict=True):
            partner = self._partner(label, alike, which)
            if partner is not None:
                other, same = partner
                pair[0], pair[1] = z, self.kept_[other]
                self._learn_pair(pair, same)
            self._keep(z, label, keep)


def excess(distance: int, alike: bool, near: float, far: float) -> float:
    """Return by how many bits a pair is farther apart than `near`, or nearer than `far`.

    Rounded, so that a whole share of the bits is whole: 0.1 of 10 leaves 1 of 2, not a bit more.

    >>> excess(2, True, near=(1 - 0.9) * 10, far=5.0), excess(2, False, near=1.0, far=5.0)
    (1.0, 3.0)
    """
    return max(0.0, round(distance - near if alike else far - distance, 9))
