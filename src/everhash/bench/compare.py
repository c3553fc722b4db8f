"""Compare two files of results: what is better, what is worse, what is slower.

Runs of the same task are compared. Their figures, except times, are equal to the last digit unless
the code or the machine has changed, so every difference is listed; whether it is a regression
depends on the mean over the seeds. Times are noisy, so they are averaged over all runs of a method.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from everhash.bench.counts import ScoreRange
from everhash.bench.task import Row, Task
from everhash.errors import InputError, OptionError

HIGHER = ("mapping", "codeword", "mixed", "area", "auroc", "ways", "novel", "codes")
"""Scores: higher is better."""
LOWER = ("flipped", "recomputed")
"""Costs that are counted: lower is better."""
NEITHER = ("homes_moved", "versions", "width", "stream", "ranked")
"""Figures that are neither better nor worse; a difference shows that something else was run."""
TIMES = ("seconds", "encoding", "ours")
EXACT = 1e-9
"""The most that equal figures may differ by."""
TOLERANCE = 0.005
SLOWER = 1.5
SHORTEST, LONGEST = 1e-12, 1e9
"""Seconds that a clock can have measured; other times are not compared."""

Pair = tuple[Row, Row]
Values = list[tuple[float | None, float | None]]
Figures = dict[str, float | None]


class Change(NamedTuple):
    """A figure that has changed, in runs that differ only in their seed."""

    task: Task
    """The task of these runs; its seed is always 0."""
    figure: str
    before: float | None
    """Mean over the seeds; None where no run has the figure."""
    after: float | None
    seeds: int
    largest: float
    """The largest difference in a single run."""
    better: bool | None
    """None where the figure has no better and worse, or the mean has not changed."""
    regression: bool


class Pace(NamedTuple):
    """A method's times as a multiple of what they were before."""

    method: str
    time: str
    """Which of its times; with what was timed, where that differs."""
    runs: int
    ratio: float
    """Geometric mean over the runs."""
    verdict: str
    """ "slower" or "faster" if beyond the given factor, else ""."""
    regression: bool


@dataclass(frozen=True)
class Comparison:
    """The differences between two files of results."""

    common: list[Task]
    only_before: list[Task]
    only_after: list[Task]
    changes: list[Change]
    """Regressions first, scores before costs, then by size."""
    paces: list[Pace]
    """Of all methods, the most slowed down first."""
    notes: list[str]
    """Warnings for the reader of the figures."""

    @property
    def regressions(self) -> int:
        """How many figures and times are worse by more than allowed."""
        worse = [change.regression for change in self.changes]
        return sum(worse) + sum(pace.regression for pace in self.paces)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to report."""
        other = (self.only_before, self.only_after, self.changes, self.notes)
        return not any(other) and not any(pace.verdict for pace in self.paces)


def compare(
    before: list[Row], after: list[Row], *, tolerance: float = TOLERANCE, slower: float = SLOWER
) -> Comparison:
    """Compare rows of results with earlier ones.

    Args:
        before: earlier rows, one for each task.
        after: later rows, one for each task.
        tolerance: how much a score may drop, averaged over the seeds; counts may rise by this
            share of their earlier value.
        slower: the factor beyond which times are called slower or faster. Slower times are no
            regression if the machines differ.
    """
    if not (0 <= tolerance < math.inf and 1 <= slower < math.inf):
        raise OptionError(
            f"tolerance {tolerance} and slower {slower} must be finite, at least 0 and 1"
        )
    old, new = ({Task.of(row): row for row in rows} for rows in (before, after))
    pairs = {task: (old[task], new[task]) for task in old if task in new}
    if not pairs:
        raise InputError(
            f"no run is in both files: the first has {len(old)}, the second {len(new)}",
            hint="compare two runs of one experiment, with the same data, bits and seeds",
        )
    return Comparison(
        common=list(pairs),
        only_before=[task for task in old if task not in new],
        only_after=[task for task in new if task not in old],
        changes=sorted(_changes(pairs, tolerance), key=_importance),
        paces=sorted(_paces(pairs.values(), slower), key=lambda pace: -pace.ratio),
        notes=list(_notes(pairs.values())),
    )


# Figures


def figures_of(row: Row, names: Iterable[str]) -> Figures:
    """Return the numbers that a row has under some names, nested ones with longer names.

    >>> figures_of({"mapping": {"hamming": [0.5, 0.4, 0.6]}, "auroc": None}, ("mapping", "auroc"))
    {'mapping hamming': 0.5, 'mapping hamming lowest': 0.4, 'mapping hamming highest': 0.6, \
'auroc': None}
    """
    return dict(leaf for name in names if name in row for leaf in _leaves(name, row[name]))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(f"{name} {key}", part)
    elif isinstance(value, list):  # a ScoreRange as JSON has it
        for order, part in zip(ScoreRange._fields, value, strict=False):
            yield from _leaves(name if order == "average" else f"{name} {order}", part)
    elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield name, value if value is not None and math.isfinite(value) else None


def _direction(figure: str) -> int:
    """Return 1 for figures that should rise, -1 for those that should fall, 0 for others.

    The score with ties in their best order should not rise: it falls when there are fewer ties.
    """
    name = figure.partition(" ")[0]
    if name in LOWER:
        return -1
    return int(name in HIGHER and not figure.endswith(" highest"))


def _changes(pairs: dict[Task, Pair], tolerance: float) -> Iterator[Change]:
    cells: dict[Task, list[tuple[Figures, Figures]]] = {}
    for task, (old, new) in pairs.items():
        names = (*HIGHER, *LOWER, *NEITHER)
        both = figures_of(old, names), figures_of(new, names)
        cells.setdefault(replace(task, seed=0), []).append(both)
    for task, seeds in cells.items():
        for figure in dict.fromkeys(name for both in seeds for one in both for name in one):
            values = [(old.get(figure), new.get(figure)) for old, new in seeds]
            if any(_differ(*value) for value in values):
                yield _change(task, figure, values, tolerance)


def _differ(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(new - old) > EXACT


def _change(task: Task, figure: str, values: Values, tolerance: float) -> Change:
    both = [(old, new) for old, new in values if old is not None and new is not None]
    lost = any(old is not None and new is None for old, new in values)
    rise = fmean(new for _, new in both) - fmean(old for old, _ in both) if both else 0.0
    gain = rise * _direction(figure)
    before, after = (_mean(value[side] for value in values) for side in (0, 1))
    allowed = tolerance if _direction(figure) > 0 else tolerance * abs(before or 0.0)
    if lost:
        better = False if _direction(figure) else None
    else:
        better = gain > 0 if abs(gain) > EXACT else None
    return Change(
        task=task,
        figure=figure,
        before=before,
        after=after,
        seeds=len(values),
        largest=max((abs(new - old) for old, new in both), default=math.inf),
        better=better,
        regression=better is False and (lost or -gain > allowed + EXACT),
    )


def _importance(change: Change) -> tuple[bool, bool, int, float]:
    direction = _direction(change.figure)
    return not change.regression, change.better is None, -direction, -change.largest


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None


# Times


def _paces(pairs: Collection[Pair], slower: float) -> Iterator[Pace]:
    logs: dict[tuple[str, str], list[float]] = {}
    for old, new in pairs:
        now = figures_of(new, TIMES)
        for name, then in figures_of(old, TIMES).items():
            times = (then, now.get(name))
            if all(seconds is not None and SHORTEST < seconds < LONGEST for seconds in times):
                time = f"{old['what']} {name}" if "what" in old else name
                ratio = float(times[1] or 0) / float(times[0] or 1)
                logs.setdefault((old["method"], time), []).append(math.log(ratio))
    counts = _same("hardware", pairs)
    for (method, time), ratios in logs.items():
        ratio = math.exp(fmean(ratios))
        verdict = "slower" if ratio > slower else "faster" if ratio < 1 / slower else ""
        yield Pace(method, time, len(ratios), ratio, verdict, counts and verdict == "slower")


# Where rows come from


def _origin(row: Row) -> dict[str, str]:
    """Return where a row was measured; see `everhash.bench.machine`.

    The version of everhash is left out, as two files are meant to differ in it.
    """
    hardware, _, software = str(row.get("machine", "")).partition("; ")
    parts = [part for part in software.split(", ") if not part.startswith("everhash ")]
    return {
        "hardware": hardware,
        "software": ", ".join(parts),
        "jobs": str(row.get("jobs", 1)),
    }


def _same(what: str, pairs: Collection[Pair]) -> bool:
    return all(_origin(old)[what] == _origin(new)[what] for old, new in pairs)


def _notes(pairs: Collection[Pair]) -> Iterator[str]:
    warnings = {
        "hardware": "the machines differ ({}): times compare them, not the code, and do not count",
        "software": "the software differs ({}): scores may differ without a change of the code",
        "jobs": "the number of runs at once differs ({}): times depend on it",
    }
    for what, note in warnings.items():
        if not _same(what, pairs):
            sides = [sorted({_origin(pair[side])[what] for pair in pairs}) for side in (0, 1)]
            yield note.format(" / ".join(" and ".join(side) or "unknown" for side in sides))


def names_of(tasks: Iterable[Task]) -> dict[Task, str]:
    """Return a name for each task without its seed, made of the parts in which tasks differ."""
    cells = dict.fromkeys(replace(task, seed=0) for task in tasks)
    units = {"rows_a_label": "rows a label", "entries": "entries", "queries": "queries"}
    parts = ("kind", "protocol", "share", *units)
    varied = [part for part in parts if len({getattr(cell, part) for cell in cells}) > 1]
    return {
        cell: ", ".join(
            [cell.dataset, cell.variant]
            + ([f"{cell.bits} bits"] if cell.bits else [])
            + [f"{getattr(cell, part)} {units.get(part, '')}".rstrip() for part in varied]
        )
        for cell in cells
    }
