"""Codebooks: where the k-bit words of labels come from.

The paper draws them at random. Words far apart correct more errors: with "maxmin" each new word is
the one, of a pool of random words, whose nearest word in its cycle is farthest. With "orthogonal"
the first words of a cycle are rows of a Hadamard matrix, so that the score of a label is that of
its own classifier, with nothing of the others mixed in; once those are used up, as "maxmin".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import pack_bits
from everhash.errors import OptionError
from everhash.learn import seeds
from everhash.learn.growing import GrowingArray

Signs = NDArray[np.int8]
KINDS = ("random", "maxmin", "hadamard", "orthogonal")

COMPARISONS = 65_536
"""Word-to-word distances a max-min draw may look at: it bounds the cost of a label."""
TRIES = 100
"""Random draws before the free words are listed instead."""
POOL_BITS = 2**26
"""Bits that a draw may look at: it bounds the memory that a label takes."""


class Codebook:
    """Hands out words of `bits` bits, cycle after cycle, distinct within a cycle while they last.

    >>> book = Codebook("maxmin", bits=16, seed=0)
    >>> first, second = book.draw(number=0), book.draw(number=1)
    >>> int((first != second).sum()) >= 11
    True
    """

    def __init__(self, kind: str | ArrayLike, *, bits: int, seed: int) -> None:
        self.bits = bits
        self._seed = seed
        self._maxmin = isinstance(kind, str) and kind in ("maxmin", "orthogonal")
        self._own = not isinstance(kind, str)
        self._table: Signs | _HadamardRows = np.empty((0, bits), np.int8)
        if not isinstance(kind, str):
            self._table = as_words(kind, bits)
        elif kind in ("hadamard", "orthogonal"):
            rng = seeds.generator(seed, seeds.HADAMARD)
            self._table = _HadamardRows(bits, rng, orthogonal=kind == "orthogonal")
        self.start_cycle(np.empty((0, bits), np.int8))

    def start_cycle(self, handed_out: Signs) -> None:
        """Begin a cycle in which these words are already taken."""
        self._taken: GrowingArray[np.uint64] = GrowingArray((-(-self.bits // 64),), np.uint64)
        self._taken.replace(pack_bits(handed_out > 0))
        self._used = {word.tobytes() for word in handed_out}

    @property
    def exhausted(self) -> bool:
        """Whether this cycle has used every word there is; further ones repeat."""
        capacity = len(self._table) if self._own else 2**self.bits
        return len(self._used) >= capacity

    def draw(self, number: int) -> Signs:
        """Return a word for label `number`, which joins the current cycle.

        The same seed, number and words already taken always give the same word.
        """
        word = self._choose(seeds.generator(self._seed, seeds.WORDS, number))
        self._taken.grow_to(len(self._taken) + 1)
        self._taken.rows[-1] = pack_bits(word[None] > 0)[0]
        self._used.add(word.tobytes())
        return word

    def _choose(self, rng: np.random.Generator) -> Signs:
        position = len(self._taken)
        if self._own or position < len(self._table):
            listed: Signs = self._table[position % len(self._table)]
            return listed
        if self.exhausted:
            repeated: Signs = _random_words(1, self.bits, rng)[0]
            return repeated
        if self._maxmin and position:
            most = min(512, COMPARISONS // position, POOL_BITS // self.bits)
            pool = _random_words(max(8, most), self.bits, rng)
            apart = np.zeros((len(pool), position), np.int64)
            for mine, theirs in zip(pack_bits(pool > 0).T, self._taken.rows.T, strict=True):
                apart += np.bitwise_count(mine[:, None] ^ theirs)  # BLAS would wait for busy cores
            farthest: Signs = pool[int(apart.min(axis=1).argmax())]
            if farthest.tobytes() not in self._used:
                return farthest
        return _free_word(self.bits, self._used, rng)


def as_words(words: ArrayLike, bits: int) -> Signs:
    """Check a user's own codebook: (n, bits) of -1 and +1, no word twice."""
    try:
        table = np.array(words)
    except ValueError as error:
        raise OptionError(f"a codebook is a table of words: {error}") from None
    if table.ndim != 2 or table.shape[1] != bits or len(table) == 0:
        raise OptionError(
            f"a codebook for {bits} bits has shape (words, {bits}), got {table.shape}",
            hint="one word a row",
        )
    if table.dtype.kind not in "fiu" or not np.isin(table, (-1, 1)).all():
        raise OptionError("a codebook holds -1 and +1 only", hint="map 0 bits to -1")
    if len(np.unique(table, axis=0)) < len(table):
        raise OptionError("a codebook holds no word twice", hint="leave out those that come again")
    return np.ascontiguousarray(table, np.int8)


def _random_words(n: int, bits: int, rng: np.random.Generator) -> Signs:
    return (2 * rng.integers(0, 2, size=(n, bits), dtype=np.int8) - 1).astype(np.int8)


def _free_word(bits: int, used: set[bytes], rng: np.random.Generator) -> Signs:
    """Return a random word that no label has, with a bounded number of tries."""
    for word in _random_words(min(TRIES, max(1, POOL_BITS // bits)), bits, rng):
        if word.tobytes() not in used:
            drawn: Signs = word
            return drawn
    # nearly every word is taken, so there are few enough words to list them all
    every = (np.arange(2**bits)[:, None] >> np.arange(bits) & 1).astype(np.int8) * 2 - 1
    free = [word for word in every.astype(np.int8) if word.tobytes() not in used]
    chosen: Signs = free[int(rng.integers(len(free)))]
    return chosen


class _HadamardRows:
    """Rows of a Hadamard matrix, shuffled and cut to `bits` columns.

    With their complements, whole rows differ in half their places or in all of them, and no column
    is constant. `orthogonal` takes of each row either itself or its complement. Rows are computed
    when asked for: the matrix of a wide code would not fit.
    """

    def __init__(self, bits: int, rng: np.random.Generator, *, orthogonal: bool) -> None:
        self._order = 1 << (bits - 1).bit_length()
        self._columns = rng.permutation(self._order)[:bits]
        if orthogonal:
            complement = rng.integers(0, 2, self._order)
            self._rows = rng.permutation(self._order) + self._order * complement
        else:
            self._rows = rng.permutation(2 * self._order)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> Signs:
        row = int(self._rows[position])
        parity = np.bitwise_count(self._columns & (row % self._order)) & 1
        complement = row >= self._order
        return np.where((parity == 1) ^ complement, -1, 1).astype(np.int8)
