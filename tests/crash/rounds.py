"""Pieces of work of `kills`, each for a process of its own: bodies for `apart`."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import Any

from everhash import OnlineHasher
from everhash.errors import EverhashError
from tests.crash.injection import inject_into_files, inject_into_memory
from tests.crash.killing import (
    LONGEST,
    Kill,
    Refresh,
    kill_at_each,
    kill_creator,
    look_after,
    run_and_kill,
)
from tests.crash.kills_page import Record
from tests.crash.script import Script, create, use_small_cells, use_small_parts, write_script
from tests.crash.trial import Trial

CALLS = 90
"""Calls of a script that is killed."""
CYCLE, CREATE, REFRESH = 40, 0, 20
"""Of so many kills one hits a `create`, and one the refresh of 4,000 stale entries."""
DURABILITY = ("commit", "commit", "interval:50ms", "none")
"""How files are written, in turn."""
FAILURES = (AssertionError, EverhashError)
"""A state that was not expected, or a file that nobody can open."""
LOG = 300_000
"""Bytes at which the log is written back, so that faults hit that too."""


class Writers:
    """Files that children write, one after the other, until a kill finds a wrong state."""

    def __init__(self, folder: Path, seed: str) -> None:
        self._folder, self._rng, self.record = folder, random.Random(seed), Record()
        self._script = write_script(CALLS, seed=self._rng.randrange(2**30))
        self._publishing = publishing_calls(self._script)
        self._empty, self._refresh = write_script(0, seed=0), Refresh(folder)
        self._files, self._done = 0, CALLS
        self._path = folder

    def kill(self, number: int) -> None:
        """Kill a process, look at what it left, and count both."""
        kind = {CREATE: self._in_create, REFRESH: self._in_refresh}.get(number % CYCLE)
        try:
            (kind or self._in_script)()
        except FAILURES as error:
            self.record.violations.append(f"kill {number}: {error}")
            self._done = CALLS  # begin a new file

    def _in_create(self) -> None:
        path = self._folder / "created.ever"
        there = kill_creator(path, 0.3 * LONGEST * self._rng.random(), self._empty)
        path.unlink()
        self.record.kills["create", "in a call", "kept" if there else "dropped"] += 1

    def _in_refresh(self) -> None:
        kill, kept = self._refresh.run(1.3 * self._refresh.seconds * self._rng.random())
        self._count(kill, "refresh of 4,000", kept)

    def _in_script(self) -> None:
        if self._done == CALLS:
            self._path, self._done = self._new_path(), 0
            create(self._path).close()
        durability = DURABILITY[self._files % len(DURABILITY)]
        kill = run_and_kill(self._path, durability, self._script, self._done, self._rng)
        self._done += kill.done
        self.record.returned += kill.done
        kept = look_after(self._path, self._script, self._done, when=durability)
        self._count(kill, self._name(self._done), kept)
        self._done += kept

    def _count(self, kill: Kill, call: str, kept: int) -> None:
        assert kill.in_call or not kept, f"{call} is in the file, but was not begun"
        outcome = "kept" if kept else "dropped"
        self.record.kills[
            (call, kill.where, outcome) if kill.in_call else ("", kill.where, "")
        ] += 1

    def _name(self, number: int) -> str:
        if number == CALLS:
            return ""
        publishes = number in self._publishing
        return self._script.calls[number].method + ", publishing" * publishes

    def _new_path(self) -> Path:
        """Return a path for the next file; the one before is no longer needed."""
        for old in self._folder.glob(f"{self._files}.ever*"):
            old.unlink()
        self._files += 1
        return self._folder / f"{self._files}.ever"


def publishing_calls(script: Script) -> set[int]:
    """Return the numbers of the calls that solve all labels again."""
    found, before = set[int](), 0
    with create(None) as collection:
        for number, call in enumerate(script.calls):
            call.run(collection)
            assert isinstance(collection.hasher, OnlineHasher)
            now = collection.hasher.published_rows_ or 0
            if now != before:
                found.add(number)
            before = now
    return found


def kill_writers(folder: str, seed: str, first: int, kills: int) -> dict[str, Any]:
    """Kill so many processes."""
    use_small_parts()
    use_small_cells()
    writers = Writers(Path(folder), seed)
    for number in range(first, first + kills):
        writers.kill(number)
    return writers.record.as_json()


def fail_calls(folder: str, kind: str, lasting: bool, calls: int, first: int = 0) -> dict[str, Any]:
    """Fail every operation of a kind in every call of a script, from a first one on."""
    faults = inject_into_memory() if kind == "memory" else inject_into_files()
    use_small_parts(log=LOG)
    trial = Trial(Path(folder, "a.ever"), write_script(calls, seed=1), faults)
    record = Record()
    for number in range(calls):
        try:
            trial.make(number, kind, count(1) if number >= first else (), lasting=lasting)
        except FAILURES as error:
            record.violations.append(f"call {number}, {kind}: {error}")
            trial.undo()
            trial.make(number, kind, (), lasting=lasting)
    trial.close()
    how = "lasting" if lasting else "once"
    for outcome in ("raised", "went on"):
        record.faults[kind, how, outcome] = trial.seen[f"{kind}: {outcome}"]
    return record.as_json()


def kill_at_operations(folder: str, calls: int) -> dict[str, Any]:
    """Kill a process at every write, sync and truncation of a script."""
    faults, record = inject_into_files(), Record()
    use_small_parts(log=LOG)
    try:
        for kind, kill, kept in kill_at_each(faults, Path(folder), write_script(calls, seed=8)):
            outcome = ("kept" if kept else "dropped") if kill.in_call else "outside calls"
            record.struck[kind, outcome] += 1
    except FAILURES as error:
        record.violations.append(str(error))
    return record.as_json()
