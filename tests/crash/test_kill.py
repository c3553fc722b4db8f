"""A process that is killed: the file has every call that returned, and nothing by halves."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import everhash
from tests.crash.apart import Child, Say, apart
from tests.crash.injection import Faults, inject_into_files
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
    use_small_parts,
    write_script,
)

CALLS = 90
"""After so many calls a new file is begun."""
REOPEN = 6
"""After so many calls the child closes the file, which empties its log, and opens it again."""
NOTHING = {"rounds": 0, "acknowledged": 0, "in flight, kept": 0, "in flight, dropped": 0}
FEW = 12
"""Rounds of a quick test."""
OPENED = b"o"
DONE = b"."
SHORTEST, LONGEST = 0.0002, 0.15
"""Seconds that a child lives on, at least and at most; a call takes about 0.005."""


@pytest.mark.parametrize(
    ("durability", "rounds"), [("commit", 220), ("interval:50ms", 60), ("none", 60)]
)
def test_sigkill_loses_nothing_acknowledged(
    tmp_path: Path, durability: str, rounds: int, thorough: bool
) -> None:
    rounds = rounds if thorough else FEW
    seen = apart(kill_writers, str(tmp_path), durability, rounds)
    assert seen["rounds"] == rounds
    assert seen["acknowledged"] > rounds / 10
    assert seen["in flight, kept"] + seen["in flight, dropped"] > 0


def test_sigkill_at_every_write_sync_and_truncation_loses_nothing_acknowledged(
    tmp_path: Path, thorough: bool
) -> None:
    seen = apart(kill_at_operations, str(tmp_path), 18 if thorough else 3)
    assert min(seen[kind] for kind in ("write", "sync", "truncate")) > 0
    assert min(seen[kind] for kind in ("in flight, kept", "in flight, dropped")) > 0


def test_a_killed_refresh_is_there_in_full_or_not_at_all(tmp_path: Path, thorough: bool) -> None:
    seen = apart(kill_refreshes, str(tmp_path), 30 if thorough else 5)
    assert seen["in flight, dropped"] > 0
    assert seen["acknowledged"] + seen["in flight, kept"] > 0


def test_a_killed_create_leaves_nothing_or_a_collection(tmp_path: Path, thorough: bool) -> None:
    seen = apart(kill_creators, str(tmp_path), 40 if thorough else FEW)
    assert seen["nothing"] > 0
    assert seen["a collection"] > 0


def kill_writers(folder: str, durability: str, rounds: int) -> Counter[str]:
    """Kill a child that runs a script, check the file, go on from what it holds, and so on."""
    use_small_parts()
    rng, seen = random.Random(1), Counter(NOTHING)
    script, done, path = write_script(CALLS, seed=1), CALLS, Path(folder)
    for number in range(rounds):
        if done == CALLS:
            path, done = Path(folder, f"{number}.ever"), 0
            create(path).close()
        acknowledged = run_and_kill(path, durability, script, done, rng)
        done += acknowledged
        kept = look_after(path, script, done, when=f"{durability}, round {number}")
        done += kept
        seen.update(rounds=1, acknowledged=acknowledged)
        if done < CALLS:
            seen["in flight, kept" if kept else "in flight, dropped"] += 1
    return seen


def run_and_kill(path: Path, durability: str, script: Script, done: int, rng: random.Random) -> int:
    """Have a child go on with a script, kill it, and return how many calls it acknowledged.

    Some calls are waited for, since on a busy machine it might come to none in its time.
    """
    with Child(partial(run_calls, path, durability, script.calls[done:])) as child:
        heard = b""
        if rng.random() < 0.9:  # otherwise it may die while it opens the file
            assert child.hear() == OPENED
            heard = b"".join(child.hear() for _ in range(rng.randrange(3)))
        time.sleep(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
        return (heard + child.kill()).count(DONE)


def run_calls(path: Path, durability: str, calls: list[Call], say: Say) -> None:
    """What a child does: call after call, each acknowledged when it has returned."""
    collection = everhash.open(path, durability=durability)
    say(OPENED)
    for number, call in enumerate(calls, 1):
        call.run(collection)
        say(DONE)
        if number % REOPEN == 0:
            collection.close()
            collection = everhash.open(path, durability=durability)
    collection.close()


def look_after(path: Path, script: Script, done: int, when: str) -> int:
    """Return 1 if the call in flight is in the file, 0 if not; fail for any other state."""
    check_sound(path)
    found, possible = observe_file(path), script.states[done : done + 2]
    check_state(found, *possible, when=f"{when}, {done} calls done")
    return int(found != possible[0])


def kill_at_operations(folder: str, calls: int) -> Counter[str]:
    """Kill a child at its n-th write, sync or truncation, three calls and a close long."""
    faults, seen = inject_into_files(), Counter(NOTHING)
    use_small_parts(log=300_000)
    script = write_script(calls, seed=8)
    base, path = Path(folder, "base.ever"), Path(folder, "copy.ever")
    create(base).close()
    for start in range(0, len(script.calls), 3):
        part = Script(script.calls[start : start + 3], script.states[start : start + 4])
        for kind in ("write", "sync", "truncate"):
            for n in count(1):
                copy(base, path)
                with Child(partial(die_at, faults, kind, n, path, part.calls)) as child:
                    done = child.wait().count(DONE)
                kept = look_after(path, part, done, when=f"calls {start} on, {kind} {n}")
                if child.ended_well:
                    break
                seen[kind] += 1
                seen["in flight, kept" if kept else "in flight, dropped"] += done < 3
        with everhash.open(base) as collection:
            for call in part.calls:
                call.run(collection)
    return seen


def die_at(faults: Faults, kind: str, n: int, path: Path, calls: list[Call], say: Say) -> None:
    """What such a child does; if it writes when it dies, half of that is written."""
    die = partial(os.kill, os.getpid(), signal.SIGKILL)
    with faults.at(kind, n, first=die):
        run_calls(path, "commit", calls, say)


def kill_refreshes(folder: str, rounds: int) -> Counter[str]:
    """Kill a child in a refresh, the last one excepted, each time on a fresh copy of one file."""
    rng, seen = random.Random(2), Counter(NOTHING)
    base, path = Path(folder, "base.ever"), Path(folder, "copy.ever")
    script, seconds = write_refresh(base)
    for number in range(rounds):
        copy(base, path)
        moment = 1.5 * seconds * rng.random() * (number > 0)
        with Child(partial(run_calls, path, "commit", script.calls)) as child:
            assert child.hear() == OPENED
            time.sleep(moment)
            done = (child.kill() if number < rounds - 1 else child.wait()).count(DONE)
        kept = look_after(path, script, done, when=f"refresh, round {number}, after {moment} s")
        seen["acknowledged" if done else "in flight, kept" if kept else "in flight, dropped"] += 1
    return seen


def write_refresh(path: Path) -> tuple[Script, float]:
    """Make a file in which every code is stale, and a script of one refresh; time that."""
    X = np.random.default_rng(3).integers(0, 17, (4000, DIM)).astype(np.float32)
    with create(path) as collection:
        collection.add(X)
        collection.learn(X[:500], [row % LABELS for row in range(500)])
        states = [observe(collection)]
    other = path.with_suffix(".other")
    copy(path, other)
    with everhash.open(other) as collection:
        start = time.perf_counter()
        collection.refresh()
        seconds = time.perf_counter() - start
        states.append(observe(collection))
    return Script([Call("refresh", {})], states), seconds


def kill_creators(folder: str, rounds: int) -> Counter[str]:
    """Kill a child while it makes a collection, the last one excepted; make or open one there."""
    rng, seen = random.Random(4), Counter[str]()
    script = write_script(0, seed=0)
    for number in range(rounds):
        path = Path(folder, f"{number}.ever")
        with Child(partial(make, path)) as child:
            time.sleep(LONGEST * rng.random() * (number > 0))
            child.kill() if number < rounds - 1 else child.wait()
        seen["a collection" if path.exists() else "nothing"] += 1
        if not path.exists():
            give_leftovers_to_us(path, child.pid)
            create(path).close()
        look_after(path, script, 0, when=f"create, round {number}")
    return seen


def make(path: Path, say: Say) -> None:
    create(path).close()


def give_leftovers_to_us(path: Path, child: int) -> None:
    """Rename what a killed process left, as if it had had our number: numbers are used again."""
    for left in path.parent.glob(f".{path.name}.{child}.*"):
        left.rename(left.with_name(left.name.replace(str(child), str(os.getpid()))))
