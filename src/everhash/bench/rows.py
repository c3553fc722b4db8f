"""Results as lines of JSON, written one by one, so that no finished run is lost."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from everhash.bench.task import Row, Task
from everhash.errors import InputError


class RowFile:
    """A file of rows that can be appended to.

    A program that was killed while writing leaves an incomplete last line; it is cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = read_rows([path]) if path.exists() else []
        self.done = {Task.of(row) for row in self.rows}

    def append(self, row: Row) -> None:
        """Write a row and sync it to disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            _cut_torn_line(file.fileno())
            file.write(json.dumps(plain(row), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)
        self.done.add(Task.of(row))


def _cut_torn_line(file: int) -> None:
    size = os.fstat(file).st_size
    end = size
    while end and os.pread(file, 1, end - 1) != b"\n":
        end -= 1
    if end != size:
        os.ftruncate(file, end)


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Return the rows of files in order; of several rows of one task, the last."""
    rows: dict[Task, Row] = {}
    for path in paths:
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], 1):  # after the last newline: an incomplete line
            row = _row(line, f"{path}, line {number}")
            rows[Task.of(row)] = row
    return list(rows.values())


def _row(line: bytes, where: str) -> Row:
    try:
        row = json.loads(line)
        hash(Task.of(row))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"{where}: not a row of results", hint="expected a file written by 'everhash bench run'"
        ) from None
    return dict(row)


def plain(value: Any) -> Any:
    """Return a value that JSON can represent: NaN and infinity become null.

    >>> plain({"a": (1.0, float("nan"))})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
