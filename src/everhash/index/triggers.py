"""Policies that decide when to refresh, called after each batch.

    trigger = ExpectedFlips(0.5)
    for X, y in stream:
        hasher.partial_fit(X, y)
        if trigger.due(index, X, y):
            index.refresh()

All but `EveryRows` look only at a sample, so a call is cheap. None of them changes the index.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import Codes, hamming
from everhash.errors import OptionError
from everhash.index.index import Index
from everhash.stream import as_labels, as_rows


class Trigger(Protocol):
    """Decides whether an index should be refreshed now."""

    def due(self, index: Index, X: ArrayLike, y: Any = None) -> bool:
        """Take the batch just learned, and return whether to refresh now."""
        ...


class EveryRows:
    """Refresh each time this many rows have been learned."""

    def __init__(self, rows: int) -> None:
        if rows < 1:
            raise OptionError(f"rows must be at least 1, got {rows}")
        self.rows = rows
        self._since = 0

    def due(self, index: Index, X: ArrayLike, y: Any = None) -> bool:  # noqa: ARG002
        """Count rows."""
        self._since += len(as_rows(X))
        if self._since < self.rows:
            return False
        self._since %= self.rows
        return True


class ExpectedFlips:
    """Refresh when entries of a sample have on average more than `flips` wrong bits."""

    def __init__(self, flips: float, sample: int = 200, random_state: int = 0) -> None:
        if not flips >= 0 or sample < 1:
            raise OptionError("flips must be at least 0 and sample at least 1")
        self.flips = flips
        self.sample = sample
        self._rng = np.random.default_rng(random_state)

    def due(self, index: Index, X: ArrayLike, y: Any = None) -> bool:  # noqa: ARG002
        """Encode sampled entries again and count what would flip."""
        return index.sampled_flips(self.sample, self._rng) > self.flips


class MutualInformation:
    """Refresh when the newest mapping separates labels better than the index's, as in MIHash.

    Keeps a uniform sample of labelled rows of the stream (reservoir sampling). The mutual
    information is that of Hamming distance and same-label, averaged over the sample, in bits
    (Cakir, He, Bargal, Sclaroff, ICCV 2017).
    """

    def __init__(self, gain: float = 0.0, sample: int = 200, random_state: int = 0) -> None:
        if sample < 2:
            raise OptionError("sample must be at least 2")
        self.gain = gain
        self.sample = sample
        self._rng = np.random.default_rng(random_state)
        self._rows: list[NDArray[np.float32]] = []
        self._labels: list[Any] = []
        self._seen = 0

    def due(self, index: Index, X: ArrayLike, y: Any = None) -> bool:
        """Sample the batch, then compare the two mappings on the sample."""
        self._remember(as_rows(X), y)
        old, new = index.mapping, index.hasher.freeze()
        if old is None or old.version == new.version or len(self._rows) < 2:
            return False
        rows = np.array(self._rows)
        same = np.array([[a == b for b in self._labels] for a in self._labels])
        scores = [
            mutual_information(mapping.margins(mapping.measure(rows)), same)
            for mapping in (old, new)
        ]
        return scores[1] - scores[0] > self.gain

    def _remember(self, rows: NDArray[np.float32], y: Any) -> None:
        labels = as_labels(y, len(rows))
        for row, which in zip(labels.rows.tolist(), labels.which.tolist(), strict=True):
            self._seen += 1
            if len(self._rows) < self.sample:
                self._rows.append(rows[row].copy())
                self._labels.append(labels.values[which])
            elif (at := int(self._rng.integers(self._seen))) < self.sample:
                self._rows[at], self._labels[at] = rows[row].copy(), labels.values[which]


def mutual_information(margins: NDArray[np.float32], same: NDArray[np.bool_]) -> float:
    """Return the mean information, in bits, that Hamming distance gives about having one label.

    >>> margins = np.array([[1, 1], [1, 1], [-1, -1], [-1, -1]], np.float32)
    >>> same = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], bool)
    >>> round(mutual_information(margins, same), 3)  # of two others apart and one alike: all of it
    0.918
    """
    codes = Codes.pack(np.where(margins > 0, 1, -1).astype(np.int8), version=0)
    distances = hamming(codes, codes)
    total = 0.0
    for row in range(len(margins)):
        others = np.arange(len(margins)) != row
        far, alike = distances[row, others], same[row, others]
        joint = np.stack(
            [np.bincount(far[alike == kind], minlength=codes.width + 1) for kind in (False, True)]
        )
        share = joint.sum(axis=1) / len(far)
        parts = [_entropy(counts) for counts in joint]
        total += _entropy(joint.sum(axis=0)) - float(share @ parts)
    return total / len(margins)


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts[counts > 0] / max(1, counts.sum())
    return float(-(shares * np.log2(shares)).sum())
