"""Snapshots: of the right file, few at a time, and not for ever."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash.collection.collection import Collection
from everhash.errors import DiskFullError
from everhash.serve import limits, snapshots
from tests.unit.serve.serving import Served, error_of, filled, serving, until


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which copies are made: the test's own, since others make copies too."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """A service of a file."""
    path = tmp_path / "shop.ever"
    filled(path).close()
    with serving(lambda: everhash.open(path)) as served:
        yield served


def replace(path: Path) -> None:
    """Put another collection where one is being served."""
    other = path.with_name("other.ever")
    everhash.create(other, dim=3).close()
    os.replace(other, path)


@pytest.mark.parametrize("change", [replace, Path.unlink])
def test_only_the_served_file_is_sent(service: Served, change: Any) -> None:
    path = service.service.path
    assert path is not None
    assert service.get("/snapshot").status_code == 200
    change(path)
    refused = service.get("/snapshot")
    assert (refused.status_code, error_of(refused)["code"]) == (503, "StoreError")
    assert refused.headers["retry-after"] == "1"


def test_a_file_replaced_while_it_is_copied_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, service: Served
) -> None:
    copy = snapshots.copy_of

    def late(collection: Collection) -> Any:
        assert service.service.path is not None
        replace(service.service.path)
        return copy(collection)

    monkeypatch.setattr(snapshots, "copy_of", late)
    assert service.get("/snapshot").status_code == 503


def test_a_full_disk_does_not_tell_where_copies_are_made(
    monkeypatch: pytest.MonkeyPatch, service: Served, copies: Path
) -> None:
    def fail(_: Collection, path: Path) -> None:
        assert path.is_relative_to(copies)
        raise DiskFullError(f"{path}: the disk is full", hint="make room")

    monkeypatch.setattr(Collection, "snapshot", fail)
    refused = service.get("/snapshot")
    assert (refused.status_code, error_of(refused)["message"]) == (
        507,
        "snapshot.ever: the disk is full",
    )
    assert str(copies) not in refused.text
    assert not list(copies.iterdir())


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make snapshots too large to be sent without anybody reading them."""
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    monkeypatch.setattr(snapshots, "copy_of", lambda _: large.open("rb"))


@pytest.mark.usefixtures("endless")
def test_few_are_sent_at_once(monkeypatch: pytest.MonkeyPatch, service: Served) -> None:
    monkeypatch.setattr(limits, "SNAPSHOTS", 2)
    with ExitStack() as stack:
        for _ in range(2):
            sent = stack.enter_context(service.http.stream("GET", "/snapshot"))
            assert sent.status_code == 200
        refused = service.get("/snapshot")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "2 snapshots" in error_of(refused)["message"]
        assert service.get("/stats").status_code == 200
    monkeypatch.undo()
    until(lambda: service.get("/snapshot").status_code == 200)


@pytest.mark.usefixtures("endless")
def test_one_that_is_taken_too_slowly_is_given_up(
    monkeypatch: pytest.MonkeyPatch, service: Served, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(snapshots, "FIRST_SECONDS", 0.5)
    monkeypatch.setattr(limits, "SNAPSHOT_SPEED", 1 << 40)
    with service.connect() as connection:
        connection.sendall(b"GET /snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
        began = time.monotonic()
        while connection.recv(1 << 20):
            time.sleep(0.02)
        assert time.monotonic() - began < 60
    assert "taken too slowly" in caplog.text
    until(lambda: service.get("/stats").status_code == 200)


def test_no_copy_stays_behind(
    monkeypatch: pytest.MonkeyPatch, service: Served, tmp_path: Path, copies: Path
) -> None:
    made, snapshot = [], Collection.snapshot

    def note(collection: Collection, path: Path) -> None:
        snapshot(collection, path)
        made.append(path)

    monkeypatch.setattr(Collection, "snapshot", note)
    copy = tmp_path / "copy.ever"
    copy.write_bytes(service.get("/snapshot").content)
    with everhash.open(copy) as collection:
        assert len(collection) == 60
    assert [path.is_relative_to(copies) for path in made] == [True]
    assert not list(copies.iterdir())
