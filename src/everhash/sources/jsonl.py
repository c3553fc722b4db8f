"""Reader of JSON lines: an object a line, whose keys are the columns.

Features are a list of numbers, or several numbers by name. A label is a text or a number, a list of
several, or null. Thumbnails are in base64. A key that a line does not have is null there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import FeatureTypeError, InputError, LimitError
from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, Kind, Taken, as_float32, choose, explained
from everhash.sources.json_values import as_id_value, as_label_value, as_picture
from everhash.sources.payload_values import as_payloads
from everhash.tabular import ragged

MAX_LINE_BYTES = 16 << 20
"""Bytes of a line: 16,384 features, payload and thumbnail take less than one."""
FIRST_LINES = 100
"""Lines that say which columns there are and what they hold."""
REPAIR = "drop or repair the line"


class Line(NamedTuple):
    """An object, and where it is in the file."""

    at: str
    values: dict[str, Any]


def read_jsonl(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read a file of JSON lines, a batch of lines at a time."""
    with explained(path, "JSON lines"), open(path, "rb") as file:
        lines = _lines(file, path)
        first = list(islice(lines, FIRST_LINES))
        if not first:
            return
        taken = choose(_kinds(first), choice, path)
        left, width = chain(first, lines), None
        while group := list(islice(left, rows)):
            batch = _batch(group, taken, width)
            width = batch.X.shape[1]
            yield batch


def jsonl_columns(path: str) -> list[tuple[str, Kind]]:
    """Return the columns of the first lines, and what they hold."""
    with explained(path, "JSON lines"), open(path, "rb") as file:
        return _kinds(list(islice(_lines(file, path), FIRST_LINES)))


def _lines(file: IO[bytes], path: str) -> Iterator[Line]:
    """Yield the objects of a file; empty lines are skipped."""
    for number, text in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
        at = f"{path}: line {number}: "
        if len(text) > MAX_LINE_BYTES:
            raise LimitError(f"{at}at most {MAX_LINE_BYTES} bytes are read", hint="split the line")
        if not text.strip():
            continue
        try:
            values = json.loads(text.decode("utf-8-sig" if number == 1 else "utf-8"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{at}expected JSON: {error!s:.100}", hint=REPAIR) from None
        if not isinstance(values, dict):
            got = type(values).__name__
            raise InputError(f"{at}expected an object, got a {got}", hint=OBJECT)
        yield Line(at, values)


OBJECT = 'write a line like {"id": "sku-17", "features": [0.5, 1], "label": "boots"}'


def _kinds(lines: list[Line]) -> list[tuple[str, Kind]]:
    """Return the kind of each column by the first value that is not null."""
    kinds: dict[str, Kind | None] = {}
    for line in lines:
        for name, value in line.values.items():
            if kinds.get(name) is None:
                kinds[name] = None if value is None else _kind(value)
    return [(name, kind or "other") for name, kind in kinds.items()]


def _kind(value: Any) -> Kind:
    if isinstance(value, list) and value and _are_numbers(value):
        return "vectors"
    if isinstance(value, str) and value.startswith(PICTURES):
        return "bytes"
    return "numbers" if type(value) in (int, float) else "other"


PICTURES = ("iVBORw0KGg", "/9j/", "R0lGOD", "UklGR")
"""How PNG, JPEG, GIF and WebP begin in base64."""


def _are_numbers(values: list[Any]) -> bool:
    return {*map(type, values)} <= {int, float, bool}


def _batch(lines: list[Line], taken: Taken, width: int | None) -> Batch:
    features, choice = taken
    X = _features(lines, features, width)
    label, name, thumbnail = (
        None if column is None else [(line.values.get(column), line.at) for line in lines]
        for column in (choice.label, choice.id, choice.thumbnail)
    )
    columns = {
        column: [line.values.get(column) for line in lines] for column in choice.payload_columns
    }
    return Batch(
        X,
        None if label is None else [as_label_value(*pair) for pair in label],
        None if name is None else [as_id_value(*pair) for pair in name],
        as_payloads(columns, choice, "", 0),
        None if thumbnail is None else [as_picture(*pair) for pair in thumbnail],
    )


def _features(lines: list[Line], names: list[str], width: int | None) -> NDArray[np.float32]:
    """Return the features of all lines: a list each, or the numbers of several columns."""
    rows: list[list[Any]] = []
    for at, values in lines:
        row = [values.get(name) for name in names]
        if len(names) == 1 and isinstance(row[0], list):
            row = row[0]
        width = len(row) if width is None else width
        if not _are_numbers(row):
            gap = next(value for value in row if type(value) not in (int, float, bool))
            called = ", ".join(names)
            message = f"{at}expected numbers in {called:.80}, got {json.dumps(gap):.40}"
            raise FeatureTypeError(message, hint="name the columns with {option features}")
        if len(row) != width:
            raise ragged(at, width, len(row))
        rows.append(row)
    try:
        return as_float32(np.array(rows, np.float64))
    except OverflowError:
        raise FeatureTypeError(
            f"{lines[0].at}here or later a number is beyond float64", hint=REPAIR
        ) from None
