"""The store: parts in one SQLite file, changed in transactions, read from snapshots."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from everhash.errors import CollectionFileError, ReadOnlyError, StoreError
from everhash.store.connection import (
    LOG_BYTES,
    PAGE,
    VERSION,
    check_tables,
    connect,
    create_tables,
    find,
    lift_limits,
    limit_lengths,
    typed_errors,
)
from everhash.store.durability import SYNCHRONOUS, Syncer, read_durability
from everhash.store.lock import WriterLock
from everhash.store.parts import DAMAGED, Arrays, Key, Listing, Part, checksum, unpack

FORMAT = "everhash-collection"
PUT = "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)"
DELETE = "DELETE FROM part WHERE kind = ? AND start = ?"
HEAD = "INSERT OR REPLACE INTO head VALUES (1, ?, ?)"


class Transaction:
    """Changes that will all be there after it, or none of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commit = store.commit + 1
        self.parts = Listing(store.parts)
        self.about = dict(store.about)

    def put(self, key: Key, rows: int, data: bytes) -> None:
        """Write a part, in place of the one of that name."""
        total = checksum(key, rows, self.commit, data)
        self._store.run(PUT, (*key, rows, self.commit, total, data))
        self.parts[key] = Part(rows, self.commit, total)

    def delete(self, key: Key) -> None:
        """Remove a part."""
        self._store.run(DELETE, key)
        del self.parts[key]


class Store:
    """Parts by kind and start, in one file.

    One process writes, under a lock; any number read. `reading()` holds one state of the file for
    as long as it lasts; the writer goes on meanwhile.
    """

    def __init__(self, path: Path | None, *, readonly: bool, durability: str) -> None:
        self.path, self.readonly = path, readonly
        self.name: Path | str = path or "this collection"
        self.parts = Listing()
        self.about: dict[str, Any] = {}
        self.commit = 0
        self._kind, seconds = read_durability(durability)
        self._lock = None if readonly or path is None else WriterLock(path)
        self._syncer: Syncer | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            self._connect()
        except BaseException:
            self.close()
            raise
        if path is not None and self._kind == "interval":
            self._syncer = Syncer(path.with_name(path.name + "-wal"), seconds)

    @classmethod
    def create(
        cls,
        path: Path | None,
        about: dict[str, Any],
        parts: dict[Key, bytes],
        *,
        durability: str = "commit",
        page_size: int = PAGE,
    ) -> Self:
        """Make a new store that holds these parts. The file appears whole or not at all."""
        read_durability(durability)
        if path is None:
            store = cls(None, readonly=False, durability=durability)
            _fill(store.connection, about, parts)
            store.load_listing()
            return store
        if path.exists():
            raise StoreError(f"{path} is there already", hint="open it, or choose another name")
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        lock = WriterLock(path)
        try:
            with typed_errors(path):
                _lay_out(partial, about, parts, page_size)
            os.link(partial, path)  # unlike a rename it never replaces a file
        except FileExistsError:
            raise StoreError(f"{path} is there already", hint="open it") from None
        finally:
            partial.unlink(missing_ok=True)
            lock.release()
        _sync_folder(path.parent)
        return cls(path, readonly=False, durability=durability)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False, durability: str = "commit") -> Self:
        """Open a store that is there."""
        return cls(find(path), readonly=readonly, durability=durability)

    def _connect(self) -> None:
        with typed_errors(self.name):
            connection = connect(self.path, "rw" if self._may_write() else "ro")
            self._connection = connection
            connection.execute(f"PRAGMA query_only = {self.readonly:d}")
            if self.path is None:
                create_tables(connection)
                return
            limit_lengths(connection, self.path)
            check_tables(connection, self.name)
            self.load_listing()
            if not self.readonly:
                self._prepare_to_write(connection)

    def _may_write(self) -> bool:
        """Whether to open for writing: a reader that may tidies up SQLite's files as it leaves."""
        return not self.readonly or (self.path is not None and os.access(self.path, os.W_OK))

    def _prepare_to_write(self, connection: sqlite3.Connection) -> None:
        lift_limits(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[self._kind]}")
        page = int(connection.execute("PRAGMA page_size").fetchone()[0])
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // page}")

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection."""
        if self._connection is None:
            raise ReadOnlyError(f"{self.name} is closed", hint="open it again")
        return self._connection

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Execute one statement."""
        return self.connection.execute(statement, values)

    # Reading

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one state of the file: what is read inside belongs together."""
        with typed_errors(self.name):
            self.run("BEGIN")
            try:
                limit_lengths(self.connection, self.path if self.readonly else None)
                yield
            finally:
                if self.connection.in_transaction:
                    self.run("ROLLBACK")

    def load_listing(self) -> None:
        """Read what the file says it holds, and hold the list of parts against its head."""
        about = _head(self.run("SELECT about, checksum FROM head").fetchall(), self.name)
        rows = self.run("SELECT kind, start, rows, written, checksum FROM part").fetchall()
        whole = all(type(a) is type(b) for row in rows for a, b in zip(row, _TYPES, strict=True))
        parts = Listing({Key(*row[:2]): Part(*row[2:]) for row in rows if whole})
        if not whole or (len(rows), parts.tally) != (about.pop("parts"), about.pop("tally")):
            raise CollectionFileError(f"{self.name}: parts are missing", hint=DAMAGED)
        self.parts, self.about, self.commit = parts, about, about.pop("commit")

    def starts(self, kind: str) -> list[int]:
        """Return where the parts of a kind start, ascending."""
        return self.parts.starts(kind)

    def read_bytes(self, key: Key, part: Part | None = None) -> bytes:
        """Return a part's bytes, after their checksum was found right.

        `part` is what is known of it, where that is newer than the listing.
        """
        with typed_errors(self.name):
            found = self.run("SELECT data FROM part WHERE kind = ? AND start = ?", key).fetchone()
        data, part = found[0] if found else None, part or self.parts.get(key)
        if part is None or not isinstance(data, bytes):
            raise CollectionFileError(f"{self.name}: {key} is missing", hint=DAMAGED)
        if checksum(key, part.rows, part.written, data) != part.checksum:
            raise CollectionFileError(f"{self.name}: {key} is damaged", hint=DAMAGED)
        return data

    def read(self, key: Key, part: Part | None = None) -> Arrays:
        """Return a part's arrays."""
        return unpack(self.read_bytes(key, part), key)

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Change parts. If anything fails inside, the file stays as it was."""
        if self.readonly:
            raise ReadOnlyError(
                f"{self.name} was opened for reading", hint="open it without readonly=True"
            )
        with typed_errors(self.name):
            self.run("BEGIN IMMEDIATE")
            try:
                change = Transaction(self)
                yield change
                self._give_back_space()
                self._write_head(change)
                self.run("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.run("ROLLBACK")
                raise
        self.parts, self.about, self.commit = change.parts, change.about, change.commit
        if self._syncer is not None:
            self._syncer.committed()

    def _write_head(self, change: Transaction) -> None:
        text = _head_text(change.about, change.commit, change.parts)
        self.run(HEAD, (text, zlib.crc32(text.encode())))

    def _give_back_space(self) -> None:
        """Return free pages to the file system once they are a quarter of the file."""
        free = int(self.run("PRAGMA freelist_count").fetchone()[0])
        if free > 64 and 4 * free > int(self.run("PRAGMA page_count").fetchone()[0]):
            for _ in range(free):  # Python takes a single step of this statement, which is a page
                self.run("PRAGMA incremental_vacuum(1)")

    def copy_to(self, path: Path) -> None:
        """Write the present state to another file, compactly. It appears whole or not at all."""
        if path.exists():
            raise StoreError(f"{path} is there already", hint="choose another name")
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with typed_errors(path):
                self.run("VACUUM INTO ?", (str(partial),))
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
            os.link(partial, path)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path} cannot be written: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)
        _sync_folder(path.parent)

    @property
    def bytes_on_disk(self) -> int:
        """Length of the file, without the log beside it."""
        return self.path.stat().st_size if self.path else 0

    def close(self) -> None:
        """Let go of the file. What was committed is there."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._syncer is not None:
            self._syncer.close()
            self._syncer = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None


_TYPES = ("", 0, 0, 0, 0)


def _head_text(about: dict[str, Any], commit: int, parts: Listing) -> str:
    counts = {"commit": commit, "parts": len(parts), "tally": parts.tally}
    return json.dumps({"format": FORMAT, "version": VERSION, **counts, **about})


def _head(rows: list[Any], name: Path | str) -> dict[str, Any]:
    try:
        (text, total), *more = rows
        about = dict(json.loads(text))
        ours = about.pop("format") == FORMAT and about.pop("version") == VERSION and not more
        counts = all(type(about[key]) is int for key in ("commit", "parts", "tally"))
        if ours and counts and zlib.crc32(text.encode()) == total:
            return about
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise CollectionFileError(f"{name}: its head is damaged", hint=DAMAGED)


def _lay_out(partial: Path, about: dict[str, Any], parts: dict[Key, bytes], page_size: int) -> None:
    connection = connect(partial, "rwc")
    try:
        connection.execute("PRAGMA synchronous = FULL")
        create_tables(connection, page_size)
        _fill(connection, about, parts)
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def _fill(connection: sqlite3.Connection, about: dict[str, Any], parts: dict[Key, bytes]) -> None:
    """Write the first parts and the head."""
    listing = Listing()
    for key, data in parts.items():
        listing[key] = Part(0, 0, checksum(key, 0, 0, data))
        connection.execute(PUT, (*key, *listing[key], data))
    text = _head_text(about, 0, listing)
    connection.execute(HEAD, (text, zlib.crc32(text.encode())))


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
