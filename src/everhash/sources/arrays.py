"""Readers of X, y and ids in memory: arrays, lists, tensors, columns of a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from everhash import limits
from everhash.errors import FeatureTypeError, IdError, InputError, LabelError, LimitError
from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, as_float32, location
from everhash.sources.npy_header import NpyHeader
from everhash.tabular import as_array, as_table, is_missing, wrong_shape

ARRAYS = ("X", "y", "ids", "payloads", "thumbnails")
"""What arrays are called in a mapping and in a .npz file: as the arguments of `ingest` are."""


def read_named(arrays: Mapping[str, Any], rows: int, where: str = "") -> Iterator[Batch]:
    """Read a mapping with X, and perhaps y, ids, payloads and thumbnails, and nothing else."""
    strange = [name for name in arrays if name not in ARRAYS]
    if strange:
        raise InputError(
            f"{location(where)}no use for {', '.join(map(repr, strange)):.200}",
            hint=f"beside X there may be {', '.join(ARRAYS[1:])}; other names go with "
            "{option features} and {option label}",
        )
    X, y, ids, *attached = (arrays.get(name) for name in ARRAYS)
    check_lengths(X, y, ids, where)
    for name, values in zip(ARRAYS[3:], attached, strict=True):
        _check_length(X, values, name, InputError, where)
    start = 0
    for batch in read_arrays((X, y, ids), ColumnChoice(), rows, where):
        n = len(batch.X)
        cut = (_cut(values, start, n) for values in attached)
        yield Batch(*batch, *(None if part is None else list(part) for part in cut))
        start += n


def read_arrays(arrays: Any, choice: ColumnChoice, rows: int, where: str = "") -> Iterator[Batch]:
    """Read X, (X, y) or (X, y, ids); y and ids may be None."""
    has_names = choice.named
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
        _check_length(X, part, what, error, where)


def _check_length(X: Any, part: Any, what: str, error: type[InputError], where: str) -> None:
    if part is not None and not hasattr(part, "__len__"):
        raise error(f"{location(where)}expected a list of {what}, got {type(part).__name__}")
    if part is not None and len(part) != len(X):
        raise error(f"{location(where)}{len(X)} rows but {len(part)} {what}", hint="one each")


def check_features(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    """Raise unless an array is 2-d, of numbers, and not too wide."""
    if len(shape) != 2:
        raise wrong_shape(shape, location(where))
    if dtype.kind not in "fiub":
        raise FeatureTypeError(f"{location(where)}features must be numbers, got {dtype}")
    if shape[1] > limits.DIMS:
        raise LimitError(f"{location(where)}{shape[1]} features a row, at most {limits.DIMS}")


def as_rows(parts: Sequence[Any], where: str, start: int) -> Batch:
    """Return a batch of X, y and ids; `start` is the number of its first row."""
    X, y, ids = parts
    table = as_table(X, where, start)
    check_features(table.shape, table.dtype, where)
    return Batch(as_float32(table), _as_labels(y), _as_ids(ids, where, start))


def _as_labels(y: Any) -> Any:
    if hasattr(y, "isna"):  # pandas has several values for a gap
        y = [None if is_missing(each) else each for each in y]
    if hasattr(y, "to_pylist"):
        y = y.to_pylist()
    if hasattr(y, "ndim"):
        y = as_array(y)
        y = y if y.dtype.kind in "iubfU" else y.tolist()
    if isinstance(y, list | tuple):
        y = [_plain(each) for each in y]
    return y


def _as_ids(ids: Any, where: str, start: int) -> list[int | str] | None:
    if ids is None:
        return None
    ids = ids.to_pylist() if hasattr(ids, "to_pylist") else ids
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
