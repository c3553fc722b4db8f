"""Splits of a data set into stream, entries and queries, and orders of the stream."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


class Split(NamedTuple):
    """Row numbers of the stream to learn from, in order, of the entries and of the queries."""

    stream: Rows
    entries: Rows
    queries: Rows


def paper_split(y: NDArray[np.int64], queries: int, stream: int, seed: int) -> Split:
    """Return the paper's split: `queries` and `stream` rows of each label; all others are entries.

    The stream's rows are entries too, as in the paper (2,000 of CIFAR-10's 59,000).
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(np.flatnonzero(y >= 0))
    rank = rank_within_label(y[shuffled])
    entries = shuffled[rank >= queries]
    learned = shuffled[(rank >= queries) & (rank < queries + stream)]
    return Split(rng.permutation(learned), entries, shuffled[rank < queries])


def given_split(y: NDArray[np.int64], is_query: NDArray[np.bool_], stream: int, seed: int) -> Split:
    """Return a split with the set's own queries and `stream` rows of each label to learn."""
    rng = np.random.default_rng(seed)
    entries = rng.permutation(np.flatnonzero((y >= 0) & ~is_query))
    learned = entries[rank_within_label(y[entries]) < stream]
    return Split(rng.permutation(learned), entries, np.flatnonzero((y >= 0) & is_query))


def rank_within_label(y: NDArray[np.int64]) -> Rows:
    """Return for each row how many rows of its label come before it."""
    order = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[order], y[order])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(y)) - starts
    return rank


def hide_labels(y: NDArray[np.int64], split: Split, seed: int) -> Split:
    """Return a split whose queries have labels that are never learned, a quarter of all rounded up.

    The stream has the other labels; entries and queries have the hidden ones only
    (Sablayrolles, Douze, Jegou, Usunier, ICASSP 2017).
    """
    labels = np.random.default_rng(seed).permutation(np.unique(y[y >= 0]))
    hidden = np.isin(y, labels[: -(-len(labels) // 4)])
    stream, entries, queries = split
    return Split(stream[~hidden[stream]], entries[hidden[entries]], queries[hidden[queries]])


def with_wrong_labels(labels: Rows, share: float, seed: int) -> Rows:
    """Return the labels with about a `share` of them replaced by other ones, drawn at random."""
    rng = np.random.default_rng(seed)
    known, which = np.unique(labels, return_inverse=True)
    moved = rng.integers(1, max(2, len(known)), len(labels)) % len(known)
    wrong = rng.random(len(labels)) < share
    return known[np.where(wrong, (which.reshape(-1) + moved) % len(known), which.reshape(-1))]


def joining(y: Rows, stream: Rows, seed: int) -> Rows:
    """Return a stream in which labels join over time and earlier labels continue.

    Labels join in random order and in even steps over the first nine tenths of the time; the rows
    of a label are spread evenly from then to the end. Labels have about equally many rows, so a
    label that joins late is frequent, and the stream is denser towards its end.
    """
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.unique(y[stream]))
    starts = dict(zip(labels.tolist(), np.linspace(0, 0.9, len(labels)).tolist(), strict=True))
    first = np.array([starts[label] for label in y[stream].tolist()])
    rank = rank_within_label(y[stream])
    when = first + (1 - first) * np.where(rank == 0, 0, rng.random(len(stream)))
    return stream[np.argsort(when, kind="stable")]


def sorted_by_label(y: Rows, stream: Rows, seed: int) -> Rows:
    """Return a stream sorted by label, with the labels in random order."""
    labels = np.random.default_rng(seed).permutation(np.unique(y[stream]))
    place = np.empty(len(labels), np.int64)
    place[np.argsort(labels)] = np.arange(len(labels))
    when = place[np.searchsorted(np.sort(labels), y[stream])]
    return stream[np.argsort(when, kind="stable")]


ORDERS = {"joining": joining, "sorted": sorted_by_label}
"""Protocols that decide the order of the stream."""
