"""The collection behind two threads: one searches and reads, one writes in order.

The event loop asks, and never touches the collection itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash import kernels
from everhash.collection.collection import Collection
from everhash.errors import EverhashError, ReadOnlyError
from everhash.index.refresh import RefreshReport as Report
from everhash.matches import Matches
from everhash.serve import limits
from everhash.serve.errors import RefusedError, busy
from everhash.serve.events import Event, Events
from everhash.serve.finding import Finder
from everhash.serve.gathering import Gatherer
from everhash.serve.jobs import Job, Jobs
from everhash.serve.metrics import Metrics
from everhash.serve.worker import Worker

log = logging.getLogger(__name__)
PULSE = 0.25
"""Seconds between two looks at whether there is something new to tell."""
FOLLOW = 4
"""Looks after which a collection that another process writes to is caught up with."""
LARGE = 1 << 16
"""Bytes of a body from which on the event loop does not read it itself."""
T = TypeVar("T")


class Done(NamedTuple):
    """What a write answers, and what it tells listeners."""

    answer: Any
    events: list[Event]


class Service:
    """One collection, opened, asked and closed.

    Args:
        source: a collection, which stays its owner's to close, or a function that opens one.
        readonly: refuse writes.
    """

    def __init__(self, source: Collection | Callable[[], Collection], *, readonly: bool) -> None:
        self.readonly = readonly
        self.metrics, self.events, self.jobs = Metrics(), Events(), Jobs()
        self.failure: Exception | None = None
        self.ready = False
        self.dim = 0
        self.owner = ""
        self.path: Path | None = None
        self._source = source
        self._collection: Collection | None = None
        self._writer = Worker("everhash-write", limits.REQUESTS + 1)
        self._reader = Worker("everhash-search", 2 * limits.REQUESTS)
        self._gatherer = Gatherer(self._reader, self._search_now, self.metrics)
        self.finder = Finder(self.read)
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._changed = False

    # Opening and closing

    def start(self) -> None:
        """Begin to open the collection; whoever asks meanwhile is told to come back."""
        self._decoder = ThreadPoolExecutor(1, "everhash-decode")
        self._writer.start()
        self._reader.start()
        self._begin(self._open())

    async def _open(self) -> None:
        try:
            await self._writer.run(self._open_now)
        except Exception as error:
            self.failure = error
            return
        self.ready = True
        self._begin(self._pulse())

    def _open_now(self) -> None:
        """Open the collection and have everything ready that a request would wait for."""
        import pyarrow  # noqa: F401

        for load in (kernels.load, kernels.load_refresh, kernels.load_search):
            load()
        source = self._source
        collection = source if isinstance(source, Collection) else source()
        self.dim, self.owner = collection.hasher.n_features_in_, type(collection.hasher).__name__
        path = collection.stats()["path"]
        self.path = None if path is None else Path(path)
        with suppress(EverhashError):  # a method that has not learned yet
            collection.search(np.zeros((1, self.dim), np.float32))
        self._collection = collection

    def stop_telling(self) -> None:
        """Let listeners go, who would keep the server from stopping, and be ready no more."""
        self.ready = False
        self.events.end()

    async def stop(self) -> None:
        """Make the calls that wait, then close the collection."""
        self.stop_telling()
        for task in self._tasks:
            task.cancel()
        await self._reader.stop()
        await self._writer.stop()
        self._decoder.shutdown()
        collection, self._collection = self._collection, None
        if collection is not None and not isinstance(self._source, Collection):
            collection.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something go on beside requests."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Asking

    @property
    def collection(self) -> Collection:
        """The collection, once it is open."""
        if self._collection is None:
            raise busy("the service is starting or stopping")
        return self._collection

    async def read(self, call: Callable[[Collection], T]) -> T:
        """Return what a call that changes nothing returns."""
        return await self._reader.run(partial(call, self.collection))

    async def nearest(self, row: NDArray[np.float32], k: int, distance: str) -> bytes:
        """Return the answer to one query, searched with others that wait at the same moment."""
        return await self._gatherer.nearest(row, k, distance)

    def _search_now(self, rows: NDArray[np.float32], k: int, distance: str) -> Matches:
        return self.collection.search(rows, k, distance)

    async def write(self, call: Callable[[Collection], Done]) -> Any:
        """Make a call that changes something, tell listeners, and return its answer."""
        self.check_writable()
        done = await self._writer.run(partial(call, self.collection))
        self._changed = True
        for event in done.events:
            self.events.publish(event)
        return done.answer

    def check_writable(self) -> None:
        """Refuse to change what is served for reading."""
        if self.readonly:
            raise ReadOnlyError(
                "the collection is served for reading", hint="serve it without --readonly"
            )

    async def dry_run(self) -> Report:
        """Return what a refresh would do, after the one that is under way."""
        if self.readonly:
            return await self.beside(partial(Collection.refresh, dry_run=True))
        async with self._refreshing:
            return await self._go_through(self.collection.refresh_steps(dry_run=True))

    async def beside(self, call: Callable[[Collection], T]) -> T:
        """Make a call that takes long and changes nothing, in its turn among the writes."""
        return await self._writer.run(partial(call, self.collection))

    async def decode(self, size: int, call: Callable[[], T]) -> T:
        """Return what a call makes of a body of so many bytes; one large body at a time."""
        if size < LARGE:
            return call()
        return await asyncio.get_running_loop().run_in_executor(self._decoder, call)

    # Telling

    async def stats(self) -> dict[str, Any]:
        """Return how the collection stands."""
        return await self.read(partial(stats_of, readonly=self.readonly))

    async def _pulse(self) -> None:
        """Tell listeners how things stand once that has changed, at most four times a second."""
        look = 0
        while True:
            await asyncio.sleep(PULSE)
            look += 1
            try:
                if self.readonly and look % FOLLOW == 0:
                    moved = await self.read(Collection.catch_up)
                    self._changed = self._changed or moved
                if self._changed and len(self.events):
                    self._changed = False
                    self.events.publish(("stats", await self.stats()))
            except (EverhashError, RefusedError) as error:
                log.warning("the collection cannot be followed: %s", error)
            except Exception:
                log.exception("the collection cannot be followed")

    # Refreshing

    def refresh(self) -> Job:
        """Begin a refresh, or return the one that waits to begin."""
        self.check_writable()
        job, collection = self.jobs.waiting, self.collection
        if job is None:
            job = self.jobs.make()
            self._begin(self._refresh(job, collection))
        return job

    async def _refresh(self, job: Job, collection: Collection) -> None:
        """Refresh a slice at a time: searches and writes have their turn in between."""
        try:
            async with self._refreshing:
                job.begun = True
                report = await self._go_through(collection.refresh_steps(), job)
                job.done(report)
        except Exception as error:
            job.failed(error, self.path)
            log.warning("a refresh failed: %s", error)
            return
        self._changed = True
        self.metrics.bits_rewritten += report.bits_flipped
        self.events.publish(("refreshed", job.as_json()["report"]))

    async def _go_through(
        self, steps: Generator[float, None, Report], job: Job | None = None
    ) -> Report:
        """Take all steps of a refresh, each in its turn among the writes."""
        while not isinstance(told := await self._writer.run(partial(_step, steps)), Report):
            if job is not None:
                job.progress = told
        return told


def _step(steps: Generator[float, None, Report]) -> float | Report:
    """Return the share done after one more slice, or the report once all is done."""
    try:
        return next(steps)
    except StopIteration as end:
        report: Report = end.value
        return report


def stats_of(collection: Collection, *, readonly: bool) -> dict[str, Any]:
    """Return what an operator wants to see, but not where the file is."""
    stats, hasher = collection.stats(), collection.hasher
    del stats["path"]
    return {
        **stats,
        "labels": len(hasher.words_),
        "cycles": hasher.n_cycles_,
        "width": hasher.width_,
        "version": everhash.__version__,
        "readonly": readonly,
    }
