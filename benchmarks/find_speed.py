"""How fast entries are found by the public `Collection.search`, beside FAISS, on one thread.

    python benchmarks/find_speed.py [race|scaling|bytes|page ...] [--entries 200000 1000000]

    race      right among ten against queries a second, batches of 1,000 and one by one; what one
              call costs beyond its matrix products; searches before and after removals
    scaling   meaning by the number of entries, and by the number of labels
    bytes     bytes an entry on disk and in memory, by what is kept
    page      the page and the figure from the rows, which docs/results/find_speed.jsonl has

Rows are synthetic: see `find_rows.py`. 1,000 labels, 384 features, 30 % of the entries without a
label, 32 bits. A round asks everybody in turn, and the best of several counts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy and FAISS start their threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import tempfile
import tracemalloc
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import everhash
import find_page
from everhash import Collection
from everhash.bench.costs.timing import MICROSECONDS, load, race, seconds
from everhash.bench.machine import describe_machine
from everhash.learn.views import margins_by
from find_rows import (
    BITS,
    CALL,
    DIM,
    Counts,
    Floats,
    K,
    Rows,
    Search,
    by,
    indexes,
    searches,
    taught,
    unit,
)
from parts import run_parts

FILE = Path(__file__).parents[1] / "docs" / "results" / "find_speed.jsonl"
LABELS, LEARNED, QUERIES = 1000, 50_000, 1000
REMOVED = 0.05
SLOW, FAST, BRIEF = 10, 200, 0.2
"""Queries asked one by one in a round: few if so few of them take longer than a while."""
SETTINGS = (("all", True), ("unlabelled", True), ("none", True), ("none", False))
WEIGHED = 20_000
"""Entries that are weighed."""


def race_all(args: Namespace) -> None:
    """Race relevance, meaning and likeness against FAISS, at each number of entries."""
    for entries in args.entries:
        with tempfile.TemporaryDirectory() as folder:
            _race(args, entries, Path(folder))


def _race(args: Namespace, entries: int, folder: Path) -> None:
    """Race at one number of entries, then time single calls and removals."""
    rows = Rows(LABELS)
    usual = taught(folder / "usual.ever", rows, LEARNED, features=1000, keep="all")
    linear = taught(folder / "linear.ever", Rows(LABELS), LEARNED, features=0, keep="none")
    made = indexes(unit(rows.draw(40 * 1024)[0]), hnsw=entries <= args.hnsw)
    true: list[Counts] = []
    for X, y, given in rows.calls(entries):
        true.append(y)
        for collection in (usual, linear):
            collection.add(X, y=given)
        faiss.omp_set_num_threads(2)  # building is not timed
        for index in made.values():
            index.add(unit(X))
        faiss.omp_set_num_threads(1)
    usual.wait()
    linear.wait()
    ours = {way: by(usual, way) for way in ("relevance", "meaning", "likeness")}
    ours |= {"meaning, features=0": by(linear, "meaning")}
    asked, wanted = rows.draw(QUERIES)
    write("race", entries, _raced(args, ours | searches(made), asked, wanted, np.concatenate(true)))
    made.clear()
    write(
        "one call",
        entries,
        [_one_call(usual, asked, "meaning"), _one_call(linear, asked, "meaning, features=0")],
    )
    write("removals", entries, [_removals(usual, way, asked) for way in ("meaning", "likeness")])
    usual.close()
    linear.close()


def _raced(
    args: Namespace, contestants: dict[str, Search], asked: Floats, wanted: Counts, true: Counts
) -> list[dict[str, Any]]:
    """Return how right and how fast each contestant is."""
    found = {name: true[search(asked)] == wanted[:, None] for name, search in contestants.items()}
    batches: dict[str, Callable[[], object]] = {
        name: partial(search, asked) for name, search in contestants.items()
    }
    in_batch = race(batches, args.rounds, QUERIES)
    alone = dict.fromkeys(contestants, np.inf)
    for _ in range(args.rounds):
        for name, search in contestants.items():
            alone[name] = min(alone[name], _one_by_one(search, asked))
    return [
        {
            "what": name,
            "first": float(found[name][:, 0].mean()),
            "ten": float(found[name].mean()),
            "batch": 1e6 / in_batch[name],
            "single": 1e6 / alone[name],
        }
        for name in contestants
    ]


def _one_by_one(search: Search, asked: Floats) -> float:
    """Return the microseconds a query, asked alone."""
    few = SLOW if seconds(partial(search, asked[:1])) > BRIEF / SLOW else FAST
    took = seconds(lambda: [search(row[None]) for row in asked[:few]])
    return took / few * MICROSECONDS


def _one_call(collection: Collection, asked: Floats, what: str) -> dict[str, Any]:
    """Return what a search of one row takes beyond its view and its labels' classifiers."""
    hasher: Any = collection.hasher
    classifiers = hasher._learner.served.classifiers.rows[None]
    row = asked[:1]
    times = race(
        {
            "call": lambda: [collection.search(row, K, "meaning") for _ in range(FAST)],
            "products": lambda: [
                margins_by(classifiers, hasher._view.of(row)) for _ in range(FAST)
            ],
        },
        20,
        FAST,
    )
    return {"what": what, **times, "beyond": times["call"] - times["products"]}


def _removals(collection: Collection, way: str, asked: Floats) -> dict[str, Any]:
    """Return times a query before and after a share of the entries is removed."""
    queries = asked if way == "meaning" else asked[:50]
    before = race({way: lambda: collection.search(queries, K, way)}, 5, len(queries))[way]
    gone = np.random.default_rng(0).permutation(len(collection))[: int(REMOVED * len(collection))]
    living = [int(number) for number in gone if collection.has([int(number)])[0]]
    collection.remove(living)
    after = race({way: lambda: collection.search(queries, K, way)}, 5, len(queries))[way]
    return {"what": way, "before": before, "after": after, "removed": len(living)}


def scaling(args: Namespace) -> None:
    """Time meaning by the number of entries, and by the number of labels."""
    sizes = sorted(n for n in (10_000, 100_000, max(args.entries)))
    found = []
    rows = Rows(LABELS)
    with taught(None, rows, LEARNED, features=1000, keep="none") as collection:
        for entries in dict.fromkeys(sizes):
            _fill(collection, rows, entries)
            found.append(_timed(collection, rows, entries, LABELS, 1000))
    for labels in (10, 100, 10_000):
        features, rows = (0 if labels > LABELS else 1000), Rows(labels)
        learned = min(LEARNED, 500 * labels) if labels <= LABELS else 10 * labels
        with taught(None, rows, learned, features=features, keep="none") as collection:
            _fill(collection, rows, 100_000)
            found.append(_timed(collection, rows, 100_000, labels, features))
    write("scaling", max(args.entries), found)


def _fill(collection: Collection, rows: Rows, entries: int) -> None:
    for X, _, given in rows.calls(entries - len(collection)):
        collection.add(X, y=given)
    collection.wait()


def _timed(
    collection: Collection, rows: Rows, entries: int, labels: int, features: int
) -> dict[str, Any]:
    asked = rows.draw(QUERIES)[0]
    times = race(
        {
            "batch": lambda: [collection.search(asked, K, "meaning")],
            "single": lambda: [collection.search(row[None], K, "meaning") for row in asked],
        },
        5,
        QUERIES,
    )
    return {"what": "meaning", "entries": entries, "labels": labels, "features": features, **times}


def weigh(_args: Namespace) -> None:
    """Weigh entries on disk and in memory, by what is kept."""
    found = []
    for keep, likeness in SETTINGS:
        for kind in ("labelled", "unlabelled"):
            disk, memory = _weighed(keep, kind, likeness=likeness)
            found.append(
                {"what": kind, "keep": keep, "likeness": likeness, "disk": disk, "memory": memory}
            )
    write("bytes", WEIGHED, found)


def _weighed(keep: str, kind: str, *, likeness: bool) -> tuple[float, float]:
    """Return bytes an entry in a compact copy of the file, and as Python allocates them."""
    rows = Rows(100)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        collection = everhash.create(
            path / "all.ever", DIM, BITS, keep_features=keep, likeness=likeness, durability="none"
        )
        with collection:
            X, y = rows.draw(5000)
            collection.learn(X, y.tolist())
            collection.search(X[:1], K, "meaning")
            collection.snapshot(path / "before.ever")
            calls = [rows.draw(CALL) for _ in range(WEIGHED // CALL)]
            tracemalloc.start()
            for X, y in calls:
                collection.add(X, y=y.tolist() if kind == "labelled" else None)
            collection.search(X[:1], K, "meaning")
            memory = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            collection.snapshot(path / "after.ever")
        sizes = [(path / name).stat().st_size for name in ("after.ever", "before.ever")]
    return (sizes[0] - sizes[1]) / WEIGHED, memory / WEIGHED


def write(part: str, entries: int, found: list[dict[str, Any]]) -> None:
    """Write rows of a part, in place of those it had at this number of entries."""
    origin = {"machine": describe_machine(), "version": everhash.__version__, "load": load()}
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    kept = [row for row in map(json.loads, lines) if (row["part"], row["size"]) != (part, entries)]
    kept += [{"part": part, "size": entries, **row, **origin} for row in found]
    FILE.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    for row in found:
        print(part, f"{entries:,}", json.dumps(row), flush=True)


def page(_args: Namespace) -> None:
    """Write the page and the figure from the rows."""
    find_page.write(FILE)


if __name__ == "__main__":
    faiss.omp_set_num_threads(1)
    parts = {"race": race_all, "scaling": scaling, "bytes": weigh, "page": page}
    run_parts(__doc__, parts, entries=(200_000, 1_000_000), hnsw=200_000, rounds=3)
