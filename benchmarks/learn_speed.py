"""How fast the stream is learned, against NumPy, scikit-learn and the bare matrix product.

    python benchmarks/learn_speed.py [--rows 2000]

One thread, one cycle, hinge, 10 labels of Gaussian rows (seed 0); all contestants in one run,
interleaved, best of five, microseconds a row:
    everhash   the compiled stream kernel, last iterate only (the paper's update)
    + mean     the same with averaged weights (the default)
    NumPy      a loop over rows that updates the erring functions by one outer product
    sklearn    SGDClassifier(hinge, constant step, no penalty), one a bit, in blocks of 1,000 rows
    GEMM       the margins alone, all rows at once by BLAS: no learner can be faster
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

import argparse
from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.bench.machine import describe_machine
from everhash.kernels import reference

Floats = NDArray[np.float32]
LABELS, ROUNDS = 10, 5


def make_stream(rows: int, d: int) -> tuple[Floats, NDArray[np.int64]]:
    """Rows around a centre for each label, at unit length; about a third of the bits err."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, LABELS, rows)
    X = 0.15 * rng.standard_normal((LABELS, d))[y] + rng.standard_normal((rows, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


def learn_compiled(Z: Floats, y: NDArray[np.int64], words: NDArray[np.int8], *, mean: bool) -> None:
    k, d = words.shape[1], Z.shape[1]
    last = np.zeros((1, k, d), np.float32)
    counts = [np.zeros((1, k), np.int64), np.zeros((1, k), np.int64)]
    rounds = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    kernels.load().learn(
        Z,
        y,
        np.zeros(len(Z), np.bool_),
        words,
        LABELS,
        last,
        last.copy() if mean else np.empty((0, k, d), np.float32),
        *counts,
        *rounds,
        1.0,
        False,
        reference.HINGE,
    )


def learn_numpy(Z: Floats, y: NDArray[np.int64], words: NDArray[np.int8]) -> None:
    W = np.zeros((words.shape[1], Z.shape[1]), np.float32)
    for z, word in zip(Z, words[y].astype(np.float32), strict=True):
        wrong = word * (W @ z) < 1
        W[wrong] += np.outer(word[wrong], z)


def learn_sklearn(Z: Floats, y: NDArray[np.int64], words: NDArray[np.int8]) -> None:
    from sklearn.linear_model import SGDClassifier

    for bit in range(words.shape[1]):
        model = SGDClassifier(
            loss="hinge",
            penalty=None,
            alpha=0.0,
            learning_rate="constant",
            eta0=1.0,
            fit_intercept=False,
            shuffle=False,
        )
        for start in range(0, len(Z), 1000):
            part = slice(start, start + 1000)
            model.partial_fit(Z[part], words[y[part], bit], classes=np.array([-1, 1], np.int8))


def race(contestants: dict[str, Callable[[], object]], rows: int) -> dict[str, float]:
    """Return the best time of each, in microseconds a row."""
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            start = perf_counter()
            run()
            best[name] = min(best[name], (perf_counter() - start) / rows * 1e6)
    return best


def measure(rows: int, d: int, k: int) -> dict[str, float]:
    Z, y = make_stream(rows, d)
    words = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (LABELS, k))
    W = np.zeros((k, d), np.float32)
    contestants: dict[str, Callable[[], object]] = {
        "everhash": lambda: learn_compiled(Z, y, words, mean=False),
        "+ mean": lambda: learn_compiled(Z, y, words, mean=True),
        "NumPy": lambda: learn_numpy(Z, y, words),
        "sklearn": lambda: learn_sklearn(Z, y, words),
        "GEMM": lambda: Z @ W.T,
    }
    return race(contestants, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    rows = parser.parse_args().rows
    print(describe_machine())
    kernels.load()
    names = ("everhash", "+ mean", "NumPy", "sklearn", "GEMM")
    print(f"{'d':>6}{'k':>5}" + "".join(f"{name:>10}" for name in names) + "   us a row")
    for d in (512, 1024, 4096):
        for k in (32, 64, 128):
            best = measure(rows, d, k)
            figures = "".join(f"{best[name]:10.2f}" for name in names)
            ratios = ", ".join(
                f"{best[peer] / best['everhash']:.1f}x {peer}" for peer in ("NumPy", "sklearn")
            )
            limit = best["everhash"] / best["GEMM"]
            print(f"{d:6}{k:5}{figures}   {ratios}; {limit:.1f} GEMMs", flush=True)


if __name__ == "__main__":
    main()
