"""One writer at a time: a lock file beside the collection, held by the writing process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from everhash.errors import LockedError, StoreError


class WriterLock:
    """Held from construction to `release`; a process that dies lets go of it."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + "-lock")
        self._file = _acquire(self.path, path)

    def release(self) -> None:
        """Let go. The lock file is removed while it is still held, so that none is left behind."""
        if self._file >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def _acquire(lock: Path, collection: Path) -> int:
    import fcntl

    while True:
        try:
            file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"{collection} cannot be written: {error.strerror}",
                hint="choose a folder you may write to",
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            writer = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            raise LockedError(
                f"{collection} is being written by process {writer}",
                hint="close it there first; it can be read meanwhile",
            ) from None
        # the last writer may have removed the file between our open and our lock
        if _same(file, lock):
            with suppress(OSError):  # who it is helps others to find out, no more
                os.truncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)
            return file
        os.close(file)


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
