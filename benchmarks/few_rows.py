"""From how many rows a label on does meaning find more than likeness?

    python benchmarks/few_rows.py [--seeds 3] [--rows 1 2 5 10 20] [--data clinc150 ...]

A collection learns and holds a few labelled rows of each label; other rows are the queries, at most
1,000. First right: share of queries whose first answer has their label, by meaning and by likeness,
which with kept features is the cosine of the rows.
"""

from __future__ import annotations

from argparse import Namespace

import numpy as np

import everhash
from everhash.bench import datasets
from parts import run_parts

QUERIES = 1000


def few(args: Namespace) -> None:
    """Print first answers that are right, by rows a label."""
    print(f"{'data':<16}{'rows a label':>13}{'meaning':>9}{'likeness':>10}")
    for name in args.data:
        data = datasets.load(name)
        for rows in args.rows:
            found = np.mean([first_right(data, rows, seed) for seed in range(args.seeds)], axis=0)
            print(f"{name:<16}{rows:>13}{found[0]:>9.3f}{found[1]:>10.3f}", flush=True)


def first_right(data: datasets.Dataset, rows: int, seed: int) -> list[float]:
    """Return the share of right first answers by meaning and by likeness."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(data.y >= 0))
    y = data.y[order]
    taken = np.concatenate([np.flatnonzero(y == label)[:rows] for label in np.unique(y)])
    asked = np.setdiff1d(np.arange(len(y)), taken)[:QUERIES]
    taken.sort()  # mixed, as the stream is
    with everhash.create(None, dim=data.X.shape[1], random_state=seed) as collection:
        collection.ingest(data.X[order[taken]], y[taken].tolist())
        ways = [collection.search(data.X[order[asked]], 1, by=by) for by in ("meaning", "likeness")]
    return [float((way.labels[:, 0] == y[asked]).mean()) for way in ways]


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"few": few},
        seeds=3,
        rows=(1, 2, 5, 10, 20),
        data=("clinc150", "caltech256-cnn", "cifar10-cnn", "digits"),
    )
