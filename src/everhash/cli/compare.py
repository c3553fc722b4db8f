"""`everhash bench compare`: compare two files of results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from everhash.cli.arguments import AsJson, file_argument
from everhash.cli.formatting import counted, print_json, printable
from everhash.errors import InputError

if TYPE_CHECKING:
    from everhash.bench.compare import Change, Comparison, Pace
    from everhash.bench.task import Row, Task

MAX_NAMED_RUNS = 5
"""Runs named that only one file has; the rest are counted."""


def compare(
    a: Annotated[Path, file_argument("Rows of results to compare with.")],
    b: Annotated[Path, file_argument("Rows of results to judge.")],
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            help="How much a score may drop, averaged over the seeds. Bits flipped and recomputed "
            "may rise by this share.",
        ),
    ] = 0.005,
    slower: Annotated[
        float,
        typer.Option(
            min=1,
            help="Factor by which a method's times may rise: the geometric mean over all its runs.",
        ),
    ] = 1.5,
    most: Annotated[
        int, typer.Option(min=0, help="The most lines of a table; --json has them all.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what is better and what is worse in B than in A; exit with 1 if there is a regression.

    Compares rows of the same run. Scores are the same to the last digit unless the code has
    changed, so every difference is shown. Times are noisy, so only their mean is compared, and it
    is a regression only if both files come from one machine.

    Example: everhash bench compare before.jsonl everhash-results/table1.jsonl
    """
    from everhash.bench.compare import compare as compare_rows

    before, after = (_rows(path) for path in (a, b))
    found = compare_rows(before, after, tolerance=tolerance, slower=slower)
    if as_json:
        print_json(_as_dict(found))
    else:
        _show(found, most)
    if found.regressions:
        raise typer.Exit(1)


def _rows(path: Path) -> list[Row]:
    from everhash.bench.rows import read_rows

    rows = read_rows([path])
    if not rows:
        raise InputError(
            f"{printable(path)}: no row of results",
            hint="name files that 'everhash bench run' has written",
        )
    return rows


def _show(found: Comparison, most: int) -> None:
    from everhash.bench.compare import names_of

    names = names_of([*found.common, *found.only_before, *found.only_after])
    console = Console(highlight=False)
    paces = [pace for pace in found.paces if pace.verdict]
    for table, lines in (
        (_table_of_changes(found.changes[:most], names), len(found.changes)),
        (_table_of_times(paces[:most]), len(paces)),
    ):
        if lines > most:
            table.caption = f"and {lines - most:,} more; raise --most, or use --json"
        if lines:
            console.print(table)
    for only, file in ((found.only_before, "a"), (found.only_after, "b")):
        if only:
            console.print(Text(f"only in {file}: {_listed(only, names)}"), soft_wrap=True)
    for note in found.notes:
        console.print(Text(printable(note), style="yellow"), soft_wrap=True)
    style = "bold red" if found.regressions else ""
    console.print(Text(_summary(found), style=style), soft_wrap=True)


def _table_of_changes(changes: list[Change], names: dict[Task, str]) -> Table:
    table = Table(title="figures that differ, means over the seeds")
    for column in ("runs", "figure", "a", "b", "b - a", ""):
        table.add_column(column, justify="right" if column in ("a", "b", "b - a") else "left")
    for change in changes:
        old, new = change.before, change.after
        rise = "" if old is None or new is None else _rise(new - old)
        verdict, style = _verdict(change)
        names_and_figures = (printable(names[change.task]), printable(change.figure))
        cells = (*names_and_figures, _figure(old), _figure(new), rise)
        table.add_row(*map(Text, cells), Text(verdict, style=style))
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}" if value < 1000 else f"{value:,.0f}"


def _rise(value: float) -> str:
    return f"{value:+.4f}" if abs(value) >= 0.0001 else f"{value:+.0e}"


def _verdict(change: Change) -> tuple[str, str]:
    """Return the verdict on a change, and its style."""
    if change.after is None:
        return "gone", "bold red" if change.regression else ""
    if change.before is None:
        return "new", ""
    if change.better is None:
        return "other", ""
    if change.better:
        return "better", "green"
    return ("worse", "bold red") if change.regression else ("tolerated", "yellow")


def _table_of_times(paces: list[Pace]) -> Table:
    table = Table(title="times, b as a multiple of a")
    for column in ("method", "time", "runs", "b / a", ""):
        table.add_column(column, justify="right" if column in ("runs", "b / a") else "left")
    for pace in paces:
        style = "bold red" if pace.regression else ""
        cells = (
            printable(pace.method),
            printable(pace.time),
            f"{pace.runs:,}",
            f"{pace.ratio:.2f}",
        )
        table.add_row(*map(Text, cells), Text(pace.verdict, style=style))
    return table


def _listed(tasks: list[Task], names: dict[Task, str]) -> str:
    """Return the number of runs, and the names of the first few."""
    seeds: dict[str, list[str]] = {}
    for task in tasks:
        seeds.setdefault(names[replace(task, seed=0)], []).append(str(task.seed))
    kinds = [f"{name}, seed {' and '.join(numbers)}" for name, numbers in seeds.items()]
    more = f"; and {len(kinds) - MAX_NAMED_RUNS} more" if len(kinds) > MAX_NAMED_RUNS else ""
    return f"{counted(len(tasks), 'run')}: {printable('; '.join(kinds[:MAX_NAMED_RUNS]))}{more}"


def _summary(found: Comparison) -> str:
    runs = f"{counted(len(found.common), 'run')} in both"
    if found.silent:
        return f"{runs}: nothing differs"
    worse = sum(change.better is False for change in found.changes)
    better = sum(change.better is True for change in found.changes)
    other = len(found.changes) - worse - better
    times = [pace.verdict for pace in found.paces]
    figures = f"{counted(worse, 'figure')} worse, {better:,} better, {other:,} other"
    pace = f"{counted(times.count('slower'), 'time')} slower, {times.count('faster'):,} faster"
    return f"{runs}: {figures}; {pace}; {counted(found.regressions, 'regression')}"


def _as_dict(found: Comparison) -> dict[str, Any]:
    """Return the comparison as values for JSON."""
    from everhash.bench.rows import plain

    def as_row(change: Change) -> dict[str, Any]:
        cell = {key: value for key, value in change.task.as_row().items() if key != "seed"}
        return {**cell, **{k: v for k, v in change._asdict().items() if k != "task"}}

    return dict(
        plain(
            {
                "common": len(found.common),
                "regressions": found.regressions,
                "figures": [as_row(change) for change in found.changes],
                "times": [pace._asdict() for pace in found.paces],
                "only_before": [task.as_row() for task in found.only_before],
                "only_after": [task.as_row() for task in found.only_after],
                "notes": found.notes,
            }
        )
    )
