"""Creating a collection's file: its first parts, its head; it appears whole or not at all."""

from __future__ import annotations

import json
import secrets
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from everhash.disk import appear
from everhash.errors import CollectionFileError, StoreError
from everhash.store.attached import Tally
from everhash.store.connection import connect, files_beside, partial_of, use_log
from everhash.store.parts import DAMAGED, Listing, Part, PartKey, checksum
from everhash.store.schema import create_tables
from everhash.store.sqlite_errors import typed_errors, unwritable

FORMAT, HEAD_VERSION = "everhash-collection", 1
"""Of head and parts; the version of the file's format says which tables there are."""
COUNTS = ("commit", "based", "parts", "tally")
PUT = "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)"
Head = tuple[str, int]
"""The row of the head: its JSON, and the CRC-32 of that."""
HEAD = "INSERT OR REPLACE INTO head VALUES (1, ?, ?)"


def write_head(
    connection: sqlite3.Connection,
    about: dict[str, Any],
    commit: int,
    parts: Listing,
    attached: Tally | None = None,
    based: int = 0,
) -> Head:
    """Write the file's head: `about`, the commit's number, and counts of parts and blobs.

    `based` is a commit that the file itself has, without its log.
    """
    counts = {"commit": commit, "based": based, "parts": len(parts), "tally": parts.tally}
    if attached is not None:
        counts |= {"attached": attached.rows, "attached_tally": attached.total}
    text = json.dumps({"format": FORMAT, "version": HEAD_VERSION, **counts, **about})
    head = text, zlib.crc32(text.encode())
    connection.execute(HEAD, head)
    return head


def head_row(connection: sqlite3.Connection) -> Head | None:
    """Return the row of the head as it is, to compare it with another."""
    found: list[Head] = connection.execute("SELECT about, checksum FROM head").fetchall()
    return found[0] if len(found) == 1 else None


def read_head(connection: sqlite3.Connection, name: Path | str) -> dict[str, Any]:
    """Return what the file's head says, after its checksum was found right."""
    try:
        (text, total), *more = connection.execute("SELECT about, checksum FROM head").fetchall()
        about = {"based": 0, **json.loads(text)}
        ours = about.pop("format") == FORMAT and about.pop("version") == HEAD_VERSION and not more
        counts = all(type(about[key]) is int for key in COUNTS)
        if ours and counts and zlib.crc32(text.encode()) == total:
            return about
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise CollectionFileError(f"{name}: its head is damaged", hint=DAMAGED)


def pop_tally(about: dict[str, Any], version: int, name: Path | str) -> Tally | None:
    """Remove from a head what it says of attached blobs, and return it; None in version 1."""
    tally = Tally(about.pop("attached", None), about.pop("attached_tally", None))
    if version == 1:
        return None
    if not all(type(count) is int and count >= 0 for count in tally):
        raise CollectionFileError(f"{name}: its head is damaged", hint=DAMAGED)
    return tally


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write a file at; move it to `path` if that succeeds, or delete it.

    An existing file is never replaced. The caller holds the writer's lock of `path`, so what is at
    the temporary path already was left by a process that died.
    """
    partial = partial_of(path)
    try:
        for left in (partial, *files_beside(partial)):
            left.unlink(missing_ok=True)
        with typed_errors(path):
            yield partial
        appear(partial, path)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise unwritable(path, error) from None
    finally:
        for left in (partial, *files_beside(partial)):
            left.unlink(missing_ok=True)


def write_new(
    partial: Path, about: dict[str, Any], parts: dict[PartKey, bytes], page_size: int
) -> None:
    """Write a file with tables, first parts and head."""
    connection = connect(partial, "rwc")
    try:
        connection.execute("PRAGMA synchronous = FULL")
        create_tables(connection, page_size)
        write_first(connection, about, parts)
        use_log(connection, partial)
    finally:
        connection.close()


def write_first(
    connection: sqlite3.Connection, about: dict[str, Any], parts: dict[PartKey, bytes]
) -> None:
    """Write the first parts and the head."""
    about = {**about, "file": secrets.token_hex(8)}
    listing = Listing()
    for key, data in parts.items():
        listing[key] = Part(0, 0, checksum(key, 0, 0, data))
        connection.execute(PUT, (*key, *listing[key], data))
    write_head(connection, about, 0, listing, Tally(0, 0))


def rename_inside(path: Path) -> None:
    """Give a copy a random name of its own, so that no log of the original is applied to it."""
    with closing(connect(path, "rw")) as connection:
        ((text, _),) = connection.execute("SELECT about, checksum FROM head").fetchall()
        text = json.dumps({**json.loads(text), "file": secrets.token_hex(8)})
        connection.execute(HEAD, (text, zlib.crc32(text.encode())))
