"""Ways to store rows durably: a collection, plain SQLite, and a plain file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import everhash
from everhash import Collection
from everhash.bench.costs.synthetic import Counts, Floats, RowGenerator
from everhash.bench.costs.timing import rounds, seconds

DIM, BITS, LABELS, CALL, SEED = 384, 64, 100, 10_000, 0
OPENED, SINGLES = 3, 20
"""How often a file is opened, and one-row commits in a round."""


class Call(NamedTuple):
    """Rows, their labels and their ids."""

    X: Floats
    y: Counts
    ids: Counts


class Calls:
    """An endless source of calls, with new ids in each."""

    def __init__(self) -> None:
        self._source = RowGenerator(LABELS, DIM, SEED)
        self._given = 0

    def next(self, n: int = CALL) -> Call:
        """Return the next call, of n rows."""
        ids = 7 * np.arange(self._given, self._given + n) + 1
        self._given += n
        return Call(*self._source.rows(n), ids)


def enter(col: Collection, kind: str, call: Call) -> None:
    """Add the rows of a call: "labelled", "unlabelled", or "learned" as well as labelled."""
    if kind == "learned":
        col.ingest(*call)
    else:
        col.add(call.X, call.ids, call.y if kind == "labelled" else None)


@contextmanager
def plain_file(path: Path) -> Iterator[Callable[[bytes], float]]:
    """Yield a function that writes bytes to a file, syncs it and returns the seconds."""
    with path.open("wb", buffering=0) as file:

        def write(data: bytes) -> float:
            start = perf_counter()
            file.write(data)
            os.fsync(file.fileno())
            return perf_counter() - start

        yield write
    path.unlink()


@contextmanager
def plain_sqlite(path: Path) -> Iterator[Callable[[str, Call], float]]:
    """Yield a function that stores a call in a table, as durably as a collection does.

    It stores what a collection stores: id and label, or id and features in half precision where
    there is no label. It returns the seconds.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, value)")

        def insert(kind: str, call: Call) -> float:
            start = perf_counter()
            database.execute("BEGIN")
            database.executemany("INSERT INTO entries VALUES (?, ?)", records(kind, call))
            database.execute("COMMIT")
            return perf_counter() - start

        yield insert


def records(kind: str, call: Call) -> Iterator[tuple[int, Any]]:
    """Yield the id of each row, and its label or its features in half precision."""
    if kind == "unlabelled":
        return zip(call.ids.tolist(), map(bytes, call.X.astype(np.float16)), strict=True)
    return zip(call.ids.tolist(), call.y.tolist(), strict=True)


class StoreTimes(NamedTuple):
    """Seconds of each call, and the collection's file."""

    ours: list[float]
    sqlite: list[float]
    rows: list[float]
    """Of writing the rows as they come in, float32, with their ids, to a plain file."""
    kept: list[float]
    """Of writing as many bytes as a collection keeps of them."""
    path: Path
    empty: int
    """Bytes of the collection's file before there were entries."""


def store_rows(folder: Path, kind: str, n: int, call: int = CALL) -> StoreTimes:
    """Add n rows, each call one durable transaction, in turns with plain writes of the same."""
    calls, path = Calls(), folder / f"{kind}.ever"
    kept = call * (2 * DIM + 24 if kind == "unlabelled" else 9)
    with (
        everhash.create(path, DIM, BITS) as col,
        plain_file(folder / "plain") as write,
        plain_sqlite(folder / f"{kind}.sqlite") as insert,
    ):
        col.learn(*calls.next(call)[:2])
        times = StoreTimes([], [], [], [], path, path.stat().st_size)
        for _ in range(0, n, call):
            rows = calls.next(call)
            data = rows.X.tobytes() + rows.ids.tobytes()
            times.ours.append(seconds(partial(enter, col, kind, rows)))
            times.sqlite.append(insert(kind, rows))
            times.rows.append(write(data))
            times.kept.append(write(data[:kept]))
    return times


def commit_singles(folder: Path, n: int) -> tuple[float, float]:
    """Return the seconds of a one-row commit, ours and SQLite's, in files that have n entries."""
    calls, ours, theirs = Calls(), [], []
    with (
        everhash.create(folder / "singles.ever", DIM, BITS) as col,
        plain_sqlite(folder / "singles.sqlite") as insert,
    ):
        many = calls.next(n)
        enter(col, "labelled", many)
        insert("labelled", many)
        for _ in rounds():
            rows = [calls.next(1) for _ in range(SINGLES)]
            ours.append(sum(seconds(partial(enter, col, "labelled", row)) for row in rows))
            theirs.append(sum(insert("labelled", row) for row in rows))
    return min(ours) / SINGLES, min(theirs) / SINGLES


class Opening(NamedTuple):
    """Best seconds until a file is open, and until it has answered a search."""

    opened: float
    answered: float
    entries: int


def reopen(path: Path, times: int = OPENED) -> Opening:
    """Open a file several times, with a warm page cache, and search it."""
    query, best_open, best_answer = np.ones((1, DIM), np.float32), np.inf, np.inf
    for _ in range(times):
        start = perf_counter()
        with everhash.open(path, readonly=True) as col:
            opened = perf_counter() - start
            col.search(query, 10, "meaning")
            answered = perf_counter() - start
            n = len(col)
        best_open, best_answer = min(best_open, opened), min(best_answer, answered)
    return Opening(best_open, best_answer, n)


def reread(path: Path) -> float:
    """Return the seconds to read ids and labels from plain SQLite into an array."""

    def read() -> None:
        with closing(sqlite3.connect(path)) as database:
            np.array(database.execute("SELECT id, value FROM entries").fetchall(), np.int64)

    return seconds(read)
