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
import pstats
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import everhash
from everhash import kernels
from everhash.bench.costs.store import (
    BITS,
    CALL,
    DIM,
    Call,
    Calls,
    best_share,
    enter,
    reopen,
    take_in,
)
from everhash.bench.machine import describe_machine


def ingest(folder: Path, kind: str, n: int) -> Path:
    """Take in n rows; print speed beside the disk's, and the weight of an entry."""
    intake = take_in(folder, kind, n, sqlite=False)
    times = {"ours": intake.ours, "rows": intake.rows, "kept": intake.kept}
    for what, share in (("all calls", 1.0), ("best quarter", 0.25)):
        report(kind, what, {name: best_share(values, share) for name, values in times.items()})
    weigh(kind, intake.path.stat().st_size, intake.empty, n)
    return intake.path


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


def show_opening(path: Path, what: str) -> None:
    opened, answered, n = reopen(path)
    print(f"{what:>10}: {n:,} entries open in {opened:.2f} s, first answer {answered:.2f} s")


def grow(path: Path, n: int) -> None:
    """Add unlabelled rows up to n, without waiting for the disk."""
    calls = Calls()
    with everhash.open(path, durability="none") as col:
        for _ in range(len(col), n, CALL):
            col.add(calls.next().X)


def one_by_one(folder: Path, calls: int = 2000) -> None:
    """Calls of a single row."""
    rows = Calls().next()
    with everhash.create(folder / "single.ever", DIM, BITS) as col:
        col.ingest(rows.X, rows.y)
        for first, kind in ((-1, "learned"), (-calls - 1, "unlabelled")):
            start = perf_counter()
            for i in range(calls):
                row = slice(i, i + 1)
                enter(col, kind, Call(rows.X[row], rows.y[row], np.array([first - i])))
            print(f"one row a call: {kind} {calls / (perf_counter() - start):,.0f} calls/s")


def where_time_goes(folder: Path, kind: str) -> None:
    """Profile twenty calls."""
    source = Calls()
    with everhash.create(folder / f"{kind}-profile.ever", DIM, BITS) as col:
        col.learn(*source.next()[:2])
        calls = [source.next() for _ in range(20)]
        profile = cProfile.Profile()
        profile.enable()
        for call in calls:
            enter(col, kind, call)
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
            show_opening(path, kind)
        if not options.profile:
            one_by_one(Path(name))
            if options.large:
                grow(path, options.large)
                show_opening(path, "large")


if __name__ == "__main__":
    main()
