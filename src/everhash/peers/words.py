"""Where target codes of labels come from: a random table, or the rows of a Hadamard matrix."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn import seeds
from everhash.learn.options import whole_number

Words = NDArray[np.int8]
TRIES = 20
"""Projections tried before two classes share a word."""
CLASSES = 4096
"""The most classes a Hadamard table is made for."""


def random_word(seed: int, number: int, bits: int) -> Words:
    """Return a label's word of fair bits. It depends on the seed and the label's number only."""
    rng = seeds.generator(seed, seeds.WORDS, number)
    return rng.choice(np.array([-1, 1], np.int8), bits)


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


def class_count(name: str, value: Any) -> int | None:
    """Return an option that says how many classes will come; None leaves it to the bits."""
    return None if value is None else whole_number(name, value, least=1, most=CLASSES)
