"""Hostile files: other tables, other types, lengths nobody has; and odd files that are good."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from everhash.store.parts import PartKey
from everhash.store.schema import APPLICATION, VERSION
from tests.fuzz.forging import (
    Edit,
    Forgery,
    both,
    cut,
    data,
    pack,
    put,
    run,
    set_head,
    swap,
    swap_about,
)
from tests.fuzz.hostile_heads import Case

OTHER = "other tables than a collection"


def rewrite_schema(statement: str) -> Edit:
    return run("PRAGMA writable_schema = ON", statement, "PRAGMA writable_schema = OFF")


def schema_of(sql: str) -> Edit:
    """Let the schema say that a table was made like this."""
    statement = f"UPDATE sqlite_schema SET sql = {sql} WHERE name = 'part'"  # noqa: S608
    return rewrite_schema(statement)


def part(column: str, value: str) -> Edit:
    """Set a column of the last lesson's row."""
    row = "kind = 'lesson' AND start = 2"
    return run(f"UPDATE part SET {column} = {value} WHERE {row}")  # noqa: S608


def stranger(kind: str) -> Edit:
    """Add a part of a kind of its own."""
    return lambda forgery: forgery.put(PartKey(kind, 0), pack({"x": np.zeros(3)}))


SCHEMAS: dict[str, Case] = {
    "application id of nobody": (run("PRAGMA application_id = 0"), "no everhash collection"),
    "application id of another": (run("PRAGMA application_id = -7"), "no everhash collection"),
    "no version": (run("PRAGMA user_version = 0"), "format version 0"),
    "a newer version": (run("PRAGMA user_version = 5"), "format version 5.*upgrade"),
    "an older version": (run("PRAGMA user_version = 1"), OTHER),
    "a version below zero": (run("PRAGMA user_version = -1"), "format version -1"),
    "another table": (run("CREATE TABLE more (x)"), OTHER),
    "another index": (run("CREATE INDEX more ON part (written)"), OTHER),
    "a view": (run("CREATE VIEW more AS SELECT * FROM part"), OTHER),
    "a view in place of a table": (
        run("ALTER TABLE part RENAME TO old", "CREATE VIEW part AS SELECT * FROM old"),
        OTHER,
    ),
    "a trigger": (
        run("CREATE TRIGGER more AFTER INSERT ON part BEGIN DELETE FROM head; END"),
        OTHER,
    ),
    "another column": (run("ALTER TABLE part ADD COLUMN more"), OTHER),
    "a generated column": (
        run("ALTER TABLE part ADD COLUMN more AS (zeroblob(1000000000))"),
        OTHER,
    ),
    "a column renamed": (run("ALTER TABLE part RENAME COLUMN data TO more"), OTHER),
    "a table renamed": (run("ALTER TABLE part RENAME TO more"), OTHER),
    "a table missing": (run("DROP TABLE part"), OTHER),
    "statistics": (run("ANALYZE"), OTHER),
    "a virtual table": (
        rewrite_schema(
            "INSERT INTO sqlite_schema VALUES "
            "('table', 'more', 'more', 0, 'CREATE VIRTUAL TABLE more USING no_such_module(x)')"
        ),
        OTHER,
    ),
    "tables in each other's place": (
        rewrite_schema(
            "UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema "
            "WHERE name IN ('head', 'part')) - rootpage WHERE name IN ('head', 'part')"
        ),
        "malformed|damaged|missing",
    ),
    "a table rooted nowhere": (
        rewrite_schema("UPDATE sqlite_schema SET rootpage = 10000 WHERE name = 'part'"),
        "malformed|rootpage",
    ),
    "an index missing": (
        rewrite_schema("DELETE FROM sqlite_schema WHERE type = 'index'"),
        "malformed|index",
    ),
    "a schema of bytes": (schema_of("CAST(sql AS BLOB)"), "malformed|tables"),
    "a schema of a number": (schema_of("7"), "malformed|tables"),
    "a schema with a check": (
        schema_of("replace(sql, 'rows INTEGER', 'rows INTEGER CHECK (randomblob(1e9))')"),
        OTHER,
    ),
    "a schema with a default": (
        schema_of("replace(sql, 'rows INTEGER', 'rows INTEGER DEFAULT (randomblob(1e9))')"),
        OTHER,
    ),
}
TYPES: dict[str, Case] = {
    "a kind of bytes": (part("kind", "CAST(kind AS BLOB)"), "parts are missing"),
    "a kind that is no UTF-8": (part("kind", "CAST(x'ff' AS TEXT)"), "UTF-8"),
    "a start of text": (part("start", "'two'"), "parts are missing"),
    "a start between": (part("start", "2.5"), "parts are missing"),
    "rows of text": (part("rows", "'none'"), "parts are missing"),
    "rows of bytes": (part("rows", "x'00'"), "parts are missing"),
    "a commit of text": (part("written", "'yesterday'"), "parts are missing"),
    "a checksum of text": (part("checksum", "'right'"), "parts are missing"),
    "an infinite checksum": (part("checksum", "9e999"), "parts are missing"),
    "data of text": (part("data", "CAST(data AS TEXT)"), "UTF-8|lesson 2 is missing"),
    "data a number": (part("data", "7"), "lesson 2 is missing"),
    "model of text": (data("model", "model"), "model 0 is missing"),
    "a part of an unknown kind": (stranger("pickle"), "unknown kind"),
    "a part of no kind": (stranger(""), "unknown kind"),
    "a part of a kind in capitals": (stranger("MODEL"), "unknown kind"),
    "a part of a kind a megabyte long": (stranger("k" * 2**20), "unknown kind"),
}


# Whole files

Maker = Callable[[Path, Path], object]
"""Writes a file to the first path, given that of a good one."""


def foreign(path: Path, good: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE songs (title TEXT)")


def varint(number: int) -> bytes:
    """Return a number as SQLite writes it in a record."""
    out = [number & 0x7F]
    while number := number >> 7:
        out.append(0x80 | number & 0x7F)
    return bytes(reversed(out))


def claim_gigabyte(path: Path, good: Path) -> None:
    """Let the record of a part say that its blob is as long as a gigabyte."""
    content = Forgery(good).parts[PartKey("mapping", 0)].data
    raw = bytearray(good.read_bytes())
    kind_at = raw.rindex(b"mapping", 0, raw.index(content))
    told, claimed = varint(12 + 2 * len(content)), varint(12 + 2 * 2**30)
    header_at = kind_at - len(told) - 6
    assert raw[header_at] == 6 + len(told)
    middle = raw[header_at + 1 : kind_at - len(told)], raw[kind_at : raw.index(content)]
    record = bytes([6 + len(claimed), *middle[0], *claimed, *middle[1]])
    raw[header_at : header_at + len(record)] = record
    path.write_bytes(raw)


FILES: dict[str, tuple[Maker, str, str]] = {
    "a foreign database": (foreign, "CollectionFileError", "no everhash collection"),
    "an empty file": (lambda path, _: path.touch(), "CollectionFileError", "no everhash"),
    "a text": (lambda path, _: path.write_text("x" * 5000), "CollectionFileError", "no everhash"),
    "a short text": (lambda path, _: path.write_text("hello"), "CollectionFileError", "no ever"),
    "zeros": (lambda path, _: path.write_bytes(bytes(65_536)), "CollectionFileError", "no everha"),
    "a database's first bytes": (
        lambda path, good: path.write_bytes(good.read_bytes()[:100]),
        "CollectionFileError",
        "",
    ),
    "a folder": (lambda path, _: path.mkdir(), "StoreError", "is a folder"),
    "nothing": (lambda path, _: None, "DataMissingError", "no collection at"),
    "a link to nothing": (
        lambda path, _: path.symlink_to(path.with_name("nowhere")),
        "DataMissingError",
        "no collection at",
    ),
    "a link to itself": (lambda path, _: path.symlink_to(path), "DataMissingError", "no coll"),
    "a blob of a gigabyte in a small file": (claim_gigabyte, "CollectionFileError", ""),
}


# Odd, but good: what can be read is what it was


def rebuilt(*pragmas: str) -> Maker:
    """Write the same tables to a file that is laid out in another way."""
    ours = f"application_id = {APPLICATION:d}", f"user_version = {VERSION:d}", "synchronous = OFF"

    def make(path: Path, good: Path) -> None:
        source, target = (sqlite3.connect(file, isolation_level=None) for file in (good, path))
        with closing(source), closing(target):
            for pragma in (*pragmas, *ours):
                target.execute(f"PRAGMA {pragma}").fetchall()
            for (sql,) in source.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL"):
                target.execute(sql)
            for table, width in (("head", 3), ("part", 6), ("attached", 3)):
                rows = source.execute(f"SELECT * FROM {table}")  # noqa: S608
                marks = ",".join("?" * width)
                target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608

    return make


def forged(edit: Edit) -> Maker:
    def make(path: Path, good: Path) -> None:
        forgery = Forgery(good)
        edit(forgery)
        forgery.write(path)

    return make


def dead_code(forgery: Forgery) -> None:
    """Give entry 4, which has a label, a code as well, as if it had got its label later."""
    arrays = forgery.arrays(PartKey("codes", 3))
    more = {"places": 1, "homes": 0, "words": 5}
    wide = {name: np.insert(arrays[name], 1, more[name], axis=0) for name in arrays}
    forgery.put(PartKey("codes", 3), pack(wide), 3)


def remove_again(forgery: Forgery) -> None:
    forgery.put(PartKey("change", 2), forgery.parts[PartKey("change", 1)].data, 1)
    forgery.head.update(changes=3, changed=3)


HARMLESS: dict[str, Maker] = {
    "nothing changed": forged(lambda _: None),
    **{f"pages of {2**n} bytes": rebuilt(f"page_size = {2**n}") for n in range(9, 17)},
    "texts in UTF-16": rebuilt("encoding = 'UTF-16le'"),
    "texts in UTF-16, the other way": rebuilt("encoding = 'UTF-16be'"),
    "no log": forged(run("PRAGMA journal_mode = DELETE")),
    "no log, and a full vacuum": rebuilt("auto_vacuum = FULL"),
    "free pages": forged(
        both(
            run("INSERT INTO part VALUES ('more', 0, 0, 0, 0, zeroblob(1000000))"),
            run("DELETE FROM part WHERE kind = 'more'"),
        )
    ),
    "a model in pieces": forged(cut("model", 0, 1, 2)),
    "a mapping in pieces": forged(cut("mapping", 0, 1, 2)),
    "ids twice over, of which names count": forged(swap("entries", "ids", np.arange(50, 54), 1)),
    "an array nobody asks for": forged(swap("codes", "more", np.zeros((0, 2**40)))),
    "a code of an entry that has a label": forged(dead_code),
    "a removal of the removed": forged(remove_again),
    "a removal of what was written as removed": forged(put("entries", "labels", 1, -2)),
    "labels told again": forged(swap_about("lesson", '["a","new","b"]', 2)),
    "a head with more to say": forged(set_head("more", {"x": [1]})),
}
