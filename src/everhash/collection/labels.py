"""What a collection knows of its labels."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everhash.index.index import Index
from everhash.learn.hasher import OnlineHasher
from everhash.learn.stream_hasher import StreamHasher


@dataclass(frozen=True)
class LabelInfo:
    """A label, and how it stands."""

    label: Hashable
    cycle: int
    """The cycle it belongs to."""
    entries: int
    """Entries that have it now."""
    lessons: int | None
    """Rows of it that were learned; None where the method does not count them."""
    codeword: NDArray[np.int8] | None
    """(bits,) of -1 and +1 on the bits of its cycle; None where the method has no codewords."""


def label_infos(hasher: StreamHasher, index: Index) -> list[LabelInfo]:
    """Return all labels in order of arrival."""
    labels, lessons = hasher.labels_, _lessons(hasher)
    nothing = [None] * len(labels)
    words = list(hasher.words_.copy()) if hasher.assigns_codewords else nothing
    columns = (
        labels,
        hasher.label_cycles_.tolist(),
        _entries(index, len(labels)),
        nothing if lessons is None else lessons.tolist(),
        words,
    )
    return [LabelInfo(*row) for row in zip(*columns, strict=True)]


def _lessons(hasher: StreamHasher) -> NDArray[np.int64] | None:
    """Return the rows learned of each label: the memory of rows counts them, where there is one."""
    if isinstance(hasher, OnlineHasher) and hasher._memory.keep:
        return hasher._memory.seen.rows
    return None


def _entries(index: Index, n_labels: int) -> list[int]:
    """Return how many entries have each label."""
    if index.hasher.assigns_codewords:
        return [index._postings.count(number) for number in range(n_labels)]
    single = index._labels.rows[index._labels.rows >= 0]
    several = [number for of in index._labels.several.values() for number in of]
    counts = np.bincount(single, minlength=n_labels)
    counts += np.bincount(np.array(several, np.int64), minlength=n_labels)
    return [int(count) for count in counts]
