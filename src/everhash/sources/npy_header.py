"""The checked header of an array in NumPy's format, and its rows, read a few at a time."""

from __future__ import annotations

import io
import math
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from everhash.errors import InputError

MAX_HEADER_BYTES = 1 << 14
"""Bytes in which the header of an array must end; NumPy's own limit is 10,000."""


class NpyHeader:
    """The header of an array in `size` bytes of a file, checked against that; gives its rows."""

    def __init__(self, file: IO[bytes], size: int, where: str) -> None:
        head = io.BytesIO(file.read(MAX_HEADER_BYTES))
        try:
            is_first = npy.read_magic(head) == (1, 0)
            read_header = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
            self.shape, self.fortran, self.dtype = read_header(head)
        except Exception as error:  # hostile headers raise anything from SyntaxError to MemoryError
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            message = f"{where}: cannot be read as an array: {reason:.200}"
            raise InputError(message, hint="np.save writes one") from None
        if self.dtype.hasobject:
            message = f"{where}: expected numbers or strings, got a pickle, which could run code"
            raise InputError(message, hint="save strings, as in np.asarray(y, dtype=str)")
        self.where, self.offset = where, head.tell()
        self.size = math.prod(self.shape) * self.dtype.itemsize
        found = size - self.offset
        if min(self.shape, default=0) < 0 or self.size > found:
            message = f"{where}: expected {self.size} bytes for shape {self.shape}, got {found}"
            raise InputError(message, hint="the file is damaged; write it again")
        self._file, self._ahead, self._left = file, head.read(), len(self)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def take(self, rows: int) -> NDArray[Any]:
        """Return the next rows."""
        if self.fortran:  # stored by columns, so the first row needs the whole array
            whole = self._next(self.shape[::-1]).T
            self._file, self._ahead, self.fortran = io.BytesIO(whole.tobytes()), b"", False
        n = min(rows, self._left)
        self._left -= n
        return self._next((n, *self.shape[1:]))

    def _next(self, shape: tuple[int, ...]) -> NDArray[Any]:
        size = math.prod(shape) * self.dtype.itemsize
        taken, self._ahead = self._ahead[:size], self._ahead[size:]
        data = taken + self._file.read(size - len(taken))
        return np.frombuffer(data, self.dtype).reshape(shape)
