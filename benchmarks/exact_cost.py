"""Time and memory of the exact learner beside the BLAS calls it is made of.

    python benchmarks/exact_cost.py [--dims 384 512 1024] [--features 0 1000 2000]

Microseconds a row of learning and encoding, peak memory, and the longest pauses, for several widths
of rows and numbers of random features. One BLAS thread, unless OPENBLAS_NUM_THREADS is
set. What gradient steps cost, `everhash bench run speed` measures.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

import tracemalloc
from argparse import Namespace
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import OnlineHasher
from everhash.bench.costs.timing import MICROSECONDS, seconds
from parts import run_parts

Floats = NDArray[np.float32]
BITS, LABELS = 32, 100
ROWS, FEWER_ROWS, BATCH = 100_000, 30_000, 10_000
"""Learned, learned where `ROWS` would take too long, and learned or encoded in one call."""
MAX_SECONDS = 20.0
"""Of the bare products of `ROWS` rows; where they take longer, fewer rows are learned."""
ROUNDS = 3
BLOCK, MIN_DIMS = 1024, 64
"""Rows that the learner multiplies together, and the least number of coordinates of its view."""
CALL, SINGLE_ROWS = 1000, 300
"""Rows of the calls whose pauses are measured, and calls of a single row."""


class Scene(NamedTuple):
    """The width of the rows, and the random features that the learner adds."""

    d: int
    features: int

    @property
    def width(self) -> int:
        """Numbers of a row as the learner sees it."""
        return max(self.d, MIN_DIMS) + self.features

    def hasher(self) -> OnlineHasher:
        """Return a hasher that has learned nothing yet."""
        return OnlineHasher(BITS, features=self.features)


def cost(args: Namespace) -> None:
    """Print a line for each width and number of features."""
    print(
        f"\ncost: the same {BATCH:,} Gaussian rows in each call, {LABELS} labels in random order, "
        f"{BITS} bits, seed 0; microseconds a row,\nin turns, best of {ROUNDS}; solving included. "
        f"syrk: products of the widened rows, in blocks of {BLOCK:,}; view: a matrix\nproduct that "
        "makes the features; margins: another one. Memory: peak of learning, as Python's allocator "
        f"counts it.\nPauses in milliseconds: the longest call of {CALL:,} rows up to "
        f"{2 * BATCH:,}, and of one row (a publication among {SINGLE_ROWS})"
    )
    print(
        f"{'d':>5}{'features':>9}{'rows':>9} |{'learn':>8}{'syrk':>8}{'view':>7}{'ratio':>7} |"
        f"{'encode':>8}{'margins':>9}{'view':>7}{'ratio':>7} |{'MB':>6}{'pause':>8}{'one row':>9}"
        f"{'median':>8}"
    )
    for d in args.dims:
        for features in args.features:
            _show(Scene(d, features))


def _show(scene: Scene) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((BATCH, scene.d), np.float32)
    y = rng.integers(0, LABELS, ROWS)
    rows = _affordable(scene)
    learn, syrk, view = _learning(scene, X, y[:rows])
    encode, margins, view_again = _encoding(scene, X, y)
    pause, one, median = _pauses(scene, X, y)
    print(
        f"{scene.d:>5}{scene.features:>9}{rows:>9,} |{learn:8.2f}{syrk:8.2f}{view:7.2f}"
        f"{learn / (syrk + view):7.2f} |{encode:8.2f}{margins:9.2f}{view_again:7.2f}"
        f"{encode / (margins + view_again):7.2f} |{_peak(scene, X, y):6.0f}{pause:8.1f}{one:9.1f}"
        f"{median:8.3f}",
        flush=True,
    )


def _affordable(scene: Scene) -> int:
    """Return how many rows to learn: fewer where their products alone would take too long."""
    block = np.ones((BLOCK, scene.width), np.float32)
    syrk = _syrk(block)
    syrk()
    return ROWS if seconds(syrk) / BLOCK * ROWS < MAX_SECONDS else FEWER_ROWS


def _learning(scene: Scene, X: Floats, y: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return microseconds a row of learning, of the products alone, and of the features alone."""
    batches = [(X, y[start : start + BATCH]) for start in range(0, len(y), BATCH)]

    def learn() -> None:
        hasher = scene.hasher()
        for rows, labels in batches:
            hasher.partial_fit(rows, labels)

    syrk, view = _syrk(_wide(scene)), _view(scene, X)
    learned, once, seen = _race([learn, syrk, view])
    return learned / len(y), once / BATCH, seen / BATCH


def _encoding(scene: Scene, X: Floats, y: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return microseconds a row of encoding, of the margins alone, and of the features alone."""
    hasher = scene.hasher().partial_fit(X, y[:BATCH])
    Z, W = _wide(scene), np.ones((scene.width, hasher.width_), np.float32)
    encode, margins, view = _race([lambda: hasher.encode(X), lambda: Z @ W, _view(scene, X)])
    return encode / BATCH, margins / BATCH, view / BATCH


def _pauses(scene: Scene, X: Floats, y: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return milliseconds: the longest call of many rows, the longest of one, and their median."""
    hasher = scene.hasher()
    parts = [slice(start, start + CALL) for start in range(0, BATCH, CALL)]
    many = [
        seconds(lambda part=part, turn=turn: hasher.partial_fit(X[part], y[turn:][part]))  # type: ignore[misc]
        for turn in (0, BATCH)
        for part in parts
    ]
    due = int(1.5 * (hasher.published_rows_ or 0)) - SINGLE_ROWS // 2
    for _ in range(-(-max(0, due - (hasher.rows_ or 0)) // BATCH)):
        some = min(BATCH, due - (hasher.rows_ or 0))
        hasher.partial_fit(X[:some], y[:some])
    single = [
        seconds(lambda row=row: hasher.partial_fit(X[row : row + 1], y[row : row + 1]))  # type: ignore[misc]
        for row in range(SINGLE_ROWS)
    ]
    return 1e3 * max(many), 1e3 * max(single), 1e3 * float(np.median(single))


def _peak(scene: Scene, X: Floats, y: NDArray[np.int64]) -> float:
    """Return the peak memory of learning, in megabytes."""
    tracemalloc.start()
    hasher = scene.hasher()
    for start in (0, BATCH):
        hasher.partial_fit(X, y[start : start + BATCH])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def _wide(scene: Scene) -> Floats:
    return np.random.default_rng(1).standard_normal((BATCH, scene.width), np.float32)


def _syrk(Z: Floats) -> Callable[[], object]:
    """Return a function that adds up the products of rows, a block at a time."""
    from scipy.linalg.blas import ssyrk

    total = np.zeros((Z.shape[1], Z.shape[1]), np.float32, order="F")

    def run() -> None:
        for start in range(0, len(Z), BLOCK):
            ssyrk(1.0, Z[start : start + BLOCK].T, 1.0, total, lower=1, overwrite_c=1)

    return run


def _view(scene: Scene, X: Floats) -> Callable[[], object]:
    """Return a function that makes the features by a matrix product; no work if there are none."""
    P = np.ones((scene.d, scene.features), np.float32)
    return lambda: X @ P


def _race(runs: list[Callable[[], object]]) -> list[float]:
    """Run all in turns; return the best time of each in microseconds."""
    times = [[seconds(run) for run in runs] for _ in range(ROUNDS)]
    return [MICROSECONDS * best for best in np.min(times, axis=0).tolist()]


if __name__ == "__main__":
    run_parts(__doc__, {"cost": cost}, dims=(384, 512, 1024), features=(0, 1000, 2000))
