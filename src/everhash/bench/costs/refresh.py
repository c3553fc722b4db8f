"""Keep indexes up to date while a stream is learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from everhash.bench.datasets import Dataset
from everhash.index.index import Index
from everhash.index.refresh import RefreshReport
from everhash.learn.stream_hasher import StreamHasher

Rows = NDArray[np.int64]
EVERY = 100
"""Least number of rows learned between two refreshes."""


def keep_fresh(
    hasher: StreamHasher, data: Dataset, stream: Rows, entries: Rows, indexes: Sequence[Index]
) -> Iterator[list[RefreshReport]]:
    """Learn a stream; yield the report of each index after every refresh.

    All indexes use this hasher. Entries are added, without labels, after the first rows. Indexes
    are refreshed when a function has changed: after each batch with gradient steps, after a
    publication with the exact learner.
    """
    first, *later = np.array_split(stream, max(1, len(stream) // EVERY))
    hasher.partial_fit(data.X[first], data.y[first])
    for index in indexes:
        index.add(data.X[entries])
    version = hasher.version_
    for batch in later:
        hasher.partial_fit(data.X[batch], data.y[batch])
        if hasher.version_ != version:
            version = hasher.version_
            yield [index.refresh() for index in indexes]
