"""Features and labels from a file of the user's own."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import sources
from everhash.bench.datasets import Dataset
from everhash.errors import InputError, LabelError, NotFiniteError
from everhash.stream import as_labels, as_rows


def from_file(
    path: str | os.PathLike[str], features: str | None, label: str | None, name: str | None = None
) -> Dataset:
    """Read a set from any file that `everhash.read` reads.

    Labels are numbered 0, 1, ... in the order in which they first appear; a row without a label
    gets -1. No row is a query.

    Args:
        path: a .parquet, .arrow, .feather, .csv or .npz file.
        features: the column of vectors, or columns of numbers as "f0,f1" or "f*"; None to find it.
        label: the column of labels, one a row; a null is none. None to find it.
        name: what to call the set; by default, as the file.
    """
    tables, columns, number = [], [], dict[Hashable, int]()
    start = 0
    for batch in sources.read(path, features=features, label=label):
        try:
            tables.append(as_rows(batch.X))
            columns.append(_numbered(batch.y, len(batch.X), number))
        except NotFiniteError as error:
            raise InputError(
                f"{os.fspath(path)}: row {start + error.row} holds NaN, infinity or a value "
                "beyond 1e37",
                hint="drop or repair the row",
            ) from None
        except LabelError as error:  # it counts the rows of the batch
            after = f"rows from {start} on: " if start else ""
            error.message_template = f"{os.fspath(path)}: {after}{error.message_template}"
            raise
        start += len(batch.X)
    y = np.concatenate(columns) if columns else np.empty(0, np.int64)
    several = int((np.bincount(y[y >= 0]) > 1).sum())
    if several < 2:
        raise LabelError(
            f"{os.fspath(path)}: expected at least 2 labels with 2 rows or more, got {several} "
            f"among {len(y)} rows",
            hint="a label needs a row to learn and another to search; is this the right column?",
        )
    called = name if name is not None else Path(path).stem
    return Dataset(
        called, np.concatenate(tables), y, np.zeros(len(y), np.bool_), tuple(map(str, number))
    )


def _numbered(y: Any, n: int, number: dict[Hashable, int]) -> NDArray[np.int64]:
    """Return the number of each row's label; new labels are added to `number`."""
    labels = as_labels(y, n)
    if len(np.unique(labels.rows)) < len(labels.rows):
        row = int(labels.rows[:-1][np.diff(labels.rows) == 0][0])
        raise LabelError(f"row {row} has several labels", hint="keep one a row")
    numbers = [number.setdefault(label, len(number)) for label in labels.values]
    numbered = np.full(n, -1, np.int64)
    numbered[labels.rows] = np.array(numbers, np.int64)[labels.which]
    return numbered
