"""Learn a stream with one method, keep an index up to date, and score the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil, log2
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import peers
from everhash.bench.baselines import (
    BASELINES,
    COSINE,
    feature_bytes,
    fit_classes,
    label_bytes,
    of_classes,
    score_classifier,
    score_features,
)
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import (
    ORDERS,
    Split,
    given_split,
    hide_labels,
    paper_split,
    with_wrong_labels,
)
from everhash.bench.scoring import (
    auroc,
    score_codewords,
    score_mapping,
    score_mixture,
    score_novelty,
    score_novelty_of_features,
)
from everhash.bench.task import Task
from everhash.errors import OptionError
from everhash.index.index import Index
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.batch_method import BatchMethod

PROTOCOLS = {
    "strict": "centre, and everything else, from rows that have come",
    "paper": "the same, but rows are measured from the mean of all data, as the authors' code does "
    "(by methods that have an option for it)",
    "unseen": "three quarters of the labels are learned, the others are searched for",
    "unlabelled": "a share of the entries has no label and is stored as its bits",
    "noise": "a share of the stream has a wrong label",
    "out-of-scope": "queries of labels that were never learned are to be recognised as such",
    "joining": "labels join over time, and earlier labels continue",
    "sorted": "the stream is sorted by label",
}
REHEARSED = 100
"""Rows learned once before anything is timed."""
EVERY = 100
"""Rows learned between two refreshes."""
KEPT_FRESH = 2000
"""Entries in the index that is refreshed: a sample of rows that are not learned."""
ASYMMETRIC_AMONG = 20_000
"""Entries ranked by asymmetric distance, a sample: sorting all for each query is slow."""
QUERIES_A_LABEL = 100
"""Queries of each label in the paper's split."""


@dataclass(frozen=True)
class Upkeep:
    """What learning and refreshing cost; counts are per entry."""

    seconds: float
    """Of learning only."""
    flipped: float
    recomputed: float
    homes_moved: float


def measure(task: Task, data: Dataset) -> dict[str, Any]:
    """Return the figures of a task."""
    if task.protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise OptionError(f"no protocol {task.protocol!r}", hint=f"expected one of: {known}")
    return figures_of(task, data, split_of(task, data))


def figures_of(task: Task, data: Dataset, split: Split) -> dict[str, Any]:
    """Learn the stream of a split, and return what it took and how well entries are found."""
    figures = sizes(data.y, split)
    if task.method in BASELINES:
        return figures | of_baseline(task, data, split)
    rehearse(task, data, split)
    hasher = make(task, data)
    taught = taught_labels(task, data, split)
    if isinstance(hasher, BatchMethod):
        start = perf_counter()
        hasher.fit(data.X[split.stream], taught)
        figures["seconds"] = perf_counter() - start
    else:
        figures |= asdict(learn(hasher, data, split, taught, task))
    figures["versions"] = int(hasher.versions_.sum())
    figures["width"] = hasher.width_
    return figures | SCORED.get(task.protocol, scores)(task, hasher, data, split)


def sizes(y: NDArray[np.int64], split: Split) -> dict[str, Any]:
    """Return how many rows are learned, ranked and asked for, and how many of each label."""
    learned, asked = (
        np.unique(y[rows], return_counts=True)[1] for rows in (split.stream, split.queries)
    )
    return {
        "stream": len(split.stream),
        "ranked": len(split.entries),
        "asked": len(split.queries),
        "labels": len(learned),
        "learned_a_label": _least_and_most(learned),
        "asked_a_label": _least_and_most(asked),
    }


def _least_and_most(counts: NDArray[np.int64]) -> list[int]:
    return [int(counts.min()), int(counts.max())] if len(counts) else [0, 0]


def rehearse(task: Task, data: Dataset, split: Split) -> None:
    """Learn and encode a few rows with a hasher that is thrown away.

    What a method compiles or imports on its first use is ready then, and in no time that counts.
    """
    hasher = make(task, data)
    if isinstance(hasher, BatchMethod):  # these take long, beside what they import
        return
    few = split.stream[:REHEARSED]
    hasher.partial_fit(data.X[few], data.y[few])
    index = Index(hasher)
    index.add(data.X[few])
    hasher.partial_fit(data.X[few], data.y[few])
    index.refresh()
    hasher.encode(data.X[few])


def scores(task: Task, hasher: StreamHasher, data: Dataset, split: Split) -> dict[str, Any]:
    """Return mAP with entries stored as bits and as codewords."""
    entries = data.X[split.entries]
    start = perf_counter()
    hasher.encode(entries)
    figures: dict[str, Any] = {"encoding": perf_counter() - start}
    by_bits = score_mapping(hasher, data, split, asymmetric_among=ASYMMETRIC_AMONG)
    figures["mapping"] = by_bits._asdict()
    figures["bytes"] = {"mapping": code_bytes(hasher)}
    if hasher.assigns_codewords and task.protocol != "unseen":
        figures["codeword"] = score_codewords(hasher, data, split)._asdict()
        figures["bytes"]["codeword"] = label_bytes(len(hasher.labels_))
    return figures


def code_bytes(hasher: StreamHasher) -> float:
    """Return the bytes of an unlabelled entry's code, packed: its word and its home's number."""
    return (hasher.bits + ceil(log2(hasher.n_cycles_))) / 8


def mixture(task: Task, hasher: StreamHasher, data: Dataset, split: Split) -> dict[str, Any]:
    """Return mAP with a share of the entries unlabelled."""
    plain = plain_entries(task, split)
    return {"mixed": score_mixture(hasher, data, split, plain)._asdict()}


def plain_entries(task: Task, split: Split) -> NDArray[np.bool_]:
    """Return which entries have no label."""
    return np.random.default_rng(task.seed).random(len(split.entries)) < task.share


def novelty(_task: Task, hasher: StreamHasher, data: Dataset, split: Split) -> dict[str, Any]:
    """Return how well unknown queries are recognised; nothing for methods without codewords."""
    if not hasher.assigns_codewords:
        return {}
    known, unknown = in_and_out(data, split)
    return {"auroc": score_novelty(hasher, data.X[known], data.X[unknown])}


SCORED: dict[str, Callable[[Task, StreamHasher, Dataset, Split], dict[str, Any]]] = {
    "unlabelled": mixture,
    "out-of-scope": novelty,
}


def of_baseline(task: Task, data: Dataset, split: Split) -> dict[str, Any]:
    """Return the scores of the features themselves by cosine, or of batch logistic regression."""
    if task.method != COSINE:
        return of_logistic(task, data, split)
    if task.protocol == "out-of-scope":
        known, unknown = in_and_out(data, split)
        return {"auroc": score_novelty_of_features(data.X, split.stream, known, unknown)}
    few = Split(split.stream, split.entries[:ASYMMETRIC_AMONG], split.queries)
    figures = {"mapping": {"asymmetric": score_features(data, few)}}
    return figures | {"bytes": {"mapping": feature_bytes(data)}}


def of_logistic(task: Task, data: Dataset, split: Split) -> dict[str, Any]:
    """Return the scores of batch logistic regression, as those of a hasher by protocol."""
    taught = taught_labels(task, data, split)
    if task.protocol not in SCORED:
        return of_classes(data, split, taught)
    model, figures = fit_classes(data, split, taught)
    if task.protocol == "out-of-scope":
        sure = [-model.scores(data.X[rows]).max(axis=1) for rows in in_and_out(data, split)]
        return figures | {"auroc": auroc(*sure)}
    stored = np.where(
        plain_entries(task, split), model.predict(data.X[split.entries]), data.y[split.entries]
    )
    return figures | {"mixed": {"asymmetric": score_classifier(model, data, split, stored)}}


def in_and_out(data: Dataset, split: Split) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return queries of learned labels, and rows of no learned label."""
    learned = np.isin(data.y[split.queries], np.unique(data.y[split.stream]))
    outside = np.flatnonzero(data.y < 0)
    return split.queries[learned], outside if len(outside) else split.queries[~learned]


def make(task: Task, data: Dataset) -> StreamHasher:
    """Return the method's hasher, with what it must know beforehand."""
    options: dict[str, Any] = {"random_state": task.seed, **dict(task.options)}
    if peers.describe(task.method).needs_class_count:
        options["classes"] = len(np.unique(data.y[data.y >= 0]))
    if task.protocol == "paper" and _takes_center(peers.get(task.method)):
        options["center"] = data.X.mean(axis=0)
    return peers.get(task.method, bits=task.bits, **options)


def _takes_center(hasher: StreamHasher) -> bool:
    """Return whether a method has an option for the centre; the exact learner ignores it."""
    params = hasher.get_params()
    return "center" in params and params.get("learner") != "exact"


def split_of(task: Task, data: Dataset) -> Split:
    """Return the rows of a task; entries and queries in random order, within its limits."""
    if data.is_query.any():
        split = given_split(data.y, data.is_query, task.rows_a_label, task.seed)
    else:
        queries, rows = rows_of_a_label(data, task.rows_a_label)
        split = paper_split(data.y, queries, rows, task.seed)
    if task.protocol == "unseen":
        split = hide_labels(data.y, split, task.seed)
    if task.protocol == "out-of-scope" and (data.y >= 0).all():
        split = Split(hide_labels(data.y, split, task.seed).stream, split.entries, split.queries)
    if task.protocol in ORDERS:
        stream = ORDERS[task.protocol](data.y, split.stream, task.seed)
        split = Split(stream, split.entries, split.queries)
    entries = _some(split.entries, task.entries, task.seed)
    return Split(split.stream, entries, _some(split.queries, task.queries, task.seed))


def rows_of_a_label(data: Dataset, wanted: int) -> tuple[int, int]:
    """Return how many rows of each label are queries, and how many are learned.

    The rarest label decides: a fifth of its rows are queries, and half of the others are learned,
    unless that is more than the paper's 100 queries or more than is wanted.
    """
    fewest = int(np.unique(data.y[data.y >= 0], return_counts=True)[1].min())
    queries = min(QUERIES_A_LABEL, max(1, fewest // 5))
    return queries, min(wanted, max(1, (fewest - queries) // 2))


def taught_labels(task: Task, data: Dataset, split: Split) -> NDArray[np.int64]:
    """Return the labels that the method learns, some of them wrong where the protocol says so."""
    labels = data.y[split.stream]
    return with_wrong_labels(labels, task.share, task.seed) if task.protocol == "noise" else labels


def learn(
    hasher: StreamHasher, data: Dataset, split: Split, taught: NDArray[np.int64], task: Task
) -> Upkeep:
    """Learn the stream, and refresh an index of unlabelled entries when functions have changed."""
    wanted = KEPT_FRESH if task.protocol == "strict" else 0
    kept = _some(np.setdiff1d(split.entries, split.stream), wanted, task.seed)
    index, seconds, reports, version = Index(hasher), 0.0, [], -1
    for part in pieces(len(split.stream)):
        X, y = data.X[split.stream[part]], taught[part]
        start = perf_counter()
        hasher.partial_fit(X, y)
        seconds += perf_counter() - start
        if len(kept) and len(index) == 0:
            index.add(data.X[kept])
        elif len(kept) and hasher.version_ != version:
            reports.append(index.refresh())
        version = hasher.version_
    counts = np.array([(r.bits_flipped, r.bits_recomputed, r.homes_moved) for r in reports])
    per_entry = counts.reshape(-1, 3).sum(axis=0) / max(1, len(kept))
    return Upkeep(seconds, *per_entry.tolist())


def pieces(rows: int) -> list[NDArray[np.int64]]:
    """Return the positions of a stream in pieces of about `EVERY` rows."""
    return np.array_split(np.arange(rows), max(1, rows // EVERY))


def _some(rows: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(rows)[:most]
