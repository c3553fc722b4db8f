"""Labels in the order of the best score their entries can have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner
from everhash.kernels.likeness.reference import GIVEN, GUESSED, LOOSE
from everhash.kernels.search.labels import Arena
from everhash.kernels.search.topk import HALF, LOW, I, float_bits, sort_keys

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32

ROUNDS = 8
"""Labels found by a pass over all of them each, before the rest is sorted instead."""


class Lists(NamedTuple):
    """Posting lists; see `kernels.search.labels`."""

    runs: Ints
    arena: Arena
    counts: Ints
    """Entries of each label; 0 leaves a label out."""


class Order(NamedTuple):
    """Labels by the best score their entries can have."""

    kinds: Signs
    """(L,) GIVEN if a label has given entries, GUESSED if only guessed ones, LOOSE if none."""
    keys: Ints
    """(L,) of labels that are left; see `rank_labels`."""
    spare: Ints
    left: Ints
    """(1,) how many keys are left, once they are sorted."""


@inner
def new_order(labels: int, given: Lists, guessed: Lists) -> Order:
    """Room to order labels in."""
    kinds = np.empty(labels, np.int8)
    for label in range(labels):
        kind = GUESSED if guessed.counts[label] else LOOSE
        kinds[label] = GIVEN if given.counts[label] else kind
    keys, spare = np.empty(labels, np.int64), np.empty(labels, np.int64)
    return Order(kinds, keys, spare, np.zeros(1, np.int64))


@inner
def rank_labels(chances: Floats, trust: Any, order: Order) -> None:
    """Write a key a label, larger where its entries' best score is; -1 without entries.

    Chances are not negative, so that their bits are in their order. Ties go to smaller numbers.
    """
    kinds, keys = order.kinds, order.keys
    for label in range(U(chances.size)):
        chance = chances[label] if kinds[label] == GIVEN else chances[label] * trust
        key = (I(float_bits(chance + F4(0))) << HALF) | (LOW - I(label))
        keys[label] = key if kinds[label] <= GUESSED else I(-1)


@inner
def next_label(order: Order, turn: int) -> Any:
    """Return the largest key left and forget it; -1 if there is none.

    After ROUNDS passes over all keys, those that are left are sorted once.
    """
    keys, left = order.keys, order.left
    if turn < ROUNDS:
        largest = I(-1)
        for label in range(U(keys.size)):
            largest = max(largest, keys[label])
        if largest >= 0:
            keys[LOW - (largest & LOW)] = -1
        return largest
    if turn == ROUNDS:
        n = I(0)
        for label in range(U(keys.size)):
            key = keys[label]
            keys[n] = key
            n += key >= 0
        sort_keys(keys, n, order.spare)
        left[0] = n
    if left[0] == 0:
        return I(-1)
    left[0] -= 1
    return keys[left[0]]
