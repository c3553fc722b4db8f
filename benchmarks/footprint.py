"""What entries weigh in memory and on disk, and how soon a file of them answers.

    python benchmarks/footprint.py [memory|file ...] [--entries 1000000 10000000]

    memory   bytes an entry as Python's allocator counts them, search structures included; features
             of unlabelled entries (2 bytes a dimension) are taken off
    file     bytes an entry on disk, seconds to open the file and until it has answered one search

64 bits, seed 0; 1,000 labels in memory, 100 in files, whose rows have 384 features. Files are
written without waiting for the disk; `everhash bench run speed` measures how fast rows are added
durably.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import everhash
from everhash import Index, OnlineHasher, kernels
from everhash.bench.costs.store import CALL, Calls, enter, reopen
from everhash.bench.costs.store import DIM as FILE_DIM
from everhash.bench.costs.synthetic import RowGenerator
from parts import run_parts

BITS, DIM, LABELS, BATCH = 64, 32, 1000, 50_000
KINDS = ("labelled", "unlabelled")


def memory(args: Namespace) -> None:
    """Print bytes an entry of an index."""
    print(f"\n{'memory':<32}{'entries':>12}{'bytes each':>12}")
    # which learner has made the codes makes no difference to their size
    source = RowGenerator(LABELS, DIM)
    hasher = OnlineHasher(BITS, learner="sgd").begin(DIM).assign(range(LABELS))
    hasher.partial_fit(*source.rows(10 * LABELS))
    for kind in KINDS:
        for n in args.entries:
            used = allocated(lambda n=n, kind=kind: fill(hasher, source, kind, n))  # type: ignore[misc]
            features = 2 * DIM * n if kind == "unlabelled" else 0
            print(f"{kind:<32}{n:12,}{(used - features) / n:12.1f}", flush=True)


def fill(hasher: OnlineHasher, source: RowGenerator, kind: str, n: int) -> Index:
    """Return an index of n entries that has answered a search."""
    index = Index(hasher)
    for start in range(0, n, BATCH):
        X, y = source.rows(min(BATCH, n - start))
        index.add(X, y=y if kind == "labelled" else None)
    index.search(source.rows(1)[0], 10, "meaning")
    return index


def allocated(make: Callable[[], object]) -> int:
    """Return the bytes that stay allocated while the result lives."""
    tracemalloc.start()
    kept = make()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return used


def file(args: Namespace) -> None:
    """Print bytes an entry of a file, and how soon it answers."""
    kernels.load_all()
    print(f"\n{'file':<14}{'entries':>12}{'bytes each':>12}{'open s':>9}{'answered s':>12}")
    for kind in KINDS:
        for n in args.entries:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "entries.ever")
                empty = write(path, kind, n)
                each = (path.stat().st_size - empty) / n
                each -= 2 * FILE_DIM if kind == "unlabelled" else 0
                opening = reopen(path)
            times = f"{opening.opened:9.2f}{opening.answered:12.2f}"
            print(f"{kind:<14}{opening.entries:12,}{each:12.1f}{times}", flush=True)


def write(path: Path, kind: str, n: int) -> int:
    """Write a file of n entries; return its size before there were any."""
    calls = Calls()
    with everhash.create(path, FILE_DIM, BITS, durability="none") as collection:
        collection.learn(*calls.next()[:2])
    empty = path.stat().st_size
    with everhash.open(path, durability="none") as collection:
        for start in range(0, n, CALL):
            enter(collection, kind, calls.next(min(CALL, n - start)))
    return empty


if __name__ == "__main__":
    run_parts(__doc__, {"memory": memory, "file": file}, entries=(1_000_000, 10_000_000))
