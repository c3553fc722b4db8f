"""One run of one method: learn a stream, keep an index of entries fresh, score what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import peers
from everhash.bench.counts import Score
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import (
    Split,
    given_split,
    hide_labels,
    paper_split,
    score_codewords,
    score_mapping,
)
from everhash.index.index import Index
from everhash.learn.centering import unit_rows
from everhash.learn.stream_hasher import StreamHasher
from everhash.metrics import average_precision
from everhash.peers.batch_method import BatchMethod

EVERY = 100
"""Rows learned between two refreshes."""
KEPT_FRESH = 2000
"""Entries in the index that is refreshed: a sample, none of them learned."""
ASYMMETRIC_AMONG = 20_000
"""Entries ranked by asymmetric distance, a sample: to sort them all for each query takes long."""
QUERIES_A_LABEL = 100
"""In the paper's split."""
COSINE = "cosine"
"""The name that the features themselves have among the methods."""


@dataclass(frozen=True)
class Task:
    """What a run is to do. Two runs of one task on one machine give the same figures, but time."""

    dataset: str
    method: str
    bits: int
    """0 for a method that has no such choice."""
    seed: int
    rows_a_label: int
    """Rows of each label in the stream."""
    unseen: bool
    """Learn three quarters of the labels, and search among entries of the others."""
    entries: int
    """The most that are ranked."""
    queries: int
    """The most that are asked."""


@dataclass(frozen=True)
class Upkeep:
    """What learning cost, and keeping entries up to date with it; counts are per entry."""

    seconds: float
    """Of learning alone."""
    flipped: float
    recomputed: float
    homes_moved: float


def run(task: Task, data: Dataset) -> dict[str, Any]:
    """Do it; return the task and its figures as one flat row."""
    split = split_of(task, data)
    figures: dict[str, Any] = {"stream": len(split.stream), "ranked": len(split.entries)}
    if task.method == COSINE:
        return asdict(task) | figures | {"mapping": {"asymmetric": score_features(data, split)}}
    hasher = make(task, data)
    not_learned = np.setdiff1d(split.entries, split.stream)
    kept = _some(not_learned, 0 if task.unseen else KEPT_FRESH, task.seed)
    if isinstance(hasher, BatchMethod):
        figures["seconds"] = fit(hasher, data, split.stream)
    else:
        figures |= asdict(learn(hasher, data, split.stream, kept))
    asked, labels = data.X[split.queries], data.y[split.queries]
    stored = data.y[split.entries]
    figures["encoding"] = time_of(lambda: hasher.encode(data.X[split.entries]))
    figures["mapping"] = score_mapping(
        hasher,
        asked,
        labels,
        data.X[split.entries],
        stored,
        coding="home",
        asymmetric_among=ASYMMETRIC_AMONG,
    )._asdict()
    if hasher.assigns_codewords and not task.unseen:
        figures["codeword"] = score_codewords(hasher, asked, labels, stored)._asdict()
    figures["versions"] = int(hasher.versions_.sum())
    return asdict(task) | figures


def make(task: Task, data: Dataset) -> StreamHasher:
    """Return the method's hasher, told how many labels there are if it must know."""
    options: dict[str, Any] = {"random_state": task.seed}
    if peers.describe(task.method).needs_class_count:
        options["classes"] = len(np.unique(data.y[data.y >= 0]))
    return peers.get(task.method, bits=task.bits, **options)


def split_of(task: Task, data: Dataset) -> Split:
    """Return the rows of a task; entries and queries in random order, and no more than asked."""
    if data.is_query.any():
        split = given_split(data.y, data.is_query, task.rows_a_label, task.seed)
    else:
        split = paper_split(data.y, QUERIES_A_LABEL, task.rows_a_label, task.seed)
    if task.unseen:
        split = hide_labels(data.y, split, task.seed)
    entries = _some(split.entries, task.entries, task.seed)
    return Split(split.stream, entries, _some(split.queries, task.queries, task.seed))


def learn(
    hasher: StreamHasher, data: Dataset, stream: NDArray[np.int64], kept: NDArray[np.int64]
) -> Upkeep:
    """Learn the stream, and refresh an index of the rows `kept`, unlabelled, as it goes on."""
    index, seconds, reports = Index(hasher), 0.0, []
    for batch in batches(stream):
        X, y = data.X[batch], data.y[batch]
        start = perf_counter()
        hasher.partial_fit(X, y)
        seconds += perf_counter() - start
        if len(kept) and len(index) == 0:
            index.add(data.X[kept])
        elif len(kept):
            reports.append(index.refresh())
    counts = np.array([(r.bits_flipped, r.bits_recomputed, r.homes_moved) for r in reports])
    per_entry = counts.reshape(-1, 3).sum(axis=0) / max(1, len(kept))
    return Upkeep(seconds, *per_entry.tolist())


def fit(hasher: BatchMethod, data: Dataset, rows: NDArray[np.int64]) -> float:
    """Learn rows all at once; return the seconds it took."""
    X, y = data.X[rows], data.y[rows]
    return time_of(lambda: hasher.fit(X, y))


def time_of(call: Callable[[], object]) -> float:
    """Return the seconds a call takes."""
    start = perf_counter()
    call()
    return perf_counter() - start


def batches(stream: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the stream in pieces of `EVERY` rows, as near as can be."""
    return np.array_split(stream, max(1, len(stream) // EVERY))


def score_features(data: Dataset, split: Split) -> Score:
    """Return mAP by cosine of the features, measured from the mean of the stream."""
    center = data.X[split.stream].mean(axis=0)
    stored = split.entries[:ASYMMETRIC_AMONG]
    entries = unit_rows(data.X[stored], center)
    values = [
        [
            average_precision(
                -(unit_rows(data.X[part], center) @ entries.T),
                data.y[part, None] == data.y[stored],
                ties,
            )
            for part in batches(split.queries)
        ]
        for ties in ("average", "pessimistic", "optimistic")
    ]
    return Score(*(float(np.nanmean(np.concatenate(value))) for value in values))


def _some(rows: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(rows)[:most]
