"""Attachments in the file: its version, and blobs, checksums and counts that lie."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash import Attachment
from everhash.errors import CollectionFileError
from everhash.store.schema import VERSION
from tests.unit.collection.conftest import GIF, PNG


def version_of(path: Path) -> tuple[int, set[str]]:
    with closing(sqlite3.connect(path)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        tables = file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return version, {name for (name,) in tables}


OLDEST = Path(__file__).parents[2] / "compat" / "v1-home.ever"


def test_a_file_of_the_first_version_stays_so_until_something_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, first = tmp_path / "c.ever", (1, {"head", "part"})
    shutil.copy(OLDEST, path)
    with everhash.open(path) as col:
        assert col.attachments(["e1"]) == [Attachment()]
        with monkeypatch.context() as broken:
            broken.setattr("everhash.store.transaction.write_head", None)
            with pytest.raises(TypeError):
                col.attach(["e1"], payloads=[1])
        assert version_of(path) == first
        col.attach(["e1"], payloads=[1])
        assert version_of(path) == (VERSION, {"head", "part", "attached"})
    with everhash.open(path) as col:
        col.attach(["e1"], payloads=[None])
        assert col.attachments(["e1", "e2"]) == [Attachment(), Attachment()]


def test_a_file_of_a_later_version_is_refused_with_a_hint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(
        CollectionFileError,
        match=rf"version {VERSION + 1}, this everhash reads 1 to {VERSION}.*upgrade",
    ):
        everhash.open(path)


def forge(path: Path, number: int, data: Any, check: Any = None) -> None:
    """Put something in place of a blob, and have checksums and counts agree with it."""
    raw = data if isinstance(data, bytes) else str(data).encode()
    total = zlib.crc32(f"{number}".encode(), zlib.crc32(raw)) if check is None else check
    with closing(sqlite3.connect(path)) as file:
        file.execute("INSERT OR REPLACE INTO attached VALUES (?, ?, ?)", (number, total, data))
        file.commit()
    recount(path)


def recount(path: Path, **counts: Any) -> None:
    """Write the right counts into the head, or others."""
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute("SELECT checksum FROM attached").fetchall()
        about = json.loads(file.execute("SELECT about FROM head").fetchone()[0])
        about["attached"] = len(rows)
        about["attached_tally"] = sum(row[0] for row in rows if isinstance(row[0], int))
        text = json.dumps({**about, **counts})
        file.execute("UPDATE head SET about = ?, checksum = ?", (text, zlib.crc32(text.encode())))
        file.commit()


HOSTILE: dict[str, tuple[int, Any]] = {
    "NaN": (0, b"NaN"),
    "infinity": (0, b"[1e999]"),
    "null": (0, b"null"),
    "no JSON": (0, b"{"),
    "nothing": (0, b""),
    "JSON twice": (0, b"1 1"),
    "JSON with spaces": (0, b"[1, 2]"),
    "a key twice": (0, b'{"a":1,"a":2}'),
    "no UTF-8": (0, b'"\xff"'),
    "half a character": (0, b'"\xed\xa0\x80"'),
    "UTF-16": (0, "[1]".encode("utf-16")),
    "2,000 lists": (0, b"[" * 2000 + b"]" * 2000),
    "65 lists": (0, b"[" * 65 + b"]" * 65),
    "a long payload": (0, b'"' + b"x" * 4095 + b'"'),
    "a payload of a megabyte": (0, b'"' + b"x" * 2**20 + b'"'),
    "a payload of text": (0, "1"),
    "a payload of a number": (0, 1),
    "no picture": (1, b"<svg onload='alert(1)'/>"),
    "a large picture": (1, PNG + bytes(32_768)),
    "a picture of a megabyte": (1, PNG + bytes(2**20)),
    "a picture of text": (1, "GIF89a"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_forged_blob_is_refused_when_it_is_read_and_named_by_verify(
    path: Path, name: str
) -> None:
    number, data = HOSTILE[name]
    forge(path, number, data)
    (problem,) = everhash.verify(path).problems
    assert f"attached {number}" in problem
    with everhash.open(path) as col:
        with pytest.raises(CollectionFileError, match=f"attached {number}"):
            col.attachments([2, 0])
        assert col.attachments([1, 2]) == [Attachment({"n": 1}), Attachment(None, GIF)]
        col.attach([0], payloads=["good"], thumbnails=[PNG])
        assert col.attachments([0]) == [Attachment("good", PNG)]
    assert everhash.verify(path).problems == ()


@pytest.mark.parametrize("check", [0, -1, 2**62, "text", 1.5, b"x"])
def test_a_wrong_checksum_is_noticed(path: Path, check: Any) -> None:
    forge(path, 0, b"1", check)
    assert "attached 0 is damaged" in everhash.verify(path).problems[0]
    with everhash.open(path) as col, pytest.raises(CollectionFileError, match="0 is damaged"):
        col.attachments([0])


@pytest.mark.parametrize("number", [12, 13, 2**62, -1, -(2**63)])
def test_blobs_of_entries_that_never_were_are_refused(path: Path, number: int) -> None:
    """The next entry would get them."""
    forge(path, number, b"1")
    with pytest.raises(CollectionFileError, match="entries that are not there"):
        everhash.open(path)
    assert "entries that are not there" in everhash.verify(path).problems[0]


def test_verify_names_blobs_that_are_missing_or_left_over(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ever"
    shutil.copy(path, copy)
    forge(copy, 6, b"1")
    assert everhash.verify(copy).problems == ("attached 6: its entry was removed",)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM attached WHERE number = 0")
        file.commit()
    (problem,) = everhash.verify(path).problems
    assert "attached blobs are missing" in problem


@pytest.mark.parametrize(
    "counts",
    [
        {"attached": "4"},
        {"attached": -1},
        {"attached": True},
        {"attached": None},
        {"attached_tally": 1.5},
        {"attached_tally": -1},
    ],
    ids=str,
)
def test_a_head_with_no_counts_is_damaged(path: Path, counts: dict[str, Any]) -> None:
    recount(path, **counts)
    with pytest.raises(CollectionFileError, match="head is damaged"):
        everhash.open(path)
    assert "head is damaged" in everhash.verify(path).problems[0]


def test_a_head_that_counts_wrong_is_named_by_verify(path: Path) -> None:
    for counts in ({"attached": 3}, {"attached_tally": 7}):
        recount(path, **counts)
        assert "more than the head counts" in everhash.verify(path).problems[0]
    recount(path, attached=10**9)
    assert "entries that are not there" in everhash.verify(path).problems[0]


def test_a_head_that_counts_too_few_is_not_counted_below_zero(path: Path) -> None:
    recount(path, attached=0, attached_tally=0)
    with everhash.open(path) as col:
        for call in (lambda: col.remove([0]), lambda: col.attach([0], payloads=[None])):
            with pytest.raises(CollectionFileError, match="more is attached than the head counts"):
                call()
        assert len(col) == 5
        assert col.attachments([0]) == [Attachment({"n": 0}, PNG)]
    everhash.open(path).close()


@pytest.mark.parametrize(
    "statement",
    ["PRAGMA user_version = 1", "DROP TABLE attached", "CREATE INDEX i ON attached (checksum)"],
)
def test_a_table_that_does_not_fit_the_version_is_refused(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
        file.commit()
    with pytest.raises(CollectionFileError, match="other tables than a collection"):
        everhash.open(path)


def test_reading_does_not_load_what_claims_to_be_long(path: Path) -> None:
    import tracemalloc

    forge(path, 0, PNG + bytes(50_000_000))
    with everhash.open(path) as col:
        tracemalloc.start()
        with pytest.raises(CollectionFileError, match="attached 0 is damaged"):
            col.attachments([0])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
