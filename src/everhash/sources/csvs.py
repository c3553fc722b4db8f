"""Reader of CSV files, with or without a header; a column has one type for all of its rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from json import loads
from typing import Any

from everhash.errors import FeatureTypeError, InputError
from everhash.sources.batch import Batch
from everhash.sources.columns import (
    ColumnChoice,
    Kind,
    Taken,
    arrow,
    choose,
    explained,
    location,
    refuse_thumbnails,
)
from everhash.sources.table_slices import json_field
from everhash.sources.tables import convert

BLOCK_BYTES = 1 << 20
"""Bytes of a CSV parsed at a time; pyarrow reads up to 32 blocks ahead."""

FIRST_LINES = 100
"""Lines that say which columns hold numbers."""

INTEGERS = [(r"^-?(0|[1-9]\d{0,17})$", "int64"), (r"^-?(0|[1-9]\d{0,14})(\.0)?$", "float64")]
"""Patterns of integers: plain, and as pandas writes a column with gaps. 007 is a text."""

VALUES = [
    *INTEGERS,
    (r"^-?(0|[1-9]\d{0,14})(\.\d{1,17})?([eE][+-]?\d{1,2})?$", "float64"),
    (r"^([Tt]rue|TRUE|[Ff]alse|FALSE)$", "bool"),
]
"""Patterns of payloads that are not texts: integers, floats and booleans."""


def read_csv(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read a CSV, a few megabytes at a time. Without a header, all columns are features.

    An empty cell is a null. Labels and ids are integers if all cells of the column are, otherwise
    texts. A column of payloads may also be all numbers or all booleans.
    """
    refuse_thumbnails(choice, path)
    with explained(path, "csv", arrow().ArrowException, csv.Error):
        names, named, first = _first_lines(path)
        if not named and choice.named:
            raise InputError(
                f"{path}: expected the names of the columns in the first line, got numbers only",
                hint="write a header line; without one, all columns are features",
            )
        if names:
            taken = choose(_kinds(names, first), choice, path)
            with _csv_explained(path, names, named):
                json = _json_columns(path, taken, choice)
                types = _csv_types(path, taken) | dict.fromkeys(json, "string")
                batches = (_marked(batch, json) for batch in _open_csv(path, types, named))
                yield from convert(batches, taken, rows, path)


def csv_columns(path: str) -> list[tuple[str, Kind]]:
    """Return the columns of a CSV; only reading all of it can tell that one holds numbers."""
    with explained(path, "csv", csv.Error):
        names, _, first = _first_lines(path)
        return _kinds(names, first)


def _kinds(names: list[str], first: list[list[str]]) -> list[tuple[str, Kind]]:
    """Return the kind of each column: numbers, unless none of its first cells is one."""
    return [
        (name, "numbers" if name and _may_be_numbers([row[j] for row in first]) else "other")
        for j, name in enumerate(names)
    ]


def _may_be_numbers(cells: list[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return not cells or any(_is_number(cell) for cell in filled)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _first_lines(path: str) -> tuple[list[str], bool, list[list[str]]]:
    """Return the names of the columns, whether the file has a header with them, and some lines."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = csv.reader(iter(lambda: file.readline(BLOCK_BYTES), ""))
        names = next((cells for cells in lines if cells), [])
        first = [cells for cells in islice(lines, FIRST_LINES) if len(cells) == len(names)]
    if not all(map(_is_number, names)):
        return names, True, first
    if [*map(float, names)] == list(range(len(names))) and len(names) != 1:  # pandas' own names
        return names, True, first
    return [f"f{i}" for i in range(len(names))], False, []


def _open_csv(path: str, types: dict[str, str], named: bool = True) -> Any:
    from pyarrow import csv as arrow_csv

    # with several threads, pyarrow's messages have no row number
    blocks = arrow_csv.ReadOptions(
        use_threads=False, block_size=BLOCK_BYTES, autogenerate_column_names=not named
    )
    lines = arrow_csv.ParseOptions(newlines_in_values=True)
    cells = arrow_csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
    )
    return arrow_csv.open_csv(path, blocks, lines, cells)


def _json_columns(path: str, taken: Taken, named: ColumnChoice) -> list[str]:
    """Return the columns taken by name whose cells are all JSON, as they are exported."""
    label, payload = taken.choice.label, taken.choice.payload
    possible: dict[str, type] = {}
    if named.label is None and label is not None:
        possible[label] = list
    if named.payload is None and isinstance(payload, str):
        possible[payload] = object
    for batch in _open_csv(path, dict.fromkeys(possible, "string")) if possible else ():
        for name in list(possible):
            if not all(_is_json(cell, possible[name]) for cell in batch.column(name).to_pylist()):
                del possible[name]
    return list(possible)


def _is_json(cell: str | None, kind: type) -> bool:
    try:
        return cell is None or isinstance(loads(cell), kind)
    except (ValueError, RecursionError):
        return False


def _marked(batch: Any, json: list[str]) -> Any:
    """Return a record batch whose schema says which columns are JSON."""
    if not json:
        return batch
    fields = [json_field(field.name) if field.name in json else field for field in batch.schema]
    return arrow().RecordBatch.from_arrays(batch.columns, schema=arrow().schema(fields))


def _csv_types(path: str, taken: Taken) -> dict[str, str]:
    """Return the type of each column. Reads the whole file: a type must fit all cells but gaps."""
    import pyarrow.compute as pc

    features, choice = taken
    values = {name: VALUES for name in choice.payload_columns if name not in features}
    named = values | {choice.label: INTEGERS, choice.id: INTEGERS[:1]}
    possible = {name: list(types) for name, types in named.items() if name is not None}
    for batch in _open_csv(path, dict.fromkeys(possible, "string")) if possible else ():
        for name, types in possible.items():
            cells = batch.column(name)
            fits = [pc.all(pc.match_substring_regex(cells, pattern)) for pattern, _ in types]
            types[:] = [t for t, fit in zip(types, fits, strict=True) if fit.as_py() is not False]
    found = {name: types[0][1] if types else "string" for name, types in possible.items()}
    return found | dict.fromkeys(features, "float32")


NAME_THEM = "name the columns with {option features}"


@contextmanager
def _csv_explained(path: str, names: list[str], named: bool) -> Iterator[None]:
    """Turn pyarrow's errors into ours: column names, and row numbers without the header."""
    try:
        yield
    except arrow().ArrowInvalid as error:
        found = re.match(r"(?:In CSV column #(\d+)|CSV parse error): Row #(\d+): (.*)", str(error))
        if found is None:
            raise
        column = None if found[1] is None else names[int(found[1])]
        at = location(path, column, int(found[2]) - 1 - named)
        cell = found[3].partition("invalid value ")[2]
        if cell:
            message, hint = f"{at}expected a number, got {cell:.80}", NAME_THEM
            raise FeatureTypeError(message, hint=hint) from None
        raise InputError(f"{at}{found[3].lower():.120}", hint="drop or repair the line") from None
