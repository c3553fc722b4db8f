"""Connections to the file, and SQLite's errors in our words."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from everhash.errors import (
    CollectionFileError,
    DataMissingError,
    EverhashError,
    LockedError,
    StoreError,
)
from everhash.store.attached import TABLE
from everhash.store.parts import DAMAGED

APPLICATION = 0x45564552
""""EVER", where SQLite files say whose they are."""
VERSION = 2
"""The newest of the file's format."""
SCHEMA = (
    "CREATE TABLE head (id INTEGER PRIMARY KEY, about TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE part (kind TEXT NOT NULL, start INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "written INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (kind, start))",
)
SCHEMAS = {1: SCHEMA, VERSION: (*SCHEMA, TABLE)}
"""Tables by version: a file is of the first one until something is attached to an entry."""
PAGE = 32_768
"""Bytes a page: large blobs are written twice as fast as with SQLite's 4,096."""
LOG_BYTES = 16_000_000
"""Length of the write-ahead log from which on it is written back."""
SLACK = 1 << 20
FOREIGN = "{path} is no everhash collection"
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
        raise _no_memory(path) from None
    except (OverflowError, UnicodeError) as error:
        raise CollectionFileError(f"{path}: {error}", hint=DAMAGED) from None


def _no_memory(path: Path | str) -> StoreError:
    hint = "free some, or use smaller batches; nothing was changed"
    return StoreError(f"{path}: out of memory", hint=hint)


RIGHTS = "check the disk and the rights to the file"
REASONS: dict[int, tuple[type[EverhashError], str, str]] = {
    sqlite3.SQLITE_BUSY: (LockedError, "{path} is held by another process", "try again"),
    sqlite3.SQLITE_LOCKED: (LockedError, "{path} is held by another process", "try again"),
    sqlite3.SQLITE_NOTADB: (CollectionFileError, FOREIGN, "`everhash create` makes one"),
    sqlite3.SQLITE_FULL: (
        StoreError,
        "{path}: the disk is full",
        "free some space; nothing was changed",
    ),
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


def _typed(error: sqlite3.Error, path: Path | str) -> EverhashError:
    # the low byte of SQLite's extended codes is the primary code
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_NOMEM:
        return _no_memory(path)
    damaged = (CollectionFileError, "{path}: {error:.100}", DAMAGED)
    kind, message, hint = REASONS.get(code, damaged)
    return kind(message.format(path=path, error=str(error)), hint=hint)


def connect(path: Path | None, mode: str) -> sqlite3.Connection:
    """Return a connection that trusts nothing in the file.

    Args:
        path: None for a store in memory.
        mode: "ro", "rw" or "rwc", as in SQLite's URIs.
    """
    address = ":memory:" if path is None else f"file:{quote(str(path.resolve()))}?mode={mode}"
    if path is not None and mode == "ro" and is_still(path):
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


def is_still(path: Path) -> bool:
    """Whether nobody writes to the file and we could not: SQLite must not leave files beside it.

    They would belong to us, and keep the next writer out.
    """
    log = path.with_name(path.name + "-wal")
    return not log.exists() and not may_write(path)


def may_write(path: Path) -> bool:
    """Whether we have the right to write to a file, and to make others beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def find(path: Path) -> Path:
    """Return the path of a file that is there."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder", hint="name the collection's file")
    if not path.is_file():
        raise DataMissingError(f"no collection at {path}", hint="`everhash create` makes one")
    return path


def use_log(connection: sqlite3.Connection, path: Path | str) -> None:
    """Write changes to a log first, so that readers and the writer do not wait for each other."""
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise StoreError(f"{path}: no log can be kept", hint="check the disk and the rights to it")


def beside(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside its own."""
    return [path.with_name(path.name + ending) for ending in ("-journal", "-wal", "-shm")]


def check_free(path: Path) -> None:
    """Refuse to make a file where there is one, or where a log would be taken for its own."""
    for taken in (path, *beside(path)):
        if taken.exists():
            what = "is there already" if taken == path else "is left over from another file"
            hint = (
                "choose another name" if taken == path else "move it away, or choose another name"
            )
            raise StoreError(f"{taken} {what}", hint=hint)


def check_log(path: Path) -> None:
    """Refuse a log that another collection has left beside this one: SQLite would apply it.

    It happens when a file is copied over one whose process had died.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        own, seen = _identity(path, "&immutable=1"), _identity(path, "")
        if None not in (own, seen) and own != seen:
            raise CollectionFileError(
                f"{log} belongs to another collection", hint="move it away; it is not applied"
            )


def _identity(path: Path, how: str) -> str | None:
    """Return which collection a file says it is, without its log if it is immutable."""
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro{how}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            limit_lengths(connection, path)
            text, total = connection.execute("SELECT about, checksum FROM head").fetchone()
        return str(json.loads(text)["file"]) if zlib.crc32(text.encode()) == total else None
    except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # opening it will say what is wrong


def create_tables(connection: sqlite3.Connection, page_size: int = PAGE) -> None:
    """Lay out an empty file."""
    connection.execute(f"PRAGMA page_size = {page_size:d}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION:d}")
    connection.execute("PRAGMA user_version = 1")
    for statement in SCHEMA:
        connection.execute(statement)


def add_attached(connection: sqlite3.Connection) -> None:
    """Make a file one to which something can be attached, in the transaction under way."""
    connection.execute(TABLE)
    connection.execute(f"PRAGMA user_version = {VERSION:d}")


def check_tables(connection: sqlite3.Connection, path: Path | str) -> int:
    """Refuse a file that is not laid out as ours, before anything of it is used.

    Returns the version of its format.
    """
    if _number(connection, "application_id") != APPLICATION:
        raise CollectionFileError(FOREIGN.format(path=path), hint="`everhash create` makes one")
    version = _number(connection, "user_version")
    if version not in SCHEMAS:
        raise CollectionFileError(
            f"{path} has format version {version}, this everhash reads 1 to {VERSION}",
            hint="it may come from a newer everhash; upgrade to read it",
        )
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    if Counter(row[0] for row in found) != Counter(SCHEMAS[version]):
        raise CollectionFileError(f"{path} has other tables than a collection", hint=DAMAGED)
    return version


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
