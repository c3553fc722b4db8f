"""Methods that see a row by its likeness to anchors: the first rows of the stream."""

from __future__ import annotations

import numpy as np

from everhash.learn.model_format import require
from everhash.learn.views import Anchored, View
from everhash.peers.method import Counts, Floats, Layout, Method
from everhash.peers.options import whole
from everhash.stream import MAX_FEATURE

anchor_count = whole(2, 10_000)
"""Checks an option that is the number of anchors."""


class AnchoredMethod(Method):
    """A kernel method. Its first `anchors` rows become the anchors, centred at their mean.

    Until all of them have come there is nothing to compare a row with, and every bit is -1; then
    they are learned in the order they came in, and so is every row after them.
    """

    anchor_rows_: Floats
    """(anchors, d) as they came."""
    anchor_labels_: Counts
    """(anchors,) one more than the number of each one's (first) label; 0 where it has none."""
    arrived_: Counts
    """(1,) how many there are."""

    def _layout(self) -> Layout:
        m = self._begun["anchors"]
        return {
            **super()._layout(),
            "anchor_rows_": (np.float32, (m, self.n_features_in_)),
            "anchor_labels_": (np.int64, (m,)),
            "arrived_": (np.int64, (1,)),
        }

    @property
    def _seen_width(self) -> int:
        return int(self._begun["anchors"])

    @property
    def _view(self) -> View:
        m, d = self._seen_width, self.n_features_in_
        if self.arrived_[0] < m:
            return Anchored(*(np.zeros(shape, np.float32) for shape in (d, (m, d), m)))
        if self._anchored is None:
            self._anchored = Anchored.by(self.anchor_rows_)
        return self._anchored

    _anchored: View | None = None

    def _take(self, X: Floats, step_rows: Counts, step_labels: Counts) -> None:
        """Let the first rows be anchors, and learn from the others."""
        missing = min(self._seen_width - int(self.arrived_[0]), len(X))
        if missing:
            self._anchor(X[:missing], step_rows, step_labels)
        later = step_rows >= missing
        if later.any():
            self._learn(self._view.of(X[step_rows[later]]), step_labels[later])

    def _anchor(self, X: Floats, step_rows: Counts, step_labels: Counts) -> None:
        first = int(self.arrived_[0])
        self.anchor_rows_[first : first + len(X)] = X
        rows, where = np.unique(step_rows[step_rows < len(X)], return_index=True)
        self.anchor_labels_[first + rows] = step_labels[where] + 1
        self.arrived_ += len(X)
        if self.arrived_[0] == self._seen_width:
            self._anchored = None
            self._settle()
            labelled = np.flatnonzero(self.anchor_labels_)
            if len(labelled):
                seen = self._view.of(self.anchor_rows_[labelled])
                self._learn(seen, self.anchor_labels_[labelled] - 1)

    def _settle(self) -> None:
        """Make the first functions, now that rows can be seen."""
        raise NotImplementedError

    def _start(self) -> None:
        """Functions of zeros, until there are anchors."""

    def _check_state(self) -> None:
        super()._check_state()
        labelled = self.anchor_labels_.max(initial=0) <= len(self._numbers)
        require(bool(labelled), "anchors have unknown labels")
        require(
            self.arrived_[0] <= self._seen_width, "more anchors have arrived than `anchors` allows"
        )
        usable = bool((np.abs(self.anchor_rows_) < MAX_FEATURE).all())
        require(usable, "anchor values are out of range")
