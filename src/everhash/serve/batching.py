"""Single queries that wait at the same moment are searched as one batch.

A search of 32 queries takes three times as long as a search of one. So the event loop first reads
all requests that have arrived, and only then hands their queries to the search thread; while a
batch is searched the next one grows. A query that comes alone is handed over at once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Executor
from concurrent.futures import Future as ThreadFuture
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.matches import Matches
from everhash.serve.encoding import to_json
from everhash.serve.metrics import Metrics
from everhash.wire import matches as wire
from everhash.wire.options import RECALL

MAX_BATCH = 64
"""Queries of a batch."""
ROUNDS = 8
"""Turns of the event loop that a batch may go on growing."""
Search = Callable[[NDArray[np.float32], int, str, float], Matches]
Result = bytes | Exception


@dataclass(eq=False, slots=True)
class WaitingQuery:
    """One query, checked already: it cannot make its batch fail."""

    row: NDArray[np.float32]
    k: int
    by: str
    recall: float
    future: asyncio.Future[bytes]


class SearchBatcher:
    """Collects single queries into batches, and has a thread search them.

    Only the event loop touches its state; the thread gets a batch as it is.

    Args:
        executor: whose only thread searches.
        search: what it calls.
        metrics: where batches are counted.
    """

    def __init__(self, executor: Executor, search: Search, metrics: Metrics) -> None:
        self._executor, self._search, self._metrics = executor, search, metrics
        self._waiting: list[WaitingQuery] = []
        self._busy = False
        """Whether a batch grows or is being searched."""

    async def nearest(
        self, row: NDArray[np.float32], k: int, by: str, recall: float = RECALL
    ) -> bytes:
        """Return the answer to one query, a (1, d) row, as JSON."""
        loop = asyncio.get_running_loop()
        query = WaitingQuery(row, k, by, recall, loop.create_future())
        self._waiting.append(query)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._flush, 0, ROUNDS)
        return await query.future

    def _flush(self, before: int, rounds: int) -> None:
        """Hand a batch over once it has stopped growing; `before` is how long it was."""
        loop, now = asyncio.get_running_loop(), len(self._waiting)
        if before < now < MAX_BATCH and rounds:
            loop.call_soon(self._flush, now, rounds - 1)
            return
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]

        def finish(done: ThreadFuture[list[Result]]) -> None:
            loop.call_soon_threadsafe(self._settle, batch, done)

        self._executor.submit(search_all, batch, self._search).add_done_callback(finish)

    def _settle(self, batch: list[WaitingQuery], done: ThreadFuture[list[Result]]) -> None:
        """Return answers to those who wait, and start the next batch."""
        error = done.exception()
        results = [error] * len(batch) if error is not None else done.result()
        self._metrics.batches.inc()
        self._metrics.batched.inc(len(batch))
        for query, result in zip(batch, results, strict=True):
            if query.future.done():  # given up meanwhile
                continue
            if isinstance(result, bytes):
                query.future.set_result(result)
            else:
                query.future.set_exception(result)
        self._busy = bool(self._waiting)
        if self._busy:
            asyncio.get_running_loop().call_soon(self._flush, 0, ROUNDS)


def search_all(batch: list[WaitingQuery], search: Search) -> list[Result]:
    """Answer queries in order, those with equal options in one search."""
    results: dict[int, Result] = {}
    groups: dict[tuple[int, str, float], list[int]] = defaultdict(list)
    for number, query in enumerate(batch):
        groups[query.k, query.by, query.recall].append(number)
    for (k, by, recall), numbers in groups.items():
        rows = np.concatenate([batch[number].row for number in numbers])
        try:
            answers: list[Any] = _answers(search(rows, k, by, recall), len(numbers))
        except Exception:  # whoever is to blame, the others get their answers
            answers = [_alone(batch[number], search) for number in numbers]
        results.update(zip(numbers, answers, strict=True))
    return [results[number] for number in range(len(batch))]


def _alone(query: WaitingQuery, search: Search) -> Result:
    try:
        return _answers(search(query.row, query.k, query.by, query.recall), 1)[0]
    except Exception as error:
        return error


def _answers(matches: Matches, n: int) -> list[bytes]:
    if len(matches) != n:
        raise ValueError(f"{len(matches)} answers to {n} queries")
    same = {"columns": matches.ids.shape[1], **wire.missing_to_json(matches.missing)}
    return [to_json({"matches": [query], **same}) for query in wire.to_json(matches)]
