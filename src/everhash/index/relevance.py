"""How likely entries are to have a query's label, from what meaning and likeness say of them.

Each pair of a query and an entry is described by numbers that have no scale of their own, so that
they mean the same in any collection: what the likeliest labels say of the entry, how much nearer
others are than it, how far the nearest entries agree with each other. Boosted trees judge them;
they rise with the probability by meaning and with the cosine. `benchmarks/relevance.py` has made
them, and shows how they fare on data that they have not seen.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Bools, Counts, Floats

NEAR = 15
"""The nearest entries of a query that tell what is usual for it."""
LEAST = np.float32(1e-5)
"""Smaller probabilities, and differences of cosines, are taken for this."""
ALIKE = np.float32(1e-3)
"""Added to how far the nearest entry is, as that may be the query itself."""
FEATURES = 11
RISING = (0, 4)
"""Features that relevance rises with: the probability by meaning, and the cosine."""
AT_ONCE = 100_000
"""Pairs described at a time. Bounds memory; results do not depend on it."""
FILE = Path(__file__).with_suffix(".safetensors")


class Pairs(NamedTuple):
    """(q, m) entries that may be the best of each query."""

    meaning: Floats
    """Probability of having the query's label, by what was learned."""
    likeness: Floats
    """Cosine."""
    labelled: Bools
    """Whether the entry has a label."""
    own: Counts
    """The label that it has or is taken for, by number; -1 for none."""
    places: Counts
    """In order of arrival; -1 where there is no entry."""
    rows_a_label: float
    """That were learned, of a usual label: how far what was learned can be trusted."""

    def part(self, rows: slice) -> Pairs:
        """Return the pairs of some queries."""
        meaning, likeness, labelled, own, places, rows_a_label = self
        some = meaning[rows], likeness[rows], labelled[rows], own[rows], places[rows]
        return Pairs(*some, rows_a_label)


def relevance(pairs: Pairs) -> Floats:
    """Return (q, m) the probability that an entry has its query's label; NaN where none is."""
    found = np.full(pairs.places.shape, np.nan, np.float32)
    step = max(1, AT_ONCE // max(1, pairs.places.shape[1]))
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        there = pairs.places[part] >= 0
        found[part][there] = _judged(features(pairs.part(part))[there])
    return found


def usual_rows(counts: Counts | None) -> float:
    """Return how many rows of a usual label were learned, by their numbers; 1 if unknown."""
    some = counts[counts > 0] if counts is not None else ()
    return float(np.median(some)) if len(some) else 1.0


def _judged(rows: Floats) -> Floats:
    """Return (n,) what the trees say of described pairs."""
    votes = np.zeros((len(rows), 1), np.float32)
    if len(rows):  # else there is nothing to compile a kernel for
        trees = _trees()
        nowhere = np.zeros(len(trees["roots"]), np.int32)
        kernels.load_forest().add_votes(rows, *trees.values(), nowhere, votes)
    shares: Floats = (1 / (1 + np.exp(-votes[:, 0].astype(np.float64)))).astype(np.float32)
    return shares


def features(pairs: Pairs) -> Floats:
    """Return (q, m, FEATURES) what trees are asked about each pair."""
    there = pairs.places >= 0
    meaning = np.where(there, pairs.meaning, 0).astype(np.float32)
    cosines = np.where(there, pairs.likeness, -2).astype(np.float32)
    known = pairs.labelled & there & (meaning.max(axis=1, initial=0) > 0)[:, None]
    if not there.any():
        return np.zeros((*there.shape, FEATURES), np.float32)
    n = min(NEAR, there.shape[1])
    near = np.lexsort((pairs.places, -cosines), axis=1)[:, :n]
    first = np.lexsort((pairs.places, -cosines, -meaning), axis=1)[:, :1]

    def nearest(column: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(column, near, axis=1)

    close = nearest(cosines)
    counts = np.maximum(1, nearest(there).sum(axis=1, keepdims=True))
    best, last = close[:, :1], np.take_along_axis(close, counts - 1, axis=1)
    scale = np.maximum(best - last, LEAST)
    columns = (
        _log(meaning),
        known,
        _log(meaning.max(axis=1, keepdims=True)),
        _log(nearest(meaning)[:, :1]),  # of the nearest entry
        (cosines - best) / scale,  # how much nearer the nearest is
        scale / (1 - best + ALIKE),  # how far the nearest stand out
        (np.take_along_axis(cosines, first, axis=1) - best) / scale,  # of the likeliest entry
        nearest(known).sum(axis=1, keepdims=True) / counts,
        nearest(meaning).sum(axis=1, keepdims=True) / counts,
        _agreeing(pairs, nearest(pairs.own), nearest(pairs.places)) / counts,
        np.full((1, 1), np.log(max(1.0, pairs.rows_a_label))),
    )
    out = np.empty((*there.shape, FEATURES), np.float32)
    for number, column in enumerate(columns):
        out[:, :, number] = column
    return out


def _agreeing(pairs: Pairs, near: Counts, places: Counts) -> Counts:
    """Return (q, m) how many of the nearest others have an entry's label, or are taken for it.

    Args:
        pairs: of which.
        near: (q, n) the labels of the nearest.
        places: (q, n) and which they are.
    """
    same = (pairs.own[:, :, None] == near[:, None]) & ((near >= 0) & (places >= 0))[:, None]
    same &= pairs.places[:, :, None] != places[:, None]
    agreeing: Counts = same.sum(axis=2)
    return agreeing


def _log(probabilities: NDArray[Any]) -> Floats:
    logs: Floats = np.log(np.maximum(probabilities, LEAST))
    return logs


@cache
def _trees() -> dict[str, NDArray[Any]]:
    """Return the trees, as `kernels.forest` takes them."""
    from safetensors.numpy import load_file

    trees = load_file(FILE)
    return {name: trees[name] for name in ("features", "numbers", "rights", "roots")}
