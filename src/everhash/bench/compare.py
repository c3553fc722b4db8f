"""Two files of results held against each other: what is better, what is worse, what is slower.

Runs of one task are pairs. Their figures, but for times, are the same to the last digit unless code
or machine has changed, so every difference is worth a look; whether it matters is asked of the mean
over the seeds. Times are noisy: one number a method, over all its runs, is as much as they can say.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from everhash.bench.counts import Score
from everhash.bench.task import Row, Task
from everhash.errors import InputError, OptionError

HIGHER = ("mapping", "codeword", "mixed", "area", "auroc")
"""Scores: the more the better."""
LOWER = ("flipped", "recomputed")
"""Costs that are counted: the fewer the better."""
NEITHER = ("homes_moved", "versions", "width", "stream", "ranked")
"""What tells that another thing was run, and is neither better nor worse."""
TIMES = ("seconds", "encoding", "ours")
EXACT = 1e-9
"""What figures that are equal may differ by."""
TOLERANCE = 0.005
SLOWER = 1.5

Pair = tuple[Row, Row]
Values = list[tuple[float | None, float | None]]
Figures = dict[str, float | None]


class Change(NamedTuple):
    """A figure that is not what it was, in runs that differ in nothing but their seed."""

    task: Task
    """Of these runs; its seed is 0 and means nothing."""
    figure: str
    before: float | None
    """Mean over the seeds; None where no run has the figure."""
    after: float | None
    seeds: int
    largest: float
    """What a single run differs by at most."""
    better: bool | None
    """None where the figure has no better and worse, or the mean stayed."""
    regression: bool


class Pace(NamedTuple):
    """What a method's times are, as a multiple of what they were."""

    method: str
    time: str
    """Which of its times, and of what, where several things were timed."""
    runs: int
    ratio: float
    """Geometric mean over the runs."""
    verdict: str
    """ "slower" or "faster" beyond what was asked for, else ""."""
    regression: bool


@dataclass(frozen=True)
class Comparison:
    """What two files of results say about each other."""

    common: list[Task]
    only_before: list[Task]
    only_after: list[Task]
    changes: list[Change]
    """Regressions first, scores before costs, then by size."""
    paces: list[Pace]
    """Of all methods, the slowest first."""
    notes: list[str]
    """What a reader of the figures must know."""

    @property
    def regressions(self) -> int:
        """How many figures and times are worse by more than is allowed."""
        worse = [change.regression for change in self.changes]
        return sum(worse) + sum(pace.regression for pace in self.paces)

    @property
    def silent(self) -> bool:
        """Whether both files say the same."""
        other = (self.only_before, self.only_after, self.changes, self.notes)
        return not any(other) and not any(pace.verdict for pace in self.paces)


def compare(
    before: list[Row], after: list[Row], *, tolerance: float = TOLERANCE, slower: float = SLOWER
) -> Comparison:
    """Hold rows of results against earlier ones.

    Args:
        before: rows, of each task one.
        after: the same.
        tolerance: how much a score may drop, averaged over the seeds; what is counted may rise by
            this share of what it was.
        slower: by what factor the times of a method may rise, or fall before they are called fast.
            They are no regression if the machines differ.
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
    """Return the numbers of a row that stand under some names, one name each.

    >>> figures_of({"mapping": {"hamming": [0.5, 0.4, 0.6]}, "auroc": None}, ("mapping", "auroc"))
    {'mapping hamming': 0.5, 'mapping hamming lowest': 0.4, 'mapping hamming highest': 0.6, \
'auroc': None}
    """
    return dict(leaf for name in names if name in row for leaf in _leaves(name, row[name]))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(f"{name} {key}", part)
    elif isinstance(value, list):  # a Score as JSON has it
        for order, part in zip(Score._fields, value, strict=False):
            yield from _leaves(name if order == "average" else f"{name} {order}", part)
    elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield name, value if value is not None and math.isfinite(value) else None


def _direction(figure: str) -> int:
    """Return 1 for figures that should rise, -1 for those that should fall, 0 for others.

    The highest value that the order of ties can give is none to hope for: it falls as ties go.
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
            if (then or 0) > 0 and (now.get(name) or 0) > 0:
                ratio = (now[name] or 0) / (then or 1)
                time = f"{old['what']} {name}" if "what" in old else name
                logs.setdefault((old["method"], time), []).append(math.log(ratio))
    counts = _same("hardware", pairs)
    for (method, time), ratios in logs.items():
        ratio = math.exp(fmean(ratios))
        verdict = "slower" if ratio > slower else "faster" if ratio < 1 / slower else ""
        yield Pace(method, time, len(ratios), ratio, verdict, counts and verdict == "slower")


# Where rows come from


def _origin(row: Row) -> dict[str, str]:
    """Return what a row says of its machine; see `everhash.bench.machine`.

    The version of everhash is left out: it is what changes between two files.
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
    told = {
        "hardware": "the machines differ ({}): times compare them, not the code, and do not count",
        "software": "the software differs ({}): scores may differ without a change of the code",
        "jobs": "the number of runs at once differs ({}): times depend on it",
    }
    for what, note in told.items():
        if not _same(what, pairs):
            sides = [sorted({_origin(pair[side])[what] for pair in pairs}) for side in (0, 1)]
            yield note.format(" / ".join(" and ".join(side) or "unknown" for side in sides))


def names_of(tasks: Iterable[Task]) -> dict[Task, str]:
    """Return what to call tasks whatever their seed: the parts that tell them apart."""
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
