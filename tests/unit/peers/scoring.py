"""How well a method's own bits find digits of the same kind."""

from __future__ import annotations

import numpy as np

from everhash.metrics import mean_average_precision
from everhash.peers.method import Method
from tests.conftest import Stream

LEARNED = 1200
"""Rows that methods may learn from; the others are searched among themselves."""


def mapped_score(hasher: Method, digits: Stream) -> float:
    """Return mAP by Hamming distance among rows that were not learned."""
    codes = hasher.transform(digits.X[LEARNED:]).astype(np.int64)
    relevant = digits.y[LEARNED:, None] == digits.y[LEARNED:]
    return mean_average_precision(-codes @ codes.T, relevant)
