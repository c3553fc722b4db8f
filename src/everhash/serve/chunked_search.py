"""Searches for one request alone, with answers of bounded size.

A request may ask for so much that others would wait for seconds. So it is searched in chunks, each
of them a call of its own that takes a moment; between two of them the thread does what else waits.
Nobody searches for a client that has left.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import TooLargeError
from everhash.matches import Matches
from everhash.serve import limits
from everhash.serve.encoding import to_json
from everhash.serve.errors import ClientGoneError
from everhash.serve.served import Served
from everhash.wire import matches as wire
from everhash.wire.match_tables import MatchTable

Queries = NDArray[np.float32] | list[Any]
"""Rows, or ids of entries."""
Run = Callable[[Callable[[Served], Any]], Awaitable[Any]]
"""Makes a call in a thread."""
FIRST_CHUNK = 32
"""Queries of the first chunk of a kind of search; one, if it has to be explained."""
CHUNK_SECONDS = 0.05
"""How long a chunk should take."""
MAX_GROWTH = 8
"""How many times larger than the last a chunk may be."""
CHUNK_MATCHES = 100_000
"""Matches of a chunk, which are objects of Python before they are bytes."""
RADIUS_CELLS = 4_000_000
"""Matches of a table that a search within a radius may make, padding included."""


class SearchPlan(NamedTuple):
    """What to search with, and what the answer holds."""

    search: Callable[[Served, Queries], Matches]
    kind: Hashable
    """Searches of one kind take equally long a query."""
    arrow: bool
    """As a table instead of JSON."""
    explain: bool
    reads_file: bool
    """Whether payloads or features are read, which may wait for a commit."""
    max_chunk: int = limits.QUERIES
    """Queries of a chunk."""


class ChunkedSearch:
    """Answers requests chunk by chunk, and remembers how large chunks may be.

    Args:
        search: makes a call in the search thread.
        read: makes a call in the thread that may wait for the file.
    """

    def __init__(self, search: Run, read: Run) -> None:
        self._search, self._read = search, read
        self._sizes: dict[Hashable, int] = {}

    async def find(self, queries: Queries, plan: SearchPlan, receive: Any) -> bytes:
        """Return the answer to a request; `receive` returns when its client leaves."""
        answer, start, leaving = _Answer(plan), 0, None
        run = self._read if plan.reads_file else self._search
        try:
            while True:
                size = self._size(plan)
                chunk, last = queries[start : start + size], start + size >= len(queries)
                call = partial(answer.search, queries=chunk, last=last)
                seconds, content = await run(call)
                self._adapt(plan.kind, size, len(chunk), seconds)
                if last:
                    return bytes(content)
                leaving = leaving or asyncio.ensure_future(receive())
                if leaving.done():
                    raise ClientGoneError
                start += size
        finally:
            if leaving is not None:
                leaving.cancel()

    def _size(self, plan: SearchPlan) -> int:
        first = 1 if plan.explain else FIRST_CHUNK
        return min(plan.max_chunk, self._sizes.get(plan.kind, first))

    def _adapt(self, kind: Hashable, size: int, searched: int, seconds: float) -> None:
        if searched == size or seconds > CHUNK_SECONDS:
            fitting = int(size * min(MAX_GROWTH, CHUNK_SECONDS / seconds))
            self._sizes[kind] = max(1, min(limits.QUERIES, fitting))


class _Answer:
    """What the chunks of a request have found so far, as bytes: those can be counted."""

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._table = MatchTable()
        self._queries: list[bytes] = []
        self._total = self._columns = self._bytes = 0
        self._missing: set[int] = set()

    def search(
        self, collection: Served, *, queries: Queries, last: bool
    ) -> tuple[float, bytes | None]:
        """Search a chunk; return how long that took, and after the last the answer."""
        began = perf_counter()
        matches = self._plan.search(collection, queries)
        self._total += int(matches.counts.sum())
        self._columns = max(self._columns, matches.ids.shape[1])
        self._missing.update(matches.missing)
        if self._total > limits.MATCHES:
            raise _too_many(f"more than {limits.MATCHES} matches")
        if self._plan.explain:
            check_explained(self._total, collection)
        if self._plan.arrow:
            self._bytes += self._table.add(matches)
        else:
            queries_found = to_json(wire.to_json(matches))[1:-1]  # without the brackets of a list
            self._queries.append(queries_found)
            self._bytes += len(queries_found)
        if self._bytes > limits.ANSWER:
            raise _too_many(f"an answer of more than {limits.ANSWER} bytes")
        seconds = perf_counter() - began
        return seconds, self._encoded() if last else None

    def _encoded(self) -> bytes:
        if self._plan.arrow:
            return self._table.to_arrow()
        more = {"columns": self._columns, **wire.missing_to_json(sorted(self._missing))}
        return b'{"matches":[%s],%s' % (b",".join(filter(None, self._queries)), to_json(more)[1:])


def chunk_of(k: int, *, payloads: bool) -> int:
    """Return how many queries a chunk may have that find k entries each."""
    return max(1, (limits.PAYLOADS if payloads else CHUNK_MATCHES) // k)


def effort_of(recall: float) -> int:
    """Return about how thorough a search is: 0 if it finds all, up to 7, so that kinds are few.

    >>> [effort_of(recall) for recall in (1, 0.99, 0.98, 0.95, 0.8, 0.5, 0.01)]
    [0, 1, 2, 3, 4, 6, 7]
    """
    return math.ceil(64 * (1 - recall)).bit_length()


def check_payloads(matches: int) -> None:
    """Refuse to read more payloads than should be in memory at once."""
    if matches > limits.PAYLOADS:
        raise _too_many(f"{matches} matches with payloads, at most {limits.PAYLOADS} a query")


def check_explained(matches: int, collection: Served) -> None:
    """Refuse to explain more than an answer may hold."""
    width = collection.hasher.width_
    if matches * width > limits.EXPLAINED:
        most = limits.EXPLAINED // width
        raise _too_many(f"{matches} matches to explain, at most {most} at a width of {width}")


def _too_many(problem: str) -> TooLargeError:
    return TooLargeError(
        problem,
        hint="ask for fewer queries, a smaller k or an r that fewer entries reach, or without "
        "payloads",
    )
