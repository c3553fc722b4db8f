"""How much is found with few rows a label: by relevance, by meaning and by likeness?

    python benchmarks/few_rows.py [--seeds 3] [--rows 1 2 5 10 20] [--data clinc150 ...]

A collection learns and holds a few labelled rows of each label; other rows are the queries, at most
1,000. First right: share of queries whose first answer has their label. Likeness is the cosine of
the rows, as features are kept. The trees that judge relevance have learned from these sets.
"""

from __future__ import annotations

from argparse import Namespace

import numpy as np

import everhash
from everhash.bench import datasets
from parts import run_parts

QUERIES = 1000
WAYS = ("relevance", "meaning", "likeness")


def few(args: Namespace) -> None:
    """Print first answers that are right, by rows a label."""
    print(f"{'data':<16}{'rows a label':>13}" + "".join(f"{by:>11}" for by in WAYS))
    for name in args.data:
        data = datasets.load(name)
        for rows in args.rows:
            found = np.mean([first_right(data, rows, seed) for seed in range(args.seeds)], axis=0)
            shares = "".join(f"{share:>11.3f}" for share in found)
            print(f"{name:<16}{rows:>13}{shares}", flush=True)


def first_right(data: datasets.Dataset, rows: int, seed: int) -> list[float]:
    """Return the share of right first answers by each way."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(data.y >= 0))
    y = data.y[order]
    taken = np.concatenate([np.flatnonzero(y == label)[:rows] for label in np.unique(y)])
    asked = np.setdiff1d(np.arange(len(y)), taken)[:QUERIES]
    taken.sort()  # mixed, as the stream is
    with everhash.create(None, dim=data.X.shape[1], random_state=seed) as collection:
        collection.ingest(data.X[order[taken]], y[taken].tolist())
        ways = [collection.search(data.X[order[asked]], 1, by=by) for by in WAYS]
    return [float((way.labels[:, 0] == y[asked]).mean()) for way in ways]


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"few": few},
        seeds=3,
        rows=(1, 2, 5, 10, 20),
        data=("clinc150", "caltech256-cnn", "cifar10-cnn", "digits"),
    )
