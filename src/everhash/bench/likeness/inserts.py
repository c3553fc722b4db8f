"""Inserts of one row each while somebody searches by likeness, and while a collection grows."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import everhash
from everhash import Collection
from everhash.bench.costs.timing import seconds
from everhash.bench.likeness.engines import by_likeness
from everhash.bench.likeness.rows import BLOCK, DIM, Floats, RowSource
from everhash.learn.blas import one_thread

RATE = 200
"""Inserts a second."""
EVERY = 100
"""Inserts between two searches while a collection grows."""
QUERIES = 1000
IDLE = 0.3
"""Searches without inserts take this share of the time of those with them."""


def beside_searches(source: RowSource, size: int, duration: float) -> dict[str, Any]:
    """Insert rows at a steady rate from one thread, while another one searches one by one."""
    queries = source.queries(QUERIES)
    with _filled(source, size) as collection, one_thread():
        by_likeness(collection, queries[:1], {})  # the first one makes what searches need
        idle = _searched(collection, queries, _after(duration * IDLE))
        taken: list[float] = []
        rows = _further(source, size, int(RATE * duration))
        inserting = threading.Thread(target=_insert, args=(collection, rows, taken))
        start = perf_counter()
        inserting.start()
        busy = _searched(collection, queries, inserting)
        inserting.join()
        rate = len(taken) / (perf_counter() - start)
    return {
        "idle": in_milliseconds(idle),
        "searches": in_milliseconds(busy),
        "inserts": in_milliseconds(taken) | {"rate": rate},
    }


def while_growing(source: RowSource, size: int, to: int) -> dict[str, Any]:
    """Insert rows one by one until there are `to` entries, with a search now and then.

    The longest insert, or search, contains making cells again where they are made meanwhile.
    """
    queries = source.queries(QUERIES)
    inserts: list[float] = []
    searches: list[float] = []
    with _filled(source, size) as collection, one_thread():
        by_likeness(collection, queries[:1], {})
        for number, row in enumerate(_further(source, size, to - size)):
            inserts.append(seconds(partial(collection.add, row[None])))
            if number % EVERY == 0:
                query = queries[number // EVERY % QUERIES][None]
                searches.append(seconds(partial(by_likeness, collection, query, {})))
    return {
        "to": to,
        "inserts": in_milliseconds(inserts) | {"longest_at": size + int(np.argmax(inserts)) + 1},
        "searches": in_milliseconds(searches),
    }


@contextmanager
def _filled(source: RowSource, size: int) -> Iterator[Collection]:
    """Yield a collection in a file with so many entries, none of them with a label."""
    with (
        tempfile.TemporaryDirectory(prefix="everhash-inserts-") as folder,
        everhash.create(Path(folder) / "inserts.ever", dim=DIM) as collection,
    ):
        for X in source.blocks(size):
            collection.add(X)
        collection.wait()
        yield collection


def _further(source: RowSource, size: int, n: int) -> Floats:
    """Return n rows that are not among the first ones."""
    return np.concatenate(list(source.blocks(n, start=-(-size // BLOCK))))


def _insert(collection: Collection, rows: Floats, taken: list[float]) -> None:
    """Insert rows at their times; one that comes late does not delay the plan of the others."""
    start = perf_counter()
    for number, row in enumerate(rows):
        time.sleep(max(0.0, start + number / RATE - perf_counter()))
        taken.append(seconds(partial(collection.add, row[None])))


def _after(duration: float) -> threading.Thread:
    """Return a started thread that ends after so many seconds."""
    waiting = threading.Thread(target=time.sleep, args=(duration,))
    waiting.start()
    return waiting


def _searched(collection: Collection, queries: Floats, until: threading.Thread) -> list[float]:
    """Search one by one while a thread is alive, at least once; return the seconds of each."""
    times: list[float] = []
    for number in count():
        query = queries[number % len(queries)][None]
        times.append(seconds(partial(by_likeness, collection, query, {})))
        if not until.is_alive():
            break
    return times


def in_milliseconds(times: list[float]) -> dict[str, float]:
    """Return how many there were, the median, the 99th percentile and the longest."""
    median, p99, longest = np.quantile(times, (0.5, 0.99, 1.0)) * 1e3
    figures = {"median": float(median), "p99": float(p99), "longest": float(longest)}
    return {"n": len(times), **figures}
