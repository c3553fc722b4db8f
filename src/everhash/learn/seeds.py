"""Random numbers that depend on what they are for, never on what was drawn before.

Weights of a cycle, the word of a label, the chances of a row: each has a stream of its own, named
by its purpose and number. Nothing has to be remembered to go on after a save, and how rows fall
into batches cannot matter.
"""

from __future__ import annotations

import numpy as np

WEIGHTS, WORDS, HADAMARD, REPLAY, PAIRS, ROTATION, FEATURES, LIKENESS = range(8)


def stream(seed: int, purpose: int, number: int = 0) -> np.random.Philox:
    """Return the bit stream for one purpose and number; `advance` moves it four numbers a step."""
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=(purpose, number)))


def generator(seed: int, purpose: int, number: int = 0) -> np.random.Generator:
    """Return a generator for one purpose and number.

    >>> generator(0, WORDS, 5).random() == generator(0, WORDS, 5).random()
    True
    """
    return np.random.Generator(stream(seed, purpose, number))
