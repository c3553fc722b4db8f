"""everhash as ann-benchmarks runs it. README.md beside this file says how to enter it there.

There are no labels in ann-benchmarks, so all entries are unlabelled and kept by their bits: bits
that are given, searched exactly, or bits of a method that learns without labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from ann_benchmarks.algorithms.base.module import BaseANN  # type: ignore[import-not-found]
from numpy.typing import NDArray

import everhash
from everhash.peers.batch.lsh import LSH

if TYPE_CHECKING:
    from everhash.learn.stream_hasher import StreamHasher

Rows = NDArray[Any]
Floats = NDArray[np.float32]
Places = NDArray[np.int64]
AT_ONCE = 10_000
"""Rows added, and queries answered, at a time. Bounds memory."""
LEARNED_FROM = 100_000
"""Rows that functions are learned from, a sample."""
MOST = 1000
"""Candidates that an index returns at most."""


class Everhash(BaseANN):  # type: ignore[misc]
    """What both kinds of rows have in common. `_search` finds the places of the n nearest."""

    def _search(self, queries: Rows, n: int) -> list[Places]:
        raise NotImplementedError

    def query(self, q: Rows, n: int) -> Places:
        """Return the places of the n nearest entries."""
        return self._search(q[None], n)[0]

    def batch_query(self, X: Rows, n: int) -> None:
        """Answer many queries; `get_batch_results` returns what was found."""
        parts = [X[start : start + AT_ONCE] for start in range(0, len(X), AT_ONCE)]
        self.res = [found for part in parts for found in self._search(part, n)]


class EverhashBits(Everhash):
    """Bit vectors by Hamming distance: an exact search, ties to the first entry."""

    def __init__(self, metric: str) -> None:
        if metric != "hamming":
            raise NotImplementedError(f"bits are compared by hamming distance, not by {metric}")

    def fit(self, X: Rows) -> None:
        """Build an index whose functions are the bits themselves."""
        width = X.shape[1]
        hasher = LSH(bits=width).fit(np.zeros((1, width)))
        hasher.functions_[:] = np.eye(width)  # bit t is the sign of feature t, less a half
        hasher.mean_[:] = 0.5
        self._version = hasher.version_
        self._index = index_of(hasher, X.astype(np.bool_))
        self.query(X[0], 1)  # the first search sorts the entries: that is building, too

    def _search(self, queries: Rows, n: int) -> list[Places]:
        signs = np.where(queries.astype(np.bool_), np.int8(1), np.int8(-1))
        codes = everhash.Codes.pack(signs, self._version)
        return places_of(self._index.search(codes, n, "hamming"))

    def __str__(self) -> str:
        return "everhash()"


class EverhashFloats(Everhash):
    """Vectors by codes of a method that needs no labels; candidates are measured again.

    Codes follow the angle between rows as seen from their mean, whatever the metric.
    """

    def __init__(self, metric: str, method: str, bits: int) -> None:
        if metric not in ("angular", "euclidean"):
            raise NotImplementedError(f"vectors have no {metric} distance here")
        self._metric, self._method, self._bits = metric, method, bits
        self._distance, self._candidates = "asymmetric", MOST

    def fit(self, X: Rows) -> None:
        """Learn functions from a sample, and index all rows by their bits."""
        rows = X.astype(np.float32)
        sample = np.random.default_rng(0).permutation(len(rows))[:LEARNED_FROM]
        hasher = everhash.peers.get(self._method, bits=self._bits).fit(rows[sample])
        self._index = index_of(hasher, rows)
        self._rows = self._scaled(rows)
        self.query(X[0], 1)  # the first search sorts the entries: that is building, too

    def set_query_arguments(self, distance: str, candidates: int) -> None:
        """Choose by which distance of codes candidates are found, and how many of them."""
        if candidates > MOST:
            raise NotImplementedError(f"at most {MOST} candidates, got {candidates}")
        self._distance, self._candidates = distance, candidates

    def _search(self, queries: Rows, n: int) -> list[Places]:
        asked = queries.astype(np.float32)
        wanted = max(n, self._candidates)
        found = places_of(self._index.search(asked, wanted, self._distance))
        scaled = self._scaled(asked)
        return [self._nearest(q, places, n) for q, places in zip(scaled, found, strict=True)]

    def _nearest(self, q: Floats, places: Places, n: int) -> Places:
        rows = self._rows[places]
        euclidean = self._metric == "euclidean"
        distances = ((rows - q) ** 2).sum(axis=1) if euclidean else -(rows @ q)
        nearest: Places = places[np.argsort(distances, kind="stable")[:n]]
        return nearest

    def _scaled(self, rows: Floats) -> Floats:
        """Return rows at unit length if only their direction counts; those of none stay zero."""
        if self._metric == "euclidean":
            return rows
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        scaled: Floats = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
        return scaled

    def __str__(self) -> str:
        made, asked = (
            f"{self._method}, {self._bits} bits",
            f"{self._candidates} by {self._distance}",
        )
        return f"everhash({made}, {asked})"


def index_of(hasher: StreamHasher, rows: Rows) -> everhash.Index:
    """Return an index of all rows, each one's id its place among them."""
    index = everhash.Index(hasher, keep_features="none", likeness=False)
    for start in range(0, len(rows), AT_ONCE):
        index.add(rows[start : start + AT_ONCE].astype(np.float32))
    return index


def places_of(found: everhash.Matches) -> list[Places]:
    """Return the ids that were found for each query: fewer where there are not so many."""
    counts = found.counts.tolist()
    pairs = zip(found.ids, counts, strict=True)
    return [ids[:count].astype(np.int64) for ids, count in pairs]
