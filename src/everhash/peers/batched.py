"""Methods that learn from several rows at once: rows wait until a batch of them is there."""

from __future__ import annotations

import numpy as np

from everhash.learn.model_format import require
from everhash.learn.options import whole_number
from everhash.peers.method import Counts, Floats, Layout, Method

MOST = 10_000
"""Rows a batch may have."""
LONGER = 1.001
"""No number of a seen row, which has unit length, is as large."""


def batch_size(name: str, value: object) -> int:
    """Return an option that says how many rows a batch has."""
    return whole_number(name, value, least=1, most=MOST)


class BatchedMethod(Method):
    """A method with an option `batch`: labelled rows wait until there are so many.

    Its own batches are cut from the stream alone, so that how rows fall into calls of `partial_fit`
    does not matter. Rows wait as they were seen when they came.
    """

    waiting_: Floats
    """(batch, w) waiting rows; the first `waited_` of them count."""
    waiting_labels_: Counts
    """(batch,) their labels by number."""
    waited_: Counts
    """(1,) how many wait."""

    def _learn_batch(self, Z: Floats, labels: Counts) -> None:
        """Learn `batch` seen rows together, each with the number of its label."""
        raise NotImplementedError

    def _layout(self) -> Layout:
        batch = self._begun["batch"]
        return super()._layout() | {
            "waiting_": (np.float32, (batch, self._seen_width)),
            "waiting_labels_": (np.int64, (batch,)),
            "waited_": (np.int64, (1,)),
        }

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Let rows wait, and learn each batch that becomes full."""
        while len(Z):
            first = int(self.waited_[0])
            new = min(len(Z), len(self.waiting_) - first)
            self.waiting_[first : first + new] = Z[:new]
            self.waiting_labels_[first : first + new] = labels[:new]
            self.waited_[0] = (first + new) % len(self.waiting_)
            if self.waited_[0] == 0:
                self._learn_batch(self.waiting_, self.waiting_labels_)
            Z, labels = Z[new:], labels[new:]

    def _check_state(self) -> None:
        super()._check_state()
        waited = int(self.waited_[0])
        require(waited < len(self.waiting_), "more rows wait than a batch has")
        known = self.waiting_labels_[:waited].max(initial=-1) < len(self._numbers)
        require(bool(known), "rows wait with labels that nobody has")
        unit = bool((np.abs(self.waiting_) < LONGER).all())
        require(unit, "rows wait that do not have unit length")
