"""Hostile files: what entries carry."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from everhash.store.attached import checksum
from tests.fuzz.forging import Edit, Forgery, both, run, set_head
from tests.fuzz.hostile_heads import BOMB, Case
from tests.fuzz.samples import GIF

NOT_THERE = "entries that are not there"


def blob(number: int, data: bytes) -> Edit:
    """Put something in place of a blob; its checksum and the head agree with it."""

    def edit(forgery: Forgery) -> None:
        with closing(sqlite3.connect(forgery.source)) as file:
            sums = dict(file.execute("SELECT number, checksum FROM attached"))
        sums[number] = checksum(number, data)
        row = f"({number}, {sums[number]}, x'{data.hex()}')"
        forgery.statements.append(f"INSERT OR REPLACE INTO attached VALUES {row}")  # noqa: S608
        forgery.head.update(attached=len(sums), attached_tally=sum(sums.values()))

    return edit


def column(name: str, value: str) -> Edit:
    """Set a column of the payload of entry 0."""
    return run(f"UPDATE attached SET {name} = {value} WHERE number = 0")  # noqa: S608


def count(**fields: Any) -> Edit:
    """Let the head count what is attached like this."""
    return both(*(set_head(name, value) for name, value in fields.items()))


ATTACHED: dict[str, Case] = {
    "a payload that is no JSON": (blob(0, b"{"), "attached 0"),
    "a payload NaN": (blob(0, b"NaN"), "attached 0"),
    "a payload beyond any number": (blob(0, b"1e999"), "attached 0"),
    "a payload null": (blob(0, b"null"), "attached 0"),
    "a payload of nothing": (blob(0, b""), "attached 0"),
    "a payload that is no UTF-8": (blob(0, b'"\xff"'), "attached 0"),
    "a payload that could be shorter": (blob(0, b"[ ]"), "attached 0"),
    "a payload nested to its end": (blob(0, b"[" * 2048 + b"]" * 2048), "attached 0"),
    "a payload deeply nested": (blob(0, BOMB.encode()), "attached 0"),
    "a payload of a number without end": (blob(0, b"1" * 10**6), "attached 0"),
    "a payload of 20 megabytes": (blob(0, b'"' + bytes(20_000_000) + b'"'), "attached 0"),
    "a thumbnail that is no picture": (blob(7, b"<svg/>"), "attached 7"),
    "a thumbnail of nothing": (blob(7, b""), "attached 7"),
    "a thumbnail of 20 megabytes": (blob(7, GIF + bytes(20_000_000)), "attached 7"),
    "a blob of text": (column("data", "'1'"), "attached 0"),
    "a blob of a number": (column("data", "7"), "attached 0"),
    "a blob of text that is no UTF-8": (column("data", "CAST(x'ff' AS TEXT)"), "attached 0"),
    "another blob's checksum": (column("checksum", "checksum + 1"), "attached 0"),
    "a blob's checksum a text": (column("checksum", "'right'"), "attached 0"),
    "a blob's checksum infinite": (column("checksum", "9e999"), "attached 0"),
    "a blob in another's place": (column("number", "4"), "attached 4"),
    "a blob of an entry that was removed": (blob(2, b"1"), "entry was removed"),
    "a blob of the next entry": (blob(24, b"1"), NOT_THERE),
    "a thumbnail of the next entry": (blob(25, GIF), NOT_THERE),
    "a blob of the last entry there can be": (blob(2**63 - 1, GIF), NOT_THERE),
    "a blob below zero": (blob(-2, b"1"), NOT_THERE),
    "a blob missing": (run("DELETE FROM attached WHERE number = 7"), "more than the head counts"),
    "no blobs at all": (run("DELETE FROM attached"), "more than the head counts"),
    "blobs fewer": (count(attached=1), "more than the head counts"),
    "blobs more": (count(attached=5), "more than the head counts"),
    "blobs more than entries can have": (count(attached=25), NOT_THERE),
    "blobs below zero": (count(attached=-1), "head is damaged"),
    "blobs a text": (count(attached="4"), "head is damaged"),
    "blobs not counted": (lambda forgery: forgery.head.pop("attached"), "head is damaged"),
    "blobs of another tally": (count(attached_tally=7), "more than the head counts"),
    "a tally of blobs that is a float": (count(attached_tally=0.5), "head is damaged"),
    "a tally of blobs beyond any number": (count(attached_tally=10**30), "more than the head"),
}
