"""Input: rows of features and their labels, checked before anything learns from them."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import limits
from everhash.errors import (
    DimensionError,
    InputError,
    LabelError,
    LabelWarning,
    LimitError,
    NotFiniteError,
)
from everhash.tabular import as_table, is_missing

MAX_FEATURE = 1e37
"""Features must be smaller than this. Rows are centred in float32; twice this still fits."""
MAX_LABEL_DEPTH = 64
"""Tuples inside each other in a label."""
MAX_LABEL_BITS = 1024
"""Bits of a whole number that is a label."""


def as_rows(
    X: ArrayLike, n_features: int | None = None, owner: str = "this hasher"
) -> NDArray[np.float32]:
    """Return X as a C-contiguous (n, d) float32 array, or raise an error that says what is wrong.

    X may be whatever `everhash.tabular` reads: a column of vectors, such as df.embedding, too.
    Calling it again on such an array is cheap: nothing is copied, and one pass over the values
    checks that they are finite. `owner` names who expects `n_features`, for the message.

    >>> as_rows([[1, 2], [3, 4]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    table = as_table(X)
    n, d = table.shape
    if n == 0 or d == 0:
        what = "sample" if n == 0 else "feature"
        raise InputError(
            f"found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required",
            hint="skip empty batches",
        )
    if d > limits.DIMS:
        raise LimitError(f"{d} features a row, at most {limits.DIMS} are supported")
    if n_features is not None and d != n_features:
        raise DimensionError(expected=n_features, got=d, owner=owner)
    rows = np.ascontiguousarray(table) if table.dtype == np.float32 else table
    if not _all_in_range(rows):
        usable = np.abs(rows) < np.float32(MAX_FEATURE)
        raise NotFiniteError(row=int(np.argmin(usable.all(axis=1))))
    return np.ascontiguousarray(rows, dtype=np.float32)


def _all_in_range(rows: NDArray[Any]) -> bool:
    """Whether all values are finite and smaller than `MAX_FEATURE`, without a copy."""
    if rows.dtype == np.float32:
        values = rows.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.dot(values, values)  # finite only if no value is near the limit
        if math.isfinite(squares):
            return True
    largest = np.float32(MAX_FEATURE)  # a plain float would have to fit float16
    return bool(rows.max() < largest and rows.min() > -largest)  # NaN fails every comparison


class Labels(NamedTuple):
    """The labels of a batch: one step for each label of each row, in row order."""

    values: list[Hashable]
    """Distinct labels in order of first appearance."""
    rows: NDArray[np.int64]
    """The row of each step."""
    which: NDArray[np.int64]
    """The label of each step, as a position in `values`."""


def as_labels(y: Any, n_rows: int) -> Labels:
    """Read y: one label or a set of labels for each row, None for a row without a label.

    NaN, NaT and pandas.NA are no label either: they are what None becomes in arrays and frames.
    NumPy scalars become Python values; then labels are compared as Python compares dictionary keys:
    7, np.int8(7) and 7.0 are one label, "7" is another.

    >>> as_labels(["cat", None, {"dog", "cat"}], 3).values
    ['cat', 'dog']
    >>> as_labels(np.array([3, np.nan, 3]), 3).rows.tolist()
    [0, 2]
    """
    if isinstance(y, Labels):
        return y
    if y is None:
        return Labels([], np.empty(0, np.int64), np.empty(0, np.int64))
    column = _column_of(y, n_rows)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iubUf":
        labels = _from_array(column)
    else:
        labels = _from_objects(column)
    _warn_of_minus_one(labels.values)
    return labels


def label_sets(y: Any, n_rows: int) -> list[frozenset[Hashable]]:
    """Read y as `as_labels` does, as labels that rows may have already: the set of each.

    >>> label_sets(["cat", None, {"cat", 7.0}], 3) == [{"cat"}, set(), {"cat", 7}]
    True
    """
    column = _column_of(y, n_rows)
    return [frozenset(_labels_of(entry, row, as_label)) for row, entry in enumerate(column)]


def labels_for(y: Any, n: int) -> Labels:
    """Read y as `as_labels` does, but a single label is the label of all n entries.

    >>> labels_for("cat", 2).rows.tolist()
    [0, 1]
    """
    return as_labels([y] * n if is_one(y) else y, n)


def one_or_more(values: Any) -> Any:
    """Return a single text or number in a list, anything else as it is.

    >>> one_or_more("cat"), one_or_more(["cat", "dog"])
    (['cat'], ['cat', 'dog'])
    """
    return [values] if is_one(values) else values


def is_one(value: Any) -> bool:
    """Whether a value is a single label or id, where a list of them would do too."""
    return isinstance(value, str | bytes | int | float | np.generic)


def _warn_of_minus_one(values: list[Hashable]) -> None:
    """Warn if -1 seems to mean "no label", as in scikit-learn; -1 and 1 alone are two labels."""
    if -1 not in values or not all(isinstance(value, int) and value >= -1 for value in values):
        return
    if set(values) - {-1, 1}:
        _tell_of_minus_one()


@cache  # once is enough
def _tell_of_minus_one() -> None:
    warnings.warn(
        "y has the label -1, which is a label like any other here; "
        "pass None or NaN for rows without a label",
        LabelWarning,
        stacklevel=_levels_up(),
    )


def _levels_up() -> int:
    """Return how many calls above the caller the code of a user is, for a warning to name."""
    frame, levels = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("everhash"):
        frame, levels = frame.f_back, levels + 1
    return levels


def _column_of(y: Any, n_rows: int) -> Sequence[Any] | NDArray[Any]:
    """Return y as a sequence, if it has as many values as there are rows."""
    column = _as_column(y)
    if len(column) != n_rows:
        raise LabelError(
            f"{n_rows} rows but {len(column)} labels",
            hint="give one label, set of labels or None for each row",
        )
    return column


def _as_column(y: Any) -> Sequence[Any] | NDArray[Any]:
    if isinstance(y, list | tuple):
        return y
    if hasattr(y, "to_pylist"):  # Arrow: as an array, whole numbers with gaps would be rounded
        return list(y.to_pylist())
    if isinstance(y, str | bytes | set | frozenset | dict) or not hasattr(y, "__array__"):
        raise LabelError(
            f"y must be a sequence with one label a row, got {type(y).__name__}",
            hint="wrap a single label in a list",
        )
    column = np.asarray(y)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise LabelError(
            f"y should be a 1d array, got an array of shape {column.shape} instead",
            hint="several labels a row are given as sets",
        )
    return column


def _from_array(column: NDArray[Any]) -> Labels:
    """Number the labels of a plain array without a Python loop over its values."""
    rows = np.arange(len(column))
    if column.dtype.kind == "f":
        if np.isinf(column).any():
            row = int(np.argmax(np.isinf(column)))
            raise _not_a_label(column[row], row)
        rows = np.flatnonzero(~np.isnan(column))
    elif column.dtype.kind == "U" and (column == "").any():
        raise _empty(int(np.argmax(column == "")))
    distinct, first, inverse = np.unique(column[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    values = [_plain(value) for value in distinct[order].tolist()]
    return Labels(values, rows, rank[inverse])


def _from_objects(column: Iterable[Any]) -> Labels:
    number: dict[Hashable, int] = {}
    rows, which = [], []
    for row, entry in enumerate(column):
        for label in _labels_of(entry, row, as_new_label):
            rows.append(row)
            which.append(number.setdefault(label, len(number)))
    return Labels(list(number), np.array(rows, np.int64), np.array(which, np.int64))


def _labels_of(entry: Any, row: int, read: Callable[[Any, int], Hashable]) -> list[Hashable]:
    """Return the labels of one row; those of a set in an order that is the same in every run."""
    if is_missing(entry):
        return []
    if isinstance(entry, set | frozenset):
        several = {read(label, row) for label in entry}
        return sorted(several, key=lambda label: (type(label).__name__, repr(label)))
    return [read(entry, row)]


def as_new_label(label: Any, row: int = 0) -> Hashable:
    """Return a label that a caller gives: as `as_label`, but an empty text is refused.

    It is nearly always a gap in a table. Files of earlier versions may have such a label.
    """
    value = as_label(label, row)
    if value == "":
        raise _empty(row)
    return value


def as_label(label: Any, row: int = 0) -> Hashable:
    """Return one label in its plain Python form.

    >>> as_label(np.int16(3)), as_label(np.str_("owl"))
    (3, 'owl')
    """
    try:
        value: Hashable = _plain(label)
        hash(value)
        usable = value is not None and _is_usable(value, MAX_LABEL_DEPTH)
    except (TypeError, ValueError, RecursionError):
        usable = False
    if not usable:
        raise _not_a_label(label, row)
    return value


def _is_usable(value: Any, max_depth: int) -> bool:
    """Whether a value equals itself, as NaN does not, is finite, and is not too large to store."""
    if isinstance(value, tuple):
        return max_depth > 0 and all(_is_usable(part, max_depth - 1) for part in value)
    if isinstance(value, int) and value.bit_length() > MAX_LABEL_BITS:
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(value == value)  # noqa: PLR0124 - NaT and pd.NA


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value, and 3.0 as 3, so that equal labels look equal."""
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.longdouble) else value.item()
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _empty(row: int) -> LabelError:
    return LabelError(
        f"row {row}: an empty text cannot be a label", hint="pass None for a row without a label"
    )


def _not_a_label(label: Any, row: int) -> LabelError:
    hint = "labels are numbers, strings or other hashable values; several a row are given as a set"
    if isinstance(label, float | np.floating):
        return LabelError(
            f"Input y contains NaN or infinity in row {row}", hint="None = unlabelled"
        )
    return LabelError(f"row {row}: a {type(label).__name__} cannot be a label", hint=hint)
