"""Every write, sync, truncation, read and allocation of SQLite fails, in every call of a script."""

from __future__ import annotations

import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import accumulate, count, islice, repeat
from pathlib import Path

import pytest

import everhash
from everhash.errors import StoreError
from tests.conftest import slowly
from tests.crash.apart import apart
from tests.crash.injection import Faults, inject_into_files, inject_into_memory
from tests.crash.script import (
    check_sound,
    check_state,
    copy,
    create,
    observe,
    observe_file,
    use_small_parts,
    write_script,
)
from tests.crash.trial import Trial, journal_of

FEW_CALLS, ALL_CALLS = 16, 54
"""Calls of a short script, which has all kinds, and of a long one."""
KINDS = ("write", "sync", "truncate", "read")
ALL = 60
"""Allocations that all fail one after the other; of those beyond only some do."""
THIRD = 3
"""Of operations and allocations, a quick test fails every third."""


def test_a_call_that_the_disk_fails_changes_nothing(tmp_path: Path, thorough: bool) -> None:
    calls = ALL_CALLS if thorough else FEW_CALLS
    log, every = (300_000, 1) if thorough else (100_000, THIRD)
    seen = apart(fail_files, str(tmp_path), calls, log, every)
    assert seen["calls"] == calls
    assert min(seen[f"{kind}: raised"] for kind in ("write", "sync", "read")) > 0
    assert min(seen[f"{kind}: went on"] for kind in KINDS) > 0, "the log was never written back"


def test_a_call_that_gets_no_memory_changes_nothing(tmp_path: Path, thorough: bool) -> None:
    """All allocations of a call up to number 60 fail, and about one of twenty beyond."""
    calls, every = (ALL_CALLS, 1) if thorough else (FEW_CALLS, THIRD)
    seen = apart(fail_memory, str(tmp_path), calls, every)
    assert seen["calls"] == calls
    assert seen["memory: raised"] > 20 * calls / every


def test_a_commit_whose_syncs_go_on_failing_does_not_come_back_after_a_crash(
    tmp_path: Path,
) -> None:
    """Also not at the start of the log, where writing over it would need a sync too."""
    assert apart(fail_syncs_of_a_new_log, str(tmp_path)) == [1, 2]


def test_a_call_works_after_one_that_could_not_roll_back(tmp_path: Path) -> None:
    path, script = tmp_path / "a.ever", write_script(2, seed=1)
    with create(path) as collection:
        store = collection._store
        store.run("BEGIN IMMEDIATE")  # as a call leaves it that gets no memory for its ROLLBACK
        script.calls[0].run(collection)
        store.run("BEGIN")
        collection._loaded = None
        check_state(observe(collection), script.states[1], when="memory is read again")


EACH = [("files", THIRD), *slowly(("files", 1), ("memory", 1))]
"""What fails, and whether every time or every third."""


@pytest.mark.parametrize("what", EACH, ids=str)
def test_a_create_that_fails_leaves_nothing_behind(tmp_path: Path, what: tuple[str, int]) -> None:
    apart(fail_creates, str(tmp_path), what[0] == "memory", what[1])


@pytest.mark.parametrize("what", EACH, ids=str)
def test_an_open_that_fails_can_be_repeated(tmp_path: Path, what: tuple[str, int]) -> None:
    apart(fail_opens, str(tmp_path), what[0] == "memory", what[1])


def test_verify_never_takes_a_lack_of_memory_for_damage(tmp_path: Path) -> None:
    apart(fail_verifications, str(tmp_path))


def fail_files(folder: str, calls: int, log: int, every: int) -> Counter[str]:
    """Fail operations of every kind in every call; in every other one, all after it too.

    Either all of them, or every so-manieth, beginning with another one in each call.
    """
    faults = inject_into_files()
    use_small_parts(log=log)
    trial = Trial(Path(folder, "a.ever"), write_script(calls, seed=1), faults)
    for number in range(calls):
        for kind in KINDS:
            tries = count(1 + number % every, every)
            trial.make(number, kind, tries, lasting=number % 2 == 1)
            if kind != KINDS[-1]:
                trial.undo()
    trial.close()
    return trial.seen + Counter(calls=calls)


def fail_memory(folder: str, calls: int, every: int) -> Counter[str]:
    """Fail allocations in every call; in every other one, all after it too."""
    faults, rng = inject_into_memory(), random.Random(5)
    use_small_parts()
    trial = Trial(Path(folder, "a.ever"), write_script(calls, seed=1), faults)
    for number in range(calls):
        tries = islice(with_gaps(rng), number % every, None, every)
        trial.make(number, "memory", tries, lasting=number % 2 == 1)
    trial.close()
    return trial.seen + Counter(calls=calls)


def with_gaps(rng: random.Random, step: int = 40) -> Iterator[int]:
    """Count to `ALL`, then on in random steps."""
    yield from range(1, ALL + 1)
    yield from accumulate(repeat(step), lambda n, step: n + rng.randint(1, step), initial=ALL + 1)


def fail_syncs_of_a_new_log(folder: str) -> list[int]:
    """Fail the n-th sync of a call and all after it; return which n made the call raise.

    The log has just been written back, so the call begins it again.
    """
    faults, script, raised = inject_into_files(), write_script(2, seed=1), []
    for n in (1, 2, 3):
        path, crashed = Path(folder, f"{n}.ever"), Path(folder, f"{n}.crashed")
        with create(path) as collection:
            script.calls[0].run(collection)
            write_log_back(path)
            with faults.at("sync", n, lasting=True), suppress(StoreError):
                script.calls[1].run(collection)
                continue
            raised.append(n)
            copy(path, crashed)
            check_state(observe_file(crashed), script.states[1], when=f"sync {n}, after a crash")
            script.calls[1].run(collection)
            check_state(observe_file(path), script.states[2], when=f"sync {n}, the disk is back")
    return raised


def write_log_back(path: Path) -> None:
    """Have SQLite copy what is in the log to the file."""
    with closing(sqlite3.connect(path)) as connection:
        busy, pages, copied = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    assert (busy, copied) == (0, pages)


def fail_creates(folder: str, memory: bool, every: int) -> None:
    """Fail what it takes to make a collection: then there is none, nor anything else."""
    faults, state = inject(memory), write_script(0, seed=0).states[0]
    for number, fails in enumerate(each_fault(faults, memory, every, step=200)):
        path = Path(folder, f"{memory}{number}", "new.ever")
        path.parent.mkdir()
        if fails(partial(make, path)):
            assert not os.listdir(path.parent), os.listdir(path.parent)
            create(path).close()
        check_state(observe_file(path), state, when=str(path))
        assert journal_of(path) == "wal", "readers would hold up the writer"


def fail_opens(folder: str, memory: bool, every: int) -> None:
    """Fail what it takes to open a collection: the next one who tries can."""
    faults, path = inject(memory), Path(folder, f"{memory}.ever")
    script = write_script(20, seed=0)
    with create(path) as collection:
        for call in script.calls:
            call.run(collection)
    for number, fails in enumerate(each_fault(faults, memory, every)):
        fails(partial(look, path, readonly=number // 2 % 2 == 0))
        with everhash.open(path) as collection:
            check_state(observe(collection), script.states[-1], when=f"fault {number}")


def fail_verifications(folder: str) -> None:
    """Fail allocations while a sound file is read: no damage is reported."""
    faults, path = inject(memory=True), Path(folder, "sound.ever")
    script = write_script(20, seed=0)
    with create(path) as collection:
        for call in script.calls:
            call.run(collection)
    for fails in each_fault(faults, memory=True):
        fails(partial(check_sound, path))


def make(path: Path) -> None:
    create(path).close()


def look(path: Path, *, readonly: bool) -> None:
    everhash.open(path, readonly=readonly).close()


Fails = Callable[[Callable[[], None]], bool]


def inject(memory: bool) -> Faults:
    return inject_into_memory() if memory else inject_into_files()


def each_fault(faults: Faults, memory: bool, every: int = 1, step: int = 40) -> Iterator[Fails]:
    """Go through all faults; each runs something with it, and returns whether that raised.

    Of those of files, every so-manieth only.
    """
    rng = random.Random(6)
    for kind in ("memory",) if memory else (*KINDS, "open"):
        for n in with_gaps(rng, step) if memory else count(1, every):

            def fails(action: Callable[[], None], kind: str = kind, n: int = n) -> bool:
                with faults.at(kind, n, lasting=n % 2 == 0):
                    try:
                        action()
                    except StoreError:
                        return True
                return False

            yield fails
            if not faults.hits:
                break
