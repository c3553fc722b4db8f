"""One writer at a time, by whatever name it comes, and nobody else under it."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import zlib
from pathlib import Path

import pytest

from everhash.errors import LockedError, StoreError
from everhash.store.connection import partial_of
from everhash.store.parts import PartKey
from everhash.store.sqlite_version import has_wal_reset_bug, warn_of_bug
from everhash.store.store import Store
from tests.unit.store.test_store import make


def write(store: Store, number: int) -> None:
    with store.transaction() as change:
        change.put(PartKey("x", number), 0, bytes(100))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_symbolic_link_leads_to_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "link").symlink_to("real/s")
    store = make(tmp_path / "real" / "s")
    for name in ("link", "folder/s"):
        with pytest.raises(LockedError, match=rf"{name} is being written by process {os.getpid()}"):
            Store.open(tmp_path / name)
        reader = Store.open(tmp_path / name, readonly=True)
        assert reader.parts == store.parts
        reader.close()
    store.close()
    linked = Store.open(tmp_path / "link")
    write(linked, 1)
    with pytest.raises(LockedError):
        Store.open(tmp_path / "real" / "s")
    assert names_in(tmp_path) == ["folder", "link", "real"], "nothing stands beside a link"
    linked.close()
    assert names_in(tmp_path / "real") == ["s"]


def test_a_file_with_a_second_name_is_refused(tmp_path: Path) -> None:
    """SQLite would keep a log for each name: also what a reader sees would be wrong."""
    (tmp_path / "elsewhere").mkdir()
    store = make(tmp_path / "s")
    write(store, 1)
    second = tmp_path / "elsewhere" / "t"
    os.link(tmp_path / "s", second)
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"has 2 names \(hard links\)"):
            Store.open(second, readonly=readonly)
    write(store, 2)
    store.close()
    with pytest.raises(StoreError, match="symbolic link"):
        Store.open(tmp_path / "s")
    second.unlink()
    again = Store.open(tmp_path / "s")
    assert again.commit == 2
    again.close()


def test_the_name_that_a_killed_create_has_left_is_removed(tmp_path: Path) -> None:
    make(tmp_path / "s").close()
    os.link(tmp_path / "s", partial_of(tmp_path / "s"))
    Store.open(tmp_path / "s", readonly=True).close()
    Store.open(tmp_path / "s").close()
    assert names_in(tmp_path) == ["s"]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="locks of descriptors")
def test_the_file_itself_is_locked(tmp_path: Path) -> None:
    """As it matters where a folder is mounted twice, or somebody has removed the lock file."""
    store = make(tmp_path / "s")
    reader = Store.open(tmp_path / "s", readonly=True)
    (tmp_path / "s-lock").unlink()
    for _ in range(2):
        with pytest.raises(LockedError, match="under another name"):
            Store.open(tmp_path / "s")
    write(store, 1)
    reader.close()
    store.close()
    Store.open(tmp_path / "s").close()


def test_a_commit_of_somebody_else_is_found_before_anything_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_bug.cache_clear()
    store = make(tmp_path / "s")
    write(store, 1)
    other = sqlite3.connect(tmp_path / "s")
    ((text,),) = other.execute("SELECT about FROM head").fetchall()
    text = json.dumps({**json.loads(text), "commit": 7})
    with other:
        other.execute("UPDATE head SET about = ?, checksum = ?", (text, zlib.crc32(text.encode())))
    other.close()
    with caplog.at_level(logging.WARNING, "everhash"):
        for number in (2, 3):
            with pytest.raises(LockedError, match="its commit is 7, the last one here was 1"):
                write(store, number)
    assert len(caplog.records) == has_wal_reset_bug(), "told once"
    with store.reading():
        store.load_listing()
    assert (store.commit, len(store.parts)) == (7, 2)
    write(store, 2)
    assert store.commit == 8, "having read what the other wrote, it may go on"
    store.close()


@pytest.mark.parametrize(
    ("version", "bug"),
    [
        *(("3.7.0", True), ("3.44.5", True), ("3.44.6", False), ("3.45.0", True), ("3.50.6", True)),
        *(("3.50.7", False), ("3.51.2", True), ("3.51.3", False), ("3.53.0", False), ("4", False)),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(version: str, bug: bool) -> None:
    assert has_wal_reset_bug(version) is bug


def test_a_reader_writes_nothing_and_leaves_the_log_as_it_is(tmp_path: Path) -> None:
    """Only the writer writes the log back, so no two connections ever do at once."""
    path, log = tmp_path / "s", tmp_path / "s-wal"
    store, reader = make(path), Store.open(path, readonly=True)
    write(store, 1)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.connection.executescript("PRAGMA query_only = OFF; DELETE FROM head")
    assert reader.run("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    kept = {file: file.read_bytes() for file in (path, log)}
    store.connection.close()  # as a writer that is killed
    reader.close()
    assert {file: file.read_bytes() for file in (path, log)} == kept
    reader = Store.open(path, readonly=True)
    assert reader.commit == 1
    reader.close()
    assert {file: file.read_bytes() for file in (path, log)} == kept


def test_nothing_is_left_beside_a_file_whoever_closes_last(tmp_path: Path) -> None:
    store, reader = make(tmp_path / "s"), Store.open(tmp_path / "s", readonly=True)
    write(store, 1)
    store.close()
    assert (tmp_path / "s-wal").stat().st_size == 0, "the writer has written it back"
    reader.close()
    Store.open(tmp_path / "s", readonly=True).close()
    assert names_in(tmp_path) == ["s"]
