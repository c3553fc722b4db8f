"""Synthetic rows: around a centre for each label, as embeddings are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SYNTHETIC = "synthetic"
"""The name of synthetic rows among the data sets of tasks."""
Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class RowGenerator:
    """An endless stream of rows and labels; the same seed gives the same stream."""

    def __init__(self, labels: int, features: int, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._centres = self._rng.standard_normal((labels, features), np.float32)

    def rows(self, n: int) -> tuple[Floats, Counts]:
        """Return the next n rows and their labels."""
        y = self._rng.integers(0, len(self._centres), n)
        return self._around(y), y

    def rows_of(self, label: int, n: int) -> Floats:
        """Return the next n rows of one label."""
        return self._around(np.full(n, label))

    def _around(self, y: Counts) -> Floats:
        noise = self._rng.standard_normal((len(y), self._centres.shape[1]), np.float32)
        return self._centres[y] + noise
