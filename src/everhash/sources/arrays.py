"""Readers of X, y and ids in memory: arrays, lists, tensors, columns of a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import FeatureTypeError, IdError, InputError, LabelError, LimitError
from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, as_float32, location, ragged
from everhash.sources.npy_header import NpyHeader


def read_arrays(arrays: Any, choice: ColumnChoice, rows: int, where: str = "") -> Iterator[Batch]:
    """Read X, (X, y) or (X, y, ids); y and ids may be None."""
    has_names = choice != ColumnChoice()
    if has_names or not 1 <= len(arrays) <= 3:
        got = f"{len(arrays)} arrays" + (" and names of columns" if has_names else "")
        message = f"{location(where)}expected X, (X, y) or (X, y, ids), got {got}"
        raise InputError(message, hint="arrays have no names: leave out features, label and id")
    X, y, ids = (*arrays, None, None)[:3]
    check_lengths(X, y, ids, where)
    for start in range(0, len(X), rows):
        yield as_rows([_cut(part, start, rows) for part in (X, y, ids)], where, start)


def _cut(part: Any, start: int, rows: int) -> Any:
    if part is None or isinstance(part, NpyHeader):
        return part if part is None else part.take(rows)
    return getattr(part, "iloc", part)[start : start + rows]


def check_lengths(X: Any, y: Any, ids: Any, where: str) -> None:
    """Raise unless there is one label and one id for each row."""
    kinds = ((X, "rows", InputError), (y, "labels", LabelError), (ids, "ids", IdError))
    for part, what, error in kinds:
        if part is not None and not hasattr(part, "__len__"):
            raise error(f"{location(where)}expected a list of {what}, got {type(part).__name__}")
        if part is not None and len(part) != len(X):
            raise error(f"{location(where)}{len(X)} rows but {len(part)} {what}", hint="one each")


def check_features(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    """Raise unless an array is 2-d, of numbers, and not too wide."""
    if len(shape) != 2:
        message = f"{location(where)}expected a 2-d array of features, got one of shape {shape}"
        raise InputError(message, hint="X.reshape(1, -1) makes a table of a single row")
    if dtype.kind not in "fiub":
        raise FeatureTypeError(f"{location(where)}expected numbers as features, got {dtype}")
    if shape[1] > limits.DIMS:
        raise LimitError(f"{location(where)}{shape[1]} features a row, at most {limits.DIMS}")


def as_rows(parts: Sequence[Any], where: str, start: int) -> Batch:
    """Return a batch of X, y and ids; `start` is the number of its first row."""
    X, y, ids = parts
    try:
        table = as_array(X)
    except (ValueError, TypeError, RuntimeError) as error:
        _check_each(X, where, start)
        raise InputError(f"{location(where)}X is not a table of numbers: {error!s:.200}") from None
    if table.dtype.kind == "O" and table.ndim == 2:
        _check_each(table, where, start)
    check_features(table.shape, table.dtype, where)
    return Batch(as_float32(table), _as_labels(y), _as_ids(ids, where, start))


def _check_each(X: Any, where: str, start: int) -> None:
    """Raise for the first row that has a gap, or another length than the first row."""
    for row, values in enumerate(X, start):
        at = location(where, row=row)
        if values is None or any(value is None for value in values):
            raise InputError(f"{at}expected numbers, got None", hint="drop or repair the row")
        if len(values) != len(X[0]):
            raise ragged(at, len(X[0]), len(values))


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


def _as_labels(y: Any) -> Any:
    if hasattr(y, "isna"):  # pandas has several values for a gap
        y = y.astype(object).where(y.notna(), None).tolist()
    if hasattr(y, "ndim"):
        y = as_array(y)
        y = y if y.dtype.kind in "iubfU" else y.tolist()
    if isinstance(y, list | tuple):
        y = [_plain(each) for each in y]
    return y


def _as_ids(ids: Any, where: str, start: int) -> list[int | str] | None:
    if ids is None:
        return None
    plain = [_plain(each) for each in (as_array(ids).tolist() if hasattr(ids, "ndim") else ids)]
    for row, value in enumerate(plain, start):
        if not isinstance(value, int | str) or isinstance(value, bool):
            message = f"{location(where, row=row)}expected an id, got {value!r:.80}"
            raise IdError(message, hint="an id is an integer or a string")
    return plain


def _plain(value: Any) -> Any:
    """Return a NumPy or torch scalar as a Python one, and a list or array of labels as a set."""
    value = value.tolist() if hasattr(value, "tolist") else value
    try:
        return set(value) if isinstance(value, list) else value
    except TypeError:
        return value  # not hashable: `stream.as_labels` raises the error for it
