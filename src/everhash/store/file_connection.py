"""Connections to files, those of this process by device and inode, and what a fork does to them.

SQLite's locks belong to a process and a file, not to a connection: whoever closes any descriptor
of the file drops them all, and a child that is forked believes in locks that it does not have. So
descriptors of a file are closed only when no connection to it is left, and a child drops the
connections of its parent before it opens any of its own.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

from everhash.errors import ClosedError
from everhash.store.connection import check_log, connect, may_write

Inode = tuple[int, int]
"""Device and number of a file: the same for all of its names."""
SPAWN = 'start processes by "spawn", or open collections only after the fork'
SQLITE_FAILS = (sqlite3.Error, MemoryError, UnicodeError)
"""What Python raises where SQLite fails; the last if its message quotes a damaged file."""
_guard = threading.RLock()
_open: WeakSet[FileConnection] = WeakSet()
_waiting: dict[Inode, list[int]] = {}
"""Descriptors to close once no connection to their file is left."""
_unusable: set[Inode] = set()
"""Files that a thread of the parent was using when this process was forked."""


def inode_of(path: Path) -> Inode:
    """Return which file a name leads to."""
    found = path.stat()
    return found.st_dev, found.st_ino


class FileConnection:
    """A connection to a collection's file, counted among those of this process.

    Args:
        path: None for a store in memory.
        readonly: SQLite then writes neither to the file nor to its log, also not as it closes.
    """

    def __init__(self, path: Path | None, *, readonly: bool) -> None:
        self._path, self._readonly = path, readonly
        self.inode = None if path is None else inode_of(path)
        self._users = 0
        with _guard:
            if self.inode in _unusable:
                raise ClosedError(
                    f"{path} was in use in process {os.getppid()} when this one was forked",
                    hint=SPAWN,
                )
            if path is not None and not is_open(self.inode):
                check_log(path)
            self.sqlite = connect(path, "ro" if readonly else "rw")
            _open.add(self)

    @contextmanager
    def used(self) -> Iterator[sqlite3.Connection]:
        """Mark the connection as in use: a child that is forked meanwhile must not touch it."""
        self._users += 1
        try:
            yield self.sqlite
        finally:
            self._users -= 1

    @property
    def in_use(self) -> bool:
        """Whether a thread may be inside SQLite."""
        return self._users > 0

    def close(self, *, keep_log: bool = False) -> None:
        """Close the connection; with `keep_log`, without writing the log back to the file.

        A reader leaves the log as it is. If it is empty, SQLite's files are removed, unless
        somebody else has the collection open.
        """
        with _guard:
            self._close(keep_log=keep_log)
            _open.discard(self)
            if self.inode is not None and not is_open(self.inode):
                for file in _waiting.pop(self.inode, []):
                    os.close(file)

    def _close(self, *, keep_log: bool) -> None:
        path = self._path
        if path is None:
            self.sqlite.close()
        elif self._readonly and not keep_log and _may_tidy(path):
            with _holding(path, "rw"):  # alone, it removes the empty log as it closes
                self.sqlite.close()
        elif keep_log and not self._readonly:
            with _holding(path, "ro"):  # not alone, a connection leaves the log as it closes
                self.sqlite.close()
        else:
            self.sqlite.close()

    def drop_after_fork(self, *, quiet: bool) -> None:
        """Close what the parent has open, in its child; if a thread may be using it, leak it.

        The parent's locks keep SQLite from writing the log back. Where a thread was inside SQLite,
        the child has its half-made transaction and mutexes that nobody will release: then the
        connection must not be closed, not even as the interpreter ends.
        """
        if self.inode is None:
            return
        if quiet:
            with suppress(sqlite3.Error):
                self.sqlite.close()
                return
        _unusable.add(self.inode)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.sqlite))


def is_open(inode: Inode | None) -> bool:
    """Whether this process has a connection to a file."""
    return any(connection.inode == inode for connection in _open)


def close_descriptor(file: int, inode: Inode) -> None:
    """Close a descriptor of a collection's file, once that drops no lock of SQLite."""
    with _guard:
        if is_open(inode):
            _waiting.setdefault(inode, []).append(file)
        else:
            os.close(file)


@contextmanager
def _holding(path: Path, mode: str) -> Iterator[None]:
    """Have one more connection to a file for as long as the block lasts, if it can be opened."""
    other: sqlite3.Connection | None = None
    with suppress(*SQLITE_FAILS):
        other = connect(path, mode)
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM head").fetchone()
    try:
        yield
    finally:
        if other is not None:
            other.close()


def _may_tidy(path: Path) -> bool:
    """Whether there is an empty log beside a file that we may remove."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size == 0 and may_write(path)
    except OSError:
        return False


def _forget_parent() -> None:
    """Drop the connections of the parent, in a child right after the fork."""
    global _guard  # noqa: PLW0603 - nobody in the child will release that of the parent
    quiet = _guard.acquire(blocking=False) and not any(each.in_use for each in _open)
    _guard = threading.RLock()
    inherited = list(_open)
    for file in (file for files in _waiting.values() for file in files):
        os.close(file)
    _open.clear()
    _waiting.clear()
    for connection in inherited:
        connection.drop_after_fork(quiet=quiet)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
