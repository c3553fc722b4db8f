"""Children that run a script of calls and are killed, and what must be in the file afterwards."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

import everhash
from tests.crash.apart import Child, Say
from tests.crash.injection import Faults
from tests.crash.script import (
    DIM,
    LABELS,
    Call,
    Script,
    check_sound,
    check_state,
    copy,
    create,
    observe,
    observe_file,
    use_small_cells,
)

OPENED, STARTED, DONE, CLOSING = b"o", b"(", b".", b"c"
"""What a child says: the file is open, a call begins, it has returned, the file will be closed."""
REOPEN = 6
"""After so many calls the child closes the file, which empties its log, and opens it again."""
SHORTEST, LONGEST = 0.0002, 0.15
"""Seconds that a child lives on, at least and at most; a call takes about 0.005."""


class Kill(NamedTuple):
    """How far a child had come when it died."""

    done: int
    """Calls that had returned."""
    last: bytes
    """The last word it said."""

    @classmethod
    def after(cls, said: bytes) -> Kill:
        return cls(said.count(DONE), said[-1:])

    @property
    def in_call(self) -> bool:
        return self.last == STARTED

    @property
    def where(self) -> str:
        """Say what the child was doing, in words for a table."""
        names = {STARTED: "in a call", CLOSING: "while closing and opening again"}
        return names.get(self.last, "between calls" if self.last else "while opening")


def run_and_kill(
    path: Path, durability: str, script: Script, done: int, rng: random.Random
) -> Kill:
    """Have a child go on with a script, kill it, and return how far it had come.

    Some words are waited for, since on a busy machine it might come to none in its time.
    """
    with Child(partial(run_calls, path, durability, script.calls[done:])) as child:
        heard = b""
        if rng.random() < 0.9:  # otherwise it may die while it opens the file
            heard = child.hear()
            assert heard == OPENED
            heard += b"".join(child.hear() for _ in range(rng.randrange(5)))
        time.sleep(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
        return Kill.after(heard + child.kill())


def run_calls(path: Path, durability: str, calls: list[Call], say: Say) -> None:
    """What a child does: call after call, each acknowledged when it has returned."""
    collection = everhash.open(path, durability=durability)
    say(OPENED)
    for number, call in enumerate(calls, 1):
        say(STARTED)
        call.run(collection)
        say(DONE)
        if number % REOPEN == 0:
            say(CLOSING)
            collection.close()
            collection = everhash.open(path, durability=durability)
            say(OPENED)
    say(CLOSING)
    collection.close()


def look_after(path: Path, script: Script, done: int, when: str) -> int:
    """Return 1 if the call in flight is in the file, 0 if not; fail for any other state."""
    check_sound(path)
    found, possible = observe_file(path), script.states[done : done + 2]
    check_state(found, *possible, when=f"{when}, {done} calls done")
    return int(found != possible[0])


class Struck(NamedTuple):
    """A child that died at an operation of its own, and whether the call in flight was kept."""

    kind: str
    kill: Kill
    kept: int


def kill_at_each(faults: Faults, folder: Path, script: Script) -> Iterator[Struck]:
    """Kill a child at its n-th write, sync or truncation, three calls and a close long."""
    base, path = folder / "base.ever", folder / "copy.ever"
    create(base).close()
    for start in range(0, len(script.calls), 3):
        part = Script(script.calls[start : start + 3], script.states[start : start + 4])
        for kind in ("write", "sync", "truncate"):
            for n in count(1):
                copy(base, path)
                with Child(partial(_die_at, faults, kind, n, path, part.calls)) as child:
                    kill = Kill.after(child.wait())
                kept = look_after(path, part, kill.done, when=f"calls {start} on, {kind} {n}")
                if child.ended_well:
                    break
                yield Struck(kind, kill, kept)
        with everhash.open(base) as collection:
            for call in part.calls:
                call.run(collection)


def _die_at(faults: Faults, kind: str, n: int, path: Path, calls: list[Call], say: Say) -> None:
    """What such a child does; if it writes when it dies, half of that is written."""
    die = partial(os.kill, os.getpid(), signal.SIGKILL)
    with faults.at(kind, n, first=die):
        run_calls(path, "commit", calls, say)


class Refresh:
    """A file in which every code is stale, and a script of one refresh of it.

    The file has no cells although they are due: opening it begins to make them in the background,
    and so does the refresh.
    """

    def __init__(self, folder: Path) -> None:
        self._base, self._path = folder / "stale.ever", folder / "refreshed.ever"
        self._script, self.seconds = _write_refresh(self._base)

    @property
    def has_cells(self) -> bool:
        """Whether the file has cells after a kill."""
        with everhash.open(self._path, readonly=True) as collection:
            return bool(collection.stats()["cells"] > 1)

    def run(self, moment: float | None) -> tuple[Kill, int]:
        """Kill a child in its refresh at a moment, or let it end; return what came of it."""
        copy(self._base, self._path)
        with Child(partial(run_calls, self._path, "commit", self._script.calls)) as child:
            assert child.hear() == OPENED
            time.sleep(moment or 0)
            kill = Kill.after(OPENED + (child.wait() if moment is None else child.kill()))
        kept = look_after(self._path, self._script, kill.done, when=f"refresh, after {moment} s")
        return kill, kept


def _write_refresh(path: Path) -> tuple[Script, float]:
    """Make the file and the script, and time the refresh."""
    X = np.random.default_rng(3).integers(0, 17, (4000, DIM)).astype(np.float32)
    with create(path) as collection:
        collection.add(X)
        collection.learn(X[:500], [row % LABELS for row in range(500)])
        states = [observe(collection)]
    use_small_cells()
    other = path.with_suffix(".other")
    copy(path, other)
    with everhash.open(other) as collection:
        start = time.perf_counter()
        collection.refresh()
        seconds = time.perf_counter() - start
        states.append(observe(collection))
    return Script([Call("refresh", {})], states), seconds


def kill_creator(path: Path, moment: float | None, empty: Script) -> bool:
    """Kill a child while it makes a collection, or let it end; return whether there is one.

    Where there is none, one can be made.
    """
    with Child(partial(_make, path)) as child:
        time.sleep(moment or 0)
        child.wait() if moment is None else child.kill()
    there = path.exists()
    if not there:
        _give_leftovers_to_us(path, child.pid)
        create(path).close()
    look_after(path, empty, 0, when=f"create, after {moment} s")
    return there


def _make(path: Path, say: Say) -> None:
    create(path).close()


def _give_leftovers_to_us(path: Path, child: int) -> None:
    """Rename what a killed process left, as if it had had our number: numbers are used again."""
    for left in path.parent.glob(f".{path.name}.{child}.*"):
        left.rename(left.with_name(left.name.replace(str(child), str(os.getpid()))))
