"""What the parts of `exact.py` share: sets of features, hashers, a stream learned and scored."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import OnlineHasher, peers
from everhash.bench import datasets
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split, given_split, joining, paper_split, sorted_by_label
from everhash.bench.scoring import Scores, score_codewords
from everhash.learn.stream_hasher import StreamHasher

Rows = NDArray[np.int64]
Make = Callable[[int, int], StreamHasher]
"""Returns a hasher of so many bits, with a seed."""
CALL = 100
"""Rows learned at a time."""


class Setting(NamedTuple):
    """How a set is split."""

    name: str
    rows: int
    """Of each label in the stream."""
    queries: int = 0
    """Of each label, where the set does not say itself which rows are queries."""


SETS = (
    Setting("cifar10-gist", 200, 100),
    Setting("clinc150", 40),
    Setting("caltech256-cnn", 30),
    Setting("digits", 80, 50),
)
HASHERS: dict[str, Make] = {
    "paper()": lambda bits, seed: OnlineHasher.paper(bits, random_state=seed),
    "everhash-sgd": lambda bits, seed: peers.get("everhash-sgd", bits, random_state=seed),
    "exact (default)": lambda bits, seed: OnlineHasher(bits, random_state=seed),
    "exact, features=0": lambda bits, seed: OnlineHasher(bits, features=0, random_state=seed),
    "exact, features=2000": lambda bits, seed: OnlineHasher(bits, features=2000, random_state=seed),
}
BOTH = {"exact": HASHERS["exact (default)"], "sgd": HASHERS["everhash-sgd"]}
ORDERS: dict[str, Callable[[Rows, Rows, int], Rows]] = {
    "shuffled": lambda _y, stream, _seed: stream,
    "sorted": sorted_by_label,
    "joining": joining,
}


@lru_cache(maxsize=4)
def load(name: str) -> Dataset:
    return datasets.load(name)


def split_of(setting: Setting, seed: int) -> Split:
    """Return the set's own split, or the paper's where the set names no queries."""
    data = load(setting.name)
    if data.is_query.any():
        return given_split(data.y, data.is_query, setting.rows, seed)
    return paper_split(data.y, setting.queries, setting.rows, seed)


def learn(hasher: StreamHasher, data: Dataset, stream: Rows) -> float:
    """Learn a stream in calls of 100 rows; return the seconds it took."""
    start = perf_counter()
    for batch in np.array_split(stream, max(1, len(stream) // CALL)):
        hasher.partial_fit(data.X[batch], data.y[batch])
    return perf_counter() - start


def by_codeword(hasher: StreamHasher, data: Dataset, split: Split) -> Scores:
    asked = split.queries
    return score_codewords(hasher, data.X[asked], data.y[asked], data.y[split.entries])


def describe(setting: Setting, split: Split) -> str:
    """Say what is learned, stored and asked for."""
    data = load(setting.name)
    return (
        f"{setting.name}: {len(np.unique(data.y[split.stream]))} labels, {setting.rows} rows each, "
        f"{len(split.stream):,} stream rows, {len(split.entries):,} entries, "
        f"{len(split.queries):,} queries"
    )
