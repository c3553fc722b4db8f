"""What a cluster costs and gives: one collection here beside clusters of 1, 2 and 4 shards.

    python benchmarks/cluster_scale.py                       # 4 M entries: about half an hour
    python benchmarks/cluster_scale.py --entries 200000      # a few minutes

All hold the same entries, synthetic rows around 200 labels, a tenth of them without a label. Rates
are the best of several rounds that take turns. Ray runs on this machine only, so shards share its
cores and its disk: more shards than cores cannot be faster here.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import everhash
import everhash.cluster

LABELS = 200
BATCH = 10_000
QUERIES = 1000
ROUNDS = 5
SINGLES = 100
LEARNED = 20_000
STEP = 1000
"""Rows learned at a time until they publish."""
UNLABELLED = 10
"""Every tenth entry has no label."""


class Rows:
    """Rows around one place a label, made again for every collection."""

    def __init__(self, dim: int) -> None:
        self._places = np.random.default_rng(1).normal(size=(LABELS, dim)).astype(np.float32)

    def make(self, n: int, seed: int) -> tuple[NDArray[np.float32], list[int | None]]:
        """Return n rows and their labels."""
        rng = np.random.default_rng(seed)
        which = rng.integers(0, LABELS, n)
        noise = rng.normal(size=(n, self._places.shape[1])).astype(np.float32)
        labels = [None if i % UNLABELLED == 0 else int(label) for i, label in enumerate(which)]
        return self._places[which] + 0.7 * noise, labels


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def done(collection: Any, name: str, X: NDArray[np.float32], y: list[int | None]) -> None:
    """Make a call, and wait until all shards have applied it and entries are up to date."""
    getattr(collection, name)(X, y)
    if isinstance(collection, everhash.Collection):
        collection.wait()
    len(collection)  # a cluster acknowledges a write when its lead has stored it


def fill(collection: Any, rows: Rows, entries: int) -> dict[str, float]:
    """Fill a collection; return rows a second, for each way."""
    X, y = rows.make(LEARNED, 2)
    rates = {"learn": LEARNED / timed(partial(done, collection, "learn", X, y))}
    X, y = rows.make(LEARNED, 3)
    parts = [slice(i, i + BATCH) for i in range(0, LEARNED, BATCH)]
    seconds = [timed(partial(done, collection, "ingest", X[part], y[part])) for part in parts]
    rates["ingest"] = BATCH / min(seconds)
    seconds = []
    for i in range(LEARNED, entries, BATCH):
        X, y = rows.make(min(BATCH, entries - i), i)
        seconds.append(timed(partial(collection.add, X, y=y)))
    rates["add"] = BATCH * len(seconds) / sum(seconds) if seconds else float("nan")
    return rates


def search(
    collections: dict[str, Any], queries: NDArray[np.float32]
) -> dict[str, dict[str, float]]:
    """Search all collections in turns; return the best rates of each."""
    best: dict[str, dict[str, float]] = {name: {} for name in collections}
    expected = None
    for _ in range(ROUNDS):
        for name, collection in collections.items():
            start = time.perf_counter()
            found = collection.search(queries, by="meaning")
            rate = QUERIES / (time.perf_counter() - start)
            single = SINGLES / timed(partial(one_by_one, collection, queries[:SINGLES]))
            expected = found.ids if expected is None else expected
            assert np.array_equal(found.ids, expected), f"{name} answers otherwise"  # noqa: S101
            for what, value in (("in batches", rate), ("one by one", single)):
                best[name][what] = max(best[name].get(what, 0.0), value)
    return best


def one_by_one(collection: Any, queries: NDArray[np.float32]) -> None:
    """Search for one query after the other."""
    for query in queries:
        collection.search(query[None], by="meaning")


def refresh(collection: Any, rows: Rows) -> float:
    """Return entries a second that are brought up to date when rows that were learned publish."""
    published = collection.stats()["learned"]["published_rows"]
    for seed in range(1000, 2000):
        X, y = rows.make(STEP, seed)
        seconds = timed(partial(done, collection, "learn", X, y))
        stats = collection.stats()
        if stats["learned"]["published_rows"] != published:
            return float(stats["coded"] / seconds)
    raise AssertionError("nothing was published")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=4_000_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--shards", type=int, nargs="*", default=[1, 2, 4])
    options = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    rows = Rows(options.dim)
    queries = rows.make(QUERIES, 99)[0]
    with tempfile.TemporaryDirectory() as folder:
        rates: dict[str, dict[str, float]] = {}
        made: dict[str, Any] = {"here": everhash.create(Path(folder) / "here.ever", options.dim)}
        for n in options.shards:
            storage = Path(folder) / f"shards-{n}"
            made[f"{n} shards"] = everhash.cluster.create(None, storage, options.dim, shards=n)
        for name, collection in made.items():
            rates[name] = fill(collection, rows, options.entries)
            print(f"{name}: filled, {rates[name]}", flush=True)
        for name, found in search(made, queries).items():
            rates[name] |= found
        for name, collection in made.items():
            rates[name]["refresh"] = refresh(collection, rows)
        report(rates, options.entries, options.dim)
        for name, collection in made.items():
            size = collection.stats()["bytes"] / options.entries
            print(f"{name}: {size:.0f} bytes an entry on disk")
        for n in options.shards:
            everhash.cluster.stop(None, Path(folder) / f"shards-{n}")


def report(rates: dict[str, dict[str, float]], entries: int, dim: int) -> None:
    """Print rates, and their ratios to those of the collection here."""
    names = list(rates["here"])
    print(f"\n{entries:,} entries of {dim} features, {LABELS} labels, {os.cpu_count()} cores\n")
    print("| a second | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for name, found in rates.items():
        cells = [f"{found[what]:,.0f} ({found[what] / rates['here'][what]:.2f})" for what in names]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
