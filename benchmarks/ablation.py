"""What each departure from the paper is worth, on mixed streams and on streams sorted by label.

    python benchmarks/ablation.py [--orderings 3]

k = 32, tie-averaged mAP by codeword. Streams: CIFAR-10 GIST 200 rows a label, one cycle; CLINC150
40 and Caltech-256 CNN 30 rows a label, 20 labels a cycle. Hamming distance in the first row, as in
the paper, asymmetric below; each row adds one thing to the one above. The last two are the exact
learner instead of gradient steps, without random features and with them.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from everhash import OnlineHasher
from everhash.bench import datasets
from everhash.bench.machine import describe_machine
from everhash.bench.protocols import Split, given_split, paper_split
from everhash.bench.scoring import score_codewords

SGD: dict[str, Any] = {"learner": "sgd"}
PLAIN: dict[str, Any] = SGD | {"average": False, "codebook": "random", "replay": 0}
SETTINGS: dict[str, tuple[dict[str, Any], int]] = {
    "paper, Hamming": (PLAIN, 0),
    "+ asymmetric distance": (PLAIN, 1),
    "+ averaged weights": (PLAIN | {"average": True}, 1),
    "+ max-min codebook": (SGD | {"replay": 0}, 1),
    '+ replay (learner="sgd")': (SGD, 1),
    "exact, linear": ({"features": 0}, 1),
    "exact (the default)": ({}, 1),
}
STREAMS = (("cifar10-gist", None, 200), ("clinc150", 20, 40), ("caltech256-cnn", 20, 30))


def split_of(data: datasets.Dataset, rows: int, seed: int) -> Split:
    if data.is_query.any():
        return given_split(data.y, data.is_query, stream=rows, seed=seed)
    return paper_split(data.y, queries=100, stream=rows, seed=seed)


def score(
    data: datasets.Dataset, options: dict[str, Any], split: Split, *, in_label_order: bool
) -> tuple[float, float]:
    stream = split.stream
    if in_label_order:
        stream = stream[np.argsort(data.y[stream], kind="stable")]
    hasher = OnlineHasher(32, **options).partial_fit(data.X[stream], data.y[stream])
    asked = split.queries
    scores = score_codewords(hasher, data.X[asked], data.y[asked], data.y[split.entries])
    return scores.hamming.average, scores.asymmetric.average


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orderings", type=int, default=3)
    orderings = parser.parse_args().orderings
    print(describe_machine())
    sets = [(datasets.load(name), rho, rows) for name, rho, rows in STREAMS]
    print(f"{'':<26}" + "".join(f"{data.name:>24}" for data, _, _ in sets))
    print(f"{'':<26}" + f"{'mixed':>14}{'sorted':>10}" * len(sets))
    for setting, (options, distance) in SETTINGS.items():
        cells = []
        for data, rho, rows in sets:
            for in_label_order, width in ((False, 14), (True, 10)):
                values = [
                    score(
                        data,
                        options | {"labels_per_cycle": rho, "random_state": seed},
                        split_of(data, rows, seed),
                        in_label_order=in_label_order,
                    )[distance]
                    for seed in range(orderings)
                ]
                cells.append(f"{np.mean(values):{width}.3f}")
        print(f"{setting:<26}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
