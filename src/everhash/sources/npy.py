"""NumPy's files: a .npy is the features, a .npz has arrays by name."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from everhash.sources.arrays import check_features, read_arrays
from everhash.sources.columns import Rows, Wanted, explained, missing
from everhash.sources.stored import Stored


def _open_npy(path: str) -> Stored:
    with explained(path, "npy"), open(path, "rb") as file:
        return Stored(file, os.path.getsize(path), path)


def read_npy(path: str, wanted: Wanted, rows: int) -> Iterator[Rows]:
    """Map a .npy into memory and read it; its header has been checked by then."""
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


def _open_npz(path: str, wanted: Wanted, stack: ExitStack) -> list[Any]:
    """Open the arrays that hold features, labels and ids; of the latter two, None if not there."""
    broken = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
    stack.enter_context(explained(path, "npz", *broken))
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    found: list[Any] = [None, None, None]
    for i, (name, default) in enumerate(zip(wanted, ("X", "y", "ids"), strict=True)):
        info = members.get(name or default)
        if info is not None:
            file = stack.enter_context(archive.open(info))
            found[i] = Stored(file, info.file_size, f"{path}: array {name or default!r}")
        elif name or default == "X":
            raise missing(repr(name or default), list(members), path)
    return found


def read_npz(path: str, wanted: Wanted, rows: int) -> Iterator[Rows]:
    """Read the arrays of a .npz side by side."""
    with ExitStack() as stack:
        X, y, ids = _open_npz(path, wanted, stack)
        check_features(X.shape, X.dtype, X.where)
        yield from read_arrays((X, y, ids), Wanted(), rows, path)


def count_npz(path: str) -> int:
    """Return how many rows the header of X in a .npz claims."""
    with ExitStack() as stack:
        return len(_open_npz(path, Wanted(), stack)[0])
