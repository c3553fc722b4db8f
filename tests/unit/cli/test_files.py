"""How every command treats files: foreign, locked, without permission, there already."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import everhash
from tests.unit.cli.commands import answers, output, stats

READING = ("search", "stats", "verify", "snapshot", "export", "refresh --dry-run")


WRITING = ("ingest", "label", "remove", "refresh")


def test_reading_commands_work_while_another_process_writes(
    shop: Path, tmp_path: Path, queries: Path
) -> None:
    with everhash.open(shop):
        stats(shop)
        answers("search", shop, queries)
        answers("verify", shop)
        answers("refresh", shop, "--dry-run")
        output("snapshot", shop, tmp_path / "copy.ever")
        output("export", shop, tmp_path / "out.jsonl")


@pytest.mark.parametrize("command", READING + WRITING)
def test_no_file_a_folder_and_a_foreign_file_are_refused(
    command: str, tmp_path: Path, call: Any, refused: Any
) -> None:
    refused(6, *call(command, tmp_path / "none.ever"), says="no collection at")
    refused(7, *call(command, tmp_path), says="is a folder")
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    text = tmp_path / "text.ever"
    text.write_text("no collection at all, but a text that is long enough" * 100)
    for path in (foreign, text):
        before = path.read_bytes()
        ended = refused(5, *call(command, path))
        assert "is no everhash collection" in (ended.out if command == "verify" else ended.err)
        assert path.read_bytes() == before
    assert not (tmp_path / "new.ever").exists()
    assert not (tmp_path / "new.jsonl").exists()


def test_a_collection_another_process_writes_is_refused(
    shop: Path, call: Any, refused: Any
) -> None:
    code = (
        "import everhash, sys; c = everhash.open(sys.argv[1]); print(len(c), flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(shop)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    with other:
        assert other.stdout.readline() == "40\n"
        for command in WRITING:
            refused(8, *call(command, shop), says=f"written by process {other.pid}")
        other.communicate("\n")
    for command in WRITING:
        output(*call(command, shop))


def test_nothing_is_ever_overwritten(shop: Path, tmp_path: Path, refused: Any) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("precious")
    before = shop.read_bytes()
    refused(7, "create", shop, "--dim", 3, says="is there already")
    refused(7, "create", tmp_path, "--dim", 3, says="is there already")
    refused(7, "snapshot", shop, other, says="is there already")
    refused(7, "restore", shop, other, says="is there already")
    refused(7, "export", shop, other, says="is there already")
    assert other.read_text() == "precious"
    assert shop.read_bytes() == before


def test_a_folder_that_is_not_there_is_refused(shop: Path, tmp_path: Path, refused: Any) -> None:
    away = tmp_path / "no" / "such"
    refused(7, "create", away / "a.ever", "--dim", 3, says="cannot be written")
    refused(7, "snapshot", shop, away / "a.ever")
    refused(7, "restore", shop, away / "a.ever")
    refused(7, "export", shop, away / "a.jsonl", says="cannot be written")
    refused(7, "export", shop, away / "a.parquet", says="cannot be written")
    refused(7, "export", shop, away / "a.safetensors", says="cannot be written")


@pytest.mark.parametrize("command", READING)
def test_rights_to_a_file_are_for_the_command_to_look_at(
    command: str, shop: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer would refuse it beforehand, in a box of several lines without a hint."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    output(*call(command, shop))


@pytest.mark.parametrize("command", WRITING)
def test_a_file_without_the_right_to_write_is_refused_in_one_line(
    command: str, shop: Path, call: Any, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    refused(7, *call(command, shop), says="cannot be written")
