"""Searches for one request alone, in the search thread, with answers of bounded size.

A request may ask for so much that others would wait for seconds. So it is searched in parts, each
of them a call of its own that takes a moment, between which the thread does what else there is.
Nobody searches for a client that has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.collection.collection import Collection
from everhash.matches import Matches
from everhash.serve import limits
from everhash.serve.answers import Flat, as_arrow, enclosed, row_texts
from everhash.serve.errors import RefusedError, too_large
from everhash.serve.intake import GoneError

Queries = NDArray[np.float32] | list[Any]
"""Rows, or ids of entries."""
Read = Callable[[Callable[[Collection], Any]], Awaitable[Any]]
"""Has a call made in the search thread."""
FIRST, SECONDS, FASTER = 32, 0.05, 8
"""Queries of a part of which nothing is known (one, if it has to be explained), how long a part
should take, and how many times larger than the last the next one may be."""
CELLS = 4_000_000
"""Matches of a table that a search within a radius may make, padding included."""


class Wanted(NamedTuple):
    """What to search with, and how the answer is wanted."""

    search: Callable[[Collection, Queries], Matches]
    like: Hashable
    """Searches alike take equally long a query."""
    arrow: bool
    """As a table instead of JSON."""
    explain: bool
    most: int = limits.QUERIES
    """Queries of a part."""


class Finder:
    """Answers requests part by part, and remembers how long parts may be.

    Args:
        read: has a call made in the search thread.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._sizes: dict[Hashable, int] = {}

    async def find(self, asked: Queries, wanted: Wanted, receive: Any) -> bytes:
        """Return the answer to a request; `receive` tells when its client leaves."""
        found, start, leaving = Found(wanted), 0, None
        try:
            while True:
                first = 1 if wanted.explain else FIRST
                size = min(wanted.most, self._sizes.get(wanted.like, first))
                some, last = asked[start : start + size], start + size >= len(asked)
                seconds, answer = await self._read(partial(found.search, asked=some, last=last))
                if len(some) == size or seconds > SECONDS:
                    fit = int(size * min(FASTER, SECONDS / seconds))
                    self._sizes[wanted.like] = max(1, min(limits.QUERIES, fit))
                if last:
                    return bytes(answer)
                leaving = leaving or asyncio.ensure_future(receive())
                if leaving.done():
                    raise GoneError
                start += size
        finally:
            if leaving is not None:
                leaving.cancel()


class Found:
    """What the parts of a request have found."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._flat: list[Flat] = []
        self._texts: list[str] = []
        self._total = self._columns = 0

    def search(
        self, collection: Collection, *, asked: Queries, last: bool
    ) -> tuple[float, bytes | None]:
        """Search for some queries; return how long that took, and at last the answer."""
        began = perf_counter()
        matches = self._wanted.search(collection, asked)
        self._total += int(matches.counts.sum())
        self._columns = max(self._columns, matches.ids.shape[1])
        if self._total > limits.MATCHES:
            raise _too_many(f"more than {limits.MATCHES} matches")
        if self._wanted.explain:
            check_explained(self._total, collection)
        if self._wanted.arrow:
            self._flat.append(Flat.of(matches))
        else:
            self._texts += row_texts(matches)
        seconds = perf_counter() - began
        return seconds, self._answer() if last else None

    def _answer(self) -> bytes:
        if self._wanted.arrow:
            return as_arrow(Flat.joined(self._flat), self._columns)
        return enclosed(self._texts, self._columns)


def nearest(
    collection: Collection,
    asked: Queries,
    *,
    k: int,
    distance: str,
    labels: list[Any] | None,
    ids: list[Any] | None,
    explain: bool,
) -> Matches:
    """Return the nearest entries of rows, or of entries."""
    if explain:
        check_explained(len(asked) * min(k, len(collection)), collection)
    search = collection.search_like if isinstance(asked, list) else collection.search
    return search(asked, k, distance, labels=labels, ids=ids, explain=explain)


def within(
    collection: Collection, asked: Queries, *, r: float, distance: str, explain: bool
) -> Matches:
    """Return all entries within a radius; only if they are not too many are they explained."""
    found = collection.search_radius(asked, r, distance)
    if not explain:
        return found
    check_explained(int(found.counts.sum()), collection)
    return collection.search_radius(asked, r, distance, explain=True)


def check_explained(matches: int, collection: Collection) -> None:
    """Refuse to explain more than an answer may hold."""
    width = collection.hasher.width_
    if matches * width > limits.EXPLAINED:
        most = limits.EXPLAINED // width
        raise _too_many(f"{matches} matches to explain, at most {most} at a width of {width}")


def _too_many(problem: str) -> RefusedError:
    return too_large(problem, "ask for fewer queries, a smaller k or a smaller r")
