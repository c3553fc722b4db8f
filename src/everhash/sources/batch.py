"""A batch of rows with their labels, ids, payloads and thumbnails."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class _Rows(NamedTuple):
    X: NDArray[np.float32]
    """(n, d) features; may be read-only."""
    y: list[Hashable | None] | NDArray[Any] | None
    """A label a row: a set for several labels, None for no label. None if no row has labels."""
    ids: list[int | str] | None


class Batch(_Rows):
    """Some rows, in the order of the arguments of `Collection.ingest`: `col.ingest(*batch)`.

    Payloads and thumbnails go by name: `col.ingest(*batch, payloads=batch.payloads)`.
    """

    payloads: list[Any] | None = None
    """A JSON value a row, None for a row without a payload. None if no row has one."""
    thumbnails: list[bytes | None] | None = None
    """The bytes of an image a row, None for a row without one. None if no row has one."""

    def __new__(
        cls,
        X: NDArray[np.float32],
        y: list[Hashable | None] | NDArray[Any] | None,
        ids: list[int | str] | None,
        payloads: list[Any] | None = None,
        thumbnails: list[bytes | None] | None = None,
    ) -> Batch:
        """Make a batch; each list has one item a row."""
        batch = super().__new__(cls, X, y, ids)
        batch.payloads, batch.thumbnails = payloads, thumbnails
        return batch

    def part(self, rows: slice | NDArray[np.int64]) -> Batch:
        """Return the batch of some of the rows."""
        columns = (*self, self.payloads, self.thumbnails)
        return Batch(*(_take(column, rows) for column in columns))


def _take(values: Any, rows: slice | NDArray[np.int64]) -> Any:
    if values is None or isinstance(rows, slice):
        return values if values is None else values[rows]
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
