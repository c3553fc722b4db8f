"""Learning rules of peer methods whose products are too small for a NumPy call each.

The specification is in `peer_reference`; import through `everhash.kernels.load_peers`.
"""

from __future__ import annotations

import math

import numpy as np

from everhash.kernels.compiled import row_margins
from everhash.kernels.compiling import kernel
from everhash.kernels.peer_reference import MAX_EXPONENT
from everhash.kernels.reference import Counts, Floats, Signs

__all__ = ["follow_words", "follow_words_boosted"]


@kernel("void(f4[:, ::1], i8[::1], i1[:, ::1], f4[:, ::1], f8)")
def follow_words(Z: Floats, labels: Counts, words: Signs, W: Floats, step: float) -> None:
    """See `peer_reference.follow_words`."""
    k, d = W.shape
    scores, eta, one = np.empty(k, np.float32), np.float32(step), np.float32(1)
    for row in range(Z.shape[0]):
        z, word = Z[row], words[labels[row]]
        row_margins(z, W, scores)
        for bit in range(k):
            w, f = W[bit], np.tanh(scores[bit])
            slope = eta * (f - np.float32(word[bit])) * (one - f * f)
            for i in range(d):
                w[i] -= slope * z[i]


@kernel("void(f4[:, ::1], i8[::1], i1[:, ::1], f4[:, ::1], f8)")
def follow_words_boosted(Z: Floats, labels: Counts, words: Signs, W: Floats, step: float) -> None:
    """See `peer_reference.follow_words_boosted`."""
    k, d = W.shape
    scores = np.empty(k, np.float32)
    for row in range(Z.shape[0]):
        z, word, before, length = Z[row], words[labels[row]], 0.0, 0.0
        for i in range(d):
            length += z[i] * z[i]
        row_margins(z, W, scores)
        for bit in range(k):
            w, sign = W[bit], np.float64(word[bit])
            margin = sign * scores[bit]
            move = step * math.exp(min(0.0, -before) + min(MAX_EXPONENT, -margin))
            before += margin + move * length
            push = np.float32(move * sign)
            for i in range(d):
                w[i] += push * z[i]
