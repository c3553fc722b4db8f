"""A forger: changes anything in a collection's file, then makes every checksum right again."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from everhash import OnlineHasher
from everhash.store.parts import ABOUT, Arrays, PartKey, about_of, checksum, unpack
from tests.fuzz.samples import GIF, begin, some_rows


class Forged(NamedTuple):
    """A part, before its checksum."""

    rows: int
    written: int
    data: Any


def write_victim(path: Path) -> None:
    """Write a good file: 3 features, 3 bits, 5 labels in 3 cycles of 2, two parts of most kinds.

    All features are kept, and likeness codes, whose direction is not settled yet.

    Entries 0 to 7 have their places for ids, 8 to 11 are "e8" to "e11". Without labels are 3, 7
    and 8 to 11; 5 has two labels; 1 was removed, 2 got another label. 0 carries a payload, 3 a
    thumbnail, 9 both.
    """
    X, _ = some_rows(12, 3, 4)
    with begin(path, OnlineHasher(3, 2, learner="sgd", replay=1), 3) as victim:
        victim.learn(X[:2], ["a", "b"])
        victim.ingest(X[:8], ["a", "b", "c", None, "d", {"a", "c"}, "b", None])
        victim.add(X[8:], ids=["e8", "e9", "e10", "e11"])
        victim.label([2], ["new"], teach=False)
        victim.attach([0, 1, "e9"], payloads=[{"n": 0}, "gone", "nine"])
        victim.attach([1, 3, "e9"], thumbnails=[GIF, GIF, GIF])
        victim.remove([1])


def pack(arrays: Arrays, about: Any = None) -> bytes:
    """Return arrays of any type as a part's bytes, and JSON beside them."""
    if about is not None:
        arrays = {**arrays, ABOUT: np.frombuffer(json.dumps(about).encode(), np.uint8)}
    return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


class Forgery:
    """Head and parts of a good file, to be changed."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.statements: list[str] = []
        """To be run on the forged file before it is closed."""
        self.claimed: dict[str, Any] = {}
        """What the head says in place of the true counts."""
        self.text: Any = None
        """Text in place of the whole head, if any."""
        with closing(sqlite3.connect(source)) as file:
            self.head = json.loads(file.execute("SELECT about FROM head").fetchone()[0])
            rows = file.execute("SELECT kind, start, rows, written, data FROM part").fetchall()
        self.parts: dict[PartKey, Forged] = {PartKey(*row[:2]): Forged(*row[2:]) for row in rows}

    def find(self, kind: str, number: int = 0) -> PartKey:
        """Return the name of the part of a kind that comes at this number."""
        return sorted(key for key in self.parts if key.kind == kind)[number]

    def arrays(self, key: PartKey) -> Arrays:
        """Return copies of a part's arrays."""
        return {name: array.copy() for name, array in unpack(self.parts[key].data, key).items()}

    def about(self, key: PartKey) -> Any:
        """Return a part's JSON."""
        return about_of(self.arrays(key), key)

    def put(self, key: PartKey, data: Any, rows: int | None = None) -> None:
        """Write a part, or write over it."""
        before = self.parts.get(key, Forged(0, 0, b""))
        self.parts[key] = Forged(before.rows if rows is None else rows, before.written, data)

    def rename(self, key: PartKey, name: PartKey) -> None:
        """Give a part another name."""
        self.parts[name] = self.parts.pop(key)

    def write(self, path: Path) -> Path:
        """Write the forgery, with every checksum and the tally right."""
        shutil.copy(self.source, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("PRAGMA synchronous = OFF")
            file.execute("DELETE FROM part")
            total = 0
            for key, (rows, written, data) in self.parts.items():
                raw = data if isinstance(data, bytes) else str(data).encode()
                check = checksum(key, rows, written, raw)
                total += check
                file.execute(
                    "INSERT INTO part VALUES (?,?,?,?,?,?)", (*key, rows, written, check, data)
                )
            text = json.dumps(
                {**self.head, "parts": len(self.parts), "tally": total, **self.claimed}
            )
            text = text if self.text is None else self.text
            raw = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
            file.execute("UPDATE head SET about = ?, checksum = ?", (text, zlib.crc32(raw)))
            for statement in self.statements:
                file.execute(statement).fetchall()
        return path


Edit = Callable[[Forgery], object]


def both(*edits: Edit) -> Edit:
    """Do one edit after the other."""
    return lambda forgery: [edit(forgery) for edit in edits]


def set_head(name: str, value: Any) -> Edit:
    """Change a field of the head, or with "options.coding" one of the options."""

    def edit(forgery: Forgery) -> None:
        *above, last = name.split(".")
        (forgery.head[above[0]] if above else forgery.head)[last] = value

    return edit


def swap(kind: str, name: str, array: Any, number: int = 0) -> Edit:
    """Replace or add an array; a function gets the one that is there."""

    def edit(forgery: Forgery) -> None:
        key = forgery.find(kind, number)
        arrays = forgery.arrays(key)
        made = array(arrays[name]) if callable(array) else array
        forgery.put(key, pack({**arrays, name: made}))

    return edit


def put(kind: str, name: str, index: Any, value: Any, number: int = 0) -> Edit:
    """Change elements of an array; where its type has no such number, it becomes a wider one."""

    def edit(array: NDArray[Any]) -> NDArray[Any]:
        if array.dtype.kind in "iu" and not _holds(array.dtype, value):
            array = array.astype(np.int32)
        array[index] = value
        return array

    return swap(kind, name, edit, number)


def _holds(dtype: np.dtype[Any], value: int) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def swap_text(kind: str, name: str, text: str | bytes, number: int = 0) -> Edit:
    """Replace an array that holds JSON."""
    raw = text if isinstance(text, bytes) else text.encode()
    return swap(kind, name, np.frombuffer(raw, np.uint8), number)


def swap_about(kind: str, text: str | bytes, number: int = 0) -> Edit:
    return swap_text(kind, ABOUT, text, number)


def set_about(kind: str, **fields: Any) -> Edit:
    """Change what the JSON of a kind's first part says."""

    def edit(forgery: Forgery) -> None:
        about = {**forgery.about(forgery.find(kind)), **fields}
        swap_about(kind, json.dumps(about))(forgery)

    return edit


def drop(kind: str, number: int = 0) -> Edit:
    """Remove a part."""
    return lambda forgery: forgery.parts.pop(forgery.find(kind, number))


def data(kind: str, content: Any, number: int = 0) -> Edit:
    """Replace all bytes of a part; a function gets those that are there."""

    def edit(forgery: Forgery) -> None:
        key = forgery.find(kind, number)
        made = content(forgery.parts[key].data) if callable(content) else content
        forgery.put(key, made)

    return edit


def restart(kind: str, start: int, number: int = 0) -> Edit:
    """Let a part start elsewhere."""
    return lambda forgery: forgery.rename(forgery.find(kind, number), PartKey(kind, start))


def claim(kind: str, rows: int, number: int = 0) -> Edit:
    """Let a part claim another number of rows."""

    def edit(forgery: Forgery) -> None:
        key = forgery.find(kind, number)
        forgery.parts[key] = forgery.parts[key]._replace(rows=rows)

    return edit


def cut(kind: str, *order: int) -> Edit:
    """Cut the only part of a kind into three pieces, and number those listed in their order."""

    def edit(forgery: Forgery) -> None:
        whole = forgery.parts.pop(PartKey(kind, 0)).data
        third = len(whole) // 3
        pieces = whole[:third], whole[third : 2 * third], whole[2 * third :]
        for name, piece in enumerate(order):
            forgery.put(PartKey(kind, name), pieces[piece])

    return edit


def run(*statements: str) -> Edit:
    """Run SQL on the forged file."""
    return lambda forgery: forgery.statements.extend(statements)
