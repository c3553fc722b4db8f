"""How a hasher is judged: splits of the data, and retrieval scores by codeword and by mapping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.bench.counts import Score, Shelf
from everhash.codes import Codes, asymmetric, hamming
from everhash.index.index import Index
from everhash.index.refresh import choose_homes
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


class Scores(NamedTuple):
    """How well entries are found, by two distances."""

    hamming: Score
    asymmetric: Score


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


def hide_labels(y: NDArray[np.int64], split: Split, seed: int) -> Split:
    """Return the part of a split that asks for unseen labels, a quarter of all rounded up.

    The stream keeps the other labels; entries and queries are of the hidden ones only
    (Sablayrolles, Douze, Jegou, Usunier, ICASSP 2017).
    """
    labels = np.random.default_rng(seed).permutation(np.unique(y[y >= 0]))
    hidden = np.isin(y, labels[: -(-len(labels) // 4)])
    stream, entries, queries = split
    return Split(stream[~hidden[stream]], entries[hidden[entries]], queries[hidden[queries]])


def score_codewords(
    hasher: StreamHasher,
    queries: NDArray[np.float32],
    query_labels: NDArray[np.int64],
    entry_labels: NDArray[np.int64],
) -> Scores:
    """Return mAP with entries stored as codewords."""
    labels, counts = np.unique(entry_labels, return_counts=True)
    entries = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    words, margins = hasher.encode_labels(), hasher.margins(queries)
    held = np.zeros(len(words), np.int64)
    held[hasher.numbers(entries)] = list(entries.values())
    own = hasher.numbers(query_labels.tolist())

    def score(distances: Distances) -> Score:
        # the entries of a label tie, so all that are relevant stand in one group
        nearest = distances[np.arange(len(own)), own, None]
        before, size = (distances < nearest) @ held, (distances == nearest) @ held
        return Score.of((before[:, None], size[:, None], held[own][:, None]))

    return Scores(score(hamming(hasher.encode(queries), words)), score(asymmetric(margins, words)))


def score_mapping(
    hasher: StreamHasher,
    queries: NDArray[np.float32],
    query_labels: NDArray[np.int64],
    entries: NDArray[np.float32],
    entry_labels: NDArray[np.int64],
    *,
    coding: str = "full",
    asymmetric_among: int | None = None,
) -> Scores:
    """Return mAP with entries stored as bits.

    Queries without a relevant entry are left out.

    Args:
        hasher: what was learned.
        queries: (n, d) rows to ask for.
        query_labels: (n,) their labels.
        entries: (m, d) rows to rank.
        entry_labels: (m,) their labels.
        coding: "full" stores the bits of all cycles, "home" those of an entry's home cycle only.
        asymmetric_among: rank only so many entries, the first ones, by asymmetric distance, which
            takes a sort for each query; shuffle entries beforehand. All of them if None.
    """
    stored = hasher.encode(entries) if coding == "full" else home_codes(hasher, entries)
    part = slice(asymmetric_among)
    by_bits = Shelf(stored, entry_labels).by_hamming(hasher.encode(queries), query_labels)
    few = Shelf(_part(stored, part), entry_labels[part])
    by_margins = few.by_margins(hasher.margins(queries), query_labels)
    return Scores(Score.of(by_bits), Score.of(by_margins))


def home_codes(hasher: StreamHasher, X: NDArray[np.float32]) -> Codes:
    """Return codes as an index keeps them: active on the bits of each row's home cycle only."""
    if hasher.n_cycles_ == 1:
        return hasher.encode(X)
    mapping = hasher.freeze()
    Z = mapping.measure(X)
    homes, _, _ = choose_homes(mapping, "home", Z)
    signs = np.where(mapping.margins(Z) > 0, np.int8(1), np.int8(-1))
    active = homes[:, None] == np.repeat(np.arange(hasher.n_cycles_), hasher.bits)
    return Codes.pack(signs * active, mapping.version)


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


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + QUERIES_AT_ONCE) for start in range(0, n, QUERIES_AT_ONCE))


def _part(codes: Codes, part: slice) -> Codes:
    return Codes(codes.words[part], codes.mask[part], codes.width, codes.version)
