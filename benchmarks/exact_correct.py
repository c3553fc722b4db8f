"""Part "correct" of `exact.py`: wrong labels put right, and a stream learned in processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from everhash import OnlineHasher
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split, with_wrong_labels
from everhash.peers.model_file import hasher_from_bytes
from exact_sets import CALL, SETS, Rows, Setting, by_codeword, load, split_of

BITS, SHARE, RIGHT = 32, 0.2, 1000
"""Of a code; of the labels that are wrong; first rows, which are right."""
FORKS, SAMPLE = 4, 1000
"""Processes, and rows learned before the hasher is forked."""
SPREAD = Setting("cifar10-gist", 5000, 100)
"""What is learned in processes."""


class Corrected(NamedTuple):
    """mAP of three hashers, how far the last two are apart, and seconds to correct."""

    wrong: float
    corrected: float
    right: float
    apart: float
    seconds: float
    labels: int
    """Wrong ones."""


def correct(orderings: int) -> None:
    print(
        f"\ncorrect: {SHARE:.0%} of the labels wrong, none among the first {RIGHT:,} rows; then "
        "the rows are forgotten with\nthe wrong label, learned with the right one, and published. "
        f"mAP by codeword, asymmetric, {BITS} bits;\norderings 0 to {orderings - 1}; difference: "
        "of all queries' margins from a hasher that was never told wrong, through the largest"
    )
    print(
        f"{'set':<18}{'corrected':>10}{'of rows':>10}{'wrong':>8}{'then':>8}{'never':>8}"
        f"{'difference':>12}{'seconds':>9}"
    )
    for setting in SETS:
        rows = len(split_of(setting, 0).stream)
        if rows > RIGHT:
            found = [_corrected(setting, seed) for seed in range(orderings)]
            wrong, then, never = np.mean([each[:3] for each in found], axis=0)
            apart, seconds = max(each.apart for each in found), min(each.seconds for each in found)
            print(
                f"{setting.name:<18}{found[0].labels:>10,}{rows:>10,}{wrong:8.3f}{then:8.3f}"
                f"{never:8.3f}{apart:12.1e}{seconds:9.2f}",
                flush=True,
            )
    in_processes()


def _corrected(setting: Setting, seed: int) -> Corrected:
    data, split = load(setting.name), split_of(setting, seed)
    y = data.y[split.stream]
    share = SHARE * len(y) / (len(y) - RIGHT)
    told = np.concatenate([y[:RIGHT], with_wrong_labels(y[RIGHT:], share, seed)])
    mended, never = (_taught(data, split, labels, seed) for labels in (told, y))
    before = by_codeword(mended, data, split).asymmetric.average
    wrong = told != y
    rows = data.X[split.stream[wrong]]
    start = perf_counter()
    mended.forget(rows, told[wrong]).partial_fit(rows, y[wrong]).publish()
    seconds = perf_counter() - start
    never.publish()
    after = [by_codeword(each, data, split).asymmetric.average for each in (mended, never)]
    apart = _apart(mended, never, data.X[split.queries])
    return Corrected(before, after[0], after[1], apart, seconds, int(wrong.sum()))


def _taught(data: Dataset, split: Split, labels: Rows, seed: int) -> OnlineHasher:
    """Return a hasher that gave out words in one order, whichever labels it meets first."""
    hasher = OnlineHasher(BITS, random_state=seed).begin(data.X.shape[1])
    hasher.assign(np.unique(data.y[split.stream]).tolist())
    for part in np.array_split(np.arange(len(labels)), max(1, len(labels) // CALL)):
        hasher.partial_fit(data.X[split.stream[part]], labels[part])
    return hasher


def _apart(one: OnlineHasher, other: OnlineHasher, X: NDArray[np.float32]) -> float:
    """Return the largest difference of margins through the largest margin."""
    first, second = one.margins(X), other.margins(X)
    return float(np.abs(first - second).max() / np.abs(second).max())


def in_processes() -> None:
    """Print how far a stream learned in processes is from one learned in one, and both times."""
    data, split = load(SPREAD.name), split_of(SPREAD, 0)
    hasher, alone = OnlineHasher(BITS), OnlineHasher(BITS)
    sample, rest = split.stream[:SAMPLE], split.stream[SAMPLE:]
    start = perf_counter()
    alone.partial_fit(data.X[sample], data.y[sample])
    alone.partial_fit(data.X[rest], data.y[rest]).publish()
    once = perf_counter() - start
    start = perf_counter()
    hasher.partial_fit(data.X[sample], data.y[sample])
    slowest = _spread(hasher, data, rest)
    spread = perf_counter() - start
    apart = _apart(hasher, alone, data.X[split.queries])
    cores = multiprocessing.cpu_count()
    print(
        f"\n{SPREAD.name}, {len(split.stream):,} rows: {SAMPLE:,} in one process, the others in "
        f"{FORKS} forks, each in a process of its own, merged ({cores} cores)"
    )
    print(f"largest relative difference of margins from one stream: {apart:.1e}")
    print(
        f"seconds: one stream {once:.2f}; forks {spread:.2f}, start of processes and files ", end=""
    )
    print(f"included; the slowest learned for {slowest:.2f}", flush=True)


def _spread(hasher: OnlineHasher, data: Dataset, rows: Rows) -> float:
    """Learn rows in forks and merge them; return how long the slowest learned."""
    context = multiprocessing.get_context("spawn")
    parts = np.array_split(rows, FORKS)
    with ProcessPoolExecutor(FORKS, mp_context=context) as pool:
        jobs = [
            pool.submit(learn_apart, hasher.fork().to_bytes(), data.X[part], data.y[part])
            for part in parts
        ]
        learned = [job.result() for job in jobs]
    forks = [cast(OnlineHasher, hasher_from_bytes(content, "fork")) for content, _ in learned]
    hasher.merge(*forks)
    return max(seconds for _, seconds in learned)


def learn_apart(content: bytes, X: NDArray[np.float32], y: Rows) -> tuple[bytes, float]:
    """Let a fork learn rows; return it, and the seconds that learning took."""
    fork = hasher_from_bytes(content, "fork")
    start = perf_counter()
    fork.partial_fit(X, y)
    return fork.to_bytes(), perf_counter() - start
