"""The store: parts in one SQLite file, changed in transactions, read from one state at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

from everhash.errors import CollectionFileError, ReadOnlyError, StoreError
from everhash.store.attached import Blob, Tally, all_blobs, ends_of, read_blobs
from everhash.store.connection import (
    LOG_BYTES,
    check_free,
    check_names,
    files_beside,
    find,
    lift_limits,
    limit_lengths,
    may_write,
    use_log,
)
from everhash.store.creation import (
    Head,
    head_row,
    new_file,
    pop_tally,
    read_head,
    rename_inside,
    write_first,
    write_new,
)
from everhash.store.durability import SYNCHRONOUS, Syncer, read_durability
from everhash.store.file_connection import FileConnection
from everhash.store.lock import WriterLock
from everhash.store.opened_file import OpenedFile
from everhash.store.parts import DAMAGED, Arrays, Listing, Part, PartKey, checksum, unpack
from everhash.store.schema import PAGE_BYTES, VERSION, check_tables, create_tables
from everhash.store.sqlite_errors import typed_errors
from everhash.store.transaction import Transaction, transact
from everhash.store.watch import Watch

COLUMN_TYPES = (str, int, int, int, int)
"""Of kind, start, rows, written and checksum in `part`."""


class Store:
    """Parts by kind and start, and blobs attached by number, in one file.

    One process writes, under a lock; any number read. `reading()` keeps one state of the file for
    as long as it lasts; the writer goes on meanwhile. A store is for one thread at a time; only
    `copy_to` may be called at any moment if the store is in a file.
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
        self.head: Head = ("", 0)
        """The row of the head that was read or written last."""
        self.based = 0
        """A commit that the file has without its log."""
        self.version = VERSION
        """Of the file's format; a commit brings an older one to the newest."""
        self.attached: Tally | None = None
        """What the head says of attached blobs; None in a file of version 1, which has none."""
        self._kind, seconds = read_durability(durability)
        self._file = OpenedFile(path, self.name)
        if path is not None and not readonly:
            self._file.lock = lock or WriterLock(path)
        try:
            self._connect()
        except BaseException:
            self._file.lock = (
                self._file.lock if lock is None else None
            )  # the caller releases its own
            self.close()
            raise
        real = self._file.path
        if real is not None and self._kind == "interval" and not readonly:
            self._file.syncer = Syncer(real.with_name(real.name + "-wal"), seconds)

    @classmethod
    def create(
        cls,
        path: Path | None,
        about: dict[str, Any],
        parts: dict[PartKey, bytes],
        *,
        durability: str = "commit",
        page_size: int = PAGE_BYTES,
    ) -> Self:
        """Create a store that has these parts. The file appears whole or not at all."""
        read_durability(durability)
        if path is None:
            store = cls(None, readonly=False, durability=durability)
            write_first(store.connection, about, parts)
            store.load_listing()
            return store
        check_free(path)
        lock, made = WriterLock(path), False
        try:
            with new_file(path) as partial:
                write_new(partial, about, parts, page_size)
            made = True
            return cls(path, readonly=False, durability=durability, lock=lock)
        except BaseException:
            for file in (path, *files_beside(path)) if made else ():
                file.unlink(missing_ok=True)
            lock.release()
            raise

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False, durability: str = "commit") -> Self:
        """Open an existing store."""
        if not readonly and not may_write(find(path)):
            raise StoreError(
                f"{path} cannot be written", hint="it can only be read, or made writable"
            )
        return cls(find(path), readonly=readonly, durability=durability)

    def discard(self) -> None:
        """Close a store that was just created, and delete its file."""
        path, lock, self._file.lock = self.path, self._file.lock, None
        try:
            self.close()
        finally:
            for made in () if path is None else (path, *files_beside(path)):
                made.unlink(missing_ok=True)
            if lock is not None:
                lock.release()

    def _connect(self) -> None:
        with typed_errors(self.name):
            real, lock = self._file.path, self._file.lock
            if real is not None:
                check_names(real, mend=not self.readonly)
            file = -1 if lock is None else lock.lock_itself()
            opened = self._file.connection = FileConnection(real, readonly=self.readonly)
            connection = opened.sqlite
            connection.execute(f"PRAGMA query_only = {self.readonly:d}")
            if real is None:
                create_tables(connection)
                return
            limit_lengths(connection, real)
            connection.execute("BEGIN")  # one state: a writer may be adding a table
            try:
                check_tables(connection, self.name)
            finally:
                if connection.in_transaction:  # an error may have ended it
                    connection.execute("ROLLBACK")
            with self.reading():
                self.load_listing()
            if not self.readonly:
                self._prepare_to_write(connection)
                self._file.watch = Watch(real, self.name, file, opened, lambda: self.head)

    def _prepare_to_write(self, connection: sqlite3.Connection) -> None:
        lift_limits(connection)
        use_log(connection, self.name)
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[self._kind]}")
        page = int(connection.execute("PRAGMA page_size").fetchone()[0])
        # no other connection writes the log back: two at once could damage the file
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // page}")
        connection.execute("SELECT 1 FROM head").fetchone()  # the log is there from now on

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection."""
        return self._file.opened().sqlite

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that opened the file."""
        return self._file.inherited

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the file."""
        self._file.check_process()

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Execute one statement."""
        return self.connection.execute(statement, values)

    def begin(self, how: str = "") -> None:
        """Begin a transaction, after rolling back one that an earlier call lacked memory to end."""
        if self.connection.in_transaction:
            self.run("ROLLBACK")
        self.run(f"BEGIN {how}")

    # Reading

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the file for as long as the block lasts, whatever others commit."""
        self._file.check_there()
        with typed_errors(self.name), self._file.opened().used():
            self.begin()
            try:
                self.run("SELECT 1 FROM head").fetchone()  # this read fixes the state
                if self.readonly and self._file.path is not None:
                    limit_lengths(self.connection, self._file.path)
                yield
            finally:
                if self.connection.in_transaction:
                    self.run("ROLLBACK")

    def load_listing(self) -> None:
        """Read the head and the list of parts, and check that they agree."""
        version = check_tables(self.connection, self.name)
        about, head = read_head(self.connection, self.name), head_row(self.connection)
        attached = pop_tally(about, version, self.name)
        rows = self.run("SELECT kind, start, rows, written, checksum FROM part").fetchall()
        whole = all(tuple(map(type, row)) == COLUMN_TYPES for row in rows)
        parts = Listing({PartKey(*row[:2]): Part(*row[2:]) for row in rows if whole})
        if not whole or (len(rows), parts.tally) != (about.pop("parts"), about.pop("tally")):
            raise CollectionFileError(f"{self.name}: parts are missing", hint=DAMAGED)
        self.parts, self.about, self.commit = parts, about, about.pop("commit")
        self.version, self.attached = version, attached
        self.based, before, self.head = about.pop("based"), self.head, head or self.head
        if self._file.watch is not None and self.head != before:
            self._file.watch.remember()  # what somebody else has written is known now

    def starts(self, kind: str) -> list[int]:
        """Return where the parts of a kind start, ascending."""
        return self.parts.starts(kind)

    def read_bytes(self, key: PartKey, part: Part | None = None) -> bytes:
        """Return a part's bytes, after their checksum was found right.

        `part` says which bytes to expect, where it is newer than the listing.
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

    @contextmanager
    def open_blob(self, key: PartKey) -> Iterator[sqlite3.Blob]:
        """Open a part's bytes to read some of them; their checksum is not compared."""
        with typed_errors(self.name):
            found = self.run("SELECT rowid FROM part WHERE kind = ? AND start = ?", key).fetchone()
            with self.connection.blobopen("part", "data", found[0], readonly=True) as blob:
                yield blob

    def read_attached(self, numbers: list[int]) -> dict[int, bytes]:
        """Return the attached blobs with these numbers that the file has now."""
        with typed_errors(self.name):
            if self.attached is None and check_tables(self.connection, self.name) == 1:
                return {}
            return read_blobs(self.connection, numbers, self.name)

    def all_attached(self) -> Iterator[Blob]:
        """Yield all attached blobs in order of their numbers, unchecked."""
        with typed_errors(self.name):
            yield from () if self.attached is None else all_blobs(self.connection)

    def attached_ends(self) -> tuple[int, int] | None:
        """Return the smallest and the largest number of an attached blob."""
        return None if self.attached is None else ends_of(self.connection)

    # Writing

    def check_writable(self) -> None:
        """Raise if the store was opened for reading."""
        if self.readonly:
            raise ReadOnlyError(
                f"{self.name} was opened for reading", hint="open it without {option readonly=True}"
            )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Change parts. If anything fails inside, the file stays as it was."""
        self.check_writable()
        self._file.check_there()
        with self._file.opened().used(), ExitStack() as after:
            with transact(self) as change:
                after.callback(self._note)
                yield change
            self.parts, self.about, self.commit = change.parts, change.about, change.commit
            self.version, self.attached, self.head = VERSION, change.attached, change.head
        if self._file.syncer is not None:
            self._file.syncer.committed()

    @property
    def watch(self) -> Watch | None:
        """What knows whether somebody else has changed the file; a writer's only."""
        return self._file.watch

    def _note(self) -> None:
        """Note after a transaction what the file and its log are now."""
        watch = self._file.watch
        if watch is not None and watch.remember() and watch.is_written_back():
            self.based = self.commit

    def copy_to(self, path: Path) -> None:
        """Copy the last commit to another file, compactly. It appears whole or not at all.

        SQLite copies a file through a connection opened for that, so this may run beside anything
        else. A store in memory has only one connection, which must not be used meanwhile.
        """
        connection = self.connection
        self._file.check_there()
        check_free(path)
        lock = WriterLock(path)
        try:
            with new_file(path) as partial:
                if self._file.path is None:
                    connection.execute("VACUUM INTO ?", (str(partial),))
                else:
                    self._copy_file(self._file.path, partial)
                rename_inside(partial)
        finally:
            lock.release()

    def _copy_file(self, path: Path, copy: Path) -> None:
        with closing(FileConnection(path, readonly=True)) as source, source.used() as connection:
            if self.readonly:
                limit_lengths(connection, path)
            connection.execute("VACUUM INTO ?", (str(copy),))
            self._file.check_there()

    @property
    def bytes_on_disk(self) -> int:
        """Length of the file, without the log beside it."""
        self._file.check_there()
        return self._file.path.stat().st_size if self._file.path else 0

    def close(self) -> None:
        """Close the file, unless a child was forked with it. What was committed stays in it."""
        self._file.close()
