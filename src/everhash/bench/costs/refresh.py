"""Indexes that are kept up to date while a stream goes on, each in its turn."""

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
"""Rows learned between two refreshes, at least."""


def keep_fresh(
    hasher: StreamHasher, data: Dataset, stream: Rows, entries: Rows, indexes: Sequence[Index]
) -> Iterator[list[RefreshReport]]:
    """Learn a stream; yield what each index did whenever it was refreshed.

    All indexes are of this hasher. Entries join them, without labels, after the first rows. They
    are refreshed when a function has changed: after each batch where every row moves functions,
    after a publication where only that does.
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
