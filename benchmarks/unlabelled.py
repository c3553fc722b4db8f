"""Unlabelled entries: how well they are found, what they cost, and which queries are strangers.

    python benchmarks/unlabelled.py [--only map|unseen|novelty|memory]

mAP (tie-averaged, mean of 3 orderings) of entries stored by their bits, k = 32, cycles of 20
labels: one cycle, all bits, home cycle, by both learners ("exact" is the default one); cosine of
the raw features beside it. "unseen" learns three quarters of the labels and searches among the
rest, entries and queries both. Novelty: area under the ROC curve of telling CLINC150's 1,000
out-of-scope test rows from its 4,500 in-scope ones. Memory: bytes an entry as Python's allocator
counts them, 1 M and 10 M labelled and unlabelled (64 bits, features taken off), search structures
included; the learner makes no difference to it.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import Index, OnlineHasher
from everhash.bench import datasets
from everhash.bench.machine import describe_machine
from everhash.bench.protocols import given_split
from everhash.bench.scoring import score_index
from everhash.metrics import average_precision

DIMS = 32
"""Of the rows that measure memory; features are taken off the sum."""
SETTINGS: tuple[tuple[str, int | None, str], ...] = (
    ("one cycle", None, "home"),
    ("all bits", 20, "full"),
    ("home cycle", 20, "home"),
)
LEARNERS = ("exact", "sgd")
Make = Callable[..., OnlineHasher]


def mean_average_precisions() -> None:
    print(f"\n{'unlabelled entries':<40}{'bits kept':>10}{'mAP Hamming':>13}{'asymmetric':>12}")
    for name, stream_rows in (("clinc150", 40), ("caltech256-cnn", 30)):
        data = datasets.load(name)
        for learner, (setting, rho, coding) in product(LEARNERS, SETTINGS):
            make = partial(OnlineHasher, 32, labels_per_cycle=rho, learner=learner)
            rows = [score(data, stream_rows, make, coding, seed) for seed in range(3)]
            kept, hamming, asymmetric = np.mean(rows, axis=0)
            title = f"{name}, {learner}, {setting}"
            print(f"{title:<40}{kept:10.0f}{hamming:13.3f}{asymmetric:12.3f}", flush=True)
        split = given_split(data.y, data.is_query, stream=stream_rows, seed=0)
        cosine = cosine_ap(data, np.setdiff1d(split.entries, split.stream), split.queries[:1000])
        print(f"{name + ', raw features':<40}{'':>10}{'cosine':>13}{cosine:12.3f}", flush=True)


def score(
    data: datasets.Dataset, stream_rows: int, make: Make, coding: str, seed: int
) -> tuple[float, ...]:
    split = given_split(data.y, data.is_query, stream=stream_rows, seed=seed)
    stored = np.setdiff1d(split.entries, split.stream)
    asked = np.random.default_rng(seed).permutation(split.queries)[:1000]
    hasher = make(random_state=seed)
    hasher.partial_fit(data.X[split.stream], data.y[split.stream])
    index = Index(hasher, coding=coding)
    index.add(data.X[stored])
    scores = [
        score_index(index, data.X[asked], data.y[asked], data.y[stored], distance)
        for distance in ("hamming", "asymmetric")
    ]
    return (32 if coding == "home" else hasher.width_, *scores)


def unseen_labels() -> None:
    print(f"\n{'labels never learned':<40}{'bits kept':>10}{'mAP Hamming':>13}{'asymmetric':>12}")
    for name, stream_rows in (("clinc150", 40), ("caltech256-cnn", 30)):
        data = datasets.load(name)
        for learner, (setting, rho, coding) in product(LEARNERS, SETTINGS):
            make = partial(OnlineHasher, 32, labels_per_cycle=rho, learner=learner)
            rows = [score_unseen(data, stream_rows, make, coding, seed) for seed in range(3)]
            kept, hamming, asymmetric, cosine = np.mean(rows, axis=0)
            title = f"{name}, {learner}, {setting}"
            print(f"{title:<40}{kept:10.0f}{hamming:13.3f}{asymmetric:12.3f}", flush=True)
        print(f"{name + ', raw features':<40}{'':>10}{'cosine':>13}{cosine:12.3f}", flush=True)


def score_unseen(
    data: datasets.Dataset, stream_rows: int, make: Make, coding: str, seed: int
) -> tuple[float, ...]:
    labels = np.random.default_rng(seed).permutation(np.unique(data.y[data.y >= 0]))
    hidden = np.isin(data.y, labels[: len(labels) // 4])
    split = given_split(data.y, data.is_query, stream=stream_rows, seed=seed)
    learned = split.stream[~hidden[split.stream]]
    stored, asked = split.entries[hidden[split.entries]], split.queries[hidden[split.queries]]
    hasher = make(random_state=seed)
    hasher.partial_fit(data.X[learned], data.y[learned])
    index = Index(hasher, coding=coding)
    index.add(data.X[stored])
    scores = [
        score_index(index, data.X[asked], data.y[asked], data.y[stored], distance)
        for distance in ("hamming", "asymmetric")
    ]
    kept = 32 if coding == "home" else hasher.width_
    return (kept, *scores, cosine_ap(data, stored, asked))


def cosine_ap(
    data: datasets.Dataset, stored: NDArray[np.int64], queries: NDArray[np.int64]
) -> float:
    Z = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
    values = []
    for part in np.array_split(queries, 20):
        relevant = data.y[part, None] == data.y[stored]
        values.append(average_precision(-(Z[part] @ Z[stored].T), relevant))
    return float(np.concatenate(values).mean())


def novelty() -> None:
    from sklearn.metrics import roc_auc_score

    data = datasets.load("clinc150")
    strangers = np.flatnonzero((data.y < 0) & data.is_query)
    print(f"\n{'novelty, CLINC150, k = 32':<32}{'AUROC':>10}")
    for rows, learner in product((40, 100), LEARNERS):
        split = given_split(data.y, data.is_query, stream=rows, seed=0)
        hasher = OnlineHasher(32, learner=learner)
        hasher.partial_fit(data.X[split.stream], data.y[split.stream])
        index = Index(hasher)
        index.add(data.X[split.stream], y=data.y[split.stream])
        asked = np.concatenate([split.queries, strangers])
        scores = index.search(data.X[asked], 1).novelty
        truth = np.arange(len(asked)) >= len(split.queries)
        title = f"{rows} rows a label learned, {learner}"
        print(f"{title:<32}{roc_auc_score(truth, scores):10.4f}", flush=True)


def memory() -> None:
    print(f"\n{'memory':<32}{'entries':>12}{'bytes each':>12}")
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((1000, 64), np.float32)
    hasher = OnlineHasher(64, learner="sgd").partial_fit(centres, np.arange(1000))
    for n in (1_000_000, 10_000_000):
        used = measured(lambda n=n: fill_labelled(hasher, n))
        print(f"{'labelled, 1,000 labels':<32}{n:12,}{used / n:12.1f}", flush=True)
    few = rng.standard_normal((100, DIMS), np.float32)
    hasher = OnlineHasher(64, learner="sgd")
    hasher.partial_fit(np.repeat(few, 12, axis=0), np.repeat(np.arange(100), 12))
    for n in (1_000_000, 10_000_000):
        used = measured(lambda n=n: fill_unlabelled(hasher, few, n)) - n * DIMS * 2
        print(f"{'unlabelled, without features':<32}{n:12,}{used / n:12.1f}", flush=True)


def fill_labelled(hasher: OnlineHasher, n: int) -> Any:
    index = Index(hasher)
    rows, y = np.ones((100_000, 64), np.float32), np.arange(100_000) % 1000
    for _ in range(n // len(y)):
        index.add(rows, y=y)
    index.search(rows[:1], 10)
    return index


def fill_unlabelled(hasher: OnlineHasher, centres: NDArray[np.float32], n: int) -> Any:
    index = Index(hasher)
    rng = np.random.default_rng(0)
    for _ in range(n // 50_000):
        rows = centres[rng.integers(0, len(centres), 50_000)]
        index.add(rows + 0.3 * rng.standard_normal(rows.shape, np.float32))
    index.search(centres[:1], 10)
    return index


def measured(fill: Any) -> int:
    tracemalloc.start()
    kept = fill()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used if len(kept) else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("map", "unseen", "novelty", "memory"))
    only = parser.parse_args().only
    print(describe_machine())
    parts = {
        "map": mean_average_precisions,
        "unseen": unseen_labels,
        "novelty": novelty,
        "memory": memory,
    }
    for name, part in parts.items():
        if only in (None, name):
            part()


if __name__ == "__main__":
    main()
