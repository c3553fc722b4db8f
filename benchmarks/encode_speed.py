"""Margins by our kernel against BLAS: speed, and whether a row's bits depend on its company.

    python benchmarks/encode_speed.py

One thread, 1,024 rows (seed 0), interleaved, best of nine. "moved" counts the rows, of 300, whose
margins differ in the last bit when rows are put in another order, padded to blocks of 64 rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.bench.machine import describe_machine

Floats = NDArray[np.float32]
ROWS, BLOCK = 1024, 64
SHAPES = ((64, 32, 1), (384, 32, 1), (384, 64, 1), (512, 32, 1), (512, 32, 13), (1024, 64, 1))


def by_kernel(Z: Floats, functions: Floats) -> Floats:
    out = np.empty((len(Z), functions.shape[0] * functions.shape[1]), np.float32)
    kernels.load().margins_into(Z, functions, out)
    return out


def by_blas(Z: Floats, functions: Floats) -> Floats:
    return Z @ functions.reshape(-1, functions.shape[2]).T


def by_blocks(Z: Floats, functions: Floats) -> Floats:
    padded = np.zeros((-(-len(Z) // BLOCK) * BLOCK, Z.shape[1]), np.float32)
    padded[: len(Z)] = Z
    blocks = [by_blas(padded[at : at + BLOCK], functions) for at in range(0, len(padded), BLOCK)]
    return np.vstack(blocks)[: len(Z)]


def best_of(contestants: dict[str, Callable[[], object]], rounds: int = 9) -> dict[str, float]:
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(rounds):
        for name, run in contestants.items():
            start = perf_counter()
            run()
            best[name] = min(best[name], (perf_counter() - start) / ROWS * 1e6)
    return best


def moved(encode: Callable[[Floats, Floats], Floats], Z: Floats, functions: Floats) -> int:
    order = np.random.default_rng(1).permutation(300)
    before, after = encode(Z[:300], functions)[order], encode(Z[:300][order], functions)
    return int((before != after).any(axis=1).sum())


def measure(d: int, k: int, cycles: int) -> str:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((ROWS, d), np.float32)
    functions = rng.standard_normal((cycles, k, d), np.float32)
    best = best_of(
        {"kernel": lambda: by_kernel(Z, functions), "BLAS": lambda: by_blas(Z, functions)}
    )
    share = best["BLAS"] / best["kernel"]
    figures = f"{best['kernel']:14.2f}{best['BLAS']:10.2f}{share:12.0%}"
    counts = f"{moved(by_kernel, Z, functions):14}{moved(by_blocks, Z, functions):12}"
    return f"{d:6}{k:5}{cycles:8}{figures}{counts}"


def main() -> None:
    print(describe_machine())
    print(f"{'d':>6}{'k':>5}{'cycles':>8}{'kernel us/row':>14}{'BLAS':>10}{'of BLAS':>12}", end="")
    print(f"{'moved: kernel':>14}{'BLAS':>12}")
    for shape in SHAPES:
        print(measure(*shape), flush=True)


if __name__ == "__main__":
    main()
