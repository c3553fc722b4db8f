"""Retrieval scores: entries stored as codewords, as bits, or as both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.bench.counts import ScoreRange, Shelf
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split
from everhash.codes import Codes, asymmetric, hamming
from everhash.index.encoding import choose_homes
from everhash.index.index import Index
from everhash.learn.centering import unit_rows
from everhash.learn.stream_hasher import StreamHasher
from everhash.metrics import average_precision

Rows = NDArray[np.int64]
Distances = NDArray[np.float32] | NDArray[np.int64]
QUERIES_AT_ONCE = 50
"""Bounds the memory of a table of distances."""


class Scores(NamedTuple):
    """mAP by each of the two distances."""

    hamming: ScoreRange
    asymmetric: ScoreRange


def score_codewords(hasher: StreamHasher, data: Dataset, split: Split) -> Scores:
    """Return mAP with entries stored as codewords."""
    labels, counts = np.unique(data.y[split.entries], return_counts=True)
    entries = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    words, queries = hasher.encode_labels(), data.X[split.queries]
    held = np.zeros(len(words), np.int64)
    held[hasher.numbers(entries)] = list(entries.values())
    own = hasher.numbers(data.y[split.queries].tolist())

    def score(distances: Distances) -> ScoreRange:
        # the entries of a label tie, so all relevant ones are in one group
        nearest = distances[np.arange(len(own)), own, None]
        before, size = (distances < nearest) @ held, (distances == nearest) @ held
        return ScoreRange.of((before[:, None], size[:, None], held[own][:, None]))

    by_margins = asymmetric(hasher.margins(queries), words)
    return Scores(score(hamming(hasher.encode(queries), words)), score(by_margins))


def score_mapping(
    hasher: StreamHasher,
    data: Dataset,
    split: Split,
    *,
    coding: str = "home",
    asymmetric_among: int | None = None,
) -> Scores:
    """Return mAP with entries stored as bits. Queries without a relevant entry are left out.

    Args:
        hasher: what was learned.
        data: the rows and their labels.
        split: which rows are entries, and which are queries.
        coding: "full" stores the bits of all cycles, "home" those of an entry's home cycle only.
        asymmetric_among: rank only so many entries, the first ones, by asymmetric distance, which
            takes a sort for each query; shuffle entries beforehand. All of them if None.
    """
    entries = data.X[split.entries]
    stored = hasher.encode(entries) if coding == "full" else home_codes(hasher, entries)
    return _score_codes(hasher, data, split, stored, asymmetric_among)


def score_mixture(
    hasher: StreamHasher, data: Dataset, split: Split, unlabelled: NDArray[np.bool_]
) -> Scores:
    """Return mAP with entries stored as codewords, but as bits where they are unlabelled.

    A method without codewords stores bits for all of them.
    """
    stored = home_codes(hasher, data.X[split.entries])
    if hasher.assigns_codewords:
        words, labelled = hasher.encode_labels(), np.flatnonzero(~unlabelled)
        numbers = hasher.numbers(data.y[split.entries[labelled]].tolist())
        stored.words[labelled], stored.mask[labelled] = words.words[numbers], words.mask[numbers]
    return _score_codes(hasher, data, split, stored)


def _score_codes(
    hasher: StreamHasher, data: Dataset, split: Split, stored: Codes, among: int | None = None
) -> Scores:
    """Return mAP of stored codes; by asymmetric distance of the first `among` only."""
    queries, labels, part = data.X[split.queries], data.y[split.queries], slice(among)
    shelf = Shelf(stored, data.y[split.entries])
    by_bits = shelf.by_hamming(hasher.encode(queries), labels)
    if among is not None and among < len(shelf):
        shelf = Shelf(_part(stored, part), data.y[split.entries[part]])
    by_margins = shelf.by_margins(hasher.margins(queries), labels)
    return Scores(ScoreRange.of(by_bits), ScoreRange.of(by_margins))


def score_novelty(
    hasher: StreamHasher, known: NDArray[np.float32], unknown: NDArray[np.float32]
) -> float:
    """Return the area under the ROC curve of the distance from the nearest codeword."""
    words = hasher.encode_labels()
    near = [asymmetric(hasher.margins(rows), words).min(axis=1) for rows in (known, unknown)]
    return auroc(*near)


def score_novelty_of_features(
    X: NDArray[np.float32], learned: Rows, known: Rows, unknown: Rows
) -> float:
    """Return the same for the cosine distance from the nearest learned row."""
    center = X[learned].mean(axis=0)
    rows = unit_rows(X[learned], center)
    near = [-(unit_rows(X[asked], center) @ rows.T).max(axis=1) for asked in (known, unknown)]
    return auroc(*near)


def auroc(known: NDArray[Any], unknown: NDArray[Any]) -> float:
    """Return the area under the ROC curve of values that should be higher for unknown queries."""
    from sklearn.metrics import roc_auc_score

    is_unknown = np.repeat([0, 1], [len(known), len(unknown)])
    return float(roc_auc_score(is_unknown, np.concatenate([known, unknown])))


def home_codes(hasher: StreamHasher, X: NDArray[np.float32]) -> Codes:
    """Return codes as an index stores them: active on the bits of each row's home cycle only."""
    if hasher.n_cycles_ == 1:
        return hasher.encode(X)
    mapping = hasher.freeze()
    Z = mapping.measure(X)
    homes, _, _ = choose_homes(mapping, "home", Z)
    signs = np.where(mapping.margins(Z) > 0, np.int8(1), np.int8(-1))
    active = homes[:, None] == np.repeat(np.arange(hasher.n_cycles_), hasher.bits)
    return Codes.pack(signs * active, mapping.version)


def score_index(index: Index, data: Dataset, split: Split, by: str) -> float:
    """Return mAP of an index's whole ranking by a distance; id i is the split's i-th entry."""
    values, stored = [], data.y[split.entries]
    for part in _parts(len(split.queries)):
        asked = split.queries[part]
        found = index.search_radius(data.X[asked], np.inf, by)
        relevant = stored[found.ids.astype(np.int64)] == data.y[asked, None]
        values.append(average_precision(found.scores, relevant))
    return float(np.concatenate(values).mean())


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + QUERIES_AT_ONCE) for start in range(0, n, QUERIES_AT_ONCE))


def _part(codes: Codes, part: slice) -> Codes:
    return Codes(codes.words[part], codes.mask[part], codes.width, codes.version)
