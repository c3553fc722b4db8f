"""Many kills of a writing process in one run, and every fault of disk and memory once.

    python -m tests.crash.kills --kills 10000 [--faults] [--seed 0] [--out docs/results/kills.md]

A kill: a forked process opens a collection and runs a script of calls; at a random instant it gets
SIGKILL. Then the file must verify, hold every call that had returned, and the call in flight in
full or not at all. The next process goes on from what the file holds.

`--faults` fails every operation of SQLite on its files, and every allocation, in every call of a
script: the first, the second and so on, each once alone and once with all that follow. It also
kills a process at every single write, sync and truncation.

Scripts and instants come from the seed; how far a process gets until its instant does not. Work is
done in pieces, each in a fresh process. A piece goes on after a violation, with a new file. What a
part came to is a row of kills.jsonl beside the page; `--only memory` makes one part again.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.apart import ROOT, apart
from tests.crash.kills_page import FAULTS, Record, keep, write_page
from tests.crash.rounds import fail_calls, kill_at_operations, kill_writers

FAULT_CALLS, FEW_CALLS, PIECE = 54, 9, 250
"""Calls of the script that faults hit; of those, and of kills, as many as are a piece of work."""
PARTS = ("kills", *FAULTS, "operations")
"""What is done, in this order."""
HOURS = 4 * 3600


class Task(NamedTuple):
    """A piece of work, and what to call it."""

    name: str
    body: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> Record:
        """Do the work in a fresh process and in a folder of its own."""
        folder = tempfile.mkdtemp()
        try:
            done = Record.of(apart(self.body, folder, *self.arguments, seconds=HOURS))
        except AssertionError as error:  # the work itself could not go on
            done = Record(violations=[str(error)])
        finally:
            shutil.rmtree(folder)
        said = (violation.replace(f"{folder}/", "") for violation in done.violations)
        done.violations = [f"{self.name}: {violation}" for violation in said]
        return done


def tasks_of(part: str, options: argparse.Namespace) -> Iterator[Task]:
    """Yield the pieces of work of a part."""
    if part == "kills":
        for first in range(0, options.kills, PIECE):
            n, seed = min(PIECE, options.kills - first), f"{options.seed} {first}"
            yield Task(f"kills {first:,} on", kill_writers, (seed, first, n))
    elif part == "operations":
        yield Task("kills at every operation", kill_at_operations, (options.calls,))
    else:
        for first in range(0, options.calls, FEW_CALLS):
            last = min(first + FEW_CALLS, options.calls)
            for lasting in (False, True):
                name = f"{part} fails{', and all after it' * lasting}, calls {first} on"
                yield Task(name, fail_calls, (part, lasting, last, first))


def run(part: str, options: argparse.Namespace) -> Record:
    """Do all work of a part, and return what came of it."""
    record, start = Record(part), time.perf_counter()
    tasks = list(tasks_of(part, options))
    with ThreadPoolExecutor(options.processes) as pool:
        for task, done in zip(tasks, pool.map(Task.run, tasks), strict=True):
            record.add(done)
            now = time.perf_counter() - start
            print(f"{now:6.0f} s  {task.name}: {done.summary()}", flush=True)  # noqa: T201
            for violation in done.violations:
                print(f"VIOLATION {violation}", flush=True)  # noqa: T201
    record.seconds, record.ended = time.perf_counter() - start, time.time()
    return record


def main(arguments: list[str] | None = None) -> int:
    """Kill as often as the command line says, write the page, return how many violations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", action="store_true", help="fail every operation too")
    parser.add_argument("--calls", type=int, default=FAULT_CALLS, help="calls that faults hit")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="make these parts again only")
    parser.add_argument("--why", default="", help="why they are made again, for the page")
    parser.add_argument("--processes", type=int, default=1, help="pieces of work at a time")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "kills.md")
    options = parser.parse_args(arguments)
    rows = options.out.with_suffix(".jsonl")
    parts = options.only or (PARTS if options.faults else PARTS[:1])
    violations = 0
    for part in parts:
        record = run(part, options)
        asked = {"kills": options.kills, "seed": options.seed, "calls": options.calls}
        keep(rows, record, asked, options.why)
        violations += len(record.violations)
    write_page(rows)
    return violations


if __name__ == "__main__":
    raise SystemExit(min(1, main()))
