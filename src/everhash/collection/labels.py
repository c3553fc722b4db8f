"""The labels of a collection, with counts and accuracy."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.index.index import Index
from everhash.learn.hasher import OnlineHasher
from everhash.learn.stream_hasher import StreamHasher


@dataclass(frozen=True)
class LabelInfo:
    """A label, its codeword, and how well it was learned."""

    label: Hashable
    cycle: int
    """The cycle it belongs to."""
    entries: int
    """Entries that have it now."""
    lessons: int | None
    """Rows of it that were learned; None where the method does not count them."""
    accuracy: float | None
    """Share of its rows that were classified as it before they were learned; None if unknown."""
    codeword: NDArray[np.int8] | None
    """(bits,) of -1 and +1 on the bits of its cycle; None where the method has no codewords."""


def label_infos(hasher: StreamHasher, index: Index, numbers: NDArray[np.int64]) -> list[LabelInfo]:
    """Return labels by their numbers."""
    names, lessons, accuracies = hasher.labels_, rows_learned(hasher), _accuracies(hasher)
    cycles, words = hasher.label_cycles_, hasher.words_
    return [
        LabelInfo(
            label=names[number],
            cycle=int(cycles[number]),
            entries=index.count_labelled(number),
            lessons=None if lessons is None else int(lessons[number]),
            accuracy=None if accuracies is None else accuracies[number],
            codeword=words[number].copy() if hasher.assigns_codewords else None,
        )
        for number in numbers.tolist()
    ]


def rows_learned(hasher: StreamHasher) -> NDArray[np.int64] | None:
    """Return the rows learned of each label; None where the method does not count them."""
    return hasher.label_counts_ if isinstance(hasher, OnlineHasher) else None


def _accuracies(hasher: StreamHasher) -> list[float | None] | None:
    """Return each label's accuracy; None where the method does not measure it."""
    return hasher.label_accuracies_ if isinstance(hasher, OnlineHasher) else None


def learned(hasher: StreamHasher) -> dict[str, Any] | None:
    """Return how much and how well the hasher has learned; None where it does not measure that."""
    if not isinstance(hasher, OnlineHasher) or hasher.accuracy_ is None:
        return None
    rows, accuracy, latest, log_loss, temperature = hasher.accuracy_
    return {
        "rows": hasher.rows_,
        "published_rows": hasher.published_rows_,
        "scored_rows": rows,
        "accuracy": accuracy,
        "accuracy_now": latest,
        "log_loss": log_loss,
        "temperature": temperature,
    }
