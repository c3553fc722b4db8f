"""A layer between SQLite and its files that sees every operation.

No compiler is needed: with ctypes, SQLite's own table of file operations (its VFS) is copied, some
entries are replaced by Python functions, and the copy becomes the default. Only for a process of
the test's own, before it has opened any collection, and with one thread.

What SQLite maps into memory passes by: that is the `-shm` beside a log, which it builds anew after
every crash, and nothing of which has to last.
"""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    addressof,
    byref,
    c_char_p,
    c_int,
    c_int64,
    c_void_p,
    cast,
)
from pathlib import Path
from typing import Any, NamedTuple, Protocol

KEPT: list[object] = []
"""What SQLite points to from now on."""

OpenFunction = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
DeleteFunction = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
SetCallFunction = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)
GetCallFunction = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
OpenFolderFunction = CFUNCTYPE(c_int, c_char_p, c_void_p)
TransferFunction = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
SyncFunction = CFUNCTYPE(c_int, c_void_p, c_int)
TruncateFunction = CFUNCTYPE(c_int, c_void_p, c_int64)
GoOn = Callable[..., int]
"""Does what SQLite asks for, and returns its code. Of a write it may be told how many bytes."""


class Vfs(Structure):
    """`sqlite3_vfs`: how files are opened."""

    _fields_ = (
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", OpenFunction),
        ("xDelete", DeleteFunction),
        ("others", c_void_p * 11),
        ("xSetSystemCall", SetCallFunction),
        ("xGetSystemCall", GetCallFunction),
        ("xNextSystemCall", c_void_p),
    )


class Methods(Structure):
    """`sqlite3_io_methods`: what is done with an open file."""

    _fields_ = (
        ("iVersion", c_int),
        ("xClose", c_void_p),
        ("xRead", TransferFunction),
        ("xWrite", TransferFunction),
        ("xTruncate", TruncateFunction),
        ("xSync", SyncFunction),
        ("others", c_void_p * 13),
    )


class Asked(NamedTuple):
    """What SQLite asks of the system: "open", "delete", "read", "write", "truncate" or "sync"."""

    kind: str
    path: str = ""
    """Of what is opened or deleted; empty for a temporary file."""
    file: int = 0
    """Tells open files apart."""
    place: int = 0
    """Where a write begins, or where a truncation cuts."""
    data: bytes = b""


class Layer(Protocol):
    """Stands between SQLite and its files."""

    def ask(self, asked: Asked, go_on: GoOn) -> int:
        """Do what is asked, or not, and return a code for SQLite."""

    def folder_synced(self) -> None:
        """Within a sync or a deletion, SQLite waits until the disk has the folder's names too."""


def put_below(layer: Layer) -> None:
    """Make a VFS the default whose operations go through a layer."""
    sqlite = find_sqlite()
    sqlite.sqlite3_vfs_find.restype = POINTER(Vfs)
    original = sqlite.sqlite3_vfs_find(None).contents
    ours = Vfs.from_buffer_copy(original)
    replaced: dict[int, Methods] = {}

    def opened(vfs: int, name: int, file: int, flags: int, out: int) -> int:
        def go_on() -> int:
            return int(original.xOpen(vfs, name, file, flags, out))

        result = layer.ask(Asked("open", _text(name), file), go_on)
        methods = c_void_p.from_address(file)
        if result == sqlite3.SQLITE_OK and methods.value:
            if methods.value not in replaced:
                replaced[methods.value] = _watched(Methods.from_address(methods.value), layer)
            methods.value = addressof(replaced[methods.value])
        return result

    def deleted(vfs: int, name: int, sync: int) -> int:
        asked = Asked("delete", _text(name))
        return layer.ask(asked, lambda: int(original.xDelete(vfs, name, sync)))

    ours.zName, ours.xOpen, ours.xDelete = b"watched", OpenFunction(opened), DeleteFunction(deleted)
    KEPT.append(_watch_folders(original, layer))
    assert sqlite.sqlite3_vfs_register(byref(ours), 1) == sqlite3.SQLITE_OK
    KEPT.extend((ours, replaced))


def _watched(table: Methods, layer: Layer) -> Methods:
    """Return a copy of a file's operations that go through a layer."""

    def write(file: int, data: int, length: int, offset: int) -> int:
        def go_on(most: int = length) -> int:
            return int(table.xWrite(file, data, most, offset))

        asked = Asked("write", file=file, place=offset, data=ctypes.string_at(data, length))
        return layer.ask(asked, go_on)

    def read(file: int, data: int, length: int, offset: int) -> int:
        asked = Asked("read", file=file)
        return layer.ask(asked, lambda: int(table.xRead(file, data, length, offset)))

    def truncate(file: int, length: int) -> int:
        asked = Asked("truncate", file=file, place=length)
        return layer.ask(asked, lambda: int(table.xTruncate(file, length)))

    def sync(file: int, flags: int) -> int:
        return layer.ask(Asked("sync", file=file), lambda: int(table.xSync(file, flags)))

    ours = Methods.from_buffer_copy(table)
    ours.xRead, ours.xWrite = TransferFunction(read), TransferFunction(write)
    ours.xTruncate, ours.xSync = TruncateFunction(truncate), SyncFunction(sync)
    return ours


def _watch_folders(vfs: Vfs, layer: Layer) -> Any:
    """Have SQLite tell when it opens a folder, which it does only to sync it."""
    name = b"openDirectory"
    original = cast(vfs.xGetSystemCall(byref(vfs), name), OpenFolderFunction)

    def opened(path: bytes, out: int) -> int:
        result = int(original(path, out))
        if result == sqlite3.SQLITE_OK:
            layer.folder_synced()
        return result

    ours = OpenFolderFunction(opened)
    assert vfs.xSetSystemCall(byref(vfs), name, cast(ours, c_void_p)) == sqlite3.SQLITE_OK
    return ours, original


def _text(name: int | None) -> str:
    return ctypes.string_at(name).decode() if name else ""


def find_sqlite() -> ctypes.CDLL:
    """Return the SQLite that Python uses: a library of its own, or inside Python's module."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[-1] for line in lines}
    found = sorted(path for path in paths if "sqlite3" in Path(path).name)
    libraries = [path for path in found if Path(path).name.startswith("libsqlite3")]
    return ctypes.CDLL((libraries or found)[0])
