"""Rows in any form people have them: lists, arrays, tensors, data frames, a column of vectors."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import FeatureTypeError, InputError


def as_table(X: Any, where: str = "", start: int = 0) -> NDArray[Any]:
    """Return X as a 2-d array of real numbers.

    Errors name the source, `where`, and count rows from `start` on.

    A column of vectors is a table: a Series, an array of objects or an Arrow array whose items are
    lists or arrays of one length, or a data frame with such a column alone.

    >>> column = np.empty(2, object)
    >>> column[:] = [1.5, 2.0], (3.0, 4.0)
    >>> as_table(column).tolist()
    [[1.5, 2.0], [3.0, 4.0]]
    """
    if hasattr(X, "toarray"):
        raise InputError(
            "sparse data was passed, but dense data is required", hint="call X.toarray() first"
        )
    where = f"{where}: " if where else ""
    try:
        table = as_array(X)
    except (ValueError, TypeError, RuntimeError) as error:
        _check_rows(X, where, start)
        raise _no_table(error, where) from None
    if table.dtype.kind == "O":
        table = _unpacked(table, where, start)
    if table.dtype.kind == "c":
        raise InputError(
            f"{where}X is complex. Complex data not supported", hint="pass real features"
        )
    if table.ndim != 2:
        raise wrong_shape(table.shape, where)
    return table if table.dtype.kind in "fiub" else _numbers(table, where)


def as_array(values: Any) -> NDArray[Any]:
    """Return anything like an array as one; a tensor may need `detach` and `cpu` first."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values
    if isinstance(values, list | tuple) and values and hasattr(values[0], "detach"):
        values = [as_array(value) for value in values]
    if hasattr(values, "numpy") and not hasattr(values, "__array__"):
        values = values.numpy()
    return np.asarray(values)


def is_missing(value: Any) -> bool:
    """Whether a value stands for a gap: None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    pandas = sys.modules.get("pandas")  # whoever has such a value has imported pandas
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def wrong_shape(shape: tuple[int, ...], where: str = "") -> InputError:
    """Return the error for an array that is no table."""
    got = f"{len(shape)}-d of shape {shape}"
    message = f"{where}expected a 2-d array of rows, got {got}"
    if len(shape) > 2:
        return InputError(f"{message}. {{say flatten}}")
    return InputError(f"{message}. {{say reshape}}")


def ragged(at: str, expected: int, got: int) -> InputError:
    """Return the error for a row with more or fewer features than the rows before it."""
    message = f"{at}expected {expected} features as in the rows before, got {got}"
    return InputError(message, hint="embed all rows with one model; drop or repair the row")


def _no_table(error: Exception, where: str) -> InputError:
    message = f"{where}X is not a table of rows: {error!s:.200}"
    return InputError(message, hint="give all rows one length")


def _unpacked(table: NDArray[Any], where: str, start: int) -> NDArray[Any]:
    """Return a table whose cells are vectors as a table of numbers, anything else as it is."""
    column = table[:, 0] if table.ndim == 2 and table.shape[1] == 1 else table
    vectors = column.ndim == 1 and any(_is_vector(item) for item in column)
    if not vectors:
        return table
    _check_rows(column, where, start)
    rows = [as_array(item) for item in column]
    try:
        return np.array(rows, object if any(row.dtype.kind == "O" for row in rows) else None)
    except ValueError as error:
        raise _no_table(error, where) from None


def _is_vector(item: Any) -> bool:
    return isinstance(item, list | tuple) or bool(getattr(item, "ndim", 0))


def _check_rows(rows: Any, where: str, start: int) -> None:
    """Raise for the first row that is a gap, or has another length than the first row."""
    width = None
    for row, values in enumerate(rows if isinstance(rows, Iterable) else (), start):
        at = f"{where}row {row}: "
        if is_missing(values):
            raise InputError(f"{at}expected numbers, got {values}", hint=REPAIR)
        if not hasattr(values, "__len__") or isinstance(values, str | bytes | dict):
            got = type(values).__name__
            raise InputError(f"{at}expected a list of numbers, got {got}", hint=REPAIR)
        width = len(values) if width is None else width
        if len(values) != width:
            raise ragged(at, width, len(values))


REPAIR = "drop or repair the row"


def _numbers(table: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Return a table of objects as numbers; a gap becomes NaN."""
    if table.dtype.kind in "mM":
        raise FeatureTypeError(f"{where}features must be numbers, got {table.dtype}")
    if table.dtype.kind == "O" and any(map(is_missing, table.flat)):
        filled = [np.nan if is_missing(value) else value for value in table.flat]
        table = np.array([*filled, None], object)[:-1].reshape(table.shape)
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FeatureTypeError(f"{where}features must be numbers: {error}") from None
