"""The exact learner, the default, against gradient steps, the batch and the bare matrix products.

    python benchmarks/exact.py [quality|order|curve|correct|cost|upkeep ...] [--orderings 3]

    quality   mAP on four sets by codeword and by mapping, beside batch logistic regression
    order     the same rows shuffled, sorted by label, and with labels that join over time
    curve     mAP after 100, 300, 1,000 and all rows
    correct   wrong labels put right; a stream learned in four processes and merged
    cost      microseconds a row of learning and encoding, memory, pauses
    upkeep    bits of stored entries computed again while the stream goes on

All parts if none is named. An ordering is a seed: of the split, the stream's order and the hasher.
One BLAS thread, unless OPENBLAS_NUM_THREADS says otherwise.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

import argparse
from collections.abc import Callable
from time import perf_counter

from everhash.bench.machine import describe_machine
from exact_correct import correct
from exact_cost import cost
from exact_order import curve, order
from exact_quality import quality
from exact_upkeep import upkeep

PARTS: dict[str, Callable[[int], None]] = {
    "quality": quality,
    "order": order,
    "curve": curve,
    "correct": correct,
    "cost": cost,
    "upkeep": upkeep,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--orderings", type=int, default=3)
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {min(unknown)!r}: choose from {', '.join(PARTS)}")
    print(f"{describe_machine()}; BLAS threads: {os.environ['OPENBLAS_NUM_THREADS']}")
    for name in args.parts or PARTS:
        start = perf_counter()
        PARTS[name](args.orderings)
        print(f"({name}: {perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
