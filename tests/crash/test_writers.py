"""Two processes that want to write: one may, the other is refused at once; no file is damaged."""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

import everhash
from everhash.errors import LockedError, ReadOnlyError, StoreError
from everhash.store.connection import BUSY_SECONDS
from tests.crash.apart import Child, Say, apart
from tests.crash.script import check_state, create, filled, observe, observe_file, script

WRITES = {"forget", "learn", "add", "ingest", "upsert", "update", "attach", "remove", "compact"}
WRITES |= {"label", "unlabel", "rename_label", "merge_labels", "drop_label", "refresh"}


def test_a_second_writer_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.ever"
    with filled(path, 3):
        for seconds in (try_to_write(str(path)), apart(try_to_write, str(path))):
            assert seconds is not None
            assert seconds < BUSY_SECONDS
        check_state(observe_file(path), script().states[3], when="refused")
    assert apart(try_to_write, str(path)) is None


def try_to_write(path: str) -> float | None:
    """Return after how long a writer was refused; None if it was not."""
    start = time.perf_counter()
    try:
        everhash.open(path).close()
    except LockedError:
        return time.perf_counter() - start
    return None


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    apart(kill_writer, str(tmp_path))


def kill_writer(folder: str) -> None:
    path = Path(folder, "a.ever")
    filled(path, 3).close()

    def write(say: Say) -> None:
        with everhash.open(path) as collection:
            script().calls[3].run(collection)
            say(b".")
            time.sleep(600)

    with Child(write) as child:
        assert child.hear() == b"."
        assert try_to_write(str(path)) is not None
        child.kill()
    with everhash.open(path) as collection:
        check_state(observe(collection), script().states[4], when="the lock is free")


def test_a_reader_refuses_every_call_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.ever"
    filled(path, len(script().calls)).close()
    assert {call.method for call in script().calls} == WRITES
    with everhash.open(path, readonly=True) as reader:
        for call in script().calls:
            with pytest.raises(ReadOnlyError):
                call.run(reader)
        check_state(observe(reader), script().states[-1], when="refused")
    check_state(observe_file(path), script().states[-1], when="refused")


def test_of_many_who_create_one_file_one_does(tmp_path: Path, thorough: bool) -> None:
    apart(create_together, str(tmp_path), 20 if thorough else 5)


def create_together(folder: str, rounds: int) -> None:
    """Have six children make the same collection; what the one who could did is there."""
    for number in range(rounds):
        path = Path(folder, f"{number}.ever")
        children = [Child(partial(create_and_write, path)) for _ in range(6)]
        said = [child.wait() for child in children]
        assert sorted(said) == [b"refused"] * 5 + [b"wrote"], f"round {number}: {said}"
        check_state(observe_file(path), script().states[1], when=f"round {number}")


def create_and_write(path: Path, say: Say) -> None:
    try:
        collection = create(path)
    except StoreError:
        say(b"refused")
        return
    script().calls[0].run(collection)
    collection.close()
    say(b"wrote")


def test_a_create_that_comes_second_leaves_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one's file appears at the last moment, when the second has looked already."""
    path, first, link = tmp_path / "a.ever", tmp_path / "first.ever", os.link
    filled(first, 5).close()

    def come_first(source: Path, target: Path) -> None:
        shutil.copyfile(first, path)
        link(source, target)

    monkeypatch.setattr(os, "link", come_first)
    with pytest.raises(StoreError):
        create(path)
    check_state(observe_file(path), script().states[5], when="the second was refused")
