"""Connections to a collection's file, and the checks before one is opened."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from everhash.errors import CollectionFileError, DataMissingError, StoreError

LOG_BYTES = 16_000_000
"""Length of the write-ahead log from which on it is written back to the file."""
BUSY_SECONDS = 10.0
"""How long to wait for another connection that locks the file for a moment."""
LENGTH_SLACK = 1 << 20
MAX_LENGTH = 2**31 - 1
"""Bytes of a text or blob that SQLite allows at most."""
_opening = threading.Lock()
_open_files: Counter[Path | None] = Counter()
"""Connections of this process to each file. Opening one of these files without its log, as
`check_log` does, would drop the locks of those connections."""


def connect(path: Path | None, mode: str) -> sqlite3.Connection:
    """Return a connection that trusts nothing in the file.

    Args:
        path: None for a store in memory.
        mode: "ro", "rw" or "rwc", as in SQLite's URIs.
    """
    address = ":memory:" if path is None else f"file:{quote(str(path.resolve()))}?mode={mode}"
    if path is not None and mode == "ro" and _must_stay_alone(path):
        address += "&immutable=1"
    connection = sqlite3.connect(
        address,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        cached_statements=32,
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


class FileConnection:
    """A connection to a collection's file, counted among those of this process.

    Args:
        path: None for a store in memory.
        readonly: nothing will be written. The connection may write all the same where the user has
            the right to: it then removes SQLite's log as it closes.
    """

    def __init__(self, path: Path | None, *, readonly: bool) -> None:
        self._resolved = None if path is None else path.resolve()
        writes = not readonly or (path is not None and may_write(path))
        with _opening:
            if path is not None and self._resolved not in _open_files:
                check_log(path)
            self.sqlite = connect(path, "rw" if writes else "ro")
            _open_files[self._resolved] += 1

    def close(self) -> None:
        """Close the connection."""
        with _opening:
            self.sqlite.close()
            _open_files.subtract([self._resolved])
            if _open_files[self._resolved] <= 0:
                del _open_files[self._resolved]


def _must_stay_alone(path: Path) -> bool:
    """Whether SQLite must not leave files beside this one: it has no log, and we may not write.

    Such files would belong to our user, and keep the next writer out.
    """
    log = path.with_name(path.name + "-wal")
    return not log.exists() and not may_write(path)


def may_write(path: Path) -> bool:
    """Whether we have the right to write to a file and to create others beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def find(path: Path) -> Path:
    """Return the path of a collection's file; raise if there is none."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder", hint="name the collection's file")
    if not path.is_file():
        raise DataMissingError(f"no collection at {path}", hint="{call create} makes one")
    return path


def use_log(connection: sqlite3.Connection, path: Path | str) -> None:
    """Write changes to a log first, so that readers and the writer do not wait for each other."""
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise StoreError(f"{path}: no log can be kept", hint="check the disk and the rights to it")


def files_beside(path: Path) -> list[Path]:
    """Return the paths of the files that SQLite keeps beside its own."""
    return [path.with_name(path.name + ending) for ending in ("-journal", "-wal", "-shm")]


def check_free(path: Path) -> None:
    """Raise if there is a file at `path`, or a log that SQLite would apply to a new one there."""
    if path.exists():
        raise StoreError(f"{path} is there already", hint="choose another name")
    for left in files_beside(path):
        if left.exists():
            raise StoreError(
                f"{left} is left over from another file",
                hint="move it away, or choose another name",
            )


def check_log(path: Path) -> None:
    """Raise if the log beside a file belongs to another collection: SQLite would apply it.

    It happens when a file is copied over one whose process had died.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        own, seen = _identity(path, "&immutable=1"), _identity(path, "")
        if None not in (own, seen) and own != seen:
            raise CollectionFileError(
                f"{log} belongs to another collection", hint="move it away; it is not applied"
            )


def _identity(path: Path, option: str) -> str | None:
    """Return the random name in the file's head; with "&immutable=1" the log is not applied."""
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro{option}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            limit_lengths(connection, path)
            text, total = connection.execute("SELECT about, checksum FROM head").fetchone()
        return str(json.loads(text)["file"]) if zlib.crc32(text.encode()) == total else None
    except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # opening it will say what is wrong


def limit_lengths(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse texts and blobs that claim to be longer than the file they are in."""
    log = path.with_name(path.name + "-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(size + LENGTH_SLACK, MAX_LENGTH))


def lift_limits(connection: sqlite3.Connection) -> None:
    """Allow all lengths that SQLite allows, after the file was found to be sound."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH)
