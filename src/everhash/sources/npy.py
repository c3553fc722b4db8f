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
from everhash.sources.arrays import ARRAYS, check_features, read_arrays
from everhash.sources.batch import Batch
from everhash.sources.columns import (
    ColumnChoice,
    Taken,
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
    if choice.payload:
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


def npz_choice(names: list[str], choice: ColumnChoice, path: str) -> Taken:
    """Return the arrays to read: those that were named, else X, y, ids and payloads."""
    features = choice.features or ARRAYS[0]
    found: dict[str, Any] = {
        use: (default if default in names else None) if given is None else given or None
        for use, default, given in (
            ("label", ARRAYS[1], choice.label),
            ("id", ARRAYS[2], choice.id),
            ("payload", ARRAYS[3], choice.payload),
        )
    }
    choice = choice._replace(**{"features": features, **found})
    for name in (features, *choice.others):
        if name not in names:
            raise missing_column(repr(name), names, path)
    return Taken([features], choice)


def npz_arrays(path: str) -> list[str]:
    """Return the names of the arrays in a .npz."""
    with ExitStack() as stack:
        return list(_members(path, stack)[1])


def _members(path: str, stack: ExitStack) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    broken = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
    stack.enter_context(explained(path, "npz", *broken))
    archive = stack.enter_context(zipfile.ZipFile(path))
    return archive, {info.filename.removesuffix(".npy"): info for info in archive.infolist()}


def _open_npz(path: str, choice: ColumnChoice, stack: ExitStack) -> tuple[ColumnChoice, list[Any]]:
    """Open the arrays of features, labels, ids and payloads; labels and ids may be None."""
    archive, members = _members(path, stack)
    features, choice = npz_choice(list(members), choice, path)
    found: list[Any] = []
    for name in (*features, choice.label, choice.id, *choice.payload_columns):
        if name is None:
            found.append(None)
            continue
        file = stack.enter_context(archive.open(members[name]))
        found.append(NpyHeader(file, members[name].file_size, f"{path}: array {name!r}"))
    return choice, found


def read_npz(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read the arrays of a .npz side by side."""
    refuse_thumbnails(choice, path)
    with ExitStack() as stack:
        choice, (X, y, ids, *others) = _open_npz(path, choice, stack)
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
        return len(_open_npz(path, ColumnChoice(), stack)[1][0])
