"""Queries searched together: the same answers, and nobody suffers for another."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from everhash.collection.collection import Collection
from everhash.serve.batching import SearchBatcher
from everhash.serve.metrics import Metrics
from everhash.serve.service import Service
from everhash.wire.options import RECALL
from tests.unit.serve.serving import filled, rows

Q, _ = rows(40, seed=7)


async def opened(service: Service) -> None:
    service.start()
    while not service.ready:
        await asyncio.sleep(0.01)


def in_service(body: Callable[[Service, Collection], Any]) -> None:
    """Run a coroutine with a service of its own."""

    async def run() -> None:
        with filled() as collection:
            service = Service(collection, readonly=False)
            await opened(service)
            try:
                await body(service, collection)
            finally:
                await service.stop()

    asyncio.run(run())


def batches(service: Service) -> float:
    text = service.metrics.text({}, 0).decode()
    return float(text.partition("\neverhash_search_batches_total ")[2].partition("\n")[0])


def test_queries_together_are_answered_as_each_alone() -> None:
    async def body(service: Service, collection: Collection) -> None:
        options = [(k, d) for k in (1, 3, 60) for d in ("asymmetric", "hamming")]
        asked = [(row[None], *options[i % 6]) for i, row in enumerate(Q)]
        together = await asyncio.gather(*(service.nearest(*one) for one in asked))
        assert batches(service) < len(asked)
        for one, answer in zip(asked, together, strict=True):
            assert answer == await service.nearest(*one)
            found = collection.search(*one)
            (told,) = json.loads(answer)["matches"]
            assert [match["id"] for match in told["found"]] == found.ids[0].tolist()
            scores = np.array([match["score"] for match in told["found"]], np.float32)
            np.testing.assert_array_equal(scores, found.scores[0])

    in_service(body)


def test_a_query_given_up_takes_nobody_with_it() -> None:
    async def body(service: Service, _: Collection) -> None:
        tasks = [asyncio.create_task(service.nearest(row[None], 3, "hamming")) for row in Q]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended[::2])
        assert all(isinstance(end, bytes) for end in ended[1::2])

    in_service(body)


def test_a_query_that_fails_takes_nobody_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Collection.search
    bad = Q[5]

    def fail(self: Collection, X: Any, *arguments: Any, **options: Any) -> Any:
        if (bad == X).all(axis=1).any():
            raise RuntimeError("not this one")
        return search(self, X, *arguments, **options)

    async def body(service: Service, _: Collection) -> None:
        monkeypatch.setattr(Collection, "search", fail)
        asked = (service.nearest(row[None], 3, "hamming") for row in Q)
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert [i for i, end in enumerate(ended) if not isinstance(end, bytes)] == [5]
        assert isinstance(ended[5], RuntimeError)

    in_service(body)


def test_a_batch_grows_while_another_is_searched() -> None:
    sizes, let_go = [], threading.Event()

    def search(X: Any, k: int, by: str, recall: float) -> Any:
        sizes.append(len(X))
        assert let_go.wait(300)
        return collection.search(X, k, by, recall=recall)

    async def run() -> None:
        executor = ThreadPoolExecutor(1)
        batcher = SearchBatcher(executor, search, Metrics())
        first = asyncio.create_task(batcher.nearest(Q[:1], 3, "hamming"))
        while not sizes:
            await asyncio.sleep(0.001)
        more = [asyncio.create_task(batcher.nearest(r[None], 3, "hamming")) for r in Q[1:31]]
        await asyncio.sleep(0.05)
        assert sizes == [1]
        let_go.set()
        await asyncio.gather(first, *more)
        assert sizes == [1, 30]
        executor.shutdown()

    with filled() as collection:
        asyncio.run(run())


def test_queries_of_another_recall_are_searched_apart() -> None:
    asked: list[tuple[int, float]] = []

    def search(X: Any, k: int, by: str, recall: float) -> Any:
        asked.append((len(X), recall))
        return collection.search(X, k, by, recall=recall)

    async def run() -> None:
        executor = ThreadPoolExecutor(1)
        batcher = SearchBatcher(executor, search, Metrics())
        recalls = (0.5, 1.0, 0.5, RECALL, 0.5)
        waiting = (batcher.nearest(Q[:1], 3, "meaning", recall) for recall in recalls)
        await asyncio.gather(*waiting)
        assert asked == [(3, 0.5), (1, 1.0), (1, RECALL)]
        executor.shutdown()

    with filled() as collection:
        asyncio.run(run())


def test_a_batch_that_is_lost_is_an_error_for_each_and_no_standstill() -> None:
    async def run() -> None:
        executor = ThreadPoolExecutor(1)
        two, one = collection.search(Q[:2], 3), collection.search(Q[:1], 3)
        answers = iter([two, two, one])  # wrong together, wrong alone, right
        batcher = SearchBatcher(executor, lambda *_: next(answers), Metrics())
        with pytest.raises(ValueError, match="2 answers to 1"):
            await batcher.nearest(Q[:1], 3, "hamming")
        assert json.loads(await batcher.nearest(Q[:1], 3, "hamming"))["columns"] == 3
        executor.shutdown()

    with filled() as collection:
        asyncio.run(run())
