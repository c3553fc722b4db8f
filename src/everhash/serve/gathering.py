"""The search thread: queries that wait at the same moment are searched as one batch.

A search of 32 queries takes three times as long as a search of one. So the event loop first reads
all requests that have arrived, and only then hands their queries over; while a batch is searched
the next one grows. A query that comes alone is handed over at once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from everhash.matches import Matches
from everhash.serve.answers import enclosed, row_texts
from everhash.serve.errors import busy
from everhash.serve.metrics import Metrics
from everhash.serve.worker import Settled, Worker, attempt, hand_over

MOST = 64
"""Queries of a batch."""
ROUNDS = 8
"""Turns of the event loop that a batch may go on growing."""
Search = Callable[[NDArray[np.float32], int, str], Matches]


@dataclass(eq=False, slots=True)
class Query:
    """One query, of which it is known that it can be answered: no batch fails because of it."""

    row: NDArray[np.float32]
    k: int
    distance: str
    future: asyncio.Future[bytes]


class Gatherer:
    """Gathers single queries into batches, and has a worker search them.

    Only the event loop touches what it holds; the worker gets a batch as it is.

    Args:
        worker: whose thread searches.
        search: what it calls.
        metrics: where batches are counted.
    """

    def __init__(self, worker: Worker, search: Search, metrics: Metrics) -> None:
        self._worker, self._search, self._metrics = worker, search, metrics
        self._waiting: list[Query] = []
        self._flushing = self._searching = False

    async def nearest(self, row: NDArray[np.float32], k: int, distance: str) -> bytes:
        """Return the answer to one query, a (1, d) row, as JSON."""
        if len(self._waiting) >= 2 * MOST:
            raise busy("too many queries wait for their turn")
        loop = asyncio.get_running_loop()
        query = Query(row, k, distance, loop.create_future())
        self._waiting.append(query)
        if not (self._flushing or self._searching):
            self._flushing = True
            loop.call_soon(self._flush, 0, ROUNDS)
        return await query.future

    def _flush(self, before: int, rounds: int) -> None:
        """Hand a batch over once it has stopped growing; `before` is how long it was."""
        now = len(self._waiting)
        if before < now < MOST and rounds:
            asyncio.get_running_loop().call_soon(self._flush, now, rounds - 1)
            return
        self._flushing, self._searching = False, True
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        loop = asyncio.get_running_loop()

        def run() -> None:
            settled, error = attempt(partial(search_all, batch, self._search))
            if error is not None:
                settled = [(query.future, None, error) for query in batch]
            loop.call_soon_threadsafe(self._settle, settled)

        self._worker.put(run)

    def _settle(self, settled: list[Settled]) -> None:
        """Hand answers out, and let the next batch go."""
        self._metrics.batches += 1
        self._metrics.gathered += len(settled)
        hand_over(settled)
        self._searching = False
        if self._waiting:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush, 0, ROUNDS)


def search_all(batch: list[Query], search: Search) -> list[Settled]:
    """Answer queries, those with equal options in one search."""
    alike: dict[tuple[int, str], list[Query]] = defaultdict(list)
    for query in batch:
        if not query.future.cancelled():
            alike[query.k, query.distance].append(query)
    settled: list[Settled] = []
    for (k, distance), queries in alike.items():
        rows = np.concatenate([query.row for query in queries])
        answers, error = attempt(partial(_search, search, rows, k, distance))
        if error is None:
            settled += [(q.future, a, None) for q, a in zip(queries, answers, strict=True)]
        else:  # whoever is to blame, the others get their answers
            settled += [(query.future, *_alone(query, search)) for query in queries]
    return settled


def _alone(query: Query, search: Search) -> tuple[bytes | None, Exception | None]:
    answers, error = attempt(partial(_search, search, query.row, query.k, query.distance))
    return (None if answers is None else answers[0]), error


def _search(search: Search, rows: NDArray[np.float32], k: int, distance: str) -> list[bytes]:
    matches = search(rows, k, distance)
    columns = matches.ids.shape[1]
    return [enclosed([text], columns) for text in row_texts(matches)]
