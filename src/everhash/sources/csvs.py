"""CSVs: with or without a header, and with types that fit a column from beginning to end."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from everhash.errors import FeatureTypeError, InputError
from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, arrow, choose, explained, no_bytes, place
from everhash.sources.tables import convert

BLOCK = 1 << 20
"""bytes of a CSV parsed at a time; pyarrow reads up to 32 of them ahead"""

INTEGERS = [(r"^-?(0|[1-9]\d{0,17})$", "int64"), (r"^-?(0|[1-9]\d{0,14})(\.0)?$", "float64")]
"""How integers look in a CSV, and how pandas writes them where there are gaps; 007 is a text."""

VALUES = [
    *INTEGERS,
    (r"^-?(0|[1-9]\d{0,14})(\.\d{1,17})?([eE][+-]?\d{1,2})?$", "float64"),
    (r"^([Tt]rue|TRUE|[Ff]alse|FALSE)$", "bool"),
]
"""How else a payload may look that is no text."""


def read_csv(path: str, wanted: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read a CSV, a few megabytes at a time. Without a header, all columns are features.

    An empty cell is a null; labels and ids are integers if all of the column is, and else texts.
    What rows carry may also be all numbers or all booleans.
    """
    if wanted.thumbnail is not None:
        raise no_bytes(path)
    with explained(path, "csv", arrow().ArrowException, csv.Error):
        names, named = _csv_names(path)
        if not named and wanted != ColumnChoice():
            raise InputError(
                f"{path}: expected the names of the columns in the first line, got numbers only",
                hint="write a header line; without one, all columns are features",
            )
        if names:
            features = choose([(n, "numbers" if n else "other") for n in names], wanted, path)
            with _csv_explained(path, names, named):
                types = _csv_types(path, wanted, features)
                yield from convert(_open_csv(path, types, named), features, wanted, rows, path)


def _csv_names(path: str) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether they stand in the file or are made up."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = csv.reader(iter(lambda: file.readline(BLOCK), ""))
        first = next((cells for cells in lines if cells), [])
    try:
        numbers = [float(cell) for cell in first]
    except ValueError:
        return first, True
    if numbers == list(range(len(first))) and len(first) != 1:  # what pandas calls columns
        return first, True
    return [f"f{i}" for i in range(len(first))], False


def _open_csv(path: str, types: dict[str, str], named: bool = True) -> Any:
    from pyarrow import csv as of

    # one thread, or messages would not have the number of the row
    block = of.ReadOptions(use_threads=False, block_size=BLOCK, autogenerate_column_names=not named)
    cell = of.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
    )
    return of.open_csv(path, block, of.ParseOptions(newlines_in_values=True), cell)


def _csv_types(path: str, wanted: ColumnChoice, features: list[str]) -> dict[str, str]:
    """Return the types of columns, read through for it: a type must fit all but gaps."""
    import pyarrow.compute as pc

    values = {name: VALUES for name in wanted.payload_columns if name not in features}
    named = values | {wanted.label: INTEGERS, wanted.id: INTEGERS[:1]}
    possible = {name: list(types) for name, types in named.items() if name is not None}
    for batch in _open_csv(path, dict.fromkeys(possible, "string")) if possible else ():
        for name, types in possible.items():
            cells = batch.column(name)
            fits = [pc.all(pc.match_substring_regex(cells, pattern)) for pattern, _ in types]
            types[:] = [t for t, fit in zip(types, fits, strict=True) if fit.as_py() is not False]
    found = {name: types[0][1] if types else "string" for name, types in possible.items()}
    return found | dict.fromkeys(features, "float32")


@contextmanager
def _csv_explained(path: str, names: list[str], named: bool) -> Iterator[None]:
    """Say with names, and numbers that do not count the header, what pyarrow says about a cell."""
    try:
        yield
    except arrow().ArrowInvalid as error:
        said = re.match(r"(?:In CSV column #(\d+)|CSV parse error): Row #(\d+): (.*)", str(error))
        if said is None:
            raise
        column = None if said[1] is None else names[int(said[1])]
        at = place(path, column, int(said[2]) - 1 - named)
        cell = said[3].partition("invalid value ")[2]
        if cell:
            message = f"{at}expected a number, got {cell:.80}"
            raise FeatureTypeError(message, hint="name the columns with features=") from None
        raise InputError(f"{at}{said[3].lower():.120}", hint="drop or repair the line") from None
