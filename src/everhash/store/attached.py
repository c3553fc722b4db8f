"""Small blobs by number, in a table of their own: each with its checksum, none listed in memory.

A file has the table from its first blob on, and is of format version 2 then. How many blobs there
are, and the sum of their checksums, stand in the head: reading all of them tells if one is missing.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from everhash.errors import CollectionFileError
from everhash.store.parts import DAMAGED

TABLE = (
    "CREATE TABLE attached "
    "(number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL)"
)
LONGEST = 65_536
"""Bytes of a blob, at most; what claims to be longer is not read."""
TOGETHER = 500
"""Numbers asked for in one statement."""
# neither typeof nor length reads the blob itself
SELECT = (
    "SELECT number, checksum, "  # noqa: S608 - a number of ours
    f"CASE WHEN typeof(data) = 'blob' AND length(data) <= {LONGEST:d} THEN data END FROM attached"
)


class Tally(NamedTuple):
    """What the head says of all blobs."""

    rows: int
    total: int
    """Sum of their checksums."""


class Blob(NamedTuple):
    """A row of the table, as it was found."""

    number: int
    checksum: Any
    data: Any

    def checked(self, name: Path | str) -> bytes:
        """Return the bytes, after their checksum was found right."""
        if not isinstance(self.data, bytes) or checksum(self.number, self.data) != self.checksum:
            raise CollectionFileError(f"{name}: attached {self.number} is damaged", hint=DAMAGED)
        return self.data


def checksum(number: int, data: bytes) -> int:
    """Return the CRC-32 of a blob and of its number."""
    return zlib.crc32(f"{number}".encode(), zlib.crc32(data))


def read_blobs(
    connection: sqlite3.Connection, numbers: list[int], name: Path | str
) -> dict[int, bytes]:
    """Return the blobs with these numbers, as many as there are."""
    found = _having(connection, SELECT, numbers)
    return {number: Blob(number, *more).checked(name) for number, *more in found}


def all_blobs(connection: sqlite3.Connection) -> Iterator[Blob]:
    """Go through all blobs by their numbers, unchecked."""
    return (Blob(*row) for row in connection.execute(f"{SELECT} ORDER BY number"))


def ends_of(connection: sqlite3.Connection) -> tuple[int, int] | None:
    """Return the smallest and the largest number there is."""
    # one statement for both would read the whole table
    (low,) = connection.execute("SELECT min(number) FROM attached").fetchone()
    (high,) = connection.execute("SELECT max(number) FROM attached").fetchone()
    return None if low is None else (low, high)


def write_blobs(
    connection: sqlite3.Connection,
    blobs: Mapping[int, bytes | None],
    tally: Tally,
    name: Path | str,
) -> Tally:
    """Put blobs in place of those with their numbers, or nothing; return the tally after that."""
    old = dict(_having(connection, "SELECT number, checksum FROM attached", list(blobs)))
    if not all(type(total) is int for total in old.values()):
        raise CollectionFileError(f"{name}: attached {min(old)} is damaged", hint=DAMAGED)
    connection.executemany("DELETE FROM attached WHERE number = ?", ((number,) for number in old))
    new = [(n, checksum(n, data), data) for n, data in blobs.items() if data is not None]
    connection.executemany("INSERT INTO attached VALUES (?, ?, ?)", new)
    rows = tally.rows - len(old) + len(new)
    total = tally.total - sum(old.values()) + sum(row[1] for row in new)
    if rows < 0 or total < 0:
        raise CollectionFileError(f"{name}: more is attached than the head counts", hint=DAMAGED)
    return Tally(rows, total)


def _having(
    connection: sqlite3.Connection, select: str, numbers: list[int]
) -> Iterator[tuple[Any, ...]]:
    """Run a SELECT for these numbers only."""
    for start in range(0, len(numbers), TOGETHER):
        some = numbers[start : start + TOGETHER]
        places = ",".join("?" * len(some))
        yield from connection.execute(f"{select} WHERE number IN ({places})", some)
