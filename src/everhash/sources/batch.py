"""Some rows, and what goes with them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class _Rows(NamedTuple):
    X: NDArray[np.float32]
    """(n, d) features; may be read-only."""
    y: list[Hashable | None] | NDArray[Any] | None
    """A label a row, a set where there are several, None where there is none; or no labels."""
    ids: list[int | str] | None


class Batch(_Rows):
    """Some rows, in the order `Collection.ingest` takes them: `col.ingest(*batch)`.

    What they carry goes by name: `col.ingest(*batch, payloads=batch.payloads)`.
    """

    payloads: list[Any] | None = None
    """A JSON value a row, None where there is none; or no payloads."""
    thumbnails: list[bytes | None] | None = None
    """A picture's bytes a row, None where there is none; or no thumbnails."""

    def __new__(
        cls,
        X: NDArray[np.float32],
        y: list[Hashable | None] | NDArray[Any] | None,
        ids: list[int | str] | None,
        payloads: list[Any] | None = None,
        thumbnails: list[bytes | None] | None = None,
    ) -> Batch:
        """Make a batch; all lists have an item a row."""
        batch = super().__new__(cls, X, y, ids)
        batch.payloads, batch.thumbnails = payloads, thumbnails
        return batch

    def part(self, rows: slice | NDArray[np.int64]) -> Batch:
        """Return some of the rows, with what goes with them."""
        columns = (*self, self.payloads, self.thumbnails)
        return Batch(*(_some(column, rows) for column in columns))


def _some(values: Any, rows: slice | NDArray[np.int64]) -> Any:
    if values is None or isinstance(rows, slice):
        return values if values is None else values[rows]
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
