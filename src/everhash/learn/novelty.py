"""How unlike everything learned a row is: the share of rows whose best label scored higher.

The best scores of rows that were scored before they were learned (see `record`) are counted in
bins. The labels' own classifiers give a row of theirs about 1, and a row unlike all of them little
more than 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import copied
from everhash.learn.trust import ROW

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

BINS = 128
EDGES = np.linspace(-0.25, 1.25, BINS + 1)
"""Scores beyond the first or last edge count as being there."""
EVEN = 1 / 256
"""Share of novelty that falls evenly over all bins, so that it falls where no row was counted."""


class BestScores:
    """Rows by the score of their best label."""

    def __init__(self) -> None:
        self.rows: Counts = np.zeros(BINS, np.int64)
        """(BINS,) in units of 1 / ROW."""
        self._above: tuple[Counts, Doubles] | None = None
        """The share of rows above each edge, and the rows it was made of."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    def take(self, best: Floats) -> None:
        """Count rows by their best scores."""
        places = (best.astype(np.float64) - EDGES[0]) * (BINS / (EDGES[-1] - EDGES[0]))
        bins = np.clip(places, 0, BINS - 1).astype(np.int64)
        self.replace(self.rows + ROW * np.bincount(bins, minlength=BINS))

    def halve(self) -> None:
        """Let the rows so far count half."""
        self.replace(self.rows // 2)

    def merge(self, other: BestScores) -> None:
        """Add the rows of another."""
        self.replace(self.rows + other.rows)

    def replace(self, rows: Counts) -> None:
        """Hold these counts instead."""
        self.rows = rows

    def novelty(self, best: Floats) -> Floats:
        """Return in [0, 1] the share of counted rows with higher scores; 1 before any was."""
        made, rows = self._above, self.rows
        if made is None or made[0] is not rows:
            self._above = made = (rows, _shares_above(rows))
        return np.interp(best, EDGES, made[1]).astype(np.float32)


def _shares_above(rows: Counts) -> Doubles:
    """Return (BINS + 1,) the share of rows above each edge, the first one 1 and the last one 0."""
    if not rows.any():
        return np.ones(BINS + 1)
    below = np.concatenate([[0], np.cumsum(rows, dtype=np.float64)])
    above: Doubles = 1 - below / below[-1]
    return (1 - EVEN) * above + EVEN * np.linspace(1, 0, BINS + 1)
