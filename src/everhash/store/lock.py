"""One writer at a time: a lock file beside the collection, and a lock on the collection's file.

The lock file is locked by `flock`, which Linux, macOS and the BSDs have but Windows does not: there
a collection can be kept in memory, but no file can be created or opened for writing. This was not
tried on Windows. It stands beside the file that a name leads to, so symbolic links make no
difference. Linux can lock the file itself as well, and then a second writer is refused by whatever
name it comes: through a folder mounted twice, or after somebody has removed the lock file.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from everhash.errors import LockedError, StoreError
from everhash.store.file_connection import close_descriptor, inode_of
from everhash.store.sqlite_errors import unwritable

OUR_BYTE = 0x40000000 + 1024
"""The byte of the file that is locked: after SQLite's own, on a page that it leaves empty."""
MEANWHILE = "close it there first; it can be read meanwhile"
_held: WeakSet[WriterLock] = WeakSet()


class WriterLock:
    """Held from construction to `release`; the system releases that of a process that dies."""

    def __init__(self, path: Path) -> None:
        self._collection, real = path, path.resolve()
        self.path = real.with_name(real.name + "-lock")
        self._file = _acquire(self.path, path)
        self._itself, self._inode = -1, (0, 0)
        _held.add(self)

    def lock_itself(self) -> int:
        """Lock the collection's file too, now that it is there; return an open descriptor of it."""
        real = self._collection.resolve()
        self._inode = inode_of(real)
        self._itself = _lock_byte(real, self._collection)
        return self._itself

    def release(self) -> None:
        """Release it. The lock file is removed while it is still held, so that none is left."""
        if self._itself >= 0:
            with suppress(OSError):
                _set_lock(self._itself, taken=False)
            close_descriptor(self._itself, self._inode)
            self._itself = -1
        if self._file >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def drop_after_fork(self) -> None:
        """Close a child's copies of its parent's descriptors; the parent's lock stays."""
        for file in (self._itself, self._file):
            if file >= 0:
                os.close(file)
        self._itself = self._file = -1


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
                f"{collection} is being written by process {writer}", hint=MEANWHILE
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


def _lock_byte(real: Path, collection: Path) -> int:
    """Lock a byte of a file, where the system can; return the descriptor that holds the lock.

    The lock belongs to the descriptor, so that no other one of this process can release it.
    """
    try:
        file = os.open(real, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise unwritable(collection, error) from None
    try:
        _set_lock(file, taken=True)
    except BlockingIOError:
        close_descriptor(file, inode_of(real))
        raise LockedError(
            f"{collection} is being written under another name", hint=MEANWHILE
        ) from None
    except OSError:  # a file system without locks
        pass
    return file


def _set_lock(file: int, *, taken: bool) -> None:
    import fcntl

    if not hasattr(fcntl, "F_OFD_SETLK"):
        return
    kind = fcntl.F_WRLCK if taken else fcntl.F_UNLCK
    # struct flock: type, whence, start, length, process
    what = struct.pack("hhqqi", kind, os.SEEK_SET, OUR_BYTE, 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, what)


def _drop_after_fork() -> None:
    for lock in _held:
        lock.drop_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_after_fork)
