"""A task: what one run of an experiment measures, and the beginning of its row."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

Row = dict[str, Any]
"""A line of results: a task and its figures."""
Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Task:
    """Two runs of a task on one machine give the same figures, except times."""

    kind: str
    """What is measured; see `everhash.bench.kinds`."""
    dataset: str
    method: str
    bits: int = 0
    """0 for a method without a choice of bits."""
    seed: int = 0
    """Decides the split, the order of the stream and the method's randomness."""
    rows_a_label: int = 0
    """Rows of each label in the stream."""
    protocol: str = "strict"
    share: float = 0.0
    """The share that the protocol varies: unlabelled entries, or wrong labels in the stream."""
    entries: int = 100_000
    """The largest number of entries that are ranked."""
    queries: int = 1000
    """The largest number of queries."""
    options: Options = ()
    """Options of the method that differ from its defaults."""

    def as_row(self) -> Row:
        """Return the task as the beginning of its row."""
        return {**asdict(self), "options": dict(self.options)}

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return the task of a row."""
        values = {field.name: row[field.name] for field in fields(cls)}
        return cls(**{**values, "options": as_options(row["options"])})

    @property
    def variant(self) -> str:
        """The method with its options."""
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.method} ({options})" if options else self.method


def as_options(options: dict[str, Any]) -> Options:
    """Return options sorted by name, so that equal options compare equal.

    >>> as_options({"b": 2, "a": 1})
    (('a', 1), ('b', 2))
    """
    return tuple(sorted(options.items()))
