"""Small blobs by number in a table of their own, each with its checksum; memory lists none.

Files of version 1 do not have the table. The head has the number of blobs and the sum of their
checksums, so that reading all of them shows whether one is missing.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import CollectionFileError
from everhash.store.parts import DAMAGED

TABLE = (
    "CREATE TABLE attached "
    "(number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL)"
)
MAX_BLOB_BYTES = 65_536
"""A blob that claims to be longer is not read."""
NUMBERS_PER_STATEMENT = 500
# neither typeof nor length reads the blob itself
SELECT = (
    "SELECT number, checksum, "  # noqa: S608 - our own number
    f"CASE WHEN typeof(data) = 'blob' AND length(data) <= {MAX_BLOB_BYTES:d} THEN data END "
    "FROM attached"
)


class Tally(NamedTuple):
    """Count and checksum of all blobs, as the head has them."""

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
    """Return those blobs that there are, by number."""
    found = _having(connection, SELECT, numbers)
    return {number: Blob(number, *more).checked(name) for number, *more in found}


def all_blobs(connection: sqlite3.Connection) -> Iterator[Blob]:
    """Yield all blobs in order of their numbers, unchecked."""
    return (Blob(*row) for row in connection.execute(f"{SELECT} ORDER BY number"))


def ends_of(connection: sqlite3.Connection) -> tuple[int, int] | None:
    """Return the smallest and the largest number; None if there are no blobs."""
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
    """Replace the blobs with these numbers, or delete those given as None; return the new tally."""
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


def renumber_blobs(connection: sqlite3.Connection, kept: NDArray[np.int64], kinds: int) -> Tally:
    """Move the blobs of place kept[i], numbers kinds * kept[i] and on, to place i.

    Numbers only go down and keep their order, so none is taken when it is needed.
    """

    def moved(number: int) -> int:
        return kinds * int(np.searchsorted(kept, number // kinds)) + number % kinds

    try:
        connection.create_function("everhash_moved", 1, moved, deterministic=True)
        connection.create_function("everhash_checksum", 2, checksum, deterministic=True)
    except sqlite3.OperationalError as error:  # it has no code, and all it can lack is memory
        raise MemoryError from error
    connection.execute(
        "UPDATE attached SET checksum = everhash_checksum(everhash_moved(number), data), "
        "number = everhash_moved(number)"
    )
    counted = "SELECT count(*), coalesce(sum(checksum), 0) FROM attached"
    return Tally(*connection.execute(counted).fetchone())


def _having(
    connection: sqlite3.Connection, select: str, numbers: list[int]
) -> Iterator[tuple[Any, ...]]:
    """Run a SELECT for these numbers only."""
    for start in range(0, len(numbers), NUMBERS_PER_STATEMENT):
        some = numbers[start : start + NUMBERS_PER_STATEMENT]
        places = ",".join("?" * len(some))
        yield from connection.execute(f"{select} WHERE number IN ({places})", some)
