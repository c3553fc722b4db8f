"""Random target codes of labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.learn import seeds


def random_word(seed: int, number: int, bits: int) -> NDArray[np.int8]:
    """Return a label's word of fair bits. It depends on the seed and the label's number only."""
    rng = seeds.generator(seed, seeds.WORDS, number)
    return rng.choice(np.array([-1, 1], np.int8), bits)
