"""A file or a log that somebody changes, truncates or puts back is found, not written to."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from everhash.errors import CollectionFileError, StoreError
from everhash.store.store import Store
from tests.unit.store.test_store import make
from tests.unit.store.test_writers import write


def killed(store: Store, folder: Path, name: str) -> Path:
    """Return a copy of a file and its log, as a kill would leave them."""
    for ending in ("", "-wal"):
        shutil.copy(f"{store.path}{ending}", folder / f"{name}{ending}")
    return folder / name


def test_an_earlier_log_put_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = make(path)
    for number in range(3):
        write(store, number)
    earlier = killed(store, tmp_path, "earlier")
    for number in range(3, 6):
        write(store, number)
    store.close()
    shutil.copy(f"{earlier}-wal", f"{path}-wal")
    for readonly in (True, False):
        with pytest.raises(CollectionFileError, match=r"ends at commit 3, the file has commit 6"):
            Store.open(path, readonly=readonly)
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink(missing_ok=True)
    again = Store.open(path)
    assert again.commit == 6
    again.close()
    both = Store.open(earlier)
    assert both.commit == 3, "an earlier file with its own log is what was there then"
    both.close()


def test_an_earlier_file_beside_a_newer_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everhash.store.store.LOG_BYTES", 200_000)
    store = make(tmp_path / "s")
    earlier = tmp_path / "earlier"
    shutil.copy(tmp_path / "s", earlier)
    for number in range(40):
        write(store, number)
    assert store.based > 0
    shutil.copy(tmp_path / "s-wal", tmp_path / "earlier-wal")
    newest = killed(store, tmp_path, "newest")
    store.close()
    with pytest.raises(CollectionFileError, match=r"earlier is older than .*earlier-wal"):
        Store.open(earlier)
    sound = Store.open(newest)
    assert sound.commit == 40
    sound.close()


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replaced(path: Path) -> None:
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


def overwritten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:24].ljust(path.stat().st_size, b"x"))


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [truncated, replaced, overwritten, removed])
@pytest.mark.parametrize("ending", ["", "-wal"])
def test_what_is_changed_while_open_is_found_before_a_write_is_acknowledged(
    tmp_path: Path, harm: Callable[[Path], None], ending: str
) -> None:
    path = tmp_path / "s"
    store = make(path)
    for number in range(4):
        write(store, number)
    harm(Path(f"{path}{ending}"))
    left = {file: file.read_bytes() for file in (path, Path(f"{path}-wal")) if file.exists()}
    for _ in range(2):
        with pytest.raises(StoreError, match=r"changed by somebody else|gone, or another file"):
            write(store, 9)
    assert store.commit == 4
    store.close()
    assert not Path(f"{path}-lock").exists()
    if ending and harm in (removed, replaced):  # SQLite has the log open still
        again = Store.open(path)
        assert again.commit == 4
        again.close()
        return
    now = {file: file.read_bytes() for file in left}
    assert now == left, "what somebody has put there stays as it is"


def test_a_file_that_is_truncated_during_a_transaction_gets_no_commit(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    with pytest.raises(StoreError, match="was changed by somebody else"), store.transaction():
        truncated(tmp_path / "s")
    store.close()


def test_a_log_that_somebody_has_sqlite_write_back_is_no_change(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    for number in range(3):
        write(store, number)
        other = sqlite3.connect(tmp_path / "s")
        assert other.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0] == 0
        other.close()
    write(store, 3)
    store.close()
    again = Store.open(tmp_path / "s", readonly=True)
    assert again.commit == 4
    again.close()


def test_a_time_of_change_alone_is_no_change(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    write(store, 1)
    for ending in ("", "-wal"):
        os.utime(f"{tmp_path / 's'}{ending}", (1, 1))
    write(store, 2)
    store.close()
    again = Store.open(tmp_path / "s", readonly=True)
    assert again.commit == 2
    again.close()
