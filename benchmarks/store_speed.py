"""How fast a collection takes rows in durably, how soon it answers after a start, what it weighs.

    python benchmarks/store_speed.py [--rows 1000000] [--large 10000000] [--folder DIR]

Rows of 384 features, 100 labels, 64 bits, in calls of 10,000, each call one durable transaction.
The peer is the disk itself: the same calls as plain writes to a file, each followed by fsync,
interleaved with ours. "rows" writes the rows as they come in, float32, with their ids; "kept"
writes as many bytes as the collection keeps of them. `labelled` and `unlabelled` are `add`,
`learned` is `ingest`: it learns from every row as well.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash import Collection, kernels
from everhash.bench.machine import describe_machine

DIM, BITS, LABELS, CALL, SEED = 384, 64, 100, 10_000, 0
Rows = NDArray[np.float32]


class Source:
    """Rows around the labels' centres, as embeddings lie."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(SEED)
        self._centres = self._rng.standard_normal((LABELS, DIM), np.float32)
        self._given = 0

    def call(self) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows, labels and ids of one call."""
        y = self._rng.integers(0, LABELS, CALL)
        ids = 7 * np.arange(self._given, self._given + CALL) + 1
        self._given += CALL
        return self._centres[y] + self._rng.standard_normal((CALL, DIM), np.float32), y, ids


@contextmanager
def plain_file(path: Path) -> Iterator[Callable[[bytes], float]]:
    """A file that is written to and synced."""
    with path.open("wb", buffering=0) as file:

        def write(data: bytes) -> float:
            start = perf_counter()
            file.write(data)
            os.fsync(file.fileno())
            return perf_counter() - start

        yield write
    path.unlink()


def enter(
    col: Collection, kind: str, X: Rows, y: NDArray[np.int64], ids: NDArray[np.int64]
) -> None:
    if kind == "learned":
        col.ingest(X, y, ids)
    else:
        col.add(X, ids, y if kind == "labelled" else None)


def ingest(folder: Path, kind: str, n: int) -> Path:
    """Take in n rows; print speed beside the disk's, and the weight of an entry."""
    source, path = Source(), folder / f"{kind}.ever"
    kept = CALL * (2 * DIM + 24 if kind == "unlabelled" else 9)
    times: dict[str, list[float]] = {"ours": [], "rows": [], "kept": []}
    with everhash.create(path, DIM, BITS) as col, plain_file(folder / "plain") as write:
        col.learn(*source.call()[:2])
        empty = path.stat().st_size
        for _ in range(0, n, CALL):
            X, y, ids = source.call()
            start = perf_counter()
            enter(col, kind, X, y, ids)
            times["ours"].append(perf_counter() - start)
            data = X.tobytes() + ids.tobytes()
            times["rows"].append(write(data))
            times["kept"].append(write(data[:kept]))
    for what, share in (("all calls", 1.0), ("best quarter", 0.25)):
        report(kind, what, {name: best(values, share) for name, values in times.items()})
    weigh(kind, path.stat().st_size, empty, n)
    return path


def best(values: list[float], share: float) -> float:
    """Return the mean of the quickest ones, in milliseconds."""
    return float(np.mean(np.sort(values)[: max(1, int(share * len(values)))])) * 1e3


def report(kind: str, what: str, ms: dict[str, float]) -> None:
    print(
        f"{kind:>10}, {what:<12} {ms['ours']:7.1f} ms a call, "
        f"{CALL / ms['ours'] * 1e3:9,.0f} rows/s"
        f"   plain: rows {ms['rows']:5.1f} ms, kept {ms['kept']:5.1f} ms"
        f"   ratio: rows {ms['rows'] / ms['ours']:.2f}, kept {ms['kept'] / ms['ours']:.2f}"
    )


def weigh(kind: str, size: int, empty: int, n: int) -> None:
    each = (size - empty) / n
    beside = f", {each - 2 * DIM:.1f} beside features" if kind == "unlabelled" else ""
    print(f"{kind:>10}: {each:.1f} bytes an entry on disk{beside}; hasher {empty / 1e6:.1f} MB")


def reopen(path: Path, what: str) -> None:
    """Open as a new process would, with a warm page cache, and search."""
    query, best_open, best_answer = np.ones((1, DIM), np.float32), np.inf, np.inf
    for _ in range(3):
        start = perf_counter()
        with everhash.open(path, readonly=True) as col:
            opened = perf_counter() - start
            col.search(query, 10)
            answered = perf_counter() - start
            n = len(col)
        best_open, best_answer = min(best_open, opened), min(best_answer, answered)
    print(f"{what:>10}: {n:,} entries open in {best_open:.2f} s, first answer {best_answer:.2f} s")


def grow(path: Path, n: int) -> None:
    """Add unlabelled rows up to n, without waiting for the disk."""
    source = Source()
    with everhash.open(path, durability="none") as col:
        for _ in range(len(col), n, CALL):
            col.add(source.call()[0])


def one_by_one(folder: Path, calls: int = 2000) -> None:
    """Calls of a single row."""
    source = Source()
    X, y, _ = source.call()
    with everhash.create(folder / "single.ever", DIM, BITS) as col:
        col.ingest(X, y)
        for first, kind in ((-1, "learned"), (-calls - 1, "unlabelled")):
            start = perf_counter()
            for i in range(calls):
                row = slice(i, i + 1)
                enter(col, kind, X[row], y[row], np.array([first - i]))
            print(f"one row a call: {kind} {calls / (perf_counter() - start):,.0f} calls/s")


def where_time_goes(folder: Path, kind: str) -> None:
    """Profile twenty calls."""
    source = Source()
    with everhash.create(folder / f"{kind}-profile.ever", DIM, BITS) as col:
        col.learn(*source.call()[:2])
        calls = [source.call() for _ in range(20)]
        profile = cProfile.Profile()
        profile.enable()
        for call in calls:
            enter(col, kind, *call)
        profile.disable()
    print(f"where {kind} calls spend their time:")
    pstats.Stats(profile).sort_stats("tottime").print_stats(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    print(describe_machine())
    for load in (kernels.load, kernels.load_refresh, kernels.load_search):
        load()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for kind in ("labelled", "learned", "unlabelled"):
            if options.profile:
                where_time_goes(Path(name), kind)
                continue
            path = ingest(Path(name), kind, options.rows)
            reopen(path, kind)
        if not options.profile:
            one_by_one(Path(name))
            if options.large:
                grow(path, options.large)
                reopen(path, "large")


if __name__ == "__main__":
    main()
