"""A child that is forked from a process with an open collection cannot harm it."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash.errors import ClosedError, LockedError
from tests.crash.apart import Child, Say, apart
from tests.crash.script import PROBES, check_sound, filled, script

CALLS: dict[str, Callable[[Any], Any]] = {
    "write": lambda collection: collection.remove([]),
    "search": lambda collection: collection.search(PROBES, 3),
    "stats": lambda collection: collection.stats(),
    "read": lambda collection: collection.attachments([]),
    "snapshot": lambda collection: collection.snapshot("never"),
    "catch up": lambda collection: collection.catch_up(),
    "hold": lambda collection: collection.held().__enter__(),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened in one process apart, which loads kernels once."""
    names = ("used", "opened", "at_work")
    return dict(apart(fork_in_each, *(str(tmp_path_factory.mktemp(name)) for name in names)))


def fork_in_each(used: str, opened: str, at_work: str) -> dict[str, Any]:
    found = {"used": use_in_child(used), "opened": open_in_child(opened)}
    return {**found, "at_work": fork_at_work(at_work), "memory": use_memory_in_child()}


def test_a_child_can_neither_use_nor_harm_what_its_parent_has_open(seen: dict[str, Any]) -> None:
    assert seen["used"] == ["ClosedError"] * 2 * len(CALLS) + ["locked"]


def use_in_child(folder: str) -> list[str]:
    path = Path(folder, "a.ever")
    with filled(path, 3) as writer, everhash.open(path, readonly=True) as reader:
        files = sorted(os.listdir(folder))

        def child(say: Say) -> None:
            for collection in (writer, reader):
                for call in CALLS.values():
                    say(refusal(call, collection))
                with collection:
                    pass
            assert sorted(os.listdir(folder)) == files, "the lock and the log are left alone"
            try:
                everhash.open(path)
            except LockedError:
                say(b"locked ")

        said = Child(child).wait().decode().split()
        script().calls[3].run(writer)
        assert reader.catch_up()
    check_sound(path)
    assert os.listdir(folder) == ["a.ever"]
    return said


def refusal(call: Callable[[Any], Any], collection: Any) -> bytes:
    """Return the name of the error that a call in a child raises."""
    with pytest.raises(ClosedError, match=r"was opened by process \d+.*spawn") as caught:
        call(collection)
    return f"{caught.typename} ".encode()


def test_a_child_may_open_what_its_parent_has_open(seen: dict[str, Any]) -> None:
    assert seen["opened"] == ["4", "9", "9"]


def open_in_child(folder: str) -> list[str]:
    """Have a reader in the child outlive the parent's writer: it sees all that came later."""
    path = Path(folder, "a.ever")
    writer = filled(path, 4)
    ready, go = os.pipe(), os.pipe()

    def child(say: Say) -> None:
        with everhash.open(path, readonly=True) as mine:
            say(str(mine.stats()["commit"]).encode() + b" ")
            os.write(ready[1], b".")
            os.read(go[0], 1)
            mine.catch_up()
            say(str(mine.stats()["commit"]).encode() + b" ")

    forked = Child(child)
    os.read(ready[0], 1)
    writer.close()  # the last of this process: the child's locks must keep the log
    with everhash.open(path) as again:
        for call in script().calls[4:9]:
            call.run(again)
        os.write(go[1], b".")
        said = forked.wait().decode().split()
        said.append(str(again.stats()["commit"]))
    check_sound(path)
    return said


def test_a_child_of_a_process_at_work_is_refused_and_ends_quietly(seen: dict[str, Any]) -> None:
    assert seen["at_work"] == "refused"


def fork_at_work(folder: str) -> str:
    """Fork while a thread is inside a transaction; the child ends as a whole interpreter does."""
    path = Path(folder, "a.ever")
    writer = filled(path, 3)
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with writer.held(), writer._store.transaction():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with pytest.raises(ClosedError, match="spawn"):
            everhash.open(path, readonly=True)
        os.write(writing, b"refused")
        writer.close()
        del writer
        gc.collect()
        sys.exit(0)
    os.close(writing)
    said = os.read(reading, 100).decode()
    assert os.waitpid(pid, 0)[1] == 0
    leave.set()
    thread.join()
    script().calls[3].run(writer)
    writer.close()
    check_sound(path)
    return said


def test_a_collection_in_memory_goes_on_in_a_child(seen: dict[str, Any]) -> None:
    assert seen["memory"] == [5, 4]


def use_memory_in_child() -> list[int]:
    collection = filled(None, 4)  # type: ignore[arg-type]

    def child(say: Say) -> None:
        script().calls[4].run(collection)
        say(str(collection.stats()["commit"]).encode())

    return [int(Child(child).wait()), collection.stats()["commit"]]
