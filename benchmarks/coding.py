"""Home coding against full coding: what is found, what is stored, what a refresh computes.

    python benchmarks/coding.py [stored|unseen|refresh ...] [--seeds 3] [--data clinc150 ...]

    stored    mAP of unlabelled entries of the labels that were learned
    unseen    mAP of entries and queries of labels that were never learned, a quarter of all
    refresh   bits flipped and computed again while labels join the stream, with and without
              certificates; seed 0

Entries are stored by their bits: of one cycle for all labels, of all cycles (full), or of each
entry's home cycle, the default. k = 32, 20 labels a cycle, both learners ("exact" is the default),
1,000 queries at most; mAP is tie-averaged. Experiments of `everhash bench` store home codes only;
`table2` and `unseen` have the cosine of the raw features beside them.
"""

from __future__ import annotations

from argparse import Namespace
from itertools import product

import numpy as np

from everhash import Index, OnlineHasher
from everhash.bench import datasets
from everhash.bench.costs.refresh import keep_fresh
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split
from everhash.bench.retrieval import split_of
from everhash.bench.scoring import score_index
from everhash.bench.task import Task
from parts import run_parts

BITS = 32
ROWS_A_LABEL = {"clinc150": 40, "caltech256-cnn": 30, "digits": 80}
SETTINGS: tuple[tuple[str, int | None, str], ...] = (
    ("one cycle", None, "home"),
    ("all bits", 20, "full"),
    ("home cycle", 20, "home"),
)
"""Name, labels a cycle and coding."""
LEARNERS = ("exact", "sgd")


def unlearned(data: Dataset, protocol: str, seed: int, queries: int = 1000) -> Split:
    """Return a split whose entries are rows that are not learned."""
    rows = ROWS_A_LABEL[data.name]
    task = Task("", data.name, "", 0, seed, rows, protocol, queries=queries)
    split = split_of(task, data)
    return split._replace(entries=np.setdiff1d(split.entries, split.stream))


def stored(args: Namespace) -> None:
    """Print mAP of unlabelled entries that were not learned."""
    show(args, "stored", "strict")


def unseen(args: Namespace) -> None:
    """Print mAP of entries whose labels were never learned."""
    show(args, "unseen", "unseen")


def show(args: Namespace, title: str, protocol: str) -> None:
    print(f"\n{title:<40}{'bits kept':>10}{'mAP Hamming':>13}{'asymmetric':>12}")
    for name in args.data:
        data = datasets.load(name)
        for learner, (setting, rho, coding) in product(LEARNERS, SETTINGS):
            found = []
            for seed in range(args.seeds):
                hasher = OnlineHasher(
                    BITS, labels_per_cycle=rho, learner=learner, random_state=seed
                )
                found.append(score(hasher, data, unlearned(data, protocol, seed), coding))
            kept, hamming, asymmetric = np.mean(found, axis=0)
            line = f"{name}, {learner}, {setting}"
            print(f"{line:<40}{kept:10.0f}{hamming:13.3f}{asymmetric:12.3f}", flush=True)


def score(hasher: OnlineHasher, data: Dataset, split: Split, coding: str) -> tuple[float, ...]:
    """Return bits kept of an entry, and mAP by both distances."""
    hasher.partial_fit(data.X[split.stream], data.y[split.stream])
    index = Index(hasher, coding=coding)
    index.add(data.X[split.entries])
    return (kept_bits(hasher, coding), *scores(index, data, split))


def kept_bits(hasher: OnlineHasher, coding: str) -> int:
    return BITS if coding == "home" else hasher.width_


def scores(index: Index, data: Dataset, split: Split) -> tuple[float, ...]:
    distances = ("hamming", "asymmetric")
    return tuple(score_index(index, data, split, distance) for distance in distances)


def refresh(args: Namespace) -> None:
    """Print what refreshes compute while labels join the stream."""
    print(
        f"\n{'refresh, labels join over time':<44}{'bits kept':>10}{'flips':>9}{'recomputed':>12}"
        f"{'last tenth':>12}{'homes moved':>13}{'wrong':>7}{'mAP Ham.':>10}{'asym.':>8}"
    )
    for name, coding, learner, certify in product(
        args.data, ("home", "full"), LEARNERS, (False, True)
    ):
        data = datasets.load(name)
        hasher = OnlineHasher(BITS, labels_per_cycle=20, learner=learner)
        index = Index(hasher, coding=coding, certify=certify)
        split = unlearned(data, "joining", 0, queries=500)
        stored, shares, flips, homes, wrong = len(split.entries), [], 0, 0, 0
        for (report,) in keep_fresh(hasher, data, split.stream, split.entries, [index]):
            shares.append(report.bits_recomputed / (stored * kept_bits(hasher, coding)))
            flips, homes = flips + report.bits_flipped, homes + report.homes_moved
            wrong += index.verify()
        last = np.mean(shares[-len(shares) // 10 :])
        hamming, asymmetric = scores(index, data, split)
        line = f"{name}, {learner}, {coding}, {'certified' if certify else 'no certificate'}"
        print(
            f"{line:<44}{kept_bits(hasher, coding):>10}{flips / stored:9.1f}"
            f"{np.mean(shares):12.1%}{last:12.1%}{homes / stored:13.2f}{wrong:7}"
            f"{hamming:10.3f}{asymmetric:8.3f}",
            flush=True,
        )


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"stored": stored, "unseen": unseen, "refresh": refresh},
        seeds=3,
        data=("clinc150", "caltech256-cnn"),
    )
