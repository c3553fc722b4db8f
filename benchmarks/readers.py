"""How much a writer slows down searches: eight reader processes and one writer on one collection.

    python benchmarks/readers.py [--phases 6] [--seconds 3] [--readers 1 8] [--entries 30000]

Each reader is a process that has opened the collection for reading; it searches for one row at a
time, k = 10, and catches up twice a second. The writer is a process that ingests 1,000 labelled
rows a call, each call durable. Idle phases and phases of writing alternate; the first moments of
each do not count. p50 and p99 are of single searches over all readers and all phases of a kind, in
milliseconds; "ratio" is p99 while writing divided by p99 while idle. "flat out" readers search
without a pause; with more readers than cores they wait for each other even without a writer. Paced
readers search 50 times a second each; the writer makes 10 calls a second, or as many as it can. The
data are CIFAR-10 CNN features if they are on this machine, else scikit-learn's digits; seed 0.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from argparse import Namespace
from itertools import cycle, product
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash.bench import datasets
from everhash.errors import DataMissingError
from parts import run_parts

SEED, BITS, K, CALL = 0, 64, 10, 1000
SETTLE = 0.4
"""Seconds at the start of a phase that do not count."""
CATCH_UP = 0.5
"""Seconds after which a reader catches up again."""
ENDED, CALMING, IDLE, STARTING, WRITING = range(5)
"""Phases. Searches in CALMING and STARTING do not count."""
Floats = NDArray[np.float32]


class Setting(NamedTuple):
    """The number of readers and the pace of everybody; 0 is as fast as possible."""

    readers: int
    searches: float
    """Searches a second of each reader."""
    calls: float
    """Calls a second of the writer."""


class ReaderTimes(NamedTuple):
    """What a reader has measured, in seconds."""

    idle: list[float]
    writing: list[float]
    first: list[float]
    """The first search after each catching up; these are in `writing` too."""
    catching_up: list[float]


class Stream(NamedTuple):
    """Rows and their labels."""

    X: Floats
    y: NDArray[np.int64]


class Clock(NamedTuple):
    """The state that the processes share."""

    phase: Synchronized[int]
    ready: Semaphore
    """Released by each process that has opened the collection."""


def load_stream() -> tuple[str, Stream]:
    """Return the name of a data set, and its rows in random order."""
    try:
        data = datasets.load("cifar10-cnn")
        name, X, y = "CIFAR-10 CNN", data.X, data.y
    except DataMissingError:
        from sklearn.datasets import load_digits

        name, (X, y) = "digits", load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(X))
    return name, Stream(X[order].astype(np.float32), y[order].astype(np.int64))


def make_base(path: Path, stream: Stream, entries: int) -> None:
    """Fill a collection: half of the entries labelled, half not."""
    X, y = stream
    rows = np.arange(entries) % len(X)
    with everhash.create(path, X.shape[1], BITS, random_state=SEED) as collection:
        collection.learn(X[:2000], y[:2000])
        half = entries // 2
        collection.add(X[rows[:half]], y=y[rows[:half]])
        collection.add(X[rows[half:]])


def read(path: Path, queries: Floats, pace: float, clock: Clock, out: Queue[ReaderTimes]) -> None:
    """Search until the end, and keep the time of each search."""
    times, moved, collection = (
        ReaderTimes([], [], [], []),
        False,
        everhash.open(path, readonly=True),
    )
    collection.search(queries[:1], K, "meaning")
    clock.ready.release()
    phase, due = clock.phase, time.perf_counter()
    caught_up = due
    for query in cycle(queries):
        if (now := phase.value) == ENDED:
            break
        start = time.perf_counter()
        collection.search(query[None], K, "meaning")
        end = time.perf_counter()
        if now in (IDLE, WRITING) and phase.value == now:
            (times.idle if now == IDLE else times.writing).append(end - start)
            if moved:
                times.first.append(end - start)
        moved = False
        if end - caught_up > CATCH_UP:
            moved, caught_up = collection.catch_up(), time.perf_counter()
            if moved:
                times.catching_up.append(caught_up - end)
        if pace:
            due = max(due + 1 / pace, time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))
    collection.close()
    out.put(times)


def write(path: Path, stream: Stream, pace: float, clock: Clock, calls: Synchronized[int]) -> None:
    """Ingest call after call in the phases of writing."""
    rng, phase = np.random.default_rng(SEED), clock.phase
    with everhash.open(path) as collection:
        clock.ready.release()
        while (now := phase.value) != ENDED:
            if now in (CALMING, IDLE):
                time.sleep(0.005)
                continue
            start = time.perf_counter()
            rows = rng.integers(0, len(stream.X), CALL)
            collection.ingest(stream.X[rows], stream.y[rows])
            calls.value += phase.value == WRITING
            if pace:
                time.sleep(max(0.0, start + 1 / pace - time.perf_counter()))


def measure(path: Path, stream: Stream, setting: Setting, phases: int, seconds: float) -> None:
    """Run readers and writer through all phases, and print what the readers have measured."""
    spawn = multiprocessing.get_context("spawn")
    clock = Clock(spawn.Value("i", CALMING), spawn.Semaphore(0))
    phase, calls, out = clock.phase, spawn.Value("i", 0), spawn.Queue()
    queries = [stream.X[number :: setting.readers][:500] for number in range(setting.readers)]
    workers = [
        *(
            spawn.Process(target=read, args=(path, q, setting.searches, clock, out))
            for q in queries
        ),
        spawn.Process(target=write, args=(path, stream, setting.calls, clock, calls)),
    ]
    for worker in workers:
        worker.start()
    for _ in workers:
        clock.ready.acquire()
    for number in range(phases):
        for phase.value, wait in (
            ((CALMING, SETTLE), (IDLE, seconds)),
            ((STARTING, SETTLE), (WRITING, seconds)),
        )[number % 2]:
            time.sleep(wait)
    phase.value = ENDED
    times = [out.get() for _ in queries]
    for worker in workers:
        worker.join()
    show(setting, times, calls.value / (seconds * (phases // 2)))


HEADING = (
    f"{'readers':>7}{'searches/s':>12}{'writer':>15}{'calls/s':>9}{'idle p50':>10}{'p99':>8}"
    f"{'writing p50':>13}{'p99':>8}{'ratio':>7}{'after catching up p50':>23}{'catch up p50':>14}"
)


def show(setting: Setting, times: list[ReaderTimes], calls: float) -> None:
    """Print a line."""
    idle, writing, first, catching_up = (
        1000 * np.concatenate([np.array(part) for part in parts])
        for parts in zip(*times, strict=True)
    )
    (calm50, calm99), (busy50, busy99) = (np.percentile(t, (50, 99)) for t in (idle, writing))
    paced = f"{setting.searches:.0f} each" if setting.searches else "flat out"
    writer = f"{setting.calls:.0f} calls/s" if setting.calls else "flat out"
    print(
        f"{setting.readers:7}{paced:>12}{writer:>15}{calls:9.1f}{calm50:10.2f}{calm99:8.2f}"
        f"{busy50:13.2f}{busy99:8.2f}{busy99 / calm99:7.1f}{np.median(first):23.2f}"
        f"{np.median(catching_up):14.1f}",
        flush=True,
    )


def searches(args: Namespace) -> None:
    """Print a line for each number of readers and each pace."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes to come
    name, stream = load_stream()
    print(f"{name}, {args.entries:,} entries, half of them labelled, {BITS} bits, seed {SEED}")
    print(f"{args.phases} phases of {args.seconds:g} s, in turn idle and writing; milliseconds\n")
    print(HEADING)
    with tempfile.TemporaryDirectory() as folder:
        base, path = Path(folder, "base.ever"), Path(folder, "shared.ever")
        make_base(base, stream, args.entries)
        for readers, searches, calls in product(args.readers, (50, 0), (10, 0)):
            shutil.copyfile(base, path)
            measure(path, stream, Setting(readers, searches, calls), args.phases, args.seconds)
            path.unlink()


if __name__ == "__main__":
    run_parts(
        __doc__, {"searches": searches}, phases=6, seconds=3.0, readers=(1, 8), entries=30_000
    )
