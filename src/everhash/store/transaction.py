"""Transactions: changes of parts and blobs that the file gets all or none of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from everhash.errors import CollectionFileError, LockedError, StoreError
from everhash.store.attached import Tally, renumber_blobs, write_blobs
from everhash.store.creation import HEAD, PUT, head_row, read_head, write_head
from everhash.store.file_connection import FileConnection
from everhash.store.parts import Listing, Part, PartKey, checksum
from everhash.store.schema import VERSION, bring_up
from everhash.store.sqlite_errors import typed_errors
from everhash.store.sqlite_version import warn_of_bug

if TYPE_CHECKING:
    from everhash.store.store import Store

DELETE = "DELETE FROM part WHERE kind = ? AND start = ?"


class Transaction:
    """Parts, blobs and head as they will be after the commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.head = store.head
        self.commit = store.commit + 1
        self.parts = Listing(store.parts)
        self.about = dict(store.about)
        self.attached = store.attached or Tally(0, 0)
        if store.version < VERSION:
            bring_up(store.connection, store.version)

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
        self.attached = write_blobs(connection, blobs, self.attached, name)

    def renumber_attached(self, kept: NDArray[np.int64], kinds: int) -> None:
        """Give the blobs of the entry at kept[i], `kinds` of them each, to place i."""
        self.attached = renumber_blobs(self._store.connection, kept, kinds)


@contextmanager
def transact(store: Store) -> Iterator[Transaction]:
    """Begin a transaction; commit when the block ends, roll back if it or the commit fails."""
    with typed_errors(store.name):
        store.begin("IMMEDIATE")
        committing = False
        try:
            check_alone(store)
            if store.watch is not None:
                store.watch.check()
            change = Transaction(store)
            yield change
            _give_back_space(store)
            counts = change.commit, change.parts, change.attached, store.based
            change.head = write_head(store.connection, change.about, *counts)
            if store.watch is not None:
                store.watch.check_file()
            committing = True
            store.run("COMMIT")
        except BaseException:
            if store.connection.in_transaction:
                store.run("ROLLBACK")
            if committing:
                _erase_from_log(store)
            raise


def check_alone(store: Store) -> None:
    """Raise if the head is not the one that this writer has read or written last.

    Then somebody else writes too, however they got in. Memory knows nothing of their parts, so a
    commit would make the file contradict itself.
    """
    if (found := head_row(store.connection)) == store.head:
        return
    commit = None if found is None else read_head(store.connection, store.name)["commit"]
    warn_of_bug(store.name)
    raise LockedError(
        f"somebody else has written to {store.name}: its commit is {commit}, the last one here was "
        f"{store.commit}; nothing was written",
        hint="let one process write; then try again",
    )


def _erase_from_log(store: Store) -> None:
    """Write over a commit that failed: whole in the log, a crash would bring it back.

    It can be whole if all that failed was the disk's sync. At its start the log is written only
    after a sync, so where syncs go on failing it takes a connection that does without.
    """
    if _rewrite_head(store, store.connection) or store.path is None:
        return
    with (
        suppress(sqlite3.Error, MemoryError, StoreError),
        closing(FileConnection(store.path, readonly=False)) as other,
    ):
        other.sqlite.execute("PRAGMA synchronous = OFF")
        other.sqlite.execute("PRAGMA wal_autocheckpoint = 0")  # the file itself needs its syncs
        _rewrite_head(store, other.sqlite)


def _rewrite_head(store: Store, connection: sqlite3.Connection) -> bool:
    """Commit the head as it was; return whether that was done, or was wrong to do.

    A commit that was made, and interrupted right after, stays as it is.
    """
    done = False
    with suppress(sqlite3.Error, MemoryError, CollectionFileError):
        connection.execute("BEGIN IMMEDIATE")
        if read_head(connection, store.name)["commit"] == store.commit:
            connection.execute(HEAD, store.head)
            connection.execute("COMMIT")
        done = True
    with suppress(sqlite3.Error, MemoryError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return done


def _give_back_space(store: Store) -> None:
    """Return free pages to the file system once they are a quarter of the file."""
    free = int(store.run("PRAGMA freelist_count").fetchone()[0])
    if free > 64 and 4 * free > int(store.run("PRAGMA page_count").fetchone()[0]):
        for _ in range(free):  # Python takes a single step of this statement, which is a page
            store.run("PRAGMA incremental_vacuum(1)")
