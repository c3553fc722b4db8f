"""The specification of the search kernels, in NumPy: every distance, then a sort.

Compiled searches agree to the last bit, floats included, whatever path they take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]
Floats = NDArray[np.float32]


def hamming(words: Words, cycles: Counts, queries: Words) -> Counts:
    """(q, n) Hamming distances of queries (q, n_cycles, W) to words (n, W) in their cycles (n,).

    >>> u = lambda *v: np.array(v, dtype=np.uint64)
    >>> hamming(u([0b1100], [0b1010]), np.array([0, 0]), u([[0b1000]])).tolist()
    [[1, 1]]
    """
    differs = words ^ queries[:, cycles]
    total: Counts = np.bitwise_count(differs).sum(axis=2, dtype=np.int64)
    return total


def byte_tables(margins: Floats) -> Floats:
    """(n_bytes, 256) what each value of each byte adds to the score, for margins (bits,).

    Value 0 is minus each margin in turn; bit i then adds twice its margin, lower bits first.
    """
    padded = np.zeros(-(-len(margins) // 64) * 64, np.float32)
    padded[: len(margins)] = margins
    tables = np.zeros((len(padded) // 8, 256), np.float32)
    for table, part in zip(tables, padded.reshape(-1, 8), strict=True):
        for margin in part:
            table[0] -= margin
        for i, margin in enumerate(part):
            table[1 << i : 2 << i] = table[: 1 << i] + np.float32(2) * margin
    return tables


def asymmetric(words: Words, cycles: Counts, margins: Floats) -> Floats:
    """(q, n) distances of margins (q, n_cycles, bits) to words (n, W): minus sum of sign x margin.

    Summed in float32, byte by byte; never -0.0.
    """
    out = np.zeros((len(margins), len(words)), np.float32)
    octets = np.ascontiguousarray(words).view(np.uint8)
    for query, row in zip(margins, out, strict=True):
        for cycle, own in enumerate(query):
            members = np.flatnonzero(cycles == cycle)
            score = np.zeros(len(members), np.float32)
            for octet, table in enumerate(byte_tables(own)):
                score += table[octets[members, octet]]
            row[members] = np.float32(0) - score
    return out


def nearest(distances: NDArray[Any], k: int) -> tuple[NDArray[Any], Counts]:
    """The k nearest of (q, n) distances: (q, k) distances and places, by (distance, place).

    Where there are fewer than k, the place is -1 and the distance -1, or inf for floats.
    """
    absent = np.inf if distances.dtype.kind == "f" else -1
    values = np.full((len(distances), k), absent, distances.dtype)
    places = np.full((len(distances), k), -1, np.int64)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    values[:, : order.shape[1]] = np.take_along_axis(distances, order, axis=1)
    places[:, : order.shape[1]] = order
    return values, places


def within(row: NDArray[Any], radius: float) -> tuple[NDArray[Any], Counts]:
    """Distances and places of all of one query's distances (n,) that are at most `radius`."""
    order = np.argsort(row, kind="stable")
    order = order[row[order].astype(np.float64) <= radius]
    return row[order], order


def nearest_label(
    postings: dict[int, set[int]], row: NDArray[Any]
) -> tuple[NDArray[Any], Counts, Counts]:
    """Every entry under its nearest label, by (distance, place): distances, places, labels.

    Args:
        postings: the labels of each place.
        row: (L,) distance of each label to one query.
    """
    best = [min((row[label], place, label) for label in own) for place, own in postings.items()]
    best.sort(key=lambda found: found[:2])
    return (
        np.array([found[0] for found in best], row.dtype),
        np.array([found[1] for found in best], np.int64),
        np.array([found[2] for found in best], np.int64),
    )


def shell_keys(
    words: Words, cycles: Counts, codewords: Words, codeword_cycles: Counts, bits: int
) -> Counts:
    """(n,) for words (n, W): number of the first nearest codeword, x (bits + 1), + the distance.

    Only the codewords (L, W) of a word's own cycle are near it; each cycle has one.
    """
    far = np.bitwise_count(words[:, None] ^ codewords).sum(axis=2, dtype=np.int64)
    far[cycles[:, None] != codeword_cycles] = bits + 1
    keys: Counts = far.argmin(axis=1) * (bits + 1) + far.min(axis=1)
    return keys


def sort_columns(table: Words) -> tuple[Counts, NDArray[np.bool_]]:
    """Order of the columns (rows, n), by the last row first, and which differ from the one before.

    >>> order, new = sort_columns(np.array([[3, 1, 3, 2], [0, 0, 0, 0]], dtype=np.uint64))
    >>> order.tolist(), new.tolist()
    ([1, 3, 0, 2], [True, True, True, False])
    """
    order = np.lexsort(table)
    new = np.ones(len(order), np.bool_)
    new[1:] = (table[:, order[1:]] != table[:, order[:-1]]).any(axis=0)
    return order, new


def lay_out(order: Counts, new: NDArray[np.bool_]) -> tuple[Counts, Counts, Counts]:
    """Lead, starts and word_of of a `Segment` whose places, in order of the words, are `order`."""
    starts = np.append(np.flatnonzero(new), len(new))
    length = np.diff(starts)
    lead = (order[starts[:-1]] << 1) | (length > 1) | (length << 32)
    word_of = np.empty(len(new), np.int64)
    word_of[order] = np.cumsum(new) - 1
    return lead, starts, word_of
