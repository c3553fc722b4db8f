"""Readers of NumPy's files: a .npy holds the features, a .npz arrays by name."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from everhash.errors import InputError
from everhash.sources.arrays import check_features, read_arrays
from everhash.sources.batch import Batch
from everhash.sources.columns import (
    ColumnChoice,
    explained,
    location,
    missing_column,
    refuse_thumbnails,
)
from everhash.sources.npy_header import NpyHeader
from everhash.sources.payload_values import MAX_BATCH_BYTES, as_column, as_payloads


def _open_npy(path: str) -> NpyHeader:
    with explained(path, "npy"), open(path, "rb") as file:
        return NpyHeader(file, os.path.getsize(path), path)


def read_npy(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Check the header of a .npy, then read it through a memory map."""
    refuse_thumbnails(choice, path)
    if choice.payload is not None:
        message = f"{location(path)}a .npy holds features only, so no payloads"
        raise InputError(message, hint="an .npz can have them, in an array of their own")
    header = _open_npy(path)
    check_features(header.shape, header.dtype, path)
    if header.size:
        order: Any = "F" if header.fortran else "C"
        with explained(path, "npy"):
            X = np.memmap(path, header.dtype, "r", header.offset, header.shape, order)
        yield from read_arrays((X,), choice, rows, path)


def count_npy(path: str) -> int:
    """Return how many rows the header of a .npy claims."""
    return len(_open_npy(path))


def _open_npz(path: str, choice: ColumnChoice, stack: ExitStack) -> list[Any]:
    """Open the arrays of features, labels, ids and payloads; labels and ids may be None."""
    broken = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
    stack.enter_context(explained(path, "npz", *broken))
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    found: list[Any] = []
    defaults = (("X", choice.features), ("y", choice.label), ("ids", choice.id))
    for default, name in (*defaults, *((name, name) for name in choice.payload_columns)):
        info = members.get(name or default)
        if info is not None:
            file = stack.enter_context(archive.open(info))
            found.append(NpyHeader(file, info.file_size, f"{path}: array {name or default!r}"))
        elif name or default == "X":
            raise missing_column(repr(name or default), list(members), path)
        else:
            found.append(None)
    return found


def read_npz(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read the arrays of a .npz side by side."""
    refuse_thumbnails(choice, path)
    with ExitStack() as stack:
        X, y, ids, *others = _open_npz(path, choice, stack)
        check_features(X.shape, X.dtype, X.where)
        arrays = dict(zip(choice.payload_columns, others, strict=True))
        row_bytes = _check_payloads(arrays, len(X), path)
        start, rows = 0, min(rows, max(1, MAX_BATCH_BYTES // max(row_bytes, 1)))
        for batch in read_arrays((X, y, ids), ColumnChoice(), rows, path):
            n = len(batch.X)
            columns = {
                name: as_column(array.take(n), array.where) for name, array in arrays.items()
            }
            yield Batch(*batch, as_payloads(columns, choice, path, start))
            start += n


def _check_payloads(arrays: dict[str, NpyHeader], n: int, path: str) -> int:
    """Raise unless each array has n values; return how many bytes a row has in all of them."""
    for name, array in arrays.items():
        if len(array) != n:
            message = f"{location(path)}{n} rows but {len(array)} values of {name!r}"
            raise InputError(message, hint="one each")
    return sum(array.size for array in arrays.values()) // max(n, 1)


def count_npz(path: str) -> int:
    """Return how many rows the header of array X in a .npz claims."""
    with ExitStack() as stack:
        return len(_open_npz(path, ColumnChoice(), stack)[0])
