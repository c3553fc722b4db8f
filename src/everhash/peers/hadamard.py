"""Methods whose target codes are the rows of a Hadamard matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn import seeds
from everhash.peers.method import Method
from everhash.peers.options import option, optional, whole

Words = NDArray[np.int8]
TRIES = 20
"""Projections tried before two classes share a word."""
MAX_ORDER = 4096
"""Classes and bits a matrix may have."""


@dataclass(eq=False, repr=False)
class HadamardMethod(Method):
    """A method that must know beforehand how many classes there will be: `classes`.

    Without it there are as many as the power of two >= bits, and one label more is an error. Rows
    are handed out as labels arrive.
    """

    bits: int = option(32, whole(1, MAX_ORDER))
    classes: int | None = option(None, optional(whole(1, MAX_ORDER)))

    def _room(self, options: dict[str, Any]) -> int:
        return options["classes"] or hadamard_order(options["bits"], 1)

    def _draw_word(self, number: int) -> Words:
        seed, bits = self._begun["random_state"], self._begun["bits"]
        word: Words = hadamard_words(seed, bits, self._room(self._begun))[number]
        return word


def hadamard_order(bits: int, classes: int) -> int:
    """Return the smallest power of two that has a row for each class and a column for each bit.

    >>> hadamard_order(8, 10), hadamard_order(32, 10)
    (16, 32)
    """
    return 1 << (max(bits, classes) - 1).bit_length()


def hadamard_row(order: int, number: int) -> Words:
    """Return row `number` of the Hadamard matrix that Sylvester's construction gives.

    >>> [hadamard_row(4, number).tolist() for number in range(4)]
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    shared = np.bitwise_count(np.arange(order, dtype=np.uint64) & np.uint64(number))
    row: Words = (1 - 2 * (shared & 1).astype(np.int8)).astype(np.int8)
    return row


@lru_cache(maxsize=4)
def hadamard_words(seed: int, bits: int, classes: int) -> Words:
    """Return (classes, bits) a word for each class: a row, projected where there are fewer bits.

    Rows come in a random order, the constant one last. Where a projection makes two rows alike all
    are projected anew, a few times.
    """
    order = hadamard_order(bits, classes)
    rng = seeds.generator(seed, seeds.HADAMARD)
    rows = np.append(1 + rng.permutation(order - 1), 0)[:classes]
    table = np.stack([hadamard_row(order, row) for row in rows.tolist()])
    words = table if order == bits else _projected(table, bits, rng)
    words.flags.writeable = False  # it is shared
    return words


def _projected(table: Words, bits: int, rng: np.random.Generator) -> Words:
    for _ in range(TRIES):
        projection = rng.standard_normal((table.shape[1], bits))
        words = np.where(table @ projection > 0, 1, -1).astype(np.int8)
        if len(np.unique(words, axis=0)) == len(words):
            break
    return words
