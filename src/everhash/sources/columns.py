"""Which columns hold the features, the label and the id, and the errors that name a column.

Rows are numbered from 0; the header of a CSV is not counted. pyarrow is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import EverhashError, InputError
from everhash.sources.families import numbered_features

Kind = Literal["vectors", "numbers", "bytes", "other"]
"""What a column holds: a list of numbers a row, a number a row, bytes, or anything else."""
KINDS: tuple[Kind, ...] = ("vectors", "numbers", "bytes", "other")
DEFAULT_NAMES: dict[str, tuple[tuple[str, ...], tuple[Kind, ...]]] = {
    "features": (("features",), ("vectors", "other")),
    "label": (("labels", "label"), KINDS),
    "id": (("id",), KINDS),
    "payload": (("payload",), KINDS),
    "thumbnail": (("thumbnail",), ("bytes",)),
}
"""Columns that are taken by their names, if they hold what they must: those that are exported."""


class ColumnChoice(NamedTuple):
    """The columns the user named."""

    features: str | None = None
    label: str | None = None
    id: str | None = None
    payload: str | tuple[str, ...] | None = None
    """One column whose value is the payload, or several that become an object."""
    thumbnail: str | None = None

    @property
    def named(self) -> bool:
        """Whether any column was named; an empty name is none."""
        return any(self)

    @property
    def singles(self) -> tuple[str | None, str | None, str | None]:
        """The columns of labels, ids and thumbnails."""
        return self.label, self.id, self.thumbnail

    @property
    def payload_columns(self) -> tuple[str, ...]:
        """The columns of payloads."""
        return (self.payload,) if isinstance(self.payload, str) else self.payload or ()

    @property
    def attached(self) -> list[str]:
        """The columns of payloads and thumbnails."""
        return [*self.payload_columns, *filter(None, (self.thumbnail,))]

    @property
    def others(self) -> list[str]:
        """All named columns but the features, each once."""
        return list(dict.fromkeys([*filter(None, (self.label, self.id)), *self.attached]))


class Taken(NamedTuple):
    """The columns that are read, by their use: those that were named, and those found by name."""

    features: list[str]
    choice: ColumnChoice

    @property
    def needed(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys([*self.features, *self.choice.others]))

    def __str__(self) -> str:
        """Return what people are told: `features from v; label from kind`."""
        payload = listed(self.choice.payload_columns)
        uses = zip(("label", "id", "thumbnail"), self.choice.singles, strict=True)
        parts = [("features", listed(self.features)), *uses, ("payload", payload)]
        return "; ".join(f"{use} from {name}" for use, name in parts if name)


def choose(columns: Iterable[tuple[str, Kind]], choice: ColumnChoice, where: str) -> Taken:
    """Return the columns to read: those that were named, and others by `DEFAULT_NAMES`.

    Features are those named, or the column of that name, or the only column of vectors, or the one
    family of numbered columns such as e0, e1, e2 (see `families`), or all numbers. A column of
    vectors may be features and payload at once. A column of numbers that is a payload is no feature
    unless it is named as one.

    >>> columns = [("sku", "numbers"), ("v", "vectors"), ("price", "numbers"), ("label", "other")]
    >>> print(choose(columns, ColumnChoice(id="sku"), "shop.parquet"))
    features from v; label from label; id from sku
    """
    kinds = list(columns)
    names = [name for name, _ in kinds]
    choice = with_defaults(kinds, choice)
    for name in choice.others:
        if name not in names:
            raise missing_column(repr(name), names, where)
    if choice.features is None:
        features = _default_features(kinds, choice, where)
    else:
        features = matching(choice.features, names, choice)
    if not features:
        what = repr(choice.features) if choice.features else "of numbers"
        raise missing_column(what, names, where)
    for name in (*features, *choice.others):
        if names.count(name) > 1:
            message = f"{location(where)}{names.count(name)} columns are called {name!r}"
            raise InputError(message, hint="give each column a name of its own")
    return Taken(features, choice)


def with_defaults(kinds: list[tuple[str, Kind]], choice: ColumnChoice) -> ColumnChoice:
    """Return the choice with columns found by name for what was not named; "" names none."""
    named = [*(choice.features or "").split(","), *choice.singles]
    found: dict[str, str | None] = {}
    for use, (defaults, fits) in DEFAULT_NAMES.items():
        free = (name for name, kind in kinds if kind in fits and name not in named)
        known = set(free)
        default = next((name for name in defaults if name in known), None)
        given = getattr(choice, use)
        found[use] = default if given is None else given or None
    return choice._replace(**found)


def _default_features(kinds: list[tuple[str, Kind]], choice: ColumnChoice, where: str) -> list[str]:
    """Return the only column of vectors, or a family of numbers, or all with no other use."""
    vectors = [name for name, kind in kinds if kind == "vectors" and name not in choice.singles]
    if len(vectors) > 1:
        names = ", ".join(vectors)
        raise InputError(
            f"{location(where)}{len(vectors)} columns hold vectors: {names:.300}",
            hint=f"choose one, as in {{option features={vectors[0]!r}}}",
        )
    numbers = [name for name, kind in kinds if kind == "numbers" and name not in choice.others]
    return vectors or numbered_features(numbers, location(where))


def matching(features: str, names: Sequence[str], choice: ColumnChoice) -> list[str]:
    """Return the columns that match a name, a glob, or a comma-separated list of these.

    Columns of a list keep its order, those of a glob the order of the table. A glob leaves out
    columns that have another use.

    >>> matching("b,f*", ["f1", "f0", "fid", "b"], ColumnChoice(id="fid"))
    ['b', 'f1', 'f0']
    """
    found: list[str] = []
    for part in [features] if features in names else map(str.strip, features.split(",")):
        free = (name for name in names if name not in choice.others and fnmatchcase(name, part))
        matches = [part] if part in names else list(free)
        if not matches:
            return []
        found += matches
    return list(dict.fromkeys(found))


def missing_column(what: str, names: Sequence[str], where: str) -> InputError:
    """Return the error for a column that the source does not have."""
    there = listed([repr(name) for name in names], 12) or "none"
    return InputError(f"{location(where)}no column {what}", hint=f"there are {there}")


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names in a list that is not too long.

    >>> listed(["f0", "f1", "f2"], 2)
    'f0, f1 and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most]):.500}{more}"


def location(where: str, column: str | None = None, row: int | None = None) -> str:
    """Return the beginning of an error message: the file, the column and the row it is about.

    >>> location("shop.csv", "price", 7), location("", row=7)
    ("shop.csv: column 'price', row 7: ", 'row 7: ')
    """
    inside = [f"column {column!r:.80}"] if column is not None else []
    inside += [f"row {row}"] if row is not None else []
    return "".join(f"{part}: " for part in (where, ", ".join(inside)) if part)


def refuse_thumbnails(choice: ColumnChoice, where: str) -> None:
    """Raise if thumbnails are to be read from a file whose format has no columns of bytes."""
    if choice.thumbnail:
        raise InputError(
            f"{location(where)}this file format has no column of bytes, so no thumbnails",
            hint="write a Parquet or Arrow file with the bytes of the images in a column",
        )


def as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as contiguous float32; numbers out of range become infinity."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def arrow() -> Any:
    """Return the pyarrow module, or raise an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise InputError("tables and CSVs need pyarrow", hint="pip install pyarrow") from None
    return pyarrow


@contextmanager
def explained(where: str, kind: str, *more: type[Exception]) -> Iterator[None]:
    """Turn the errors of a file format's reader into an `InputError` of one line, with the path."""
    expected: tuple[type[Exception], ...] = (OSError, ValueError, KeyError, EOFError, *more)
    try:
        yield
    except EverhashError:
        raise
    except expected as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        message = f"{location(where)}cannot be read as {kind}: {reason:.200}"
        raise InputError(
            message, hint="it is damaged or of another format; write it again"
        ) from None
