"""Methods that learn from several rows at once: rows wait until a batch of them is there."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from everhash.learn.model_format import require
from everhash.peers.method import UNIT, Counts, Floats, Layout, Method
from everhash.peers.options import whole

batch_size = whole(1, 10_000)
"""Checks an option that is the number of rows in a batch."""


class BatchedMethod(Method):
    """A method with an option `batch`: rows it learns from wait until there are so many.

    Its own batches are cut from the stream alone, so that how rows fall into calls of `partial_fit`
    does not matter. Rows wait as they were seen when they came.
    """

    max_value: ClassVar[float] = UNIT
    """What the numbers of a waiting row stay below."""
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
        require(waited < len(self.waiting_), "more rows are waiting than a batch holds")
        usable = bool((np.abs(self.waiting_) < self.max_value).all())
        require(usable, "values of waiting rows are out of range")
        known = self.waiting_labels_[:waited].max(initial=-1) < len(self._numbers)
        require(bool(known) or not self.about.supervised, "waiting rows have unknown labels")
