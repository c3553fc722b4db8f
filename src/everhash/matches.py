"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an entry matched: what the query was compared with, and which bits agree."""

    label: Any
    """The label whose codeword was compared; None if it was the entry's own bits. An entry may have
    a label and still be compared by its bits; `Matches.labels` has its label in both cases."""
    cycle: int
    """The cycle whose bits were compared; -1 where all were."""
    bits: NDArray[np.int8]
    """(width,) +1 where query and entry agree, -1 where they differ, 0 where inactive."""


@dataclass(frozen=True, eq=False)
class Matches:
    """Entries found for each query, nearest first, ties to the entry added first.

    Rows are padded where fewer entries were found: id None (or -1), distance inf, label None.
    """

    ids: NDArray[Any]
    """(n, k)"""
    distances: NDArray[np.float32]
    """(n, k)"""
    labels: NDArray[Any]
    """(n, k) the label an entry was found by, or bears; None for unlabelled ones."""
    counts: NDArray[np.int64]
    """(n,) entries found for each query."""
    novelty: NDArray[np.float32]
    """(n,) asymmetric distance to the nearest codeword: large for queries unlike any label.
    NaN where there are no codewords, or no margins."""
    explanations: list[list[Explanation]] = field(default_factory=list)
    """One list a query, if asked for."""
    payloads: list[list[Any]] = field(default_factory=list)
    """One list a query, if asked for: the payload of each entry found, None where it has none."""

    def __len__(self) -> int:
        return len(self.counts)
