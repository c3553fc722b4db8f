"""A collection in the middle of a script, and one fault after the other in its next call."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import everhash
from everhash.errors import StoreError
from tests.crash.injection import Faults
from tests.crash.script import Script, State, check_state, copy, create, observe

Rows = list[tuple[Any, ...]]


class Trial:
    """Tries each call of a script with the first, the second, the third ... operation failing.

    A call that fails raises a `StoreError` and changes nothing: not the collection, not what
    another connection reads, not what a crash right then would leave. Where a fault hits work that
    can wait, such as writing the log back, the call is there in full; it is then undone, to be
    tried with the next operation. A reader follows all the while.
    """

    def __init__(self, path: Path, script: Script, faults: Faults) -> None:
        self.path, self.script, self.faults = path, script, faults
        self.seen = Counter[str]()
        self._spare, self._crashed = (path.with_name(name) for name in ("spare", "crashed"))
        self._collection = create(path)
        self._reader = everhash.open(path, readonly=True)

    def close(self) -> None:
        self._reader.close()
        self._collection.close()

    def make(self, number: int, kind: str, tries: Iterable[int], *, lasting: bool) -> None:
        """Make a call, after the operations of a kind that `tries` names have failed it."""
        before = self._keep()
        for n in tries:
            when = f"call {number}, {self.script.calls[number]}, {kind} {n}{'+' * lasting}"
            with self.faults.at(kind, n, lasting=lasting):
                raised = self._attempt(number)
            if raised is not None:
                assert self.faults.hits, f"{when}: raised {raised!r} without a fault"
                self._check_unchanged(before, self.script.states[number], f"{when}: {raised!r}")
                self.seen[f"{kind}: raised"] += 1
                continue
            check_state(observe(self._collection), self.script.states[number + 1], when=when)
            if not self.faults.hits:  # it needs fewer
                return self._follow(number + 1)
            self.seen[f"{kind}: went on"] += 1
            self.undo()
        self.script.calls[number].run(self._collection)
        return self._follow(number + 1)

    def _attempt(self, number: int) -> StoreError | None:
        try:
            self.script.calls[number].run(self._collection)
        except StoreError as error:
            return error
        return None

    def _follow(self, number: int) -> None:
        assert self._reader.catch_up()
        check_state(observe(self._reader), self.script.states[number], when=f"reader at {number}")

    def _keep(self) -> Rows:
        """Put the files by as they are, and return what they hold."""
        copy(self.path, self._spare)
        return read_rows(self.path)

    def undo(self) -> None:
        """Go back to before the call that was made last."""
        self.close()
        copy(self._spare, self.path)
        self._collection = everhash.open(self.path)
        self._reader = everhash.open(self.path, readonly=True)

    def _check_unchanged(self, rows: Rows, state: State, when: str) -> None:
        check_state(observe(self._collection), state, when=f"{when}; the collection")
        assert read_rows(self.path) == rows, f"{when}; another connection"
        copy(self.path, self._crashed)
        assert read_rows(self._crashed) == rows, f"{when}; after a crash"


def read_rows(path: Path) -> Rows:
    """Return all rows of all tables, by a connection of its own."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        queries = [f"SELECT * FROM {name}" for (name,) in sorted(tables)]  # noqa: S608
        return [row for query in queries for row in connection.execute(query)]
    finally:
        connection.close()


def journal_of(path: Path) -> str:
    """Return how SQLite guards changes to a file."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    finally:
        connection.close()
