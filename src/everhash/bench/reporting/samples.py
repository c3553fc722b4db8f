"""Figures from rows: by line and column, over seeds, and where they were measured."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, stdev
from typing import Any, Literal

from everhash import peers
from everhash.bench import datasets
from everhash.bench.baselines import BASELINES
from everhash.bench.kinds import PROTOCOLS
from everhash.bench.task import Row, Task
from everhash.peers import deep

Pick = Callable[[Row], Any]
"""Reads a figure from a row; None where the row has no such figure."""
Where = Callable[[Row], bool]
Lines = dict[str, list[Row]]
"""The rows of each line of a table, in the order of the table."""

OURS = "everhash"
"""The method that all others are compared with."""
OUR_METHODS = ("paper", "everhash-sgd", OURS)
"""The paper's method, with averaged gradient steps, and with everhash's defaults."""
DISTANCES = {"hamming": "Hamming", "asymmetric": "asymmetric"}
GROUPS = ("batch", "online", "deep", "ours", "no code")
ORDER = ("bre", "mlh", "shk", "smarthash", "fasthash", "shecc", "okh", "osh", *OUR_METHODS)
"""The order of the paper's tables; other methods follow in the order of the registry."""


@dataclass(frozen=True)
class Column:
    """A column of a table: which rows it is about, and which figure of theirs."""

    group: str
    """What neighbouring columns have in common, as "Hamming"."""
    title: str
    """What distinguishes it from them, as "32"."""
    words: str
    """The title as part of a sentence, as "32 bits"."""
    pick: Pick
    where: Where = lambda _row: True
    best: Literal["high", "low", ""] = "high"
    least: bool = False
    """Whether it shows the least value over seeds, as for times, instead of the mean."""
    form: Callable[[float], str] = "{:.3f}".format
    interval: bool = False
    """Whether the mean stands with its confidence interval."""

    def values(self, rows: Iterable[Row]) -> list[float]:
        """Return the figure of each row that has it."""
        picked = (self.pick(row) for row in rows if self.where(row))
        return [float(value) for value in picked if is_number(value)]

    def value(self, rows: Iterable[Row]) -> float | None:
        """Return the value of the cell for these rows; None if it is empty."""
        values = self.values(rows)
        if not values:
            return None
        return min(values) if self.least else fmean(values)


def is_number(value: Any) -> bool:
    """Return whether something is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def mean_average_precision(stored: str, distance: str) -> Pick:
    """Return a function that reads mAP, averaged over the orders of ties, from a row."""

    def pick(row: Row) -> Any:
        # a method without a choice of bits has one bit a label: Hamming distance means nothing
        if row["bits"] == 0 and distance == "hamming":
            return None
        return (row.get(stored) or {}).get(distance, (None,))[0]

    return pick


def right_answers(stored: str, place: int) -> Pick:
    """Return a function that reads how right the first answer (0) or the first ten (1) are.

    By asymmetric distance, by which people search; see `bench.counts.ScoreRange`.
    """

    def pick(row: Row) -> Any:
        figures = (row.get(stored) or {}).get("asymmetric", ())
        return figures[3 + place] if len(figures) > 3 + place else None

    return pick


def figure(*names: str) -> Pick:
    """Return a function that reads a figure from a row, by one name or by nested ones."""

    def pick(row: Row) -> Any:
        value: Any = row
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return pick


def at_bits(bits: int) -> Where:
    """Return a test for rows of a width; rows without a choice of bits belong to each width."""
    return lambda row: row["bits"] in (bits, 0)


def widths(rows: Iterable[Row]) -> list[int]:
    """Return the widths of codes in rows."""
    return sorted({row["bits"] for row in rows} - {0}) or [0]


def usual_width(rows: Iterable[Row]) -> int:
    """Return 32, at which the paper gives times, or the greatest width if 32 was not run."""
    there = widths(rows)
    return 32 if 32 in there else there[-1]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows in an order that does not depend on the file."""
    return sorted(rows, key=lambda row: json.dumps(Task.of(row).as_row(), sort_keys=True))


def blocks(rows: Iterable[Row], *also: str) -> list[list[Row]]:
    """Return rows in groups of one data set, length of stream and number of entries.

    `also` names further columns that the rows of a group share.
    """
    names, protocols = datasets.names(), list(PROTOCOLS)

    def place(row: Row) -> tuple[Any, ...]:
        known = names.index(row["dataset"]) if row["dataset"] in names else len(names)
        common = (known, row["dataset"], row["rows_a_label"], row["entries"], row["queries"])
        usual_first = (
            protocols.index(row[name]) if name == "protocol" else row[name] for name in also
        )
        return *common, *usual_first

    return [list(group) for _, group in groupby(sorted(rows, key=place), key=place)]


def blocks_by_width(rows: Iterable[Row]) -> list[tuple[int, list[Row]]]:
    """Return the same for each width; rows without a choice of bits are in all of them."""
    return [
        (bits, [row for row in block if at_bits(bits)(row)])
        for block in blocks(rows)
        for bits in widths(block)
    ]


def group_of(method: str) -> str:
    """Return the group of a method; one that keeps all its rows counts as batch.

    >>> group_of("smarthash"), group_of("paper")
    ('batch', 'ours')
    """
    if method in OUR_METHODS:
        return "ours"
    if method in BASELINES:
        return "no code"
    if method in deep.names():
        return "deep"
    about = peers.describe(method)
    return "online" if about.online and not about.stores_rows else "batch"


def lines_of(rows: Iterable[Row]) -> Lines:
    """Return rows by method and options, sorted by group."""
    registry = [*peers.names(), *deep.names(), *BASELINES]

    def place(row: Row) -> tuple[Any, ...]:
        method = row["method"]
        group = GROUPS.index(group_of(method))
        named = ORDER.index(method) if method in ORDER else len(ORDER)
        options = [(name, not is_number(v), v) for name, v in Task.of(row).options]
        return group, named, registry.index(method), options

    lines: Lines = {}
    for row in sorted(rows, key=place):
        lines.setdefault(Task.of(row).variant, []).append(row)
    return lines


def with_figures(lines: Lines, columns: Sequence[Column]) -> Lines:
    """Return the lines that have a value in any of the columns."""
    return {
        line: rows for line, rows in lines.items() if any(column.values(rows) for column in columns)
    }


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation over seeds; None for a single seed."""
    return stdev(values) if len(values) > 1 else None


def interval(values: Sequence[float]) -> float | None:
    """Return half the width of the 95 % confidence interval of a mean; None for a single value.

    It is Student's: runs are few, and each is another ordering of the stream.

    >>> round(interval([0.1, 0.2, 0.3]), 4)
    0.2484
    """
    from scipy.stats import t

    spread = deviation(values)
    if spread is None:
        return None
    return float(t.ppf(0.975, len(values) - 1)) * spread / math.sqrt(len(values))


def pooled(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the pooled standard deviation of two samples; None if one has a single value."""
    both = [deviation(first), deviation(second)]
    known = [spread for spread in both if spread is not None]
    return math.sqrt(fmean(spread**2 for spread in known)) if len(known) == len(both) else None


def largest_deviation(lines: Lines, columns: Iterable[Column]) -> str:
    """Return a sentence about the largest standard deviation over seeds."""
    found = [
        (spread, line, f"{column.group} {column.title}".strip())
        for column in columns
        for line, rows in lines.items()
        if (spread := deviation(column.values(rows))) is not None
    ]
    if not found:
        return "One seed each: no standard deviation."
    spread, line, where = max(found, key=lambda each: each[0])
    return f"Largest standard deviation over seeds: {spread:.3f} ({line}, {where})."


def setting(rows: Sequence[Row]) -> str:
    """Return sentences about data, rows, entries, queries, seeds and machine."""
    data = "; ".join(_data(group) for group in blocks(rows))
    return f"{data}. Seeds: {seeds(rows)}. {machines(rows)}"


def _data(rows: Sequence[Row]) -> str:
    name = rows[0]["dataset"]
    what = f" ({datasets.describe(name).what})" if name in datasets.names() else ""
    words = [f"{name}{what}"]
    if any("stream" in row for row in rows):
        words += [
            f"{_range(row['stream'] for row in rows)} stream rows",
            f"{_range(row['ranked'] for row in rows)} entries",
            _queries(rows),
        ]
    return ", ".join(words)


def _queries(rows: Sequence[Row]) -> str:
    """Return how many queries there were; rows of older versions have only the limit."""
    if all("asked" in row for row in rows):
        return f"{_range(row['asked'] for row in rows)} queries"
    return f"at most {rows[0]['queries']:,} queries"


def rows_a_label(rows: Sequence[Row]) -> str:
    """Return how many rows of each label were learned: as was asked for, or the fewer there are.

    >>> rows_a_label([{"rows_a_label": 200, "learned_a_label": [60, 60]}])
    '60 rows a label'
    """
    known = [row["learned_a_label"] for row in rows if "learned_a_label" in row]
    if len(known) < len(rows) or not rows:
        return f"{rows[0]['rows_a_label']} rows a label"
    return f"{_range(count for both in known for count in both)} rows a label"


def reduced(rows: Sequence[Row]) -> str | None:
    """Return a sentence if a set has too few rows of a label for what was asked for."""
    known = [row for row in rows if "learned_a_label" in row]
    wanted = rows[0]["rows_a_label"]
    if all(row["learned_a_label"][0] >= wanted for row in known):
        return None
    asked = _range(count for row in known for count in row["asked_a_label"])
    return (
        f"**Reduced:** {rows[0]['dataset']} has too few rows of some labels for the {wanted} "
        f"stream rows of each that this experiment asks for. Learned: {rows_a_label(known)}. "
        f"Queries: {asked} a label."
    )


def _range(values: Iterable[int]) -> str:
    there = sorted(set(values))
    return f"{there[0]:,}" if len(there) == 1 else f"{there[0]:,} to {there[-1]:,}"


def seeds(rows: Iterable[Row]) -> str:
    """Return how many seeds each group of methods has, and the methods that have another number."""
    counts: dict[str, dict[str, int]] = {}
    for line, of_line in lines_of(rows).items():
        cells = Counter(
            (row["dataset"], row["bits"], row["share"], row["protocol"]) for row in of_line
        )
        method = of_line[0]["method"]
        several = method if method == line else line
        counts.setdefault(group_of(method), {})[several] = min(cells.values())
    words = []
    for group, of_lines in counts.items():
        usual = Counter(of_lines.values()).most_common(1)[0][0]
        others = [f"{line} {n}" for line, n in of_lines.items() if n != usual]
        words.append(f"{group} {usual}" + (f" ({', '.join(others)})" if others else ""))
    return ", ".join(words)


def machines(rows: Iterable[Row]) -> str:
    """Return sentences about where rows were measured, and how many runs at a time."""
    there = sorted({(row["machine"], row["jobs"]) for row in rows})
    return " ".join(
        f"{machine}; {'one run' if jobs == 1 else f'{jobs} runs'} at a time."
        for machine, jobs in there
    )
