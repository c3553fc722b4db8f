"""Making the file: its first parts, its head, and that it appears whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from everhash.errors import CollectionFileError, StoreError
from everhash.store.attached import Tally
from everhash.store.connection import (
    beside,
    connect,
    create_tables,
    typed_errors,
    use_log,
)
from everhash.store.parts import DAMAGED, Listing, Part, PartKey, checksum

FORMAT, VERSION = "everhash-collection", 1
"""Of head and parts; what else a file holds is told by the version of its format."""
PUT = "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)"
HEAD = "INSERT OR REPLACE INTO head VALUES (1, ?, ?)"


def write_head(
    connection: sqlite3.Connection,
    about: dict[str, Any],
    commit: int,
    parts: Listing,
    attached: Tally | None = None,
) -> None:
    """Write what the file says of itself."""
    counts = {"commit": commit, "parts": len(parts), "tally": parts.tally}
    if attached is not None:
        counts |= {"attached": attached.rows, "attached_tally": attached.total}
    text = json.dumps({"format": FORMAT, "version": VERSION, **counts, **about})
    connection.execute(HEAD, (text, zlib.crc32(text.encode())))


def read_head(connection: sqlite3.Connection, name: Path | str) -> dict[str, Any]:
    """Return what the file says of itself."""
    try:
        (text, total), *more = connection.execute("SELECT about, checksum FROM head").fetchall()
        about = dict(json.loads(text))
        ours = about.pop("format") == FORMAT and about.pop("version") == VERSION and not more
        counts = all(type(about[key]) is int for key in ("commit", "parts", "tally"))
        if ours and counts and zlib.crc32(text.encode()) == total:
            return about
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise CollectionFileError(f"{name}: its head is damaged", hint=DAMAGED)


def take_tally(about: dict[str, Any], version: int, name: Path | str) -> Tally | None:
    """Take out of a head what it says of attached blobs, if its file can have any."""
    tally = Tally(about.pop("attached", None), about.pop("attached_tally", None))
    if version == 1:
        return None
    if not all(type(count) is int and count >= 0 for count in tally):
        raise CollectionFileError(f"{name}: its head is damaged", hint=DAMAGED)
    return tally


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Yield another name to write a file under; if that goes well it gets its own, else it goes.

    Whoever calls this holds the lock of `path`, so what is there under that other name was left by
    a process that died.
    """
    partial = path.with_name(f".{path.name}.partial")
    linked = False
    try:
        for left in (partial, *beside(partial)):
            left.unlink(missing_ok=True)
        with typed_errors(path):
            yield partial
        _sync(partial)
        os.link(partial, path)  # unlike a rename it never replaces a file
        linked = True
        _sync(path.parent)
    except OSError as error:
        if linked:
            path.unlink(missing_ok=True)
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        for left in (partial, *beside(partial)):
            left.unlink(missing_ok=True)


def lay_out(
    partial: Path, about: dict[str, Any], parts: dict[PartKey, bytes], page_size: int
) -> None:
    """Write a new file."""
    connection = connect(partial, "rwc")
    try:
        connection.execute("PRAGMA synchronous = FULL")
        create_tables(connection, page_size)
        fill(connection, about, parts)
        use_log(connection, partial)
    finally:
        connection.close()


def name_anew(path: Path) -> None:
    """Make a copy a collection of its own, that no log of the original can be taken for its own."""
    with closing(connect(path, "rw")) as connection:
        ((text, _),) = connection.execute("SELECT about, checksum FROM head").fetchall()
        text = json.dumps({**json.loads(text), "file": secrets.token_hex(8)})
        connection.execute(HEAD, (text, zlib.crc32(text.encode())))


def fill(
    connection: sqlite3.Connection, about: dict[str, Any], parts: dict[PartKey, bytes]
) -> None:
    """Write the first parts and the head."""
    about = {**about, "file": secrets.token_hex(8)}
    listing = Listing()
    for key, data in parts.items():
        listing[key] = Part(0, 0, checksum(key, 0, 0, data))
        connection.execute(PUT, (*key, *listing[key], data))
    write_head(connection, about, 0, listing)


def _sync(path: Path) -> None:
    """Have a file, or a new name in a folder, on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
