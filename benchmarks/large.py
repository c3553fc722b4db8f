"""One machine, up to 10 million entries and 10,000 labels: what grows, and how fast.

    python benchmarks/large.py [grow|flat|page ...] [--entries 10000 ... 10000000] [--out FILE]

    grow   a collection is filled, 20,000 rows a call, each call durable: by `ingest`, which learns
           too, up to `--learn` rows, then by `add`, except for the last call of each size; at each
           size it is refreshed, searched, closed and opened again
    flat   FAISS's IndexFlatIP with the same rows and queries
    page   the page and the figure from the rows, which docs/results/large.jsonl has

The first 180,208 rows are real, later ones are drawn between real ones: see `large_rows.py`. One
thread. Where the machine is busy the clock says little, so the work of the processor is measured
beside it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy, Numba and FAISS start their threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import json
import multiprocessing
import tempfile
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, cast

import numpy as np

import everhash
import large_page
from everhash import Collection, OnlineHasher, kernels
from everhash.bench.costs.timing import load
from everhash.bench.machine import describe_machine
from large_rows import DIM, Counts, Floats, Rows, real_rows
from parts import run_parts

FILE = Path(__file__).parents[1] / "docs" / "results" / "large.jsonl"
BITS, K, CALL = 32, 10, 20_000
SINGLES, ALIKE = 200, 20
"""Queries asked one by one, and by likeness."""
FEW_LABELS = 1_000_000
"""Entries up to which fewer labels than the most are tried, and FAISS is asked one by one."""
Row = dict[str, Any]


class Clock:
    """Seconds by the clock and of the processor, summed over what ran in `time`."""

    def __init__(self) -> None:
        self.wall = self.work = 0.0

    def time(self, run: Callable[[], Any]) -> Any:
        """Run something, and return what it returns."""
        wall, work = perf_counter(), process_time()
        result = run()
        self.wall += perf_counter() - wall
        self.work += process_time() - work
        return result

    def per(self, n: int, unit: float = 1.0) -> list[float]:
        """Return both, for each of n, in parts of a second."""
        return [unit * self.wall / max(1, n), unit * self.work / max(1, n)]


class Filling:
    """A collection that is being filled, and what its calls took since the last look."""

    def __init__(self, path: Path, rows: Rows) -> None:
        self._path, self._rows = path, rows
        hasher = OnlineHasher(BITS, features=0)
        self.collection = everhash.create(
            path, DIM, hasher=hasher, keep_features="unlabelled", auto_refresh=False
        )

    def grow(self, first: int, last: int, learn: int) -> Row:
        """Fill in the rows from one number to another, and return what each took."""
        ingesting, adding, learned, done = Clock(), Clock(), 0, first
        before, publications = self._hasher.published_rows_, 0
        for call in self._rows.calls(first, last, CALL):
            done += len(call.X)
            if done <= learn or done == last:
                ingesting.time(partial(self.collection.ingest, call.X, call.y))
                learned += len(call.X)
            else:
                adding.time(partial(self.collection.add, call.X, y=call.y))
            now = self._hasher.published_rows_
            publications, before = publications + (now != before), now
        return {
            "ingest_us": ingesting.per(learned, 1e6),
            "add_us": adding.per(last - first - learned, 1e6) if adding.wall else None,
            "learned": self._hasher.rows_,
            "publications": publications,
        }

    def publish(self) -> Row:
        """Solve all labels again, in a copy of the hasher."""
        file, clock = self._path.with_suffix(".model"), Clock()
        self._hasher.save(file)
        clock.time(OnlineHasher.load(file).publish)
        file.unlink()
        return {"publication_s": clock.per(1)}

    @property
    def _hasher(self) -> OnlineHasher:
        return cast(OnlineHasher, self.collection.hasher)

    def refresh(self) -> Row:
        """Bring unlabelled entries up to date."""
        clock = Clock()
        report = clock.time(self.collection.refresh)
        return {
            "refresh_s": clock.per(1),
            "refresh_us": clock.per(report.entries, 1e6),
            "unlabelled": report.entries,
            "bits": report.bits_recomputed,
        }

    def reopen(self) -> Row:
        """Close the file and open it; the first search loads what searches need."""
        opening, first = Clock(), Clock()
        self.collection.close()
        size = self._path.stat().st_size
        self.collection = opening.time(partial(everhash.open, self._path, auto_refresh=False))
        first.time(partial(self.collection.search, self._rows.queries[:1], K, "meaning"))
        return {"reopen_s": opening.per(1), "first_search_s": first.per(1), "bytes": size}


def search(collection: Collection, rows: Rows) -> Row:
    """Search in a batch, one by one, and by likeness; say how often the first answer is right."""
    batch, single, alike, queries = Clock(), Clock(), Clock(), rows.queries
    collection.search(queries[:2], K, "meaning")
    found = batch.time(partial(collection.search, queries, K, "meaning"))
    for query in queries[:SINGLES]:
        single.time(partial(collection.search, query[None], K, "meaning"))
    alike.time(partial(collection.search, queries[:ALIKE], K, "likeness"))
    first = [entry.labels for entry in collection.get(found.ids[:, 0].tolist())]
    known = [(mine, true) for mine, true in zip(first, rows.truth.tolist(), strict=True) if mine]
    return {
        "batch_ms": batch.per(len(queries), 1e3),
        "single_ms": single.per(len(queries[:SINGLES]), 1e3),
        "likeness_ms": alike.per(len(queries[:ALIKE]), 1e3),
        "right": float(np.mean([true in mine for mine, true in known])),
    }


def memory() -> Row:
    """Return resident memory now and at its highest, in bytes; None where it is not known."""
    file = Path("/proc/self/status")
    lines = file.read_text().splitlines() if file.exists() else []
    said = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    names = {"resident": "VmRSS", "peak": "VmHWM"}
    return {key: 1024 * int(said[name]) if name in said else None for key, name in names.items()}


def forget_peak() -> None:
    """Have the highest memory be counted from now on, where the system can."""
    file = Path("/proc/self/clear_refs")
    if file.exists():
        file.write_text("5")


def grow(args: Namespace) -> None:
    """Fill a collection for each number of labels; each has a process, whose memory is its own."""
    most, spawn = max(args.labels), multiprocessing.get_context("spawn")
    for labels in args.labels:
        sizes = [n for n in sorted(args.entries) if labels == most or n <= FEW_LABELS]
        process = spawn.Process(target=fill, args=(args, labels, sizes))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{labels} labels: the process ended with {process.exitcode}")


def fill(args: Namespace, labels: int, sizes: list[int]) -> None:
    """Fill a collection, and measure at each size."""
    kernels.load_all()
    rows = Rows(*real_rows(), labels)
    forget_peak()
    before, done = memory(), 0
    with tempfile.TemporaryDirectory() as folder:
        filling = Filling(Path(folder, "large.ever"), rows)
        for size in sizes:
            start = perf_counter()
            row = {"part": "grow", "entries": size, "labels": labels, "real": min(size, rows.real)}
            row |= filling.grow(done, size, args.learn) | filling.publish() | filling.refresh()
            row |= search(filling.collection, rows)
            row |= filling.reopen() | {"before": before["resident"]} | memory()
            row["known"] = len(filling.collection.hasher.labels_)
            row["seconds"], done = perf_counter() - start, size
            note(args.out, row)
        filling.collection.close()


def flat(args: Namespace) -> None:
    """Search the same rows with FAISS, at each size."""
    import faiss

    labels, done = max(args.labels), 0
    rows, index = Rows(*real_rows(), labels), faiss.IndexFlatIP(DIM)
    forget_peak()
    before, adding, queries = memory(), Clock(), unit(rows.queries)
    truth: list[Counts] = []
    for size in sorted(args.entries):
        for call in rows.calls(done, size, CALL):
            adding.time(partial(index.add, unit(call.X)))
            truth.append(np.array([-1 if label is None else label for label in call.y]))
        batch, single, done = Clock(), Clock(), size
        places = batch.time(partial(index.search, queries, K))[1]
        ones = queries[: SINGLES if size <= FEW_LABELS else 10]
        for query in ones:
            single.time(partial(index.search, query[None], K))
        first = np.concatenate(truth)[places[:, 0]]
        row = {"part": "flat", "entries": size, "labels": labels, "real": min(size, rows.real)}
        row |= {"batch_ms": batch.per(len(queries), 1e3), "single_ms": single.per(len(ones), 1e3)}
        row["right"] = float((first == rows.truth)[first >= 0].mean())
        note(args.out, row | {"ingest_us": adding.per(size, 1e6), "before": before["resident"]})


def unit(X: Floats) -> Floats:
    """Return rows at unit length."""
    scaled: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return scaled


def note(file: str, row: Row) -> None:
    """Append a row to the file, with the machine and its load, in place of an older one."""
    path, key = Path(file), ("part", "entries", "labels")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    old = [each for each in map(json.loads, lines) if any(each[k] != row[k] for k in key)]
    rows = [*old, row | memory() | {"load": load(), "machine": describe_machine()}]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    print(json.dumps(row), flush=True)


def page(args: Namespace) -> None:
    """Write the page and the figure."""
    large_page.write(Path(args.out))


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"grow": grow, "flat": flat, "page": page},
        entries=(10_000, 100_000, 1_000_000, 10_000_000),
        labels=(10_000, 1_000, 100),
        learn=1_000_000,
        out=str(FILE),
    )
