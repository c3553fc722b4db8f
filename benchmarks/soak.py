"""Mixed work for an hour, and the writer is killed every minute.

    python benchmarks/soak.py [--minutes 60] [--kill-every 60] [--entries 20000] [--out FILE]

One process writes to one file: it ingests, adds, labels, unlabels, updates, removes, renames,
merges, drops, searches, refreshes and compacts. Two others search and catch up all the while. Every
minute the writer gets SIGKILL; then `verify` reads the file, and every entry and its label is
compared with what the writer had noted; then it starts again. Memory, file size and latencies are
watched.

The rows are four sets of image features if they are on this machine, else scikit-learn's digits.
`--page` only makes the page from the rows, which docs/results/soak.jsonl has.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of this process and those to come
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

import everhash
import soak_page
from everhash.bench.costs.timing import load
from everhash.bench.machine import describe_machine
from soak_model import LEFT, Follower, Model, entries_of
from soak_work import SEARCHES, Plan, create, data_here, read, write

FILE = Path(__file__).parents[1] / "docs" / "results" / "soak.jsonl"
READERS = 2
SAMPLE = 5.0
"""Seconds between two looks at memory and file size."""
SERVER = multiprocessing.get_context("forkserver")
"""Processes are forked from one that has imported and compiled everything and opened nothing."""
Row = dict[str, Any]


class Soak:
    """The processes, what the file must hold, and what was measured since the last kill."""

    def __init__(self, plan: Plan, kill_every: float) -> None:
        self._plan, self._every = plan, kill_every
        self._rng = np.random.default_rng(plan.seed)
        self._model, self._follower = Model(), Follower(plan.log)
        self._readings = [Follower(plan.readings(number)) for number in range(READERS)]
        self._readers = [_start(read, plan, number) for number in range(READERS)]
        self._start, self._number = time.time(), 0
        self.violations: list[str] = []
        self._follow()

    def round(self) -> Row:
        """Let the writer work, kill it, look at the file; return what was measured."""
        self._number += 1
        writer = _start(write, self._plan, self._number)
        end = time.time() + self._every * self._rng.uniform(0.9, 1.1)
        samples = []
        while (now := time.time()) < end:
            time.sleep(max(0.01, min(SAMPLE, end - now)))
            samples.append(self._sample(writer))
        alive = writer.is_alive()
        writer.kill()
        writer.join()
        row = {"part": "round", "minute": (time.time() - self._start) / 60, **self._measured()}
        if not alive:
            self.violations.append(f"round {self._number}: the writer had ended by itself")
        return {**row, "samples": samples, **self._check(), "load": load()}

    def close(self) -> None:
        """End the readers."""
        for reader in self._readers:
            reader.kill()
            reader.join()

    def _sample(self, writer: BaseProcess) -> Row:
        """Return memory, file size and entries now."""
        sizes = (self._plan.path.with_name(self._plan.path.name + end) for end in ("", "-wal"))
        return {
            "minute": (time.time() - self._start) / 60,
            "writer": resident(writer.pid),
            "readers": [resident(reader.pid) for reader in self._readers],
            "file": sum(size.stat().st_size for size in sizes if size.exists()),
        }

    def _follow(self) -> list[Row]:
        """Bring the model up to date, and return the lines that did."""
        lines = self._follower.lines()
        for line in lines:
            self._model.take(line)
        return lines

    def _measured(self) -> Row:
        """Return the latencies of the round, in milliseconds, and count its calls."""
        lines = self._follow()
        self._follower.drop_rest()
        readings = [line for follower in self._readings for line in follower.lines()]
        self.violations += [line["error"] for line in [*lines, *readings] if "error" in line]
        ended = [line for line in lines if "end" in line]
        calls: dict[str, list[float]] = {}
        for line in ended:
            calls.setdefault(line["end"], []).append(round(1000 * line["seconds"], 2))
        searches = [1000 * s for line in readings for s in line.get("search", ())]
        catching = [1000 * s for line in readings for s in line.get("catch_up", ())]
        return {
            "calls": calls,
            "search": percentiles(searches),
            "searches": len(searches),
            "catch_up": percentiles(catching),
            "reopen": next((line["opened"] for line in lines if "opened" in line), None),
            "labels": ended[-1]["labels"] if ended else None,
        }

    def _check(self) -> Row:
        """Compare the file with what was noted; return what the kill left."""
        start = time.perf_counter()
        problems = everhash.verify(self._plan.path).problems
        with everhash.open(self._plan.path, readonly=True) as collection:
            found = entries_of(collection)
            unlabelled = sum(label is None for label in found.values())
        left = self._model.settle(found)
        right = left in LEFT
        wrong = [*problems, *([] if right else [left])]
        self.violations += [f"round {self._number}: {what}" for what in wrong]
        seconds = time.perf_counter() - start
        counts = {"entries": len(found), "unlabelled": unlabelled, "check": seconds}
        return {"left": left, "returned": self._model.returned, **counts}


def _start(body: Any, *arguments: Any) -> BaseProcess:
    process = SERVER.Process(target=body, args=arguments, daemon=True)
    process.start()
    return process


def resident(pid: int | None) -> int | None:
    """Return the memory of a process in bytes; None if it has ended or nobody can tell."""
    file = Path(f"/proc/{pid}/statm")
    try:
        return int(file.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None


def percentiles(values: list[float]) -> list[float] | None:
    """Return the 50th, 95th and 99th percentile, and the highest."""
    if not values:
        return None
    return [round(float(value), 3) for value in np.percentile(values, (50, 95, 99, 100))]


def run(options: argparse.Namespace, folder: Path) -> int:
    """Do the soak, write its rows, and return how many violations there were."""
    plan = Plan(folder, options.data, options.entries, options.calls, options.seed)
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # where the server looks for modules
    SERVER.set_forkserver_preload(["soak_work", "soak_warm"])
    create(plan)
    rows, soak = [], Soak(plan, options.kill_every)
    began = time.time()  # the processes are there by now
    try:
        while time.time() - began < 60 * options.minutes:
            rows.append(soak.round())
            last = {name: rows[-1][name] for name in ("minute", "entries", "left", "search")}
            print(json.dumps(last), *soak.violations, flush=True)
    finally:
        soak.close()
    settings = {name: getattr(options, name) for name in soak_page.SETTINGS}
    about = {"part": "about", **settings, "readers": READERS, "searches": SEARCHES}
    about |= {"machine": describe_machine(), "violations": soak.violations, **weigh(plan)}
    lines = [json.dumps(row) for row in (about, *rows)]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(soak.violations)


def weigh(plan: Plan) -> Row:
    """Return the file's size at the end, and after the places of removed entries are dropped."""
    before = plan.path.stat().st_size
    with everhash.open(plan.path) as collection:
        collection.compact()
        entries = len(collection)
    return {"bytes": before, "compacted": plan.path.stat().st_size, "entries_left": entries}


def main(arguments: list[str] | None = None) -> int:
    """Soak as the command line says, and write the page; return how many violations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kill-every", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--calls", type=float, default=6.0, help="calls a second of the writer")
    parser.add_argument("--data", choices=("sets", "digits"), default=data_here())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--page", action="store_true", help="make the page only")
    options = parser.parse_args(arguments)
    violations = 0
    if not options.page:
        with tempfile.TemporaryDirectory() as folder:
            violations = run(options, Path(folder))
    soak_page.write(options.out)
    return violations


if __name__ == "__main__":
    raise SystemExit(min(1, main()))
