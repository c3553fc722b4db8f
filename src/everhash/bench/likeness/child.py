"""An engine in a process of its own, so that what it keeps in memory can be told from others'.

The parent asks and waits for the answer: only one child works at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, Self

from everhash.bench.costs.timing import seconds
from everhash.bench.likeness.engines import ENGINES, Engine, Setting
from everhash.bench.likeness.rows import Counts, RowSource
from everhash.bench.threads import one_thread_a_process
from everhash.learn.blas import one_thread

STATUS = Path("/proc/self/status")
PATIENCE = 60.0
"""Seconds that a child has to end by itself."""
FEW, FEWEST = 50, 4
"""Queries that every setting is asked at least: in one call, and one by one in a round."""
BATCH_SECONDS, SINGLE_SECONDS = 30.0, 10.0
"""How long a call, and the single calls of a round, may take: slow settings are asked less."""


class ChildError(Exception):
    """What went wrong in a child, as a sentence."""


class Place(NamedTuple):
    """Which engine a child runs, and where and what it searches."""

    name: str
    path: Path
    source: RowSource
    size: int
    queries: int


def memory() -> dict[str, int] | None:
    """Return bytes in memory, anonymous ones and those of files; None where it is not known."""
    if not STATUS.exists():
        return None
    lines = (line.partition(":") for line in STATUS.read_text().splitlines())
    sizes = {name: value.split() for name, _, value in lines}
    if "RssAnon" not in sizes:
        return None
    return {"anon": int(sizes["RssAnon"][0]) * 1024, "file": int(sizes["RssFile"][0]) * 1024}


class Worker:
    """What a child does."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._engine: Engine = ENGINES[place.name].engine()
        self._queries = place.source.queries(place.queries)
        self._before: dict[str, int] | None = None
        self._opened = False

    def build(self) -> dict[str, float]:
        """Add all rows and save them; return seconds without those of making rows."""
        engine, place, took = self._engine, self._place, 0.0
        self._engine.warm()
        before = memory()
        for number, X in enumerate(place.source.blocks(place.size)):
            start = perf_counter()
            if number == 0:
                engine.begin(place.path, place.size, X)
            engine.add(X)
            took += perf_counter() - start
            del X  # memory is to count what the engine keeps
        grown = _grown(before, place.size)
        return {
            "build": took,
            "save": seconds(engine.save),
            "built_anon": grown["anon"],
            "disk": _on_disk(place.path) / place.size,
        }

    def first_answer(self) -> float:
        """Return the seconds from opening to the first answer, in a process that just started."""

        def answer() -> None:
            self._engine.open(self._place.path)
            self._engine.choose(ENGINES[self._place.name].settings[-1])
            self._engine.search(self._queries[:1])

        return seconds(answer)

    def open(self) -> None:
        """Open what was saved, once; memory counts from here on."""
        if self._opened:
            return
        self._opened = True
        self._engine.warm()
        self._before = memory()
        self._engine.open(self._place.path)

    def affordable(self, setting: Setting) -> tuple[int, int]:
        """Return how many queries to ask in one call, and one by one: few where they are slow."""
        self._engine.choose(setting)
        few = self._queries[:FEW]
        self._engine.search(few)  # the first one makes what searches need
        together = seconds(lambda: self._engine.search(few)) / len(few)
        alone = seconds(lambda: self._engine.search(few[:1]))
        most = len(self._queries)
        return (
            min(most, max(FEW, int(BATCH_SECONDS / together))),
            max(FEWEST, int(SINGLE_SECONDS / alone)),
        )

    def answers(self, setting: Setting, asked: int) -> Counts:
        """Return what is found for the first queries."""
        self._engine.choose(setting)
        return self._engine.search(self._queries[:asked])

    def batch(self, setting: Setting, asked: int) -> float:
        """Return the seconds of the first queries in one call."""
        self._engine.choose(setting)
        return seconds(lambda: self._engine.search(self._queries[:asked]))

    def singles(self, setting: Setting, start: int, stop: int) -> list[float]:
        """Return the seconds of each of some queries, asked one by one."""
        self._engine.choose(setting)
        asked = [self._queries[number % len(self._queries)][None] for number in range(start, stop)]
        times = []
        for query in asked:
            began = perf_counter()
            self._engine.search(query)
            times.append(perf_counter() - began)
        return times

    def grown(self) -> dict[str, Any]:
        """Return by how many bytes an entry memory has grown since before opening."""
        return _grown(self._before, self._place.size)


def _grown(before: dict[str, int] | None, entries: int) -> dict[str, Any]:
    now = memory()
    if before is None or now is None:
        return {"anon": None, "file": None}
    return {name: (now[name] - before[name]) / entries for name in now}


def _on_disk(path: Path) -> int:
    """Return the bytes of a file and of those beside it that begin with its name."""
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


def serve(connection: Connection, place: Place) -> None:
    """Answer the parent until it closes the connection."""
    worker: Worker | None = None
    with one_thread():
        while True:
            try:
                what, *arguments = connection.recv()
            except EOFError:
                return
            try:
                worker = worker or Worker(place)
                connection.send((True, getattr(worker, what)(*arguments)))
            except Exception as error:  # the parent goes on with the others
                connection.send((False, f"{type(error).__name__}: {error}"))


class Child:
    """The parent's side: starts a process, asks it, and ends it."""

    def __init__(self, place: Place) -> None:
        spawn = get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(theirs, place), daemon=True)
        with one_thread_a_process():
            self._process.start()
        theirs.close()  # so that the parent notices if the child dies

    def ask(self, what: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of the child's `Worker`; raise `ChildError` if it failed or died."""
        try:
            self._connection.send((what.__name__, *arguments))
            good, answer = self._connection.recv()
        except (EOFError, OSError):
            raise ChildError("its process ended; was there enough memory?") from None
        if not good:
            raise ChildError(answer)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
