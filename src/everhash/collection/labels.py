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


def label_infos(hasher: StreamHasher, index: Index, numbers: range) -> list[LabelInfo]:
    """Return labels by their numbers in order of arrival."""
    some = slice(numbers.start, numbers.stop)
    labels, lessons, accuracies = hasher.labels_[some], _lessons(hasher), _accuracies(hasher)
    nothing = [None] * len(labels)
    columns = (
        labels,
        hasher.label_cycles_[some].tolist(),
        _entries(index, numbers),
        nothing if lessons is None else lessons[some].tolist(),
        nothing if accuracies is None else accuracies[some],
        list(hasher.words_[some].copy()) if hasher.assigns_codewords else nothing,
    )
    return [LabelInfo(*row) for row in zip(*columns, strict=True)]


def _lessons(hasher: StreamHasher) -> NDArray[np.int64] | None:
    """Return the rows learned of each label; None where the method does not count them."""
    return hasher.label_counts_ if isinstance(hasher, OnlineHasher) else None


def _accuracies(hasher: StreamHasher) -> list[float | None] | None:
    """Return each label's accuracy; None where the method does not measure it."""
    return hasher.label_accuracies_ if isinstance(hasher, OnlineHasher) else None


def learned(hasher: StreamHasher) -> dict[str, Any] | None:
    """Return how much and how well the hasher has learned; None where it does not measure that."""
    if not isinstance(hasher, OnlineHasher) or hasher.accuracy_ is None:
        return None
    rows, accuracy, log_loss, temperature = hasher.accuracy_
    return {
        "rows": hasher.rows_,
        "published_rows": hasher.published_rows_,
        "scored_rows": rows,
        "accuracy": accuracy,
        "log_loss": log_loss,
        "temperature": temperature,
    }


def _entries(index: Index, numbers: range) -> list[int]:
    """Return how many entries have each label."""
    if index.hasher.assigns_codewords:
        return [index._postings.count(number) for number in numbers]
    rows, several = index._labels.rows, index._labels.several.values()
    every = np.concatenate([rows[rows >= 0], np.array([n for of in several for n in of], np.int64)])
    counts = np.bincount(every, minlength=numbers.stop)
    return [int(counts[number]) for number in numbers]
