"""Run two lines of the README's table again, and hold them against the committed rows.

python benchmarks/quick.py

The runs of `everhash bench run found` on digits, which need no file, and on CLINC150 where it is
on this machine: the same seeds, by the public calls. Times are not compared. Every difference is
listed; the exit code is 1 if a figure is lower by more than the tolerance. About four minutes on
two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from everhash.bench import datasets, report
from everhash.bench.compare import TOLERANCE, Comparison, compare, names_of
from everhash.bench.experiment import Experiment, load
from everhash.bench.rows import RowFile, read_rows
from everhash.bench.runner import Failure, run
from everhash.bench.task import Row, Task

SETS = ("digits", "clinc150")
COMMITTED = Path(__file__).resolve().parents[1] / "docs" / "results" / "found.jsonl"
RESULTS = Path("everhash-results") / "quick.jsonl"


def main() -> None:
    arguments = parsed()
    wanted = tasks_of(load("found"), arguments.sets, arguments.seeds)
    if len({task.dataset for task in wanted}) < len(arguments.sets):
        print(f"only the sets on this machine are run; {datasets.describe(SETS[1]).public}")
    arguments.results.unlink(missing_ok=True)
    file = RowFile(arguments.results)
    failures = run(wanted, file, jobs=arguments.jobs, report=told)
    if failures:
        sys.exit(f"{len(failures)} of {len(wanted)} runs failed: {failures[0].why}")
    print(
        report.text(Experiment("quick", "The README's table, two lines of it", "", ()), file.rows)
    )
    planned = set(wanted)
    before = [row for row in read_rows([arguments.committed]) if Task.of(row) in planned]
    found = compare(before, file.rows, tolerance=arguments.tolerance, slower=float(10**6))
    show(found)
    sys.exit(1 if found.regressions or found.only_after else 0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="data sets")
    parser.add_argument("--seeds", type=int, default=5, help="orderings of the stream (5)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=f"({TOLERANCE})")
    parser.add_argument("--committed", type=Path, default=COMMITTED, help="rows to compare with")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"new rows ({RESULTS})")
    return parser.parse_args()


def tasks_of(found: Experiment, sets: Iterable[str], seeds: int) -> list[Task]:
    """Return the runs behind the README's lines of the sets that are on this machine."""
    here = [name for name in sets if datasets.is_here(name)]
    return [
        task
        for task in found.tasks()
        if task.dataset in here and task.protocol == "unlabelled" and task.seed < seeds
    ]


def told(result: Row | Failure) -> None:
    task = result.task if isinstance(result, Failure) else Task.of(result)
    print(f"{task.dataset}, seed {task.seed}", file=sys.stderr)


def show(found: Comparison) -> None:
    """Print every figure that differs from the committed one."""
    names = names_of(found.common)
    for change in found.changes:
        verdict = "WORSE" if change.regression else "differs"
        print(f"{verdict}: {names[change.task]}, {change.figure}: {change.before} {change.after}")
    for task in found.only_after:
        print(f"WORSE: no committed row of {task.dataset}, seed {task.seed}")
    print(
        f"{len(found.common)} runs compared with the committed rows, {len(found.changes)} figures "
        f"differ, {found.regressions} are worse"
    )


if __name__ == "__main__":
    main()
