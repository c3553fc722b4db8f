"""Run tasks in processes and write a row for each; tasks that have a row are not run again."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import everhash
from everhash import kernels
from everhash.bench.data_file import from_file
from everhash.bench.datasets import Dataset, load
from everhash.bench.kinds import KINDS, NO_DATA
from everhash.bench.machine import describe_machine
from everhash.bench.rows import RowFile
from everhash.bench.task import Row, Task
from everhash.bench.threads import one_thread_a_process


class Source(NamedTuple):
    """A data file of the user's own, and its columns."""

    name: str
    path: Path
    features: str | None
    label: str | None
    """None where the column is found by its name or type."""


class Failure(NamedTuple):
    """A task that failed, and why."""

    task: Task
    why: str


Report = Callable[[Row | Failure], None]


def run(
    tasks: list[Task], file: RowFile, *, jobs: int = 1, source: Source | None = None, report: Report
) -> list[Failure]:
    """Run all tasks without a row; return those that failed. Each process has one thread."""
    failures = []
    missing = [task for task in tasks if task not in file.done]
    beside = [task for task in missing if not KINDS[task.kind].alone]
    alone = [task for task in missing if KINDS[task.kind].alone]
    for part, processes in ((beside, jobs), (alone, 1)):
        for result in _results(part, processes, source):
            if isinstance(result, Failure):
                failures.append(result)
            else:
                file.append(result)
            report(result)
    return failures


def _results(tasks: list[Task], jobs: int, source: Source | None) -> Iterator[Row | Failure]:
    """Yield rows as they come, in any order; queue only a few tasks at a time."""
    if not tasks:
        return
    with one_thread_a_process():
        # kernels are compiled or loaded before the first task, so that no time contains it
        pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=kernels.load_all
        )
        try:
            left, running = iter(tasks), set[Future[Row | Failure]]()
            while True:
                for task in left:
                    running.add(pool.submit(measure, task, jobs, source))
                    if len(running) > jobs:
                        break
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def measure(task: Task, jobs: int, source: Source | None) -> Row | Failure:
    """Run a task; return its row."""
    start = perf_counter()
    try:
        kind = KINDS[task.kind]
        data = _data(task.dataset, source) if kind.needs_data else NO_DATA
        figures = kind.measure(task, data)
    except Exception as error:  # one failing task must not end the others
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Failure(task, why)
    origin = {"jobs": jobs, "machine": describe_machine(), "version": everhash.__version__}
    return {**task.as_row(), **figures, "taken": perf_counter() - start, **origin}


@lru_cache(maxsize=2)
def _data(name: str, source: Source | None) -> Dataset:
    if source is not None and source.name == name:
        return from_file(source.path, source.features, source.label, name)
    return load(name)
