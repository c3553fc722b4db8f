"""Margins by our kernel against BLAS: speed, and whether a row's bits depend on its company.

    python benchmarks/encode_speed.py

One thread, 1,024 rows (seed 0), interleaved, best of nine. "moved" counts the rows, of 300, whose
margins differ in the last bit when rows are put in another order, padded to blocks of 64 rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

from everhash.bench.costs.encoding import by_blocks, by_kernel, encoders, make_rows, moved
from everhash.bench.costs.timing import race
from everhash.bench.machine import describe_machine

ROWS, ROUNDS = 1024, 9
SHAPES = ((64, 32, 1), (384, 32, 1), (384, 64, 1), (512, 32, 1), (512, 32, 13), (1024, 64, 1))


def measure(d: int, k: int, cycles: int) -> str:
    Z, functions = make_rows(ROWS, d, k, cycles)
    best = race(encoders(Z, functions), ROUNDS, per=ROWS)
    share = best["BLAS"] / best["everhash"]
    figures = f"{best['everhash']:14.2f}{best['BLAS']:10.2f}{share:12.0%}"
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
