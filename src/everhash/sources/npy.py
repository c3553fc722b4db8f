"""NumPy's files: a .npy is the features, a .npz has arrays by name."""

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
from everhash.sources.columns import ColumnChoice, explained, missing, no_bytes, place
from everhash.sources.npy_header import NpyHeader
from everhash.sources.payload_values import WEIGHT, as_column, as_payloads


def _open_npy(path: str) -> NpyHeader:
    with explained(path, "npy"), open(path, "rb") as file:
        return NpyHeader(file, os.path.getsize(path), path)


def read_npy(path: str, wanted: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Map a .npy into memory and read it; its header has been checked by then."""
    if wanted.thumbnail is not None:
        raise no_bytes(path)
    if wanted.payload is not None:
        message = f"{place(path)}a .npy is the features and no more, so no payloads"
        raise InputError(message, hint="an .npz can have them, in an array of their own")
    stored = _open_npy(path)
    check_features(stored.shape, stored.dtype, path)
    if stored.size:
        order: Any = "F" if stored.fortran else "C"
        with explained(path, "npy"):
            X = np.memmap(path, stored.dtype, "r", stored.offset, stored.shape, order)
        yield from read_arrays((X,), wanted, rows, path)


def count_npy(path: str) -> int:
    """Return how many rows the header of a .npy claims."""
    return len(_open_npy(path))


def _open_npz(path: str, wanted: ColumnChoice, stack: ExitStack) -> list[Any]:
    """Open the arrays of features, labels, ids and payloads; labels and ids may be None."""
    broken = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
    stack.enter_context(explained(path, "npz", *broken))
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    found: list[Any] = []
    defaults = (("X", wanted.features), ("y", wanted.label), ("ids", wanted.id))
    for default, name in (*defaults, *((name, name) for name in wanted.payload_columns)):
        info = members.get(name or default)
        if info is not None:
            file = stack.enter_context(archive.open(info))
            found.append(NpyHeader(file, info.file_size, f"{path}: array {name or default!r}"))
        elif name or default == "X":
            raise missing(repr(name or default), list(members), path)
        else:
            found.append(None)
    return found


def read_npz(path: str, wanted: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read the arrays of a .npz side by side."""
    if wanted.thumbnail is not None:
        raise no_bytes(path)
    with ExitStack() as stack:
        X, y, ids, *others = _open_npz(path, wanted, stack)
        check_features(X.shape, X.dtype, X.where)
        carried = dict(zip(wanted.payload_columns, others, strict=True))
        each = _check_carried(carried, len(X), path)
        start, rows = 0, min(rows, max(1, WEIGHT // max(each, 1)))
        for batch in read_arrays((X, y, ids), ColumnChoice(), rows, path):
            n = len(batch.X)
            columns = {
                name: as_column(array.take(n), array.where) for name, array in carried.items()
            }
            yield Batch(*batch, as_payloads(columns, wanted, path, start))
            start += n


def _check_carried(arrays: dict[str, NpyHeader], n: int, path: str) -> int:
    """Refuse arrays that do not have a value a row; return how many bytes a row has in them."""
    for name, array in arrays.items():
        if len(array) != n:
            message = f"{place(path)}{n} rows but {len(array)} values of {name!r}"
            raise InputError(message, hint="one each")
    return sum(array.size for array in arrays.values()) // max(n, 1)


def count_npz(path: str) -> int:
    """Return how many rows the header of X in a .npz claims."""
    with ExitStack() as stack:
        return len(_open_npz(path, ColumnChoice(), stack)[0])
