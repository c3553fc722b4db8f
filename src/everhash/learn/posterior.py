"""How likely each label is for a row, and how unlike everything learned the row is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Posterior(NamedTuple):
    """How likely each label is for some rows, and how unlike everything learned each row is."""

    probabilities: Floats
    """(n, n_labels) zeros for labels that were not learned; rows add up to 1 unless none was."""
    novelty: Floats
    """(n,) in [0, 1]; see `novelty`."""


def nothing_learned(n: int, n_labels: int) -> Posterior:
    """Return what is known of rows while no label was learned."""
    return Posterior(np.zeros((n, n_labels), np.float32), np.ones(n, np.float32))


def softmax_in_place(scores: Floats, inverse_temperature: float) -> Floats:
    """Turn scores into probabilities where they stand; return the best score of each row.

    Every row has a finite score; -inf becomes 0.
    """
    best: Floats = np.maximum.reduce(scores, axis=1)  # as .max, less a call in Python
    np.subtract(scores, best[:, None], out=scores)
    np.multiply(scores, np.float32(inverse_temperature), out=scores)
    np.exp(scores, out=scores)
    np.divide(scores, np.add.reduce(scores, axis=1, keepdims=True), out=scores)
    return best
