"""Reading arrays of a file's parts: each has its type and shape, or the file is damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import CollectionFileError
from everhash.store.parts import DAMAGED, Arrays, PartKey

Counts = NDArray[np.int64]
NARROW = [np.dtype(name) for name in ("u1", "i1", "u2", "i2", "u4", "i4")]


def require(condition: bool, key: PartKey | str, problem: str) -> None:
    """Raise if a part cannot have been written by this library."""
    if not condition:
        raise CollectionFileError(f"{key}: {problem}", hint=DAMAGED)


def array_of(
    arrays: Arrays, name: str, key: PartKey, dtype: type, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return an array of this type and shape, of which None stands for any length."""
    array = arrays.get(name)
    require(array is not None, key, f"{name} is missing")
    assert array is not None  # noqa: S101 - for the type checker; `require` has raised
    fits = array.dtype == dtype and array.ndim == len(shape)
    fits = fits and all(s in (None, g) for s, g in zip(shape, array.shape, strict=True))
    require(fits, key, f"{name} is {array.dtype} {array.shape}")
    return array


def whole_numbers(
    arrays: Arrays, name: str, key: PartKey, rows: int | None, least: int = 0
) -> Counts:
    """Return a column of whole numbers, whatever narrow type it was written in."""
    dtype = arrays[name].dtype if name in arrays else None
    require(dtype in NARROW, key, f"{name} is missing, or no column of numbers")
    numbers = array_of(arrays, name, key, arrays[name].dtype.type, (rows,)).astype(np.int64)
    require(numbers.min(initial=0) >= least, key, f"{name} holds numbers below {least}")
    return numbers


def narrowed(numbers: Counts) -> NDArray[Any]:
    """Return numbers in the narrowest type that holds them all."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    fits = (d for d in NARROW if np.iinfo(d).min <= low and high <= np.iinfo(d).max)
    return numbers.astype(next(fits))
