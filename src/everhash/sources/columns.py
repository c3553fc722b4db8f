"""Columns: which of them hold the features, the label and the id, and what is wrong with one.

Rows are numbered from 0, a CSV's header not counted. pyarrow is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import EverhashError, InputError

Kind = Literal["vectors", "numbers", "other"]
"""What a column holds: a list of numbers a row, a number a row, or anything else."""


class ColumnChoice(NamedTuple):
    """The columns the user named."""

    features: str | None = None
    label: str | None = None
    id: str | None = None
    payload: str | tuple[str, ...] | None = None
    """The column whose value is the payload, or several that make an object of it."""
    thumbnail: str | None = None

    @property
    def payload_columns(self) -> tuple[str, ...]:
        """The columns that payloads are made of."""
        return (self.payload,) if isinstance(self.payload, str) else self.payload or ()

    @property
    def carried(self) -> list[str]:
        """The columns of payloads and thumbnails."""
        return [*self.payload_columns, *filter(None, (self.thumbnail,))]

    @property
    def besides(self) -> list[str]:
        """All columns but the features, each once."""
        return list(dict.fromkeys([*filter(None, (self.label, self.id)), *self.carried]))


def choose(columns: Iterable[tuple[str, Kind]], wanted: ColumnChoice, where: str) -> list[str]:
    """Pick the features: those named, or else the only column of vectors, or all numbers.

    Vectors may be carried as well; numbers that are carried are no features unless they are named.

    >>> columns = [("sku", "numbers"), ("v", "vectors"), ("price", "numbers")]
    >>> choose(columns, ColumnChoice(id="sku"), "shop.parquet")
    ['v']
    """
    kinds = list(columns)
    names = [name for name, _ in kinds]
    for name in wanted.besides:
        if name not in names:
            raise missing(repr(name), names, where)
    if wanted.features is not None:
        features = matching(wanted.features, names, wanted)
    else:
        taken = (wanted.label, wanted.id, wanted.thumbnail)
        vectors = [name for name, kind in kinds if kind == "vectors" and name not in taken]
        numbers = [name for name, kind in kinds if kind == "numbers"]
        features = vectors or [name for name in numbers if name not in wanted.besides]
        if len(vectors) > 1:
            message = (
                f"{place(where)}{len(vectors)} columns hold vectors: {', '.join(vectors):.300}"
            )
            raise InputError(message, hint=f"say which one, as in features={vectors[0]!r}")
    if not features:
        raise missing(repr(wanted.features) if wanted.features else "of numbers", names, where)
    for name in (*features, *wanted.besides):
        if names.count(name) > 1:
            message = f"{place(where)}{names.count(name)} columns are called {name!r}"
            raise InputError(message, hint="give each column a name of its own")
    return features


def matching(features: str, names: Sequence[str], wanted: ColumnChoice) -> list[str]:
    """Return the columns that a name, a glob or a comma-separated list of them means.

    A list keeps its order, a glob that of the table, and no glob means a column that is named as
    something else.

    >>> matching("b,f*", ["f1", "f0", "fid", "b"], ColumnChoice(id="fid"))
    ['b', 'f1', 'f0']
    """
    found: list[str] = []
    for part in [features] if features in names else map(str.strip, features.split(",")):
        free = (name for name in names if name not in wanted.besides and fnmatchcase(name, part))
        matches = [part] if part in names else list(free)
        if not matches:
            return []
        found += matches
    return list(dict.fromkeys(found))


def missing(what: str, names: Sequence[str], where: str) -> InputError:
    """Return the error for a column that is not there."""
    there = ", ".join(map(repr, names[:12])) or "none"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return InputError(f"{place(where)}no column {what}", hint=f"there are {there:.500}{more}")


def place(where: str, column: str | None = None, row: int | None = None) -> str:
    """Return the place of a fault, as the beginning of a message about it.

    >>> place("shop.csv", "price", 7), place("", row=7)
    ("shop.csv: column 'price', row 7: ", 'row 7: ')
    """
    inside = [f"column {column!r:.80}"] if column is not None else []
    inside += [f"row {row}"] if row is not None else []
    return "".join(f"{part}: " for part in (where, ", ".join(inside)) if part)


def no_bytes(where: str) -> InputError:
    """Return the error for pictures out of a file that cannot hold any."""
    return InputError(
        f"{place(where)}such a file has no column of bytes, so no thumbnails",
        hint="write a Parquet or Arrow file with the pictures' bytes in a column",
    )


def ragged(at: str, expected: int, got: int) -> InputError:
    """Return the error for a row that is longer or shorter than those before it."""
    message = f"{at}expected {expected} features as in the rows before, got {got}"
    return InputError(message, hint="embed all rows with one model; drop or repair the row")


def as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as contiguous float32; what does not fit becomes infinity."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def arrow() -> Any:
    """Return the pyarrow module."""
    try:
        import pyarrow
    except ImportError:
        raise InputError("reading tables needs pyarrow", hint="pip install pyarrow") from None
    return pyarrow


@contextmanager
def explained(where: str, kind: str, *more: type[Exception]) -> Iterator[None]:
    """Turn what a reader raises about something bad into one line that names it."""
    expected: tuple[type[Exception], ...] = (OSError, ValueError, KeyError, EOFError, *more)
    try:
        yield
    except EverhashError:
        raise
    except expected as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        message = f"{place(where)}cannot be read as {kind}: {reason:.200}"
        raise InputError(message, hint="damaged, or of another kind? write it again") from None
