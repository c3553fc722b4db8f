"""Reader of iterables: of batches, like a data loader, or of rows, like a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np

from everhash.errors import InputError
from everhash.sources.arrays import as_rows, check_lengths, read_arrays, read_named
from everhash.sources.batch import Batch
from everhash.sources.columns import (
    ColumnChoice,
    Kind,
    Taken,
    choose,
    explained,
    location,
    matching,
)
from everhash.sources.payload_values import as_payloads
from everhash.sources.tables import read_stream
from everhash.tabular import as_array
from everhash.wire.payloads import NotJsonError, as_json_value


def read_items(items: Iterable[Any], choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read an iterable of batches, or of rows if the first item is a row."""
    left = iter(items)
    for number, item in enumerate(left):
        where = f"item {number}"
        parts = (item,) if hasattr(item, "ndim") else item
        if hasattr(item, "__arrow_c_stream__"):
            yield from read_stream(item, choice, rows, where)
        elif isinstance(parts, tuple | list) and parts and _depth(parts[0])[0] == 2:
            yield from read_arrays(parts, choice, rows, where)
        elif not isinstance(item, Mapping):
            message = f"{where}: expected (X, y), (X, y, ids) or columns, got {type(item).__name__}"
            raise InputError(message, hint="X is 2-d; pass a plain list of rows as an array")
        elif "X" in item and not choice.named:
            yield from read_named(item, rows, where)
        elif number == 0 and _is_row(item, choice):
            yield from _read_rows(item, left, choice, rows)
        else:
            yield _from_columns(item, choose(_kinds(item, 2), choice, where), where, 0)


def _read_rows(
    first: Any, others: Iterator[Any], choice: ColumnChoice, rows: int
) -> Iterator[Batch]:
    """Collect rows, each a mapping, into batches."""
    taken = choose(_kinds(first, 1), choice, "")
    needed = set(taken.needed)
    left, start = chain([first], others), 0
    while group := list(islice(left, rows)):
        for row, item in enumerate(group, start):
            if not isinstance(item, Mapping) or not needed <= item.keys():
                got = ", ".join(item) if isinstance(item, Mapping) else type(item).__name__
                raise InputError(f"row {row}: expected {', '.join(sorted(needed))}, got {got:.200}")
        columns = {name: [row[name] for row in group] for name in needed}
        yield _from_columns(columns, taken, "", start)
        start += len(group)


def _from_columns(columns: Any, taken: Taken, where: str, start: int) -> Batch:
    names, choice = taken
    X = columns[names[0]]
    y, ids, pictures = (None if name is None else columns[name] for name in choice.singles)
    if len(names) > 1 or _depth(X)[0] == 1:
        with explained(where, "columns of equal length"):
            X = np.stack([as_array(columns[name]) for name in names], axis=1)
    check_lengths(X, y, ids, where)
    values = {
        name: _json_values(columns[name], location(where, name)) for name in choice.payload_columns
    }
    payloads = as_payloads(values, choice, where, start)
    batch = as_rows((X, y, ids), where, start)
    return Batch(*batch, payloads, None if pictures is None else list(pictures))


def _json_values(column: Any, at: str) -> list[Any]:
    """Return the values of a column of payloads as JSON has them."""
    try:
        return [as_json_value(value) for value in column]
    except NotJsonError as error:
        raise InputError(
            f"{at}expected JSON values, got {error}", hint="leave the column out, or convert it"
        ) from None


def _is_row(item: Mapping[str, Any], choice: ColumnChoice) -> bool:
    """Whether a mapping is one row: no matrix among the features, and a scalar somewhere."""
    depths = {name: _depth(value)[0] for name, value in item.items()}
    features = matching(choice.features or "*", list(item), choice)
    is_batch = any(depths[name] == 2 for name in features)
    return not is_batch and (len(features) == 1 or 0 in depths.values())


def _kinds(item: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Kind]]:
    """Return the kind of each column, where vectors are nested this deep."""
    kinds: dict[tuple[int, Kind], Kind] = {
        (depth, "numbers"): "vectors",
        (depth - 1, "numbers"): "numbers",
        (depth - 1, "bytes"): "bytes",
    }
    return ((name, kinds.get(_depth(value), "other")) for name, value in item.items())


def _depth(value: Any) -> tuple[int, Kind]:
    """Return how deep a list or array is nested, and what it holds."""
    depth = 0
    while isinstance(value, list | tuple):
        depth, value = depth + 1, next((each for each in value if each is not None), None)
    if hasattr(value, "ndim"):
        kind = str(getattr(value, "dtype", ""))
        return depth + value.ndim, "numbers" if "int" in kind or "float" in kind else "other"
    if isinstance(value, bytes | bytearray):
        return depth, "bytes"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return depth, "numbers" if is_number else "other"
