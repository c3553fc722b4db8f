"""Where rows come from: files, arrays, data frames, loaders; all of them read batch by batch.

    .npy                    a 2-d array of features, memory-mapped
    .npz                    arrays by name: X, and where they are there y and ids
    .parquet                columns by name
    .arrow, .feather        columns by name, in an Arrow IPC file or stream
    .csv                    columns by the names in the first line
    arrays                  X, (X, y) or (X, y, ids)
    tables                  pyarrow, pandas, polars: whatever hands out Arrow data
    iterables               of batches or of rows: a torch DataLoader, a Hugging Face dataset

Memory does not grow with the source. Nothing in a file is run or unpickled, and what a header
claims is held against the size of the file before anything is allocated for it.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from everhash import limits, tables
from everhash.errors import (
    DataMissingError,
    FeatureTypeError,
    IdError,
    InputError,
    LabelError,
    LimitError,
    OptionError,
)
from everhash.tables import Kind, Rows, Wanted, as_float32, explained, place

BLOCK = 4 << 20
"""bytes of a CSV parsed at a time; its first line must fit"""
HEADER = 1 << 14
"""bytes in which the header of a .npy must end; NumPy's own limit is 10,000"""
WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
"""A cell that holds an integer; 007 is a text."""
WHOLE_FLOAT = r"^-?(0|[1-9][0-9]{0,14})(\.0)?$"
"""An integer as pandas writes it in a column with gaps."""


class Batch(NamedTuple):
    """Some rows, in the order `Collection.ingest` takes them."""

    X: NDArray[np.float32]
    """(n, d) features; may be read-only."""
    y: list[Hashable | None] | NDArray[Any] | None
    """A label a row, a set where there are several, None where there is none; or no labels."""
    ids: list[int | str] | None


def read(
    source: Any,
    *,
    features: str | None = None,
    label: str | None = None,
    id: str | None = None,  # noqa: A002 - what people call it
    rows: int = 10_000,
) -> Iterator[Batch]:
    """Read rows from `source`, at most `rows` at a time.

    Args:
        source: a path, arrays, a table, or an iterable of batches or rows; see the module.
        features: the column of vectors; or columns of numbers, as "f0,f1,f2" or "f*". By default
            the only column of vectors, else all columns of numbers but label and id.
        label: the column of labels; a list is several labels, a null is none.
        id: the column of ids, integers or strings.
        rows: the most rows of a batch.

    >>> [batch.y for batch in read(([[1, 2], [3, 4], [5, 6]], ["a", "b", "a"]), rows=2)]
    [['a', 'b'], ['a']]
    >>> shop = [{"sku": 7, "v": [0.5, 1]}, {"sku": 9, "v": [2, 3]}]
    >>> [(batch.X.tolist(), batch.ids) for batch in read(shop, id="sku")]
    [([[0.5, 1.0], [2.0, 3.0]], [7, 9])]
    """
    if not isinstance(rows, int) or rows < 1:
        raise OptionError(f"rows must be a positive integer, got {rows!r:.80}")
    wanted = Wanted(features, label, id)
    if isinstance(source, str | os.PathLike):
        path = _existing(source)
        found = READERS[path.suffix.lower()](str(path), wanted, rows)
    elif _hands_out_arrow(source):
        found = tables.read_stream(source, wanted, rows)
    elif isinstance(source, tuple) or _is_array(source):
        found = _read_arrays(source, wanted, rows)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        found = _read_items([source] if isinstance(source, Mapping) else source, wanted, rows)
    else:
        raise InputError(
            f"expected a path, arrays, a table or an iterable, got {type(source).__name__}",
            hint="pass a file's name, (X, y, ids), or an iterable of such batches",
        )
    return _batches(found, rows)


def _batches(found: Iterable[Rows], rows: int) -> Iterator[Batch]:
    """Cut what is longer than `rows`, and hold every batch to the width of the first."""
    width, seen = None, 0
    for X, y, ids in found:
        if not len(X):
            continue
        width = X.shape[1] if width is None else width
        if X.shape[1] != width:
            raise tables.ragged(place("", row=seen), width, X.shape[1])
        for start in range(0, len(X), rows):
            cut = slice(start, start + rows)
            yield Batch(X[cut], y if y is None else y[cut], ids if ids is None else ids[cut])
        seen += len(X)


def count_rows(source: Any) -> int | None:
    """Return how many rows a source has, or None where only reading it through would tell.

    >>> count_rows(([[1, 2], [3, 4]], ["a", "b"]))
    2
    """
    if isinstance(source, str | os.PathLike):
        path = _existing(source)
        count = COUNTERS.get(path.suffix.lower())
        return None if count is None else count(str(path))
    if isinstance(source, tuple) and source:
        return len(source[0])
    if hasattr(source, "num_rows"):
        return int(source.num_rows)
    return len(source) if _is_array(source) else None


def _existing(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path}: expected a file, got a directory", hint="name a file in it")
    if path.suffix.lower() not in READERS:
        raise InputError(
            f"{path}: expected a file that ends in {', '.join(READERS)}, "
            f"got {path.suffix or 'no ending'!r}",
            hint="convert it, or read it yourself and pass arrays or batches",
        )
    if not path.exists():
        raise DataMissingError(f"no file at {path}", hint="check the path")
    return path


# NumPy's files


class _Stored:
    """An array in NumPy's format inside a file, whose header is not believed before it is checked.

    `size` is how many bytes there are, header included.
    """

    def __init__(self, file: IO[bytes], size: int, where: str) -> None:
        head = io.BytesIO(file.read(HEADER))
        try:
            is_first = npy.read_magic(head) == (1, 0)
            read_header = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
            self.shape, self.fortran, self.dtype = read_header(head)
        except Exception as error:  # hostile headers raise anything from SyntaxError to MemoryError
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(
                f"{where}: cannot be read as an array: {reason:.200}", hint="np.save writes one"
            ) from None
        self.file, self.where, self.offset = file, where, head.tell()
        if self.dtype.hasobject:
            raise InputError(
                f"{where}: expected numbers or strings, got pickled objects, which could run code",
                hint="save it as numbers or strings, as in np.asarray(y, dtype=str)",
            )
        self.size = math.prod(self.shape) * self.dtype.itemsize
        if min(self.shape, default=0) < 0 or not 0 <= self.size <= size - self.offset:
            raise InputError(
                f"{where}: expected {self.size} bytes for shape {self.shape}, "
                f"got {size - self.offset}",
                hint="the file is damaged; write it again",
            )

    def check_features(self) -> None:
        """Say what is wrong with this array as features."""
        _check_features(len(self.shape), self.shape[-1:], self.dtype, self.where)

    def chunks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Read a few rows at a time, or in Fortran's order, which has no rows, everything."""
        if self.fortran:
            whole = self._take(self.size).reshape(self.shape[::-1]).T
            yield from (whole[start : start + rows] for start in range(0, len(whole), rows))
            return
        row = self.size // max(self.shape[0], 1)
        self.file.seek(self.offset)
        for start in range(0, self.shape[0], rows):
            n = min(rows, self.shape[0] - start)
            yield self._take(n * row).reshape(n, *self.shape[1:])

    def _take(self, size: int) -> NDArray[Any]:
        return np.frombuffer(self.file.read(size), self.dtype)


def _read_npy(path: str, wanted: Wanted, rows: int) -> Iterator[Rows]:
    with explained(path, "npy"):
        with Path(path).open("rb") as file:
            stored = _Stored(file, os.path.getsize(path), path)
        stored.check_features()
        _refuse_names(wanted, path)
        if stored.size:
            order = "F" if stored.fortran else "C"
            X = np.memmap(path, stored.dtype, "r", stored.offset, stored.shape, order)
            yield from _read_arrays(X, wanted, rows, path)
