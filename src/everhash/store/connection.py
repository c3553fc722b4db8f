"""Connections to a collection's file, and the checks before one is opened."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from everhash.errors import CollectionFileError, DataMissingError, StoreError

LOG_BYTES = 16_000_000
"""Length of the write-ahead log from which on it is written back to the file."""
BUSY_SECONDS = 10.0
"""How long to wait for another connection that locks the file for a moment."""
LENGTH_SLACK = 1 << 20
MAX_LENGTH = 2**31 - 1
"""Bytes of a text or blob that SQLite allows at most."""


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
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # only the writer writes the log back
    except BaseException:
        connection.close()
        raise
    return connection


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


def check_names(path: Path, *, mend: bool) -> None:
    """Raise if a file has several names: SQLite keeps a log beside each, and applies only one.

    A process that dies as it creates a file can leave the name that this had before; with `mend`
    that one is removed.
    """
    names, partial = path.stat().st_nlink, partial_of(path)
    if names > 1 and partial.exists() and os.path.samefile(partial, path):
        names -= 1
        if mend:
            partial.unlink(missing_ok=True)
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and what is written under one is not seen "
            "under the other",
            hint="copy it to a file of its own, or use a symbolic link",
        )


def partial_of(path: Path) -> Path:
    """Return the path that a file is written at before it gets its name."""
    return path.with_name(f".{path.name}.partial")


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


class LogHead(NamedTuple):
    """What the head of a file says of the file and its log."""

    file: str
    """The file's random name."""
    commit: int
    based: int
    """A commit that the file itself had when the log was begun; 0 if it does not say."""


def check_log(path: Path) -> None:
    """Raise if the log beside a file does not go with it: SQLite would apply it all the same.

    It happens when a file is copied over one whose process had died, or one of the two is put back
    from a backup without the other. A writer may be at work meanwhile: the file itself is read
    before the log and after it, so that no commit in between is taken for a contradiction.
    """
    log = path.with_name(path.name + "-wal")
    if not log.exists() or not log.stat().st_size:
        return
    before, seen, after = (_head(path, option) for option in ("&immutable=1", "", "&immutable=1"))
    if seen is None:
        return  # opening it will say what is wrong
    if before is not None and before.file != seen.file:
        raise CollectionFileError(
            f"{log} belongs to another collection", hint="move it away; it is not applied"
        )
    if before is not None and before.commit > seen.commit:
        raise CollectionFileError(
            f"{log} is older than {path}: it ends at commit {seen.commit}, "
            f"the file has commit {before.commit}",
            hint="move the log away; it is not applied",
        )
    if after is not None and after.file == seen.file and after.commit < seen.based:
        raise CollectionFileError(
            f"{path} is older than {log}: it has commit {after.commit}, "
            f"the log begins after commit {seen.based}",
            hint="put back the file that goes with the log, or move the log away",
        )


def _head(path: Path, option: str) -> LogHead | None:
    """Return what the file's head says; with "&immutable=1" the log is not applied."""
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro{option}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            limit_lengths(connection, path)
            text, total = connection.execute("SELECT about, checksum FROM head").fetchone()
        if zlib.crc32(text.encode()) != total:
            return None
        about = json.loads(text)
        return LogHead(str(about["file"]), int(about["commit"]), int(about.get("based", 0)))
    except (sqlite3.Error, ArithmeticError, ValueError, TypeError, LookupError):
        return None
    except (AttributeError, RecursionError):
        return None


def limit_lengths(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse texts and blobs that claim to be longer than the file they are in."""
    log = path.with_name(path.name + "-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(size + LENGTH_SLACK, MAX_LENGTH))


def lift_limits(connection: sqlite3.Connection) -> None:
    """Allow all lengths that SQLite allows, after the file was found to be sound."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH)
