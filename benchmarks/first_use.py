"""What the first day on a machine costs: everything once, with no kernel compiled, and again.

    python benchmarks/first_use.py [--runs 3]

Each run is a process of its own that creates a collection, ingests 1,700 of scikit-learn's digits
in two parts, a quarter without a label, searches by meaning, likeness and relevance, refreshes,
closes, opens and searches again: first with an empty folder of kernels, then with what the first
has compiled. Printed are the processor's seconds of each step in the run that took least in all,
the seconds by the clock, and the kernels it has compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

QUERIES, UNLABELLED = 97, 4


def day() -> None:
    """Do what a first day does; print the seconds of each step and the kernels, as JSON."""
    steps: dict[str, float] = {}
    start, clock = process_time(), perf_counter()

    def done(step: str) -> None:
        nonlocal start
        steps[step] = process_time() - start
        start = process_time()

    import numpy as np
    from sklearn.datasets import load_digits

    import everhash

    X, y = load_digits(return_X_y=True)
    X, labels = X.astype(np.float32), [int(label) for label in y]
    rows, queries = X[:-QUERIES], X[-QUERIES:]
    known = [label if i % UNLABELLED else None for i, label in enumerate(labels[:-QUERIES])]
    half = len(rows) // 2
    done("import")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "digits.ever")
        with everhash.create(path, rows.shape[1]) as collection:
            done("create")
            for part in (slice(half), slice(half, None)):
                collection.ingest(rows[part], known[part])
            done("ingest")
            for by in ("meaning", "likeness", "relevance"):
                collection.search(queries, by=by)
                done(f"search by {by}")
            collection.refresh()
            done("refresh")
        with everhash.open(path) as collection:
            collection.search(queries)
        done("open, search")
    ready = everhash.kernels.compiling.READY  # type: ignore[attr-defined]
    kernels = {name: found.seconds for name, found in ready.items() if found.compiled}
    print(json.dumps({"steps": steps, "clock": perf_counter() - clock, "kernels": kernels}))


def compare(args: Namespace) -> None:
    """Print the best first day and the best second."""
    pairs = []
    for _ in range(int(args.runs)):
        with tempfile.TemporaryDirectory() as cache:
            pairs.append((run(cache), run(cache)))
    first, second = (min(days, key=cpu) for days in zip(*pairs, strict=True))
    print(f"\n{'processor seconds':<22}{'first':>8}{'second':>8}")
    for step in first["steps"]:
        print(f"{step:<22}{first['steps'][step]:8.2f}{second['steps'][step]:8.2f}")
    print(f"{'in all':<22}{cpu(first):8.2f}{cpu(second):8.2f}")
    print(f"{'by the clock':<22}{first['clock']:8.2f}{second['clock']:8.2f}")
    for name, seconds in sorted(first["kernels"].items(), key=lambda item: -item[1]):
        print(f"  {name:<20}{seconds:8.2f}")
    print(f"{len(first['kernels'])} kernels compiled, then {len(second['kernels'])}")


def run(cache: str) -> dict[str, Any]:
    """Return what `day` prints in a new process that keeps its kernels in this folder."""
    command = [sys.executable, __file__, "--day"]
    environ = os.environ | {"NUMBA_CACHE_DIR": cache}
    out = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def cpu(found: dict[str, Any]) -> float:
    """Return the processor's seconds of a day."""
    return float(sum(found["steps"].values()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--day"]:
        day()
    else:
        from parts import run_parts

        run_parts(__doc__, {"compare": compare}, runs=3)
