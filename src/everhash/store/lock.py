"""One writer at a time: a lock file beside the collection, held by the writing process.

The lock is `flock`, which Linux, macOS and the BSDs have but Windows does not: there a collection
can be kept in memory, but no file can be created or opened for writing. This was not tried on
Windows.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from everhash.errors import LockedError, StoreError
from everhash.store.sqlite_errors import unwritable


class WriterLock:
    """Held from construction to `release`; the system releases that of a process that dies."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + "-lock")
        self._file = _acquire(self.path, path)

    def release(self) -> None:
        """Release it. The lock file is removed while it is still held, so that none is left."""
        if self._file >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def _acquire(lock: Path, collection: Path) -> int:
    try:
        import fcntl
    except ImportError:
        raise StoreError(
            f"{collection} cannot be written: this system has no flock",
            hint="on Windows use WSL, or keep the collection in memory",
        ) from None
    while True:
        try:
            file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise unwritable(collection, error) from None
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
            with suppress(OSError):  # the number only helps people to find the process
                os.truncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)
            return file
        os.close(file)


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
