"""How fast gradient steps are, against NumPy, scikit-learn and the bare matrix product.

    python benchmarks/learn_speed.py [--rows 2000]

One thread, one cycle, hinge, 10 labels of Gaussian rows (seed 0); all contestants in one run,
interleaved, best of five, microseconds a row:
    everhash   the compiled stream kernel, last iterate only (the paper's update)
    + mean     the same with averaged weights (learner="sgd")
    NumPy      a loop over rows that updates the erring functions by one outer product
    sklearn    SGDClassifier(hinge, constant step, no penalty), one a bit, in blocks of 1,000 rows
    GEMM       the margins alone, all rows at once by BLAS: no such learner can be faster
What the exact learner costs, `exact.py cost` measures.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

import argparse

from everhash.bench.costs.learning import learners
from everhash.bench.costs.timing import race
from everhash.bench.machine import describe_machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    rows = parser.parse_args().rows
    print(describe_machine())
    names = {"everhash": "everhash", "+ mean": "+ mean", "NumPy": "NumPy"}
    names |= {"scikit-learn": "sklearn", "GEMM": "GEMM"}
    heading = "".join(f"{name:>10}" for name in names.values())
    print(f"{'d':>6}{'k':>5}{heading}   us a row")
    for d in (512, 1024, 4096):
        for k in (32, 64, 128):
            best = race(learners(rows, d, k), per=rows)
            figures = "".join(f"{best[name]:10.2f}" for name in names)
            ratios = ", ".join(
                f"{best[peer] / best['everhash']:.1f}x {names[peer]}"
                for peer in ("NumPy", "scikit-learn")
            )
            limit = best["everhash"] / best["GEMM"]
            print(f"{d:6}{k:5}{figures}   {ratios}; {limit:.1f} GEMMs", flush=True)


if __name__ == "__main__":
    main()
