"""Arrays that grow by rows."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def copied(state: dict[str, Any]) -> dict[str, Any]:
    """Return what an object holds, its arrays copied."""
    return {
        name: np.array(value, order="K") if isinstance(value, np.ndarray) else value
        for name, value in state.items()
    }


class GrowingArray(Generic[Scalar]):
    """An array whose first axis grows; capacity doubles, so appending costs O(1) a row.

    >>> numbers = GrowingArray((2,), np.int64)
    >>> numbers.grow_to(1)
    >>> numbers.rows.tolist()
    [[0, 0]]
    """

    def __init__(self, row_shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._buffer: NDArray[Scalar] = np.zeros((0, *row_shape), dtype)
        self._length = 0

    @property
    def rows(self) -> NDArray[Scalar]:
        """The rows so far, as a view: writing to it writes to the array."""
        return self._buffer[: self._length]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a copy: joblib may have mapped the array read-only from disk."""
        vars(self).update(copied(state))

    def __len__(self) -> int:
        return self._length

    def grow_to(self, length: int) -> None:
        """Append zeros until there are `length` rows."""
        if length > len(self._buffer):
            capacity = max(length, 2 * len(self._buffer))
            buffer = np.zeros((capacity, *self._buffer.shape[1:]), self._buffer.dtype)
            buffer[: self._length] = self.rows
            self._buffer = buffer
        self._length = max(self._length, length)

    def replace(self, rows: NDArray[Scalar]) -> None:
        """Hold these rows instead."""
        self._buffer = np.ascontiguousarray(rows)
        self._length = len(rows)
