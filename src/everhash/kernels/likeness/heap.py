"""The k best entries of a query, as a heap of keys."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner
from everhash.kernels.search.topk import HALF, LOW, I, rank_float, sort_keys

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

F4: Any = np.float32  # as Any: mypy would object to arithmetic that Numba types well


class Best(NamedTuple):
    """The k best entries so far, as a heap of keys with the worst on top; see `estimates.keep`."""

    keys: Ints
    held: Ints
    """(1,) how many there are."""


@inner
def worst(best: Best) -> Any:
    """Return the cosine that an entry has to reach to be among the k best."""
    full = best.held[0] == best.keys.size
    return rank_float(~(best.keys[0] >> HALF)) if full else F4(-np.inf)


@inner
def push(best: Best, key: int) -> None:
    """Put a key among the k best, in place of the worst if there is no room."""
    keys = best.keys
    n = best.held[0]
    if n < keys.size:
        at = n
        while at > 0 and keys[(at - 1) >> 1] < key:
            keys[at] = keys[(at - 1) >> 1]
            at = (at - 1) >> 1
        keys[at] = key
        best.held[0] = n + 1
        return
    if key >= keys[0]:
        return
    at = 0
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[at] = keys[child]
        at = child
    keys[at] = key


@inner
def write(best: Best, scores: Floats, found: Ints, spare: Ints) -> None:
    """Write one row of results."""
    sort_keys(best.keys, best.held[0], spare)
    for i in range(scores.size):
        there = i < best.held[0]
        scores[i] = rank_float(~(best.keys[i] >> HALF)) if there else F4(-np.inf)
        found[i] = best.keys[i] & LOW if there else I(-1)
