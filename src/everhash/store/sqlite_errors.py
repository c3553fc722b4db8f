"""Errors of SQLite and of the system, raised as `everhash.errors` that say what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everhash.errors import (
    CollectionFileError,
    DiskFullError,
    EverhashError,
    LockedError,
    StoreError,
)
from everhash.store.parts import DAMAGED

FOREIGN = "{path} is no everhash collection"
FULL, MAKE_ROOM = "{path}: the disk is full", "free some space; nothing was changed"
LOCKED = "{path} is held by another process"
RIGHTS = "check the disk and the rights to the file"
REASONS: dict[int, tuple[type[EverhashError], str, str]] = {
    sqlite3.SQLITE_BUSY: (LockedError, LOCKED, "try again"),
    sqlite3.SQLITE_LOCKED: (LockedError, LOCKED, "try again"),
    sqlite3.SQLITE_NOTADB: (CollectionFileError, FOREIGN, "`everhash create` makes one"),
    sqlite3.SQLITE_FULL: (DiskFullError, FULL, MAKE_ROOM),
    sqlite3.SQLITE_READONLY: (
        StoreError,
        "{path} cannot be written",
        "make it writable, or open it with readonly=True",
    ),
    sqlite3.SQLITE_IOERR: (StoreError, "{path}: {error}", RIGHTS),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "{path}: {error}", RIGHTS),
    sqlite3.SQLITE_PERM: (StoreError, "{path}: {error}", RIGHTS),
}
"""SQLite's primary error codes as our errors: class, message, hint. Anything else is damage."""


@contextmanager
def typed_errors(path: Path | str) -> Iterator[None]:
    """Raise `everhash.errors` in place of SQLite's errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _typed(error, path) from None
    except MemoryError:
        raise _no_memory(path) from None
    except (OverflowError, UnicodeError) as error:
        raise CollectionFileError(f"{path}: {error}", hint=DAMAGED) from None


def _typed(error: sqlite3.Error, path: Path | str) -> EverhashError:
    # the low byte of SQLite's extended codes is the primary code
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_NOMEM:
        return _no_memory(path)
    damaged = (CollectionFileError, "{path}: {error:.100}", DAMAGED)
    kind, message, hint = REASONS.get(code, damaged)
    return kind(message.format(path=path, error=str(error)), hint=hint)


def _no_memory(path: Path | str) -> StoreError:
    hint = "free some, or use smaller batches"
    return StoreError(f"{path}: out of memory", hint=hint)


def unwritable(path: Path, error: OSError) -> StoreError:
    """Return the error that says why the system would not write a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(FULL.format(path=path), hint=MAKE_ROOM)
    return StoreError(
        f"{path} cannot be written: {error.strerror}", hint="choose a folder you may write to"
    )
