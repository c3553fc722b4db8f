"""Connections to the file, and SQLite's errors in our words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from everhash.errors import (
    CollectionFileError,
    DataMissingError,
    EverhashError,
    LockedError,
    StoreError,
)
from everhash.store.parts import DAMAGED

APPLICATION = 0x45564552
""""EVER", where SQLite files say whose they are."""
VERSION = 1
"""Of the file's format."""
SCHEMA = (
    "CREATE TABLE head (id INTEGER PRIMARY KEY, about TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE part (kind TEXT NOT NULL, start INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "written INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (kind, start))",
)
PAGE = 32_768
"""Bytes a page: large blobs are written twice as fast as with SQLite's 4,096."""
LOG_BYTES = 16_000_000
"""Length of the write-ahead log from which on it is written back."""
SLACK = 1 << 20
PATIENCE = 10.0
"""Seconds to wait for another connection that holds the file for a moment."""


@contextmanager
def typed_errors(path: Path | str) -> Iterator[None]:
    """Turn what SQLite raises into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _typed(error, path) from None
    except MemoryError:
        raise StoreError(
            f"{path}: out of memory", hint="free some, or use smaller batches; nothing was changed"
        ) from None
    except (OverflowError, UnicodeError) as error:
        raise CollectionFileError(f"{path}: {error}", hint=DAMAGED) from None


def _typed(error: sqlite3.Error, path: Path | str) -> EverhashError:
    # the low byte of SQLite's extended codes is the primary code
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockedError(f"{path} is held by another process", hint="try again")
    if code == sqlite3.SQLITE_NOTADB:
        return CollectionFileError(
            f"{path} is no everhash collection", hint="`everhash create` makes one"
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path}: the disk is full", hint="free some space; nothing was changed")
    if code == sqlite3.SQLITE_READONLY:
        hint = "make it writable, or open it with readonly=True"
        return StoreError(f"{path} cannot be written", hint=hint)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(f"{path}: {error}", hint="check the disk and the rights to the file")
    return CollectionFileError(f"{path}: {error!s:.100}", hint=DAMAGED)


def connect(path: Path | None, mode: str) -> sqlite3.Connection:
    """Return a connection that trusts nothing in the file.

    Args:
        path: None for a store in memory.
        mode: "ro", "rw" or "rwc", as in SQLite's URIs.
    """
    address = ":memory:" if path is None else f"file:{quote(str(path.resolve()))}?mode={mode}"
    if path is not None and mode == "ro" and _is_still(path):
        address += "&immutable=1"
    connection = sqlite3.connect(
        address,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        cached_statements=32,
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _is_still(path: Path) -> bool:
    """Whether nobody can write to the file: SQLite then needs none of its files beside it."""
    log = path.with_name(path.name + "-wal")
    return not log.exists() and not os.access(path.parent, os.W_OK)


def find(path: Path) -> Path:
    """Return the path of a file that is there."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder", hint="name the collection's file")
    if not path.is_file():
        raise DataMissingError(f"no collection at {path}", hint="`everhash create` makes one")
    return path


def create_tables(connection: sqlite3.Connection, page_size: int = PAGE) -> None:
    """Lay out an empty file."""
    connection.execute(f"PRAGMA page_size = {page_size:d}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION:d}")
    connection.execute(f"PRAGMA user_version = {VERSION:d}")
    for statement in SCHEMA:
        connection.execute(statement)


def check_tables(connection: sqlite3.Connection, path: Path | str) -> None:
    """Refuse a file that is not laid out as ours, before anything of it is used."""
    if _number(connection, "application_id") != APPLICATION:
        raise CollectionFileError(
            f"{path} is no everhash collection", hint="`everhash create` makes one"
        )
    version = _number(connection, "user_version")
    if version != VERSION:
        raise CollectionFileError(
            f"{path} has format version {version}, this everhash reads {VERSION}",
            hint="it may come from a newer everhash; upgrade to read it",
        )
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    if sorted(row[0] for row in found) != sorted(SCHEMA):
        raise CollectionFileError(f"{path} has other tables than a collection", hint=DAMAGED)


def limit_lengths(connection: sqlite3.Connection, path: Path | None) -> None:
    """Refuse texts and blobs that claim to be longer than the file they stand in."""
    if path is not None:
        log = path.with_name(path.name + "-wal")
        size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        most = min(size + SLACK, 2**31 - 1)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)


def lift_limits(connection: sqlite3.Connection) -> None:
    """Allow what SQLite allows, now that the file was found to be sound."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2**31 - 1)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
