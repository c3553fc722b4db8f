"""Rows in a file without a name, mapped into memory."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

ROOM = 4 << 20
"""Bytes mapped at first; room doubles."""


class Scratch:
    """Rows of halves that can be read as one array, and go when the process ends.

    They are kept in a file, without a name, in the folder of the collection or in the system's
    temporary one; where neither can be written to, in memory.

    >>> scratch = Scratch(3, None)
    >>> scratch.append(np.uint16([[1, 2, 3], [4, 5, 6]])), scratch.append(np.uint16([[7, 8, 9]]))
    (0, 2)
    >>> scratch.rows.tolist()
    [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    """

    def __init__(self, width: int, folder: Path | None) -> None:
        self._width, self._folder = width, folder
        self._file: int | None = None
        self._buffer: NDArray[np.uint16] = np.empty((0, width), np.uint16)
        self._length = 0

    @property
    def rows(self) -> NDArray[np.uint16]:
        """(n, width) all rows, as a view."""
        return self._buffer[: self._length]

    def append(self, rows: NDArray[np.uint16]) -> int:
        """Append rows; return the number of the first."""
        first, end = self._length, self._length + len(rows)
        if end > len(self._buffer):
            self._grow(end)
        self._write(first, np.ascontiguousarray(rows))
        self._length = end
        return first

    def _write(self, first: int, rows: NDArray[np.uint16]) -> None:
        if self._file is not None:
            try:
                # assigning to the mapping would end the process where the disk is full
                _write_all(self._file, rows, 2 * self._width * first)
                return
            except OSError:
                self._file = None
                self._buffer = self._buffer.copy()
        self._buffer[first : first + len(rows)] = rows

    def _grow(self, rows: int) -> None:
        """Make room for so many rows at least."""
        capacity = max(rows, 2 * len(self._buffer), ROOM // (2 * self._width))
        if self._length == 0:
            self._file = _nameless(self._folder)
            if self._file is not None:
                finalize(self, os.close, self._file)
        buffer = self._mapped(capacity)
        if buffer is None:
            self._file = None
            buffer = np.empty((capacity, self._width), np.uint16)
            buffer[: self._length] = self.rows
        self._buffer = buffer

    def _mapped(self, capacity: int) -> NDArray[np.uint16] | None:
        """Map room for so many rows; None where the file cannot be so long."""
        if self._file is None:
            return None
        size = 2 * self._width * capacity
        try:
            os.truncate(self._file, size)
            return np.frombuffer(mmap.mmap(self._file, size), np.uint16).reshape(capacity, -1)
        except OSError:
            return None


def _write_all(file: int, rows: NDArray[np.uint16], at: int) -> None:
    left = rows.reshape(-1).view(np.uint8).data
    while len(left):
        written = os.pwrite(file, left, at)
        left, at = left[written:], at + written


def _nameless(folder: Path | None) -> int | None:
    """Return a new file without a name; None where none can be made."""
    for place in (folder, None):
        try:
            file, name = tempfile.mkstemp(prefix="everhash-", dir=place)
            os.unlink(name)
        except OSError:
            continue
        return file
    return None
