"""What a writer costs those who search: eight readers and one writer on one collection.

    python benchmarks/readers.py [--phases 6] [--seconds 3] [--readers 1 8] [--entries 30000]

Each reader is a process with the collection opened for reading; it searches for one row at a time,
k = 10, and catches up twice a second. The writer is a process that ingests 1,000 labelled rows a
call, each call durable. Phases alternate: nobody writes, the writer writes, nobody writes, and so
on, the first moments of each left out. p50 and p99 are of single searches over all readers and all
phases of a kind, in milliseconds; "ratio" is p99 while writing over p99 while nobody does. "flat
out" readers search without a pause; with more readers than cores they wait for each other, whoever
writes. Paced ones search 50 times a second each, and the writer flat out or 10 calls a second. Data
are CIFAR-10 CNN features if they are on this machine, else scikit-learn's digits.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
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
from everhash.bench.machine import describe_machine
from everhash.errors import DataMissingError

SEED, BITS, K, CALL = 0, 64, 10, 1000
SETTLE = 0.4
"""Seconds at the start of a phase that do not count."""
CATCH_UP = 0.5
"""Seconds between two times that a reader catches up."""
ENDED, CALMING, IDLE, STARTING, WRITING = range(5)
"""Phases. What happens while things calm down or start is not counted."""
Floats = NDArray[np.float32]


class Setting(NamedTuple):
    """Who is there, and how often they do what they do; 0 is as often as they can."""

    readers: int
    searches: float
    """a second and reader"""
    calls: float
    """a second"""


class Heard(NamedTuple):
    """What a reader has measured, in seconds."""

    idle: list[float]
    writing: list[float]
    first: list[float]
    """The first searches after catching up, which `writing` has too."""
    catching_up: list[float]


class Stream(NamedTuple):
    """Rows and their labels."""

    X: Floats
    y: NDArray[np.int64]


class Clock(NamedTuple):
    """What the processes share."""

    phase: Synchronized[int]
    ready: Semaphore
    """Released by each process that has opened the collection."""


def load_stream() -> tuple[str, Stream]:
    """Return a set's name, and its rows in an order that mixes labels."""
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


def read(path: Path, queries: Floats, pace: float, clock: Clock, out: Queue[Heard]) -> None:
    """Search until the end, and keep what each search took."""
    heard, moved, collection = Heard([], [], [], []), False, everhash.open(path, readonly=True)
    collection.search(queries[:1], K)
    clock.ready.release()
    phase, due = clock.phase, time.perf_counter()
    caught_up = due
    for query in cycle(queries):
        if (now := phase.value) == ENDED:
            break
        start = time.perf_counter()
        collection.search(query[None], K)
        end = time.perf_counter()
        if now in (IDLE, WRITING) and phase.value == now:
            (heard.idle if now == IDLE else heard.writing).append(end - start)
            if moved:
                heard.first.append(end - start)
        moved = False
        if end - caught_up > CATCH_UP:
            moved, caught_up = collection.catch_up(), time.perf_counter()
            if moved:
                heard.catching_up.append(caught_up - end)
        if pace:
            due = max(due + 1 / pace, time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))
    collection.close()
    out.put(heard)


def write(path: Path, stream: Stream, pace: float, clock: Clock, calls: Synchronized[int]) -> None:
    """Ingest call after call while it is the time to write."""
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
    """Let readers and writer go through all phases, and print what the readers have measured."""
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
    heard = [out.get() for _ in queries]
    for worker in workers:
        worker.join()
    show(setting, heard, calls.value / (seconds * (phases // 2)))


HEADING = (
    f"{'readers':>7}{'searches/s':>12}{'writer':>15}{'calls/s':>9}{'idle p50':>10}{'p99':>8}"
    f"{'writing p50':>13}{'p99':>8}{'ratio':>7}{'after catching up p50':>23}{'catch up p50':>14}"
)


def show(setting: Setting, heard: list[Heard], calls: float) -> None:
    """Print a line."""
    idle, writing, first, catching_up = (
        1000 * np.concatenate([np.array(part) for part in parts])
        for parts in zip(*heard, strict=True)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--phases", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--entries", type=int, default=30_000)
    args = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes to come
    name, stream = load_stream()
    print(describe_machine())
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
    main()
