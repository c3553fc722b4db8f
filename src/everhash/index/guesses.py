"""Guesses: the label that an unlabelled entry is taken for, by its word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.codes import pack_bits, unpack_bits
from everhash.index.arrays import Bools, Counts, Words, kernel_array
from everhash.learn.mapping import FrozenMapping

BLOCK = 4096
"""Full codes compared with all codewords at a time."""


class Guesses(NamedTuple):
    """One for each entry."""

    labels: Counts
    """Number of the label with the nearest codeword, ties to the smaller; -1 if there is none."""
    distances: NDArray[np.uint16]
    """Hamming distance to that codeword, on its active bits."""


def guess(
    mapping: FrozenMapping, coding: str, homes: Counts, words: Words, usable: Bools
) -> Guesses:
    """Return for each word the label of the nearest codeword of its home, of all for full codes.

    Args:
        mapping: that made the words.
        coding: "home" or "full".
        homes: (n,) the cycle of each word.
        words: (n, w) packed bits.
        usable: (n_labels,) labels that may be a guess.
    """
    known = usable[: len(mapping.words)] & mapping.words.any(axis=1)
    labels = np.flatnonzero(known)
    if len(labels) == 0 or len(words) == 0:
        return Guesses(np.full(len(words), -1), np.zeros(len(words), np.uint16))
    if coding == "full":
        return _guess_full(mapping, labels, words)
    cycles = mapping.label_cycles[labels]
    codewords = pack_bits(mapping.words[labels] > 0)
    bits, n_cycles = mapping.words.shape[1], len(mapping.functions)
    # a cycle without codewords is given one that stands for none
    bare = np.setdiff1d(np.arange(n_cycles), cycles)
    codewords = np.concatenate([codewords, np.zeros((len(bare), codewords.shape[1]), np.uint64)])
    numbers = np.concatenate([labels, np.full(len(bare), -1)])
    order = np.argsort(np.concatenate([cycles, bare]), kind="stable")
    starts = np.searchsorted(np.concatenate([cycles, bare])[order], np.arange(n_cycles + 1))
    table = np.empty((words.shape[1] + 1, len(words)), np.uint64)
    table[:-1] = words.T
    kernels.load_search().shell_keys(
        table,
        kernel_array(homes, np.int64),
        kernel_array(codewords[order], np.uint64),
        kernel_array(starts, np.int64),
        bits,
    )
    keys = table[-1].astype(np.int64)
    return Guesses(numbers[order][keys // (bits + 1)], (keys % (bits + 1)).astype(np.uint16))


def _guess_full(mapping: FrozenMapping, labels: Counts, words: Words) -> Guesses:
    """Compare every full code with all codewords, each on the bits of its own cycle."""
    n_cycles, k = len(mapping.functions), mapping.words.shape[1]
    best, far = np.full(len(words), -1), np.full(len(words), k + 1)
    for start in range(0, len(words), BLOCK):
        part = slice(start, start + BLOCK)
        signs = np.where(unpack_bits(words[part], n_cycles * k), 1, -1).reshape(-1, n_cycles, k)
        for cycle in np.unique(mapping.label_cycles[labels]).tolist():
            mine = labels[mapping.label_cycles[labels] == cycle]
            products = signs[:, cycle].astype(np.int64) @ mapping.words[mine].T.astype(np.int64)
            distances = (k - products) // 2
            nearest = distances.argmin(axis=1)
            nearer = distances[np.arange(len(nearest)), nearest] < far[part]
            best[part][nearer] = mine[nearest[nearer]]
            far[part][nearer] = distances[np.arange(len(nearest)), nearest][nearer]
    return Guesses(best, np.where(best < 0, 0, far).astype(np.uint16))
