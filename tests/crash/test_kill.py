"""A process that is killed: the file has every call that returned, and nothing by halves."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.apart import apart
from tests.crash.injection import inject_into_files
from tests.crash.killing import (
    LONGEST,
    Refresh,
    kill_at_each,
    kill_creator,
    look_after,
    run_and_kill,
)
from tests.crash.script import create, use_small_cells, use_small_parts, write_script

CALLS = 90
"""After so many calls a new file is begun."""
NOTHING = {"rounds": 0, "acknowledged": 0, "in flight, kept": 0, "in flight, dropped": 0}
FEW = 12
"""Rounds of a quick test."""


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
    assert seen["with cells"] > 0
    assert seen["without cells"] > 0


def test_a_killed_create_leaves_nothing_or_a_collection(tmp_path: Path, thorough: bool) -> None:
    seen = apart(kill_creators, str(tmp_path), 40 if thorough else FEW)
    assert seen["nothing"] > 0
    assert seen["a collection"] > 0


def kill_writers(folder: str, durability: str, rounds: int) -> Counter[str]:
    """Kill a child that runs a script, check the file, go on from what it holds, and so on."""
    use_small_parts()
    use_small_cells()
    rng, seen = random.Random(1), Counter(NOTHING)
    script, done, path = write_script(CALLS, seed=1), CALLS, Path(folder)
    for number in range(rounds):
        if done == CALLS:
            path, done = Path(folder, f"{number}.ever"), 0
            create(path).close()
        acknowledged = run_and_kill(path, durability, script, done, rng).done
        done += acknowledged
        kept = look_after(path, script, done, when=f"{durability}, round {number}")
        done += kept
        seen.update(rounds=1, acknowledged=acknowledged)
        if done < CALLS:
            seen["in flight, kept" if kept else "in flight, dropped"] += 1
    return seen


def kill_at_operations(folder: str, calls: int) -> Counter[str]:
    """Kill a child at each of its operations, and count them."""
    faults, seen = inject_into_files(), Counter(NOTHING)
    use_small_parts(log=300_000)
    for kind, kill, kept in kill_at_each(faults, Path(folder), write_script(calls, seed=8)):
        seen[kind] += 1
        seen["in flight, kept" if kept else "in flight, dropped"] += kill.done < 3
    return seen


def kill_refreshes(folder: str, rounds: int) -> Counter[str]:
    """Kill a child in a refresh, the last one excepted, each time on a fresh copy of one file."""
    rng, seen, refresh = random.Random(2), Counter(NOTHING), Refresh(Path(folder))
    for number in range(rounds):
        moment = 1.5 * refresh.seconds * rng.random() * (number > 0)
        kill, kept = refresh.run(moment if number < rounds - 1 else None)
        acknowledged = "in flight, kept" if kept else "in flight, dropped"
        seen["acknowledged" if kill.done else acknowledged] += 1
        seen["with cells" if refresh.has_cells else "without cells"] += 1
    return seen


def kill_creators(folder: str, rounds: int) -> Counter[str]:
    """Kill a child while it makes a collection, the last one excepted; make or open one there."""
    rng, seen, empty = random.Random(4), Counter[str](), write_script(0, seed=0)
    for number in range(rounds):
        moment = LONGEST * rng.random() * (number > 0)
        path = Path(folder, f"{number}.ever")
        there = kill_creator(path, moment if number < rounds - 1 else None, empty)
        seen["a collection" if there else "nothing"] += 1
    return seen
