"""A uniform sample of the rows that have come, and pairs drawn from it: never a look ahead."""

from __future__ import annotations

import numpy as np

from everhash.learn.model_format import require
from everhash.peers.method import Counts, Floats, Layout, Method


class ReservoirMethod(Method):
    """A method that compares a new row with a sample of those before it.

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

    def _sample_size(self) -> int:
        """Return how many rows are kept at most."""
        raise NotImplementedError

    def _layout(self) -> Layout:
        size = self._sample_size()
        return {
            "kept_": (np.float32, (size, self._seen_width)),
            "kept_labels_": (np.int64, (size,)),
            "met_": (np.int64, (1,)),
            "drawn_": (np.int64, (1,)),
        }

    @property
    def _n_kept(self) -> int:
        return min(int(self.met_[0]), len(self.kept_))

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
        time, if there is any such row; the second which. None while nothing is kept.
        """
        same = self.kept_labels_[: self._n_kept] == label
        if len(same) == 0:
            return None
        wanted = alike < 0.5 if same.any() and not same.all() else bool(same.all())
        found = np.flatnonzero(same == wanted)
        return int(found[int(which * len(found))]), wanted

    def _check_state(self) -> None:
        super()._check_state()
        known = self.kept_labels_[: self._n_kept].max(initial=-1) < len(self._numbers)
        require(bool(known), "the sample holds labels that nobody has")
