"""What one run of an experiment is to do, and the row it becomes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

Row = dict[str, Any]
"""A line of results: a task, and the figures it gave."""
Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Task:
    """Two runs of one task on one machine give the same figures, but for times."""

    kind: str
    """What is measured; see `everhash.bench.kinds`."""
    dataset: str
    method: str
    bits: int = 0
    """0 for a method that has no such choice."""
    seed: int = 0
    """Of the split, the order of the stream and the method."""
    rows_a_label: int = 0
    """Rows of each label in the stream."""
    protocol: str = "strict"
    share: float = 0.0
    """Of what the protocol varies: entries without labels, wrong labels in the stream."""
    entries: int = 100_000
    """The most that are ranked."""
    queries: int = 1000
    """The most that are asked."""
    options: Options = ()
    """Of the method, where they are not its defaults."""

    def as_row(self) -> Row:
        """Return the task as the beginning of its row."""
        return {**asdict(self), "options": dict(self.options)}

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return the task a row came of."""
        told = {field.name: row[field.name] for field in fields(cls)}
        return cls(**{**told, "options": as_options(row["options"])})

    @property
    def variant(self) -> str:
        """The method and the options that tell it from others of its name."""
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.method} ({options})" if options else self.method


def as_options(options: dict[str, Any]) -> Options:
    """Return options in one order, so that equal ones are equal.

    >>> as_options({"b": 2, "a": 1})
    (('a', 1), ('b', 2))
    """
    return tuple(sorted(options.items()))
