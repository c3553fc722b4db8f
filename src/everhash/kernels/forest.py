"""Rows through decision trees.

The specification is in `peer_reference`; import through `everhash.kernels.load_forest`.
"""

from __future__ import annotations

import numpy as np

from everhash.kernels.compiling import kernel
from everhash.kernels.peer_reference import Places
from everhash.kernels.reference import Floats

__all__ = ["add_votes"]

ROWS = 64
"""Rows that go through a tree together: a tree then stays near, and so do they."""


@kernel("void(f4[:, ::1], i4[::1], f4[::1], i4[::1], i4[::1], i4[::1], f4[:, ::1])")
def add_votes(
    Z: Floats,
    features: Places,
    numbers: Floats,
    rights: Places,
    roots: Places,
    bits: Places,
    votes: Floats,
) -> None:
    """See `peer_reference.add_votes`."""
    n, trees = Z.shape[0], roots.size
    for start in range(0, n, ROWS):
        for tree in range(trees):
            root, bit = np.int64(roots[tree]), bits[tree]
            for row in range(start, min(start + ROWS, n)):
                node = root
                while rights[node]:
                    below = Z[row, features[node]] <= numbers[node]
                    node = node + 1 if below else np.int64(rights[node])
                votes[row, bit] += numbers[node]
