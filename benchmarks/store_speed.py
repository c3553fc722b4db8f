"""How fast a collection takes rows in durably, how soon it answers after a start, what it weighs.

    python benchmarks/store_speed.py [--rows 1000000] [--large 10000000]

Rows of 384 features in calls of 10,000, each call one durable transaction. The peer is the disk
itself: the same calls as plain writes to a file, each followed by fsync, interleaved with ours in
the same run. "Input" are the rows as they come, float32; "stored" is what the collection keeps of
them. Best of the blocks, and the mean over all of them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash import kernels
from everhash.bench.machine import describe_machine

DIM, BITS, LABELS, CALL, BLOCK = 384, 64, 100, 10_000, 10
SEED = 0


def rows_of(rng: np.random.Generator, centres: NDArray[np.float32], n: int) -> tuple[
    NDArray[np.float32], NDArray[np.int64]
]:
    """Rows around the labels' centres, as embeddings lie."""
    y = rng.integers(0, LABELS, n)
    return centres[y] + rng.standard_normal((n, DIM), np.float32), y


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


def ingest(folder: Path, kind: str, n: int) -> Path:
    """Ingest n rows; print speed beside the disk's."""
    rng = np.random.default_rng(SEED)
    centres = rng.standard_normal((LABELS, DIM), np.float32)
    path = folder / f"{kind}.ever"
    col = everhash.create(path, DIM, BITS)
    X, y = rows_of(rng, centres, CALL)
    col.learn(X, y)
    labelled = kind != "unlabelled"
    stored = 12 * CALL if labelled else (2 * DIM + 28) * CALL
    times: dict[str, list[float]] = {"ours": [], "input": [], "stored": []}
    with plain_file(folder / "plain") as write:
        for start in range(0, n, CALL):
            X, y = rows_of(rng, centres, CALL)
            ids = np.arange(start, start + CALL) * 7 + 1
            begin = perf_counter()
            if kind == "learned":
                col.ingest(X, y, ids)
            else:
                col.add(X, ids, y if labelled else None)
            times["ours"].append(perf_counter() - begin)
            times["input"].append(write(X.tobytes()))
            times["stored"].append(write(X.tobytes()[:stored]))
    col.close()
    size = path.stat().st_size / n
    report(kind, times, size)
    return path


def report(kind: str, times: dict[str, list[float]], size: float) -> None:
    mean = {name: float(np.mean(values)) for name, values in times.items()}
    best = {name: float(np.mean(np.sort(v)[: max(1, len(v) // 4)])) for name, v in times.items()}
    for what, of in (("mean of all calls", mean), ("best quarter", best)):
        print(
            f"{kind:>11} {what:<18} {of['ours'] * 1e3:8.1f} ms a call "
            f"({CALL / of['ours']:>9,.0f} rows/s)   plain: input {of['input'] * 1e3:6.1f} ms, "
            f"stored {of['stored'] * 1e3:6.1f} ms   ratio: input {of['input'] / of['ours']:.2f}, "
            f"stored {of['stored'] / of['ours']:.2f}"
        )
    print(f"{kind:>11} {size:,.1f} bytes an entry on disk", end="")
    print(f", {size - 2 * DIM:,.1f} beside features" if kind == "unlabelled" else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    print(describe_machine())
    kernels.load(), kernels.load_search()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for kind in ("labelled", "learned", "unlabelled"):
            path = ingest(Path(name), kind, options.rows)
            start = perf_counter()
            with everhash.open(path, readonly=True) as col:
                opened = perf_counter() - start
                col.search(np.ones((1, DIM), np.float32), 10)
                print(f"{kind:>11} open {opened:.2f} s, first answer {perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
