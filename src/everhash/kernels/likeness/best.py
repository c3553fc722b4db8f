"""The k best entries of one query, by score, likeness and place: a heap with the worst on top.

An entry's order is (key, place), where the key holds score and likeness:

    key = ~rank of the score << 32 | ~rank of the likeness, from 0 on
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner
from everhash.kernels.search.topk import HALF, LOW, I, rank_float

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32

BIAS = I(2**31)
"""Makes 32-bit ranks start at 0."""
HELD, LIKENESS, SEVERAL = 0, 1, 2
"""Fields of a query's state: entries held, whether there are codes, entries with several labels."""


class Best(NamedTuple):
    """The k best entries of one query so far, as a heap with the worst on top."""

    keys: Ints
    places: Ints
    notes: Ints
    """Label << 2 | kind."""
    state: Ints


@inner
def new_best(k: int, has_likeness: int, several: int) -> Best:
    """Room for the k best."""
    heap, state = np.empty((3, k), np.int64), np.zeros(3, np.int64)
    state[LIKENESS], state[SEVERAL] = has_likeness, several
    return Best(heap[0], heap[1], heap[2], state)


@inner
def sink(best: Best, n: int, key: int, place: int, note: int) -> None:
    """Replace the top of a heap of n by this entry, and restore its order."""
    keys, places, notes = best.keys, best.places, best.notes
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        right = child + 1
        if right < n and (
            keys[right] > keys[child]
            or (keys[right] == keys[child] and places[right] > places[child])
        ):
            child = right
        if keys[child] < key or (keys[child] == key and places[child] < place):
            break
        keys[at], places[at], notes[at] = keys[child], places[child], notes[child]
        at = child
    keys[at], places[at], notes[at] = key, place, note


@inner
def rise(best: Best, n: int, key: int, place: int, note: int) -> None:
    """Add this entry to a heap of n."""
    keys, places, notes = best.keys, best.places, best.notes
    at = n
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] > key or (keys[above] == key and places[above] > place):
            break
        keys[at], places[at], notes[at] = keys[above], places[above], notes[above]
        at = above
    keys[at], places[at], notes[at] = key, place, note


@inner
def holds(places: Ints, n: int, place: int) -> bool:
    """Whether a place is among the first n."""
    found = 0
    for i in range(U(n)):
        found |= places[i] == place
    return found != 0


@inner
def floor_of(best: Best) -> Any:
    """The score below which nothing enters any more."""
    if best.state[HELD] < best.keys.size:
        return F4(-1)
    return rank_float(~(best.keys[0] >> HALF))


@inner
def write_best(
    best: Best, scores: Floats, likeness: Floats, places: Ints, labels: Ints, kinds: Signs
) -> None:
    """Write one row of results, best first; -inf and -1 where there are fewer than k."""
    scores[:], likeness[:] = -np.inf, -np.inf
    places[:], labels[:], kinds[:] = -1, -1, -1
    n = best.state[HELD]
    while n > 0:
        n -= 1
        key, note = best.keys[0], best.notes[0]
        scores[n], likeness[n] = rank_float(~(key >> HALF)), rank_float(~((key & LOW) - BIAS))
        places[n], labels[n], kinds[n] = best.places[0], note >> 2, note & 3
        sink(best, n, best.keys[n], best.places[n], best.notes[n])
