"""The best of whole blocks of products: which entries may be among the k best of each query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32

STRETCH = 64
"""Scores that are passed over at once if none of them is good enough."""
FULL = -1
"""Held by a query with more entries in question than there is room for."""


@inner
def largest(scores: Floats) -> Any:
    """Return the largest of some scores."""
    found = scores[0]
    for i in range(U(scores.size)):
        found = scores[i] if scores[i] > found else found
    return found


@inner
def thin_out(scores: Floats, places: Ints, n: int, k: int, slack: Any) -> tuple[int, Any]:
    """Keep of n scores those that are within `slack` of the k-th best; return how many, and it."""
    floor = np.sort(scores[:n])[n - k] - slack
    kept = 0
    for i in range(n):
        if scores[i] >= floor:
            scores[kept], places[kept] = scores[i], places[i]
            kept += 1
    return kept, floor


@kernel("void(f4[:, ::1], i8[::1], f4[::1], i8[::1], f4[:, ::1], i8[:, ::1], i8, f4)")
def offer_products(
    products: Floats,
    at: Ints,
    floors: Floats,
    held: Ints,
    scores: Floats,
    places: Ints,
    k: int,
    slack: Any,
) -> None:
    """Take up those of (q, m) products that may be among the k best of their query.

    Args:
        products: of each query with the entries of a block.
        at: (m,) their places.
        floors: (q,) what a product has to reach; raised.
        held: (q,) how many there are, or FULL.
        scores: (q, room) so far; room for more than k.
        places: (q, room) whose they are.
        k: entries wanted.
        slack: how far a product may be from the cosine.
    """
    room, m = scores.shape[1], at.size
    for row in range(products.shape[0]):
        n, floor, mine = held[row], floors[row], products[row]
        start = 0 if n != FULL else m
        while start < m:
            stop = min(start + STRETCH, m)
            if largest(mine[start:stop]) >= floor:
                for i in range(start, stop):
                    if mine[i] >= floor and n != FULL:
                        scores[row, n], places[row, n] = mine[i], at[i]
                        n += 1
                        if n == room:
                            n, floor = thin_out(scores[row], places[row], n, k, slack)
                            n = n if n < room else FULL
            start = stop if n != FULL else m
        held[row], floors[row] = n, floor
