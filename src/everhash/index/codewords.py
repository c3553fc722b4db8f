"""The codewords of all labels, to compute distances to them; and the labels' names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.codes import pack_bits
from everhash.index.arrays import Floats
from everhash.index.hasher import Hasher
from everhash.index.segment import Segment


class Codewords(NamedTuple):
    """What a hasher's labels were when it was last looked at."""

    segment: Segment
    n_words: int
    """Codewords; 0 if the method has none."""
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
        segment = Segment.build(
            pack_bits(words > 0),
            cycles,
            pack_bits(words[:0] > 0),
            cycles[:0],
            hasher.n_cycles_,
            hasher.bits,
        )
        return cls(segment, len(words), names)

    def distances(self, queries: NDArray[Any]) -> Floats:
        """Return (q, n_labels) distances to all codewords; the type of queries says which."""
        of = self.segment.hamming_of if queries.dtype == np.uint64 else self.segment.margins_of
        distances: Floats = of(queries, np.arange(self.n_words)).astype(np.float32)
        return distances
