"""Files get their name when the disk has them, and keep it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from everhash import disk


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    file = tmp_path / "partial"
    file.write_bytes(b"new")
    return file


def failing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Have syncs of folders fail."""
    fsync = os.fsync

    def fails(file: int) -> None:
        if Path(f"/proc/self/fd/{file}").is_dir():
            raise OSError(code, os.strerror(code))
        fsync(file)

    monkeypatch.setattr(os, "fsync", fails)


def test_a_file_that_appears_never_replaces_another(partial: Path, tmp_path: Path) -> None:
    path = tmp_path / "path"
    disk.appear(partial, path)
    assert path.read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        disk.appear(partial, path)


def test_a_name_that_may_not_last_is_taken_back(
    partial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        disk.appear(partial, tmp_path / "path")
    assert not (tmp_path / "path").exists()


def test_a_file_system_that_cannot_sync_folders_is_no_error(
    partial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, errno.EINVAL)
    path = tmp_path / "path"
    path.write_bytes(b"old")
    disk.take_place(partial, path)
    assert path.read_bytes() == b"new"
    assert not partial.exists()
