"""The store: parts in one SQLite file, changed in transactions, read from snapshots."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from everhash.errors import CollectionFileError, ReadOnlyError, StoreError
from everhash.store.attached import Blob, Tally, all_blobs, ends_of, read_blobs, write_blobs
from everhash.store.connection import (
    LOG_BYTES,
    PAGE,
    add_attached,
    beside,
    check_free,
    check_log,
    check_tables,
    connect,
    create_tables,
    find,
    lift_limits,
    limit_lengths,
    may_write,
    typed_errors,
    use_log,
)
from everhash.store.durability import SYNCHRONOUS, Syncer, read_durability
from everhash.store.lock import WriterLock
from everhash.store.making import (
    PUT,
    appearing,
    fill,
    lay_out,
    name_anew,
    read_head,
    take_tally,
    write_head,
)
from everhash.store.parts import DAMAGED, Arrays, Listing, Part, PartKey, checksum, unpack

DELETE = "DELETE FROM part WHERE kind = ? AND start = ?"
OPENING = threading.Lock()
OPEN: Counter[Path | None] = Counter()
"""Files this process has open. Looking at one of them without its log would drop its locks."""
ROW = ("", 0, 0, 0, 0)
"""Types of what `part` says of a part."""


class Transaction:
    """Changes that will all be there after it, or none of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commit = store.commit + 1
        self.parts = Listing(store.parts)
        self.about = dict(store.about)
        self.attached = store.attached

    def put(self, key: PartKey, rows: int, data: bytes) -> None:
        """Write a part, in place of the one of that name."""
        total = checksum(key, rows, self.commit, data)
        self._store.run(PUT, (*key, rows, self.commit, total, data))
        self.parts[key] = Part(rows, self.commit, total)

    def delete(self, key: PartKey) -> None:
        """Remove a part."""
        self._store.run(DELETE, key)
        del self.parts[key]

    def attach(self, blobs: Mapping[int, bytes | None]) -> None:
        """Write blobs in place of those with their numbers; None deletes one."""
        connection, name = self._store.connection, self._store.name
        if self.attached is None:
            if all(data is None for data in blobs.values()):
                return
            add_attached(connection)
            self.attached = Tally(0, 0)
        self.attached = write_blobs(connection, blobs, self.attached, name)


class Store:
    """Parts by kind and start, and blobs attached by number, in one file.

    One process writes, under a lock; any number read. `reading()` holds one state of the file for
    as long as it lasts; the writer goes on meanwhile.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        readonly: bool,
        durability: str,
        lock: WriterLock | None = None,
    ) -> None:
        self.path, self.readonly = path, readonly
        self.name: Path | str = path or "this collection"
        self.parts = Listing()
        self.about: dict[str, Any] = {}
        self.commit = 0
        self.attached: Tally | None = None
        """What the head says of attached blobs; None in a file that never had any."""
        self._kind, seconds = read_durability(durability)
        self._lock = lock
        if lock is None and path is not None and not readonly:
            self._lock = WriterLock(path)
        self._syncer: Syncer | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            self._file = None if path is None else path.stat()
            self._connect()
        except BaseException:
            self._lock = self._lock if lock is None else None  # it is for who gave it to release
            self.close()
            raise
        if path is not None and self._kind == "interval" and not readonly:
            self._syncer = Syncer(path.with_name(path.name + "-wal"), seconds)

    @classmethod
    def create(
        cls,
        path: Path | None,
        about: dict[str, Any],
        parts: dict[PartKey, bytes],
        *,
        durability: str = "commit",
        page_size: int = PAGE,
    ) -> Self:
        """Make a new store that holds these parts. The file appears whole or not at all."""
        read_durability(durability)
        if path is None:
            store = cls(None, readonly=False, durability=durability)
            fill(store.connection, about, parts)
            store.load_listing()
            return store
        check_free(path)
        lock, made = WriterLock(path), False
        try:
            with appearing(path) as partial:
                lay_out(partial, about, parts, page_size)
            made = True
            return cls(path, readonly=False, durability=durability, lock=lock)
        except BaseException:
            for file in (path, *beside(path)) if made else ():
                file.unlink(missing_ok=True)
            lock.release()
            raise

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False, durability: str = "commit") -> Self:
        """Open a store that is there."""
        if not readonly and not may_write(find(path)):
            raise StoreError(
                f"{path} cannot be written", hint="it can only be read, or made writable"
            )
        return cls(find(path), readonly=readonly, durability=durability)

    def discard(self) -> None:
        """Close a store that was just made, and remove it."""
        path, lock, self._lock = self.path, self._lock, None
        try:
            self.close()
        finally:
            for made in () if path is None else (path, *beside(path)):
                made.unlink(missing_ok=True)
            if lock is not None:
                lock.release()

    def _connect(self) -> None:
        with typed_errors(self.name):
            # a reader that may write tidies up SQLite's files as it leaves
            writes = not self.readonly or (self.path is not None and may_write(self.path))
            with OPENING:
                if self.path is not None and self.path.resolve() not in OPEN:
                    check_log(self.path)
                connection = connect(self.path, "rw" if writes else "ro")
                self._connection, self._place = connection, self.path and self.path.resolve()
                OPEN[self._place] += 1
            connection.execute(f"PRAGMA query_only = {self.readonly:d}")
            if self.path is None:
                create_tables(connection)
                return
            limit_lengths(connection, self.path)
            check_tables(connection, self.name)
            with self.reading():
                self.load_listing()
            if not self.readonly:
                self._prepare_to_write(connection)

    def _prepare_to_write(self, connection: sqlite3.Connection) -> None:
        lift_limits(connection)
        use_log(connection, self.name)
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
        self._check_there()
        with typed_errors(self.name):
            self.run("BEGIN")
            try:
                self.run("SELECT 1 FROM head").fetchone()  # the state is held from here on
                limit_lengths(self.connection, self.path if self.readonly else None)
                yield
            finally:
                if self.connection.in_transaction:
                    self.run("ROLLBACK")

    def load_listing(self) -> None:
        """Read what the file says it holds, and hold the list of parts against its head."""
        version = check_tables(self.connection, self.name)
        about = read_head(self.connection, self.name)
        attached = take_tally(about, version, self.name)
        rows = self.run("SELECT kind, start, rows, written, checksum FROM part").fetchall()
        whole = all(type(a) is type(b) for row in rows for a, b in zip(row, ROW, strict=True))
        parts = Listing({PartKey(*row[:2]): Part(*row[2:]) for row in rows if whole})
        if not whole or (len(rows), parts.tally) != (about.pop("parts"), about.pop("tally")):
            raise CollectionFileError(f"{self.name}: parts are missing", hint=DAMAGED)
        self.parts, self.about, self.commit = parts, about, about.pop("commit")
        self.attached = attached

    def starts(self, kind: str) -> list[int]:
        """Return where the parts of a kind start, ascending."""
        return self.parts.starts(kind)

    def read_bytes(self, key: PartKey, part: Part | None = None) -> bytes:
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

    def read(self, key: PartKey, part: Part | None = None) -> Arrays:
        """Return a part's arrays."""
        return unpack(self.read_bytes(key, part), key)

    def read_attached(self, numbers: list[int]) -> dict[int, bytes]:
        """Return the attached blobs with these numbers, as many as the file has by now."""
        with typed_errors(self.name):
            if self.attached is None and check_tables(self.connection, self.name) == 1:
                return {}
            return read_blobs(self.connection, numbers, self.name)

    def all_attached(self) -> Iterator[Blob]:
        """Go through all attached blobs by their numbers, unchecked."""
        with typed_errors(self.name):
            yield from () if self.attached is None else all_blobs(self.connection)

    def attached_ends(self) -> tuple[int, int] | None:
        """Return the smallest and the largest number of an attached blob."""
        return None if self.attached is None else ends_of(self.connection)

    # Writing

    def check_writable(self) -> None:
        """Refuse to change what was opened for reading."""
        if self.readonly:
            raise ReadOnlyError(
                f"{self.name} was opened for reading", hint="open it without readonly=True"
            )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Change parts. If anything fails inside, the file stays as it was."""
        self.check_writable()
        self._check_there()
        with typed_errors(self.name):
            self.run("BEGIN IMMEDIATE")
            committing = False
            try:
                change = Transaction(self)
                yield change
                self._give_back_space()
                self._write_head(change)
                committing = True
                self.run("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.run("ROLLBACK")
                if committing:
                    self._erase_from_log()
                raise
        self.parts, self.about, self.commit = change.parts, change.about, change.commit
        self.attached = change.attached
        if self._syncer is not None:
            self._syncer.committed()

    def _erase_from_log(self) -> None:
        """Write over a commit that failed: whole in the log, a crash would bring it back.

        It can be whole if all that failed was asking the disk for it.
        """
        with suppress(sqlite3.Error, MemoryError):
            self.run("BEGIN IMMEDIATE")
            self._write_head(self)
            self.run("COMMIT")
        with suppress(sqlite3.Error, MemoryError):
            if self.connection.in_transaction:
                self.run("ROLLBACK")

    def _write_head(self, state: Store | Transaction) -> None:
        """Write the head of a state."""
        write_head(self.connection, state.about, state.commit, state.parts, state.attached)

    def _give_back_space(self) -> None:
        """Return free pages to the file system once they are a quarter of the file."""
        free = int(self.run("PRAGMA freelist_count").fetchone()[0])
        if free > 64 and 4 * free > int(self.run("PRAGMA page_count").fetchone()[0]):
            for _ in range(free):  # Python takes a single step of this statement, which is a page
                self.run("PRAGMA incremental_vacuum(1)")

    def copy_to(self, path: Path) -> None:
        """Write the present state to another file, compactly. It appears whole or not at all."""
        check_free(path)
        lock = WriterLock(path)
        try:
            with appearing(path) as partial:
                self.run("PRAGMA query_only = 0")  # it forbids to write other files too
                self.run("VACUUM INTO ?", (str(partial),))
                name_anew(partial)
        finally:
            lock.release()
            self.run(f"PRAGMA query_only = {self.readonly:d}")

    @property
    def bytes_on_disk(self) -> int:
        """Length of the file, without the log beside it."""
        self._check_there()
        return self.path.stat().st_size if self.path else 0

    def _check_there(self) -> None:
        """Refuse to go on with a file that was removed or replaced: nobody would find the calls."""
        try:
            same = self._file is None or os.path.samestat(os.stat(self.name), self._file)
        except OSError:
            same = False
        if not same:
            raise StoreError(
                f"{self.name} is gone, or another file", hint="close it, open it again"
            )

    def close(self) -> None:
        """Let go of the file. What was committed is there."""
        connection, self._connection = self._connection, None
        syncer, self._syncer = self._syncer, None
        lock, self._lock = self._lock, None
        try:
            if syncer is not None:
                syncer.close()
        except OSError as error:
            raise StoreError(
                f"{self.name}: the last calls may not be on the disk: {error}"
            ) from None
        finally:
            if connection is not None:
                with OPENING:
                    connection.close()
                    OPEN.subtract([self._place])
                    if OPEN[self._place] <= 0:
                        del OPEN[self._place]
            if lock is not None:
                lock.release()
