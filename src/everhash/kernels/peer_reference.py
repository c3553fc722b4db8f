"""The specification of the kernels of peer methods, in NumPy: `kernels.peers` and `kernels.forest`.

See `reference` for how far the compiled kernels agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.reference import Counts, Floats, Signs
from everhash.products import product

Places = NDArray[np.int32]

MAX_EXPONENT = 1.0
"""Of a bit's own loss in boosting, so that no row can overflow it."""


def follow_words(Z: Floats, labels: Counts, words: Signs, W: Floats, step: float) -> None:
    """Take a gradient step a row on half of |tanh(W z) - c|^2, c being the word of its label.

    Args:
        Z: (n, d) rows.
        labels: (n,) number of each row's label.
        words: (n_labels, k) of -1/+1.
        W: (k, d) functions, changed in place.
        step: the step size.
    """
    for z, label in zip(Z, labels, strict=True):
        f = np.tanh(product(W, z))
        slope = np.float32(step) * (f - words[label]) * (np.float32(1) - f * f)
        W -= np.outer(slope, z)


def follow_words_boosted(Z: Floats, labels: Counts, words: Signs, W: Floats, step: float) -> None:
    """Take a boosting step a row: bit after bit, by how wrong the row and the bits before it are.

    Bit j moves by step exp(-s) exp(-m_j) along c_j z, where m_j = c_j w_j·z and s is the sum of
    m_i over the bits before it, after they have moved. Neither exponent grows without bound: the
    first is at most 0, the second at most MAX_EXPONENT.

    Arguments as for `follow_words`.
    """
    for z, label in zip(Z.astype(np.float64), labels, strict=True):
        right, length, before = words[label] * product(W, z), z @ z, 0.0
        for bit, margin in enumerate(right):
            exponent = min(0.0, -before) + min(MAX_EXPONENT, -margin)
            move = step * np.exp(exponent)
            before += margin + move * length
            W[bit] += np.float32(move * words[label, bit]) * z.astype(np.float32)


def add_votes(
    Z: Floats,
    features: Places,
    numbers: Floats,
    rights: Places,
    roots: Places,
    bits: Places,
    votes: Floats,
) -> None:
    """Let every row go through every tree, and add what the leaf it ends in says to `votes`.

    All trees stand in one row of nodes. A row at an inner node goes on to the next node if its
    feature is at most the node's number, to the node's right child otherwise.

    Args:
        Z: (n, d) rows.
        features: (m,) the feature a node asks for.
        numbers: (m,) what an inner node compares it with, and what a leaf says.
        rights: (m,) place of a node's right child; 0 at a leaf.
        roots: (t,) place of each tree's first node.
        bits: (t,) the column of `votes` that a tree adds to.
        votes: (n, b) changed in place, tree after tree.
    """
    for root, bit in zip(roots, bits, strict=True):
        nodes = np.full(len(Z), root, np.int64)
        while (inner := np.flatnonzero(rights[nodes])).size:
            at = nodes[inner]
            below = Z[inner, features[at]] <= numbers[at]
            nodes[inner] = np.where(below, at + 1, rights[at])
        votes[:, bit] += numbers[nodes]
