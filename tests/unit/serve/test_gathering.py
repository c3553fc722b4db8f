"""Queries searched together: the same answers, and nobody suffers for another."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from everhash.collection.collection import Collection
from everhash.serve.errors import RefusedError
from everhash.serve.gathering import MOST, Gatherer
from everhash.serve.metrics import Metrics
from everhash.serve.service import Service
from everhash.serve.worker import Worker
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


def test_queries_together_are_answered_as_each_alone() -> None:
    async def body(service: Service, collection: Collection) -> None:
        options = [(k, d) for k in (1, 3, 60) for d in ("asymmetric", "hamming")]
        asked = [(row[None], *options[i % 6]) for i, row in enumerate(Q)]
        together = await asyncio.gather(*(service.nearest(*one) for one in asked))
        assert service.metrics.batches < len(asked)
        for one, answer in zip(asked, together, strict=True):
            assert answer == await service.nearest(*one)
            found = collection.search(*one)
            (told,) = json.loads(answer)["matches"]
            assert [match["id"] for match in told["found"]] == found.ids[0].tolist()
            distances = np.array([match["distance"] for match in told["found"]], np.float32)
            np.testing.assert_array_equal(distances, found.distances[0])

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

    def search(X: Any, k: int, distance: str) -> Any:
        sizes.append(len(X))
        assert let_go.wait(30)
        return collection.search(X, k, distance)

    async def run() -> None:
        worker = Worker("test", 10)
        worker.start()
        gatherer = Gatherer(worker, search, Metrics())
        first = asyncio.create_task(gatherer.nearest(Q[:1], 3, "hamming"))
        while not sizes:
            await asyncio.sleep(0.001)
        more = [asyncio.create_task(gatherer.nearest(r[None], 3, "hamming")) for r in Q[1:31]]
        await asyncio.sleep(0.05)
        assert sizes == [1]
        let_go.set()
        await asyncio.gather(first, *more)
        assert sizes == [1, 30]
        await worker.stop()

    with filled() as collection:
        asyncio.run(run())


def test_queries_beyond_what_may_wait_are_refused() -> None:
    let_go = threading.Event()

    def search(X: Any, k: int, distance: str) -> Any:
        assert let_go.wait(30)
        return collection.search(X, k, distance)

    async def run() -> None:
        worker = Worker("test", 10)
        worker.start()
        gatherer = Gatherer(worker, search, Metrics())
        asked = [asyncio.create_task(gatherer.nearest(Q[:1], 3, "hamming"))]
        await asyncio.sleep(0.05)
        asked += [
            asyncio.create_task(gatherer.nearest(Q[:1], 3, "hamming")) for _ in range(2 * MOST + 1)
        ]
        await asyncio.sleep(0.05)
        refused = [task for task in asked if task.done()]
        assert len(refused) == 1
        assert isinstance(refused[0].exception(), RefusedError)
        let_go.set()
        await asyncio.gather(*asked, return_exceptions=True)
        await worker.stop()

    with filled() as collection:
        asyncio.run(run())


def test_a_batch_that_is_lost_is_an_error_for_each_and_no_standstill() -> None:
    async def run() -> None:
        worker = Worker("test", 10)
        worker.start()
        answers = iter([collection.search(Q[:2], 3), collection.search(Q[:1], 3)])
        gatherer = Gatherer(worker, lambda *_: next(answers), Metrics())
        with pytest.raises(ValueError, match="zip"):
            await gatherer.nearest(Q[:1], 3, "hamming")
        assert json.loads(await gatherer.nearest(Q[:1], 3, "hamming"))["columns"] == 3
        await worker.stop()

    with filled() as collection:
        asyncio.run(run())


def test_a_worker_makes_calls_in_order_and_refuses_too_many() -> None:
    made: list[int] = []

    def call(number: int) -> int:
        time.sleep(0.001)
        made.append(number)
        return number

    async def run() -> None:
        worker = Worker("test", 20)
        worker.start()
        calls = [asyncio.create_task(worker.run(partial(call, n))) for n in range(25)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert ended[:20] == list(range(20)) == made
        assert all(isinstance(end, RefusedError) for end in ended[20:])
        await worker.stop()

    asyncio.run(run())


def test_a_worker_that_stops_makes_the_calls_that_wait() -> None:
    made: list[int] = []

    async def run() -> None:
        worker = Worker("test", 20)
        worker.start()
        worker.put(lambda: time.sleep(0.05))
        calls = [asyncio.create_task(worker.run(partial(made.append, n))) for n in range(5)]
        await asyncio.sleep(0)
        await worker.stop()
        await asyncio.gather(*calls)
        assert made == [0, 1, 2, 3, 4]

    asyncio.run(run())
