"""The codewords of all labels, to compute distances to them; and the labels' names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.codes import pack_bits
from everhash.index.arrays import Counts, Floats, Words
from everhash.index.hasher import Hasher
from everhash.index.segment import Segment


@dataclass(frozen=True)
class Codewords:
    """What a hasher's labels were when it was last looked at."""

    words: Words
    """(n_labels, w) packed; none if the method has no codewords."""
    cycles: Counts
    n_cycles: int
    bits: int
    names: NDArray[Any]
    """Labels in order of arrival, and None at the end, where number -1 finds it."""

    @classmethod
    def of(cls, hasher: Hasher) -> Codewords:
        """Read the labels and codewords that a hasher has now."""
        names = np.empty(len(hasher.words_) + 1, dtype=object)
        for number, label in enumerate(hasher.labels_):
            names[number] = label
        having = slice(None if hasher.assigns_codewords else 0)
        words, cycles = hasher.words_[having], hasher.label_cycles_[having]
        return cls(pack_bits(words > 0), cycles.copy(), hasher.n_cycles_, hasher.bits, names)

    @cached_property
    def _segment(self) -> Segment:
        """Built when it is needed: most searches compare with no codeword."""
        nowhere = self.words[:0], self.cycles[:0]
        return Segment.build(self.words, self.cycles, *nowhere, self.n_cycles, self.bits)

    def distances(self, queries: NDArray[Any]) -> Floats:
        """Return (q, n_labels) distances to all codewords; the type of queries says which."""
        of = self._segment.hamming_of if queries.dtype == np.uint64 else self._segment.margins_of
        distances: Floats = of(queries, np.arange(len(self.words))).astype(np.float32)
        return distances
