"""The exact learner against batch training, after corrections, and merged from several processes.

    python benchmarks/exact.py [batch|correct|merge ...] [--seeds 3] [--data clinc150 ...]

    batch     mAP by codeword and asymmetric distance beside logistic regression on all rows
    correct   a fifth of the labels wrong, then forgotten and learned again with the right label
    merge     CIFAR-10 GIST, 50,000 rows: forks that learn in four processes, then merged

A seed decides the split, the order of the stream and the hasher; 32 bits. One BLAS thread, unless
OPENBLAS_NUM_THREADS is set. The experiments `table1`, `table2`, `ablation` and `early` of `everhash
bench` compare the learners with each other.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads

import multiprocessing
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from everhash import OnlineHasher
from everhash.bench import datasets
from everhash.bench.counts import ScoreRange
from everhash.bench.datasets import Dataset
from everhash.bench.growth import learn
from everhash.bench.protocols import Split, given_split, paper_split, with_wrong_labels
from everhash.bench.scoring import score_codewords
from everhash.learn.centering import unit_rows
from everhash.peers.model_file import hasher_from_bytes
from parts import run_parts

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
BITS, BATCH = 32, 100
ROWS_A_LABEL = {"cifar10-gist": 200, "clinc150": 40, "caltech256-cnn": 30, "digits": 80}
QUERIES_A_LABEL = {"cifar10-gist": 100, "digits": 50}
"""Of sets that do not name their queries."""
COST = {"cifar10-gist": 3.0, "clinc150": 100.0, "caltech256-cnn": 10.0, "digits": 10.0}
"""C of logistic regression: of 1, 3, 10, 30 and 100 the best for the queries of seed 0."""
WRONG_SHARE, FIRST_RIGHT = 0.2, 1000
"""Share of wrong labels in the stream, and rows at its start that have none."""
MERGED, MERGED_ROWS, FORKS, FORKED_AFTER = "cifar10-gist", 5000, 4, 1000
"""Set, rows of each label, processes, and rows learned before the hasher is forked."""


@lru_cache(maxsize=4)
def load(name: str) -> Dataset:
    return datasets.load(name)


def split_of(name: str, seed: int, rows: int = 0) -> Split:
    """Return the set's own split, or the paper's where the set does not name its queries."""
    data, stream = load(name), rows or ROWS_A_LABEL[name]
    if data.is_query.any():
        return given_split(data.y, data.is_query, stream, seed)
    return paper_split(data.y, QUERIES_A_LABEL[name], stream, seed)


def score(hasher: OnlineHasher, data: Dataset, split: Split) -> float:
    """Return mAP by codeword and asymmetric distance."""
    return score_codewords(hasher, data, split).asymmetric.average


def batch(args: Namespace) -> None:
    """Print mAP of the exact learner and of logistic regression, which sees all rows at once."""
    print(
        f"\nbatch: tie-averaged mAP by codeword, asymmetric distance, {BITS} bits, seeds 0 to "
        f"{args.seeds - 1};\nseconds of learning, the best. C of logistic regression was chosen "
        "for the queries of seed 0, in its favour."
    )
    digits = load("digits")
    OnlineHasher(BITS).partial_fit(digits.X[:50], digits.y[:50])  # loads the kernels
    heading = f"{'exact':>8}{'seconds':>9}{'logistic':>10}{'seconds':>9}{'ratio':>8}"
    print(f"{'set':<18}{'rows':>7}{'C':>6}{heading}")
    for name in args.data:
        found = np.array(
            [(*_exact(name, seed), *_logistic(name, seed)) for seed in range(args.seeds)]
        )
        (ours, _, theirs, _), (_, took, _, took_all) = found.mean(axis=0), found.min(axis=0)
        rows = len(split_of(name, 0).stream)
        print(
            f"{name:<18}{rows:>7,}{COST[name]:6g}{ours:8.3f}{took:9.3f}{theirs:10.3f}"
            f"{took_all:9.3f}{ours / theirs:8.3f}",
            flush=True,
        )


def _exact(name: str, seed: int) -> tuple[float, float]:
    data, split = load(name), split_of(name, seed)
    hasher = OnlineHasher(BITS, random_state=seed)
    start = perf_counter()
    learn(hasher, data, split.stream)
    seconds = perf_counter() - start
    return score(hasher, data, split), seconds


def _logistic(name: str, seed: int) -> tuple[float, float]:
    """Return mAP with entries ranked by the score of their label, and seconds of learning."""
    from sklearn.linear_model import LogisticRegression

    data, split = load(name), split_of(name, seed)
    center = data.X[split.stream].mean(axis=0)
    model = LogisticRegression(C=COST[name], max_iter=1000)
    start = perf_counter()
    model.fit(unit_rows(data.X[split.stream], center), data.y[split.stream])
    seconds = perf_counter() - start
    scores = model.decision_function(unit_rows(data.X[split.queries], center))
    entries, own = (
        np.searchsorted(model.classes_, data.y[rows]) for rows in (split.entries, split.queries)
    )
    held = np.bincount(entries, minlength=len(model.classes_))
    best = scores[np.arange(len(own)), own, None]
    before, size = (scores > best) @ held, (scores == best) @ held  # entries of a label tie
    groups = before[:, None], size[:, None], held[own][:, None]
    return ScoreRange.of(groups).average, seconds


class Corrected(NamedTuple):
    """mAP of three hashers, how far the last two are apart, and seconds to correct."""

    wrong: float
    corrected: float
    right: float
    difference: float
    seconds: float
    wrong_labels: int


def correct(args: Namespace) -> None:
    """Print what wrong labels cost, and that correcting them leaves nothing behind."""
    print(
        f"\ncorrect: {WRONG_SHARE:.0%} of the labels wrong, none among the first {FIRST_RIGHT:,} "
        "rows; the rows are then forgotten with the\nwrong label, learned with the right one, and "
        f"published. mAP by codeword, asymmetric, {BITS} bits, seeds 0 to {args.seeds - 1};\n"
        "difference: the largest of all queries' margins from a hasher that saw no wrong label, "
        "relative to the largest margin"
    )
    print(
        f"{'set':<18}{'corrected':>10}{'of rows':>10}{'wrong':>8}{'then':>8}{'never':>8}"
        f"{'difference':>12}{'seconds':>9}"
    )
    for name in args.data:
        rows = len(split_of(name, 0).stream)
        if rows <= FIRST_RIGHT:
            continue
        found = [_corrected(name, seed) for seed in range(args.seeds)]
        wrong, then, never = np.mean([each[:3] for each in found], axis=0)
        difference = max(each.difference for each in found)
        seconds = min(each.seconds for each in found)
        print(
            f"{name:<18}{found[0].wrong_labels:>10,}{rows:>10,}{wrong:8.3f}{then:8.3f}{never:8.3f}"
            f"{difference:12.1e}{seconds:9.2f}",
            flush=True,
        )


def _corrected(name: str, seed: int) -> Corrected:
    data, split = load(name), split_of(name, seed)
    y = data.y[split.stream]
    share = WRONG_SHARE * len(y) / (len(y) - FIRST_RIGHT)
    given = np.concatenate([y[:FIRST_RIGHT], with_wrong_labels(y[FIRST_RIGHT:], share, seed)])
    mended, never = (_learned(data, split, labels, seed) for labels in (given, y))
    before = score(mended, data, split)
    wrong = given != y
    rows = data.X[split.stream[wrong]]
    start = perf_counter()
    mended.forget(rows, given[wrong]).partial_fit(rows, y[wrong]).publish()
    seconds = perf_counter() - start
    never.publish()
    after = [score(each, data, split) for each in (mended, never)]
    difference = _difference(mended, never, data.X[split.queries])
    return Corrected(before, after[0], after[1], difference, seconds, int(wrong.sum()))


def _learned(data: Dataset, split: Split, labels: Rows, seed: int) -> OnlineHasher:
    """Return a hasher that assigned codewords in one order, whichever labels it meets first."""
    hasher = OnlineHasher(BITS, random_state=seed).begin(data.X.shape[1])
    hasher.assign(np.unique(data.y[split.stream]).tolist())
    for part in np.array_split(np.arange(len(labels)), max(1, len(labels) // BATCH)):
        hasher.partial_fit(data.X[split.stream[part]], labels[part])
    return hasher


def _difference(one: OnlineHasher, other: OnlineHasher, X: Floats) -> float:
    """Return the largest difference of margins, relative to the largest margin."""
    first, second = one.margins(X), other.margins(X)
    return float(np.abs(first - second).max() / np.abs(second).max())


def merge(_args: Namespace) -> None:
    """Print how far merged forks are from one stream, and both times."""
    data, split = load(MERGED), split_of(MERGED, 0, MERGED_ROWS)
    hasher, alone = OnlineHasher(BITS), OnlineHasher(BITS)
    sample, rest = split.stream[:FORKED_AFTER], split.stream[FORKED_AFTER:]
    start = perf_counter()
    alone.partial_fit(data.X[sample], data.y[sample])
    alone.partial_fit(data.X[rest], data.y[rest]).publish()
    once = perf_counter() - start
    start = perf_counter()
    hasher.partial_fit(data.X[sample], data.y[sample])
    slowest = _learn_in_forks(hasher, data, rest)
    forked = perf_counter() - start
    difference = _difference(hasher, alone, data.X[split.queries])
    print(
        f"\nmerge: {MERGED}, {len(split.stream):,} rows: {FORKED_AFTER:,} in one process, the "
        f"others in {FORKS} forks, each in a process of its own, merged "
        f"({multiprocessing.cpu_count()} cores)"
    )
    print(f"largest relative difference of margins from one stream: {difference:.1e}")
    print(
        f"seconds: one stream {once:.2f}; forks {forked:.2f}, start of processes and files "
        f"included; the slowest learned for {slowest:.2f}",
        flush=True,
    )


def _learn_in_forks(hasher: OnlineHasher, data: Dataset, rows: Rows) -> float:
    """Learn rows in forks and merge them; return how long the slowest learned."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(FORKS, mp_context=context) as pool:
        jobs = [
            pool.submit(learn_fork, hasher.fork().to_bytes(), data.X[part], data.y[part])
            for part in np.array_split(rows, FORKS)
        ]
        learned = [job.result() for job in jobs]
    hasher.merge(*(cast(OnlineHasher, hasher_from_bytes(fork, "fork")) for fork, _ in learned))
    return max(seconds for _, seconds in learned)


def learn_fork(content: bytes, X: Floats, y: Rows) -> tuple[bytes, float]:
    """Let a fork learn rows; return it and the seconds that learning took."""
    fork = hasher_from_bytes(content, "fork")
    start = perf_counter()
    fork.partial_fit(X, y)
    return fork.to_bytes(), perf_counter() - start


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"batch": batch, "correct": correct, "merge": merge},
        seeds=3,
        data=tuple(ROWS_A_LABEL),
    )
