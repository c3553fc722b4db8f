"""The tables of a collection's file, and the check that a file has exactly these."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

from everhash.errors import CollectionFileError
from everhash.store import attached
from everhash.store.parts import DAMAGED
from everhash.store.sqlite_errors import FOREIGN

APPLICATION = 0x45564552
""""EVER", where SQLite files say which program they belong to."""
VERSION = 4
"""The newest version of the file's format."""
TABLES = (
    "CREATE TABLE head (id INTEGER PRIMARY KEY, about TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE part (kind TEXT NOT NULL, start INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "written INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (kind, start))",
)
TABLES_OF_VERSION = {1: TABLES, **dict.fromkeys((2, 3, VERSION), (*TABLES, attached.TABLE))}
"""Version 3 says more of entries in its parts, version 4 has parts with their cells."""
PAGE_BYTES = 32_768
"""Large blobs are written twice as fast as with SQLite's pages of 4,096 bytes."""


def create_tables(connection: sqlite3.Connection, page_size: int = PAGE_BYTES) -> None:
    """Create the tables in an empty file."""
    connection.execute(f"PRAGMA page_size = {page_size:d}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION:d}")
    connection.execute(f"PRAGMA user_version = {VERSION:d}")
    for statement in TABLES_OF_VERSION[VERSION]:
        connection.execute(statement)


def bring_up(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file of an older version to the newest, in the transaction under way."""
    if version == 1:
        connection.execute(attached.TABLE)
    connection.execute(f"PRAGMA user_version = {VERSION:d}")


def check_tables(connection: sqlite3.Connection, path: Path | str) -> int:
    """Raise if a file has other tables than a collection; return the version of its format.

    The statements that created its tables must be ours to the letter, and nothing else may be in
    its schema: no further table, index, view or trigger.
    """
    if _number(connection, "application_id") != APPLICATION:
        raise CollectionFileError(FOREIGN.format(path=path), hint="{call create} makes one")
    version = _number(connection, "user_version")
    if version not in TABLES_OF_VERSION:
        raise CollectionFileError(
            f"{path} has format version {version}, this everhash reads 1 to {VERSION}",
            hint="it may come from a newer everhash; upgrade to read it",
        )
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    if Counter(row[0] for row in found) != Counter(TABLES_OF_VERSION[version]):
        raise CollectionFileError(f"{path} has other tables than a collection", hint=DAMAGED)
    return version


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
