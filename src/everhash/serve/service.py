"""The collection behind threads: one searches, one writes in order, one reads the file.

A fourth decodes large bodies, and a snapshot is copied in a thread of its own. The event loop does
no work of the collection itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.collection.collection import Collection
from everhash.errors import EverhashError, OptionError, ReadOnlyError, StoreError
from everhash.index.refresh import RefreshReport
from everhash.matches import Matches
from everhash.serve.accuracy import AccuracyHistory
from everhash.serve.answers import Answers
from everhash.serve.batching import SearchBatcher
from everhash.serve.chunked_search import ChunkedSearch
from everhash.serve.connections import Connections
from everhash.serve.entries import stats_of
from everhash.serve.errors import RefusedError, busy
from everhash.serve.events import Event, Events
from everhash.serve.jobs import Job, Jobs
from everhash.serve.metrics import Metrics
from everhash.serve.served import Served

log = logging.getLogger(__name__)
PULSE = 0.25
"""Seconds between two looks at whether there is something new to publish."""
FOLLOW = 4
"""Looks after which a collection that another process writes to is caught up with."""
TRIES = 5
"""Times that a refresh is begun, if writes end it."""
T = TypeVar("T")


class WriteResult(NamedTuple):
    """What a write answers, and the events it causes."""

    answer: Any
    events: list[Event]


class Service:
    """One collection, opened, asked and closed.

    Args:
        source: a collection, which stays its owner's to close, or a function that opens one.
        readonly: refuse writes.
    """

    def __init__(self, source: Served | Callable[[], Served], *, readonly: bool) -> None:
        self.readonly = readonly
        self.metrics, self.events, self.jobs = Metrics(), Events(), Jobs()
        self.accuracy = AccuracyHistory()
        self.connections, self.answers = Connections(), Answers()
        self.failure: Exception | None = None
        self.ready = False
        self.on_ready: Callable[[], None] | None = None
        """Called once requests can be answered."""
        self.dim = 0
        self.path: Path | None = None
        self.server: Any = None
        """The uvicorn server, once it runs: `should_exit` says that it stops, and makes it."""
        self._source = source
        self._opened: Served | None = None
        self._collection: Served | None = None
        """The same, once requests can be answered."""
        self.is_opening = False
        """Whether a thread opens the collection, or compiles kernels: it cannot be interrupted."""
        self._ending = False
        self.chunked = ChunkedSearch(self.search, self.read)
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._changed = False
        self._follows = False
        """Whether a refresh runs in the background, which changes something when it ends."""
        self._refreshed: dict[str, Any] = {}
        """The report of the last refresh that was told."""

    # Opening and closing

    def open(self) -> None:
        """Open the collection now, if that was not done: so what is wrong with it is raised here.

        Who calls this before the server starts makes sure that `close_collection` is called.
        """
        if self._opened is None:
            source = self._source
            self._opened = source() if callable(source) else source

    def start(self) -> None:
        """Begin to open the collection; until it is open, requests are refused as busy."""
        self._ending = False  # a service that has stopped may be started again
        self._writer = ThreadPoolExecutor(1, "everhash-write")
        self._searcher = ThreadPoolExecutor(1, "everhash-search")
        self._reader = ThreadPoolExecutor(1, "everhash-read")
        self._decoder = ThreadPoolExecutor(1, "everhash-decode")
        self.nearest = SearchBatcher(self._searcher, self._search_now, self.metrics).nearest
        self._begin(self._open())

    async def _open(self) -> None:
        try:
            await _in(self._writer, self._prepare)
            self.ready = True
            if self.on_ready is not None:
                self.on_ready()
        except Exception as error:
            self.failure = error
            if self.server is not None:
                self.server.should_exit = True
            return
        self._begin(self._pulse())

    def _prepare(self) -> None:
        """Open the collection and load everything that a request would wait for."""
        self.is_opening = True
        try:
            self.open()
            if self._opened is not None and not self._ending:
                self._load(self._opened)
        finally:
            self.is_opening = False
            if self._ending:  # the service has not waited for it
                self.close_collection()

    def _load(self, collection: Served) -> None:
        import pyarrow  # noqa: F401

        kernels.load_all(peers=False)
        self.dim = collection.hasher.n_features_in_
        stats = collection.stats()
        path, last = stats["path"], stats["last_refresh"] or {}
        self.accuracy.note(stats["learned"])
        self._refreshed = {name: value for name, value in last.items() if name != "at"}
        self.path = None if path is None else Path(path)
        with suppress(EverhashError):  # a method that has not learned yet
            collection.search(np.zeros((1, self.dim), np.float32))
        self._collection = collection

    def end_events(self) -> None:
        """Disconnect listeners, who would keep the server from stopping; be ready no more."""
        self.ready = False
        self.events.end()

    async def stop(self) -> None:
        """Finish the calls that wait, then close the collection.

        Opening it is not waited for: compiling may take a minute, and nobody has been answered.
        """
        self._ending = True
        self.end_events()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for executor in (self._decoder, self._searcher, self._reader, self._writer):
            if executor is self._writer and self.is_opening:
                executor.shutdown(wait=False)
            else:
                await asyncio.to_thread(executor.shutdown)
        await asyncio.to_thread(self.close_collection)

    def close_collection(self) -> None:
        """Close the collection, if it was opened here."""
        collection, self._opened, self._collection = self._opened, None, None
        if collection is not None and collection is not self._source:
            collection.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def _has_other_writers(self) -> bool:
        """Whether others may write: to a file that is open for reading, and to any cluster."""
        return self.readonly or not isinstance(self._opened, Collection)

    @property
    def is_stopping(self) -> bool:
        """Whether the server was asked to stop."""
        return self.server is not None and bool(self.server.should_exit)

    # Asking

    @property
    def collection(self) -> Served:
        """The collection, once it is open."""
        if self._collection is None:
            raise busy(f"the service is {'stopping' if self._ending else 'starting'}")
        return self._collection

    async def search(self, call: Callable[[Served], T]) -> T:
        """Return the result of a call that needs memory only: it never waits for a commit."""
        return await _in(self._searcher, partial(call, self.collection))

    async def read(self, call: Callable[[Served], T]) -> T:
        """Return the result of a call that may read the file, and so may wait for a commit."""
        return await _in(self._reader, partial(call, self.collection))

    def _search_now(self, rows: NDArray[np.float32], k: int, by: str, recall: float) -> Matches:
        return self.collection.search(rows, k, by, recall=recall)

    async def write(self, call: Callable[[Served], WriteResult]) -> Any:
        """Make a call that changes something, publish its events, and return its answer."""
        self.check_writable()
        result = await _in(self._writer, partial(call, self.collection))
        self._changed = True
        for event in result.events:
            self.events.publish(event)
        return result.answer

    def check_writable(self) -> None:
        """Refuse to change what is served for reading."""
        if self.readonly:
            raise ReadOnlyError(
                "the collection is served for reading", hint="serve it without --readonly"
            )

    async def decode(self, call: Callable[[], T]) -> T:
        """Return what a call makes of a large body, made in a thread; one body at a time."""
        return await _in(self._decoder, call)

    async def stats(self) -> dict[str, Any]:
        """Return the stats of the collection and of the service."""
        return await self.search(partial(stats_of, readonly=self.readonly))

    async def _pulse(self) -> None:
        """Publish stats once they have changed, at most four times a second."""
        look = 0
        while True:
            await asyncio.sleep(PULSE)
            if self.is_stopping:
                self.end_events()  # it would wait for their connections
                return
            look += 1
            try:
                if self._has_other_writers and look % FOLLOW == 0:
                    moved = await self.read(lambda collection: collection.catch_up())
                    self._changed = self._changed or moved
                if self._changed or self._follows:
                    await self._publish()
            except (EverhashError, RefusedError) as error:
                log.warning("the collection cannot be followed: %s", error)
            except Exception:
                log.exception("the collection cannot be followed")

    async def _publish(self) -> None:
        """Publish stats, and a refresh that the collection has made by itself."""
        self._changed = False
        stats = await self.stats()
        self._follows = stats["refreshing"]
        self.accuracy.note(stats["learned"])
        self._tell_refresh(stats["last_refresh"])
        self.events.publish(("stats", stats))

    def _tell_refresh(self, refresh: dict[str, Any] | None) -> None:
        """Publish and count a refresh, once."""
        report = {name: value for name, value in (refresh or {}).items() if name != "at"}
        if report and report != self._refreshed:
            self._refreshed = report
            self.metrics.bits_rewritten.inc(report["bits_flipped"])
            self.events.publish(("refreshed", report))

    # Refreshing

    async def dry_run(self) -> RefreshReport:
        """Return what a refresh would do, after the one that is under way."""
        if self.readonly:
            return await _in(self._writer, partial(self.collection.refresh, dry_run=True))
        async with self._refreshing:
            return await self._run_refresh(self.collection, dry_run=True)

    def refresh(self) -> Job:
        """Begin a refresh, or return the one that waits to begin."""
        self.check_writable()
        job, collection = self.jobs.waiting, self.collection
        if job is None:
            job = self.jobs.make()
            self._begin(self._refresh(job, collection))
        return job

    async def _refresh(self, job: Job, collection: Served) -> None:
        """Refresh a slice at a time: searches and writes take turns with it."""
        try:
            async with self._refreshing:
                job.begun = True
                report = await self._run_refresh(collection, job)
                self._changed = True
                self._tell_refresh(asdict(report))
                job.done(report)
        except Exception as error:
            job.failed(error)
            log.warning("a refresh failed: %s", error)

    async def _run_refresh(
        self, collection: Served, job: Job | None = None, *, dry_run: bool = False
    ) -> RefreshReport:
        """Run a refresh after the one in the background; again if a write has ended it."""
        for left in reversed(range(TRIES)):
            while not await _in(self._reader, partial(collection.wait, 0)):
                await asyncio.sleep(PULSE)
            try:
                return await self._run_steps(collection.refresh_steps(dry_run=dry_run), job)
            except (OptionError, StoreError) as error:
                # one in the background came first, or entries lost their labels meanwhile
                if not left or type(error) not in (OptionError, StoreError):
                    raise
        raise AssertionError("unreachable")

    async def _run_steps(
        self, steps: Generator[float, None, RefreshReport], job: Job | None = None
    ) -> RefreshReport:
        """Run all steps of a refresh, each in its turn among the writes."""
        while True:
            result = await _in(self._writer, partial(_step, steps))
            if isinstance(result, RefreshReport):
                return result
            if job is not None:
                job.progress = result


async def _in(executor: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """Return the result of a call made in a thread; given up before its turn, it is not made."""
    return await asyncio.get_running_loop().run_in_executor(executor, call)


def _step(steps: Generator[float, None, RefreshReport]) -> float | RefreshReport:
    """Return the share done after one more slice, or the report once all is done."""
    try:
        return next(steps)
    except StopIteration as end:
        report: RefreshReport = end.value
        return report
