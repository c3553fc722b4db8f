"""Disks that are full or broken, and files that cannot be written or are gone."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

import everhash
from everhash.errors import DataMissingError, StoreError
from tests.crash.apart import apart
from tests.crash.script import (
    check_sound,
    check_state,
    create,
    filled,
    observe,
    observe_file,
    script,
)

# Full disks


@pytest.mark.slow
def test_a_full_disk_fails_calls_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    assert apart(fill_disk, str(tmp_path)) > len(script().calls)


def fill_disk(folder: str) -> int:
    """Let files grow no further than this or that before each call; return how many failed."""
    path, failed = Path(folder, "full.ever"), 0
    collection = create(path)
    for number, call in enumerate(script().calls):
        log = path.with_name("full.ever-wal")
        length = log.stat().st_size if log.exists() else 0
        for most in (0, length, length + 40, length + 20_000, length + 50_000, None):
            limit_files(most)
            try:
                call.run(collection)
                break
            except StoreError:
                failed += 1
            finally:
                limit_files(None)
            for found in (observe(collection), observe_file(path)):
                check_state(found, script().states[number], when=f"{call}, {most} bytes")
        check_state(observe(collection), script().states[number + 1], when=str(call))
    collection.close()
    check_sound(path)
    return failed


def limit_files(most: int | None) -> None:
    """Allow files of this length; a longer write fails, as Python ignores SIGXFSZ."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if most is None else most, hard))


def test_a_full_disk_keeps_no_lock_and_leaves_no_trace(tmp_path: Path) -> None:
    apart(open_on_full_disk, str(tmp_path))


def open_on_full_disk(folder: str) -> None:
    path, other = Path(folder, "a.ever"), Path(folder, "b.ever")
    filled(path, 10).close()
    limit_files(0)
    with suppress(StoreError):
        everhash.open(path).close()
    with suppress(StoreError):
        create(other).close()
    limit_files(None)
    assert not list(Path(folder).glob("*b.ever*"))
    with everhash.open(path) as collection:
        script().calls[10].run(collection)
        check_state(observe(collection), script().states[11], when="the disk has room again")
    create(other).close()


# The system refuses


@pytest.mark.parametrize("name", ["link", "fsync"])
def test_a_create_or_snapshot_the_system_refuses_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """File systems without hard links refuse the one, broken disks the other."""
    with filled(tmp_path / "a.ever", 5) as collection:
        before = sorted(os.listdir(tmp_path))
        for act in (create, collection.snapshot):
            with monkeypatch.context() as patch:
                patch.setattr(os, name, refuse)
                with pytest.raises(StoreError):
                    act(tmp_path / "b.ever")
            assert sorted(os.listdir(tmp_path)) == before
    create(tmp_path / "b.ever").close()


def refuse(*arguments: Any) -> NoReturn:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_the_log_is_synced_again_after_a_sync_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "a.ever", threading.Semaphore(0)
    filled(path, 5).close()

    def fail_once(file: int) -> None:
        monkeypatch.setattr(os, "fsync", lambda file: synced.release())
        synced.release()
        refuse()

    with everhash.open(path, durability="interval:10ms") as collection:
        monkeypatch.setattr(os, "fsync", fail_once)
        script().calls[5].run(collection)
        assert synced.acquire(timeout=10)
        try:
            script().calls[6].run(collection)
        except StoreError:  # the call may report the failed sync
            check_state(observe(collection), script().states[6], when="after the failed sync")
            script().calls[6].run(collection)
        assert synced.acquire(timeout=10)
        monkeypatch.undo()
    check_state(observe_file(path), script().states[7], when="closed")


def test_a_close_that_cannot_sync_lets_go_of_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ever"
    collection = filled(path, 5)
    collection.close()
    collection = everhash.open(path, durability="interval:600s")
    script().calls[5].run(collection)
    with everhash.open(path, readonly=True):  # so that the log stays
        monkeypatch.setattr(os, "fsync", refuse)
        with suppress(StoreError):
            collection.close()
        monkeypatch.undo()
    with everhash.open(path) as collection:
        check_state(observe(collection), script().states[6], when="opened again")


# Files that cannot be written, or are gone


def test_a_read_only_file_is_read_but_not_written_until_it_is_writable_again(
    tmp_path: Path,
) -> None:
    apart(write_protected, str(tmp_path))


def write_protected(folder: str) -> None:
    give_up_override()
    path = Path(folder, "a.ever")
    filled(path, 8).close()
    path.chmod(0o444)
    check_state(observe_file(path), script().states[8], when="read only")
    try:
        with everhash.open(path) as collection:
            script().calls[8].run(collection)
    except StoreError:
        check_state(observe_file(path), script().states[8], when="read only")
    else:
        raise AssertionError("a call has written to a read-only file")
    path.chmod(0o644)
    with everhash.open(path) as collection:
        script().calls[8].run(collection)
    check_state(observe_file(path), script().states[9], when="writable again")


def give_up_override() -> None:
    """Make the rights of files count for root too: drop CAP_DAC_OVERRIDE and what goes with it."""
    libc, header = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110
    sets[1] &= ~0b110
    assert libc.capset(header, sets) == 0


def test_a_file_that_is_gone_takes_no_more_calls(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    collection = filled(folder / "a.ever", 5)
    reader = everhash.open(folder / "a.ever", readonly=True)
    shutil.rmtree(folder)
    for act in (lambda: script().calls[5].run(collection), collection.stats, reader.catch_up):
        with pytest.raises((StoreError, DataMissingError)):
            act()
    reader.close()
    collection.close()
    with pytest.raises(DataMissingError):
        everhash.open(folder / "a.ever")
