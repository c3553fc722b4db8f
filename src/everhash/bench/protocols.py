"""How a hasher is judged: splits of the data, and retrieval scores by codeword and by mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.codes import Codes, asymmetric, hamming
from everhash.index.index import Index
from everhash.learn.stream_hasher import StreamHasher
from everhash.metrics import average_precision

Rows = NDArray[np.int64]
Distances = NDArray[np.float32] | NDArray[np.int64]
QUERIES_AT_ONCE = 50
"""Bounds the memory of a table of distances."""


class Split(NamedTuple):
    """Row numbers of the stream to learn from, in order, of the entries and of the queries."""

    stream: Rows
    entries: Rows
    queries: Rows


def paper_split(y: NDArray[np.int64], queries: int, stream: int, seed: int) -> Split:
    """Return the paper's split: so many queries and stream rows of each label, all else is entries.

    The stream's rows are entries too, as in the paper (2,000 of CIFAR-10's 59,000).
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(np.flatnonzero(y >= 0))
    rank = _rank_within_label(y[shuffled])
    entries = shuffled[rank >= queries]
    learned = shuffled[(rank >= queries) & (rank < queries + stream)]
    return Split(rng.permutation(learned), entries, shuffled[rank < queries])


def given_split(y: NDArray[np.int64], is_query: NDArray[np.bool_], stream: int, seed: int) -> Split:
    """Return a split with the set's own queries, and so many stream rows of each label."""
    rng = np.random.default_rng(seed)
    entries = rng.permutation(np.flatnonzero((y >= 0) & ~is_query))
    learned = entries[_rank_within_label(y[entries]) < stream]
    return Split(rng.permutation(learned), entries, np.flatnonzero((y >= 0) & is_query))


def _rank_within_label(y: NDArray[np.int64]) -> Rows:
    """Return for each row how many rows of its label stand before it."""
    order = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[order], y[order])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(y)) - starts
    return rank


def score_codewords(
    hasher: StreamHasher,
    queries: NDArray[np.float32],
    query_labels: NDArray[np.int64],
    entry_labels: NDArray[np.int64],
) -> tuple[float, float]:
    """Return mAP by Hamming and by asymmetric distance, entries stored as codewords."""
    number = {label: i for i, label in enumerate(hasher.labels_)}
    entries = np.array([number[label] for label in entry_labels.tolist()])
    words, codes = hasher.encode_labels(), hasher.encode(queries)

    def ranked(distances: Distances) -> NDArray[np.int64]:
        # entries of a label tie, so ranks of labels are enough, and small integers score fast
        return np.array([np.unique(row, return_inverse=True)[1] for row in distances])[:, entries]

    def by_hamming(part: slice) -> NDArray[np.int64]:
        return ranked(hamming(_part(codes, part), words))

    def by_margins(part: slice) -> NDArray[np.int64]:
        return ranked(asymmetric(hasher.margins(queries[part]), words))

    return (
        _mean_ap(by_hamming, query_labels, entry_labels),
        _mean_ap(by_margins, query_labels, entry_labels),
    )


def score_mapping(
    hasher: StreamHasher,
    queries: NDArray[np.float32],
    query_labels: NDArray[np.int64],
    entries: NDArray[np.float32],
    entry_labels: NDArray[np.int64],
) -> tuple[float, float]:
    """Return mAP by Hamming and by asymmetric distance, entries stored as all their bits."""
    codes, stored = hasher.encode(queries), hasher.encode(entries)
    signs = stored.unpack().T.astype(np.float32)
    return (
        _mean_ap(lambda part: hamming(_part(codes, part), stored), query_labels, entry_labels),
        _mean_ap(lambda part: -(hasher.margins(queries[part]) @ signs), query_labels, entry_labels),
    )


def score_index(
    index: Index,
    queries: NDArray[np.float32],
    query_labels: NDArray[np.int64],
    entry_labels: NDArray[np.int64],
    distance: str,
) -> float:
    """Return mAP of an index's whole ranking; entry i has id i and the i-th of `entry_labels`."""
    values = []
    for part in _parts(len(queries)):
        found = index.search_radius(queries[part], np.inf, distance)
        relevant = entry_labels[found.ids.astype(np.int64)] == query_labels[part, None]
        values.append(average_precision(found.distances, relevant))
    return float(np.concatenate(values).mean())


def _mean_ap(
    distances: Callable[[slice], Distances],
    query_labels: NDArray[np.int64],
    entry_labels: NDArray[np.int64],
) -> float:
    values = [
        average_precision(distances(part), query_labels[part, None] == entry_labels)
        for part in _parts(len(query_labels))
    ]
    return float(np.concatenate(values).mean())


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + QUERIES_AT_ONCE) for start in range(0, n, QUERIES_AT_ONCE))


def _part(codes: Codes, part: slice) -> Codes:
    return Codes(codes.words[part], codes.mask[part], codes.width, codes.version)
