"""Searches for one request alone, in the search thread, with answers of bounded size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.collection.collection import Collection
from everhash.serve import limits
from everhash.serve.answers import Flat, as_arrow, enclosed, row_texts
from everhash.serve.errors import RefusedError, too_large

CELLS = 4_000_000
"""Matches of a table that a search within a radius may make, padding included."""
Rows = NDArray[np.float32]


class Wanted(NamedTuple):
    """Among which entries to search, and how the answer is wanted."""

    arrow: bool
    """As a table instead of JSON."""
    explain: bool
    labels: list[Any] | None = None
    ids: list[Any] | None = None


def find_nearest(
    collection: Collection, asked: Rows | list[Any], k: int, distance: str, wanted: Wanted
) -> bytes:
    """Answer /search, by rows or by the ids of entries."""
    arrow, explain, labels, ids = wanted
    if explain:
        _check_explained(len(asked) * k, collection)
    search = collection.search_like if isinstance(asked, list) else collection.search
    found = search(asked, k, distance, labels=labels, ids=ids, explain=explain)
    if arrow:
        return as_arrow(Flat.of(found), found.ids.shape[1])
    return enclosed(row_texts(found), found.ids.shape[1])


def find_within(
    collection: Collection, rows: Rows, r: float, distance: str, wanted: Wanted
) -> bytes:
    """Answer /radius, a few queries at a time: nobody knows how much each of them finds."""
    parts: list[Flat] = []
    texts: list[str] = []
    total = columns = 0
    with collection.held():  # all of them from one state
        step = max(1, CELLS // max(1, len(collection)))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            found = collection.search_radius(some, r, distance)
            total += int(found.counts.sum())
            columns = max(columns, found.ids.shape[1])
            if total > limits.MATCHES:
                raise _too_many(f"more than {limits.MATCHES} matches")
            if wanted.explain:
                _check_explained(total, collection)
                found = collection.search_radius(some, r, distance, explain=True)
            if wanted.arrow:
                parts.append(Flat.of(found))
            else:
                texts += row_texts(found)
    return as_arrow(Flat.joined(parts), columns) if wanted.arrow else enclosed(texts, columns)


def _check_explained(matches: int, collection: Collection) -> None:
    width = collection.hasher.width_
    if matches * width > limits.EXPLAINED:
        most = limits.EXPLAINED // width
        raise _too_many(f"{matches} matches to explain, at most {most} at a width of {width}")


def _too_many(problem: str) -> RefusedError:
    return too_large(problem, "ask for fewer queries, a smaller k or a smaller r")
