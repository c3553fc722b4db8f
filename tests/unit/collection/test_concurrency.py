"""Several threads on one collection: searches go on while a commit waits for the disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash import Collection, OnlineHasher
from everhash.errors import DiskFullError, StoreError
from everhash.store import schema
from everhash.store.store import Store
from tests.conftest import Stream
from tests.contracts.test_collection import assert_same

SOON = 20.0
"""Seconds after which a call that should go on is taken to hang."""


@pytest.fixture(params=["file", "memory"])
def filled(request: pytest.FixtureRequest, tmp_path: Path, digits: Stream) -> Iterator[Collection]:
    """300 labelled and 100 unlabelled digits."""
    path = tmp_path / "c.ever" if request.param == "file" else None
    with everhash.create(path, dim=64, hasher=OnlineHasher(16, features=100)) as col:
        col.ingest(digits.X[:300], digits.y[:300], payloads=range(300))
        col.add(digits.X[300:400])
        yield col


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


class BlockedCommit:
    """Makes every COMMIT wait, and then fail if the test says so."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.error: BaseException | None = None

    def wait(self) -> None:
        self.reached.set()
        assert self.go_on.wait(SOON)
        if self.error is not None:
            raise self.error


@contextmanager
def blocked_commit(monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockedCommit]:
    commit, run = BlockedCommit(), Store.run

    def run_slowly(store: Store, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if statement == "COMMIT":
            commit.wait()
        return run(store, statement, values)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "run", run_slowly)
        try:
            yield commit
        finally:
            commit.go_on.set()


def begin(pool: ThreadPoolExecutor, commit: BlockedCommit, write: Callable[[], Any]) -> Future[Any]:
    """Let a thread write, until its commit waits."""
    writing = pool.submit(write)
    assert commit.reached.wait(SOON)
    return writing


def test_reading_calls_do_not_wait_for_a_commit(
    filled: Collection, digits: Stream, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: filled.search(digits.X[:5], 3),
        lambda: filled.search_radius(digits.X[:5], 3),
        lambda: filled.get([7]),
        lambda: filled.has([7, 401]),
        lambda: filled.page(0, 5),
        lambda: list(filled.entries(390)),
        filled.labels,
        filled.stats,
        lambda: filled.hasher.labels_,
        lambda: filled.search_like([301], 3),
        lambda: filled.search(digits.X[:2], 3, by="likeness"),
        lambda: len(filled),
        lambda: 7 in filled,
    ]
    with blocked_commit(monkeypatch) as commit:
        writing = begin(pool, commit, lambda: filled.add(digits.X[:10], y=["new"] * 10))
        for call in calls:
            pool.submit(call).result(SOON)
        assert pool.submit(len, filled).result(SOON) == 410, "a write may be seen before it is safe"
        assert not writing.done(), "the call returns only when the disk has it"
    assert len(writing.result(SOON)) == 10
    assert filled.stats()["commit"] == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda col, X: col.attachments([7]),
        lambda col, X: col.search(X[:2], 3, payloads=True),
        lambda col, X: col.features([301]),
        lambda col, X: col.catch_up(),
        lambda col, X: col.remove([7]),
        lambda col, X: col.held().__enter__(),
    ],
)
def test_calls_that_use_the_file_wait_for_a_commit(
    filled: Collection,
    digits: Stream,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[Collection, Any], Any],
) -> None:
    with blocked_commit(monkeypatch) as commit:
        begin(pool, commit, lambda: filled.add(digits.X[:10]))
        waiting = pool.submit(call, filled, digits.X)
        with pytest.raises(TimeoutError):
            waiting.result(0.05)
        commit.go_on.set()
        waiting.result(SOON)


@pytest.mark.parametrize("write", ["ingest", "remove", "refresh"])
def test_a_commit_that_fails_takes_memory_back_while_others_search(
    filled: Collection,
    digits: Stream,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    write: str,
) -> None:
    filled.learn(digits.X[400:900], digits.y[400:900])
    calls: dict[str, Callable[[], Any]] = {
        "ingest": lambda: filled.ingest(digits.X[:10], ["new"] * 10),
        "remove": lambda: filled.remove([7, 301]),
        "refresh": filled.refresh,
    }
    before, stop = filled.stats(), threading.Event()
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def search_on() -> int:
        searches = 0
        while not stop.is_set():
            found = filled.search(digits.X[:5], 3)
            assert found.counts.tolist() == [3] * 5
            assert len(filled) in (before["entries"] - 2, before["entries"], 410)
            searches += 1
        return searches

    with blocked_commit(monkeypatch) as commit:
        searching = [pool.submit(search_on) for _ in range(2)]
        commit.error = full
        writing = begin(pool, commit, calls[write])
        commit.go_on.set()
        with pytest.raises(DiskFullError, match="the disk is full"):
            writing.result(SOON)
    assert len(filled) == before["entries"]
    stop.set()
    assert all(thread.result(SOON) > 0 for thread in searching)
    assert filled.stats() == before
    assert "new" not in filled.hasher.labels_
    if before["path"] is not None:
        with everhash.open(before["path"], readonly=True) as other:
            assert_same(filled, other)
    calls[write]()
    assert filled.stats()["commit"] == before["commit"] + 1


def test_an_interrupt_right_after_a_commit_leaves_memory_as_the_file(
    filled: Collection, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises KeyboardInterrupt as soon as SQLite returns, and that is mostly from COMMIT."""
    run = Store.run

    def interrupt(store: Store, statement: str, values: tuple[Any, ...] = ()) -> Any:
        result = run(store, statement, values)
        if statement == "COMMIT":
            monkeypatch.undo()
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Store, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        filled.add(digits.X[:10])
    assert len(filled) == 410, "the file has it"
    filled.add(digits.X[:10])
    path = filled.stats()["path"]
    if path is not None:
        assert everhash.verify(path).problems == ()
        with everhash.open(path, readonly=True) as other:
            assert_same(filled, other)


def test_ids_may_come_from_calls_on_the_same_collection(
    filled: Collection, digits: Stream, pool: ThreadPoolExecutor
) -> None:
    """A generator that reads the file is run before the search takes a lock: nobody hangs."""

    def chosen() -> Iterator[Any]:
        for entry in filled.entries(0, 40):
            if filled.attachments([entry.id])[0].payload != 7:
                yield entry.id

    def write() -> None:
        for start in range(0, 60, 2):
            filled.add(digits.X[start : start + 2])

    def search() -> None:
        for _ in range(10):
            assert filled.search(digits.X[:1], 3, ids=chosen(), labels=iter(range(10))).counts[0]
            assert len(filled.get(chosen())) == 39
            assert filled.has(chosen()).all()
            assert filled.search_like(chosen(), 2, payloads=True).counts[0] == 2

    for call in [pool.submit(write), pool.submit(search), pool.submit(search)]:
        call.result(6 * SOON)


def test_a_thread_that_holds_a_collection_sees_one_state_while_others_search(
    filled: Collection, digits: Stream, pool: ThreadPoolExecutor
) -> None:
    with filled.held():
        removing = pool.submit(filled.remove, [7])
        with pytest.raises(TimeoutError):
            removing.result(0.05)
        assert filled.get([7])[0].id == 7
        assert filled.attachments([7])[0].payload == 7
        assert pool.submit(filled.search, digits.X[:1], 3).result(SOON).counts[0] == 3
    assert removing.result(SOON) == 1
    assert len(filled) == 399


def test_searches_go_on_between_the_steps_of_a_refresh(
    filled: Collection, digits: Stream, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.learn(digits.X[400:900], digits.y[400:900])
    with blocked_commit(monkeypatch) as commit:
        refreshing = begin(pool, commit, filled.refresh)
        assert pool.submit(filled.search, digits.X[:1], 3).result(SOON).counts[0] == 3
    assert refreshing.result(SOON).entries == 100


def test_a_snapshot_waits_for_nobody_and_nobody_for_it(
    tmp_path: Path, digits: Stream, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file has what was committed when it began; calls go on while it is made."""
    made, finish, link = threading.Event(), threading.Event(), os.link

    def link_late(source: Path, target: Path) -> None:
        made.set()
        assert finish.wait(SOON)
        link(source, target)

    with everhash.create(tmp_path / "c.ever", dim=64) as col:
        col.ingest(digits.X[:100], digits.y[:100])
        with blocked_commit(monkeypatch) as commit:
            writing = begin(pool, commit, lambda: col.add(digits.X[100:110]))
            col.snapshot(tmp_path / "before.ever")
        writing.result(SOON)
        monkeypatch.setattr(os, "link", link_late)
        copying = pool.submit(col.snapshot, tmp_path / "after.ever")
        assert made.wait(SOON)
        col.add(digits.X[110:120])
        assert col.search(digits.X[:1], 3).counts[0] == 3
        finish.set()
        copying.result(SOON)
        assert len(col) == 120
    for name, entries in (("before.ever", 100), ("after.ever", 110)):
        assert everhash.verify(tmp_path / name).problems == ()
        with everhash.open(tmp_path / name) as copy:
            assert len(copy) == entries


def test_snapshots_taken_while_others_write_are_whole(
    filled: Collection, digits: Stream, tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    stop = threading.Event()

    def write() -> int:
        rounds = 0
        while not stop.is_set():
            ids = filled.ingest(digits.X[:20], digits.y[:20], payloads=range(20))
            filled.remove(ids[:10])
            rounds += 1
        return rounds

    writing = pool.submit(write)
    try:
        for number in range(5):
            copy = tmp_path / f"{number}.ever"
            filled.snapshot(copy)
            assert everhash.verify(copy).problems == ()
    finally:
        stop.set()
    assert writing.result(SOON) > 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != "c") == [
        f"{number}.ever" for number in range(5)
    ]


def test_a_snapshot_of_a_file_that_was_replaced_is_refused(tmp_path: Path, digits: Stream) -> None:
    path = tmp_path / "c.ever"
    with everhash.create(path, dim=64) as col:
        col.ingest(digits.X[:50], digits.y[:50])
        col.snapshot(tmp_path / "other.ever")
        path.unlink()
        (tmp_path / "other.ever").rename(path)
        with pytest.raises(StoreError, match="is gone, or another file"):
            col.snapshot(tmp_path / "copy.ever")
        assert not (tmp_path / "copy.ever").exists()


def test_a_table_added_while_a_reader_opens_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write brings a file of version 1 to the newest, between two looks at it."""
    path, number, attached = tmp_path / "c.ever", schema._number, list[int]()
    shutil.copy(Path(__file__).parents[2] / "compat" / "v1-home.ever", path)
    with everhash.open(path) as collection:
        entries = len(collection)

        def attach_after(connection: Any, pragma: str) -> int:
            version = number(connection, pragma)
            if pragma == "user_version" and not attached:
                attached.append(version)
                collection.attach(["e1"], payloads=["new"])
            return version

        monkeypatch.setattr(schema, "_number", attach_after)
        with everhash.open(path, readonly=True) as reader:
            assert len(reader) == entries
            assert reader.attachments(["e1"])[0].payload == "new"
    assert attached == [1]
