"""SQLite's calls to the system and for memory, counted, and made to fail when a test says so.

No compiler is needed: with ctypes, SQLite's own table of file operations (its VFS) is copied, some
entries are replaced by Python functions, and the copy becomes the default. Only for a process of
the test's own, before it has opened any collection, and with one thread.
"""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
)
from pathlib import Path

SET_MEMORY, GET_MEMORY = 4, 5
"""SQLITE_CONFIG_MALLOC and SQLITE_CONFIG_GETMALLOC."""
WRITE_FAILURES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
KEPT: list[object] = []
"""What SQLite points to from now on."""

OpenFunction = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
TransferFunction = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
SyncFunction = CFUNCTYPE(c_int, c_void_p, c_int)
TruncateFunction = CFUNCTYPE(c_int, c_void_p, c_int64)
MallocFunction = CFUNCTYPE(c_void_p, c_int)
ReallocFunction = CFUNCTYPE(c_void_p, c_void_p, c_int)


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
        ("others", c_void_p * 15),
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


class Memory(Structure):
    """`sqlite3_mem_methods`: where memory comes from."""

    _fields_ = (
        ("xMalloc", MallocFunction),
        ("xFree", c_void_p),
        ("xRealloc", ReallocFunction),
        ("others", c_void_p * 5),
    )


def _nothing() -> None:
    pass


class Faults:
    """Makes the n-th operation of a kind fail, inside `at`."""

    def __init__(self) -> None:
        self._kind, self._left, self._lasting, self.n = "", 0, False, 0
        self._first: Callable[[], object] = _nothing
        self.hits = 0

    @contextmanager
    def at(
        self, kind: str, n: int, *, lasting: bool = False, first: Callable[[], object] = _nothing
    ) -> Iterator[None]:
        """Fail the n-th operation of a kind; `lasting`, also all after it. Call `first` before.

        `hits` tells afterwards how many have failed.
        """
        self._kind, self._left, self._lasting, self.n = kind, n, lasting, n
        self._first, self.hits = first, 0
        try:
            yield
        finally:
            self._kind = ""

    def due(self, kind: str) -> bool:
        """Count an operation, and return whether it is to fail."""
        if kind != self._kind:
            return False
        self._left -= 1
        if self._left > 0 or (self._left < 0 and not self._lasting):
            return False
        self.hits += 1
        return True

    def fail(self, code: int) -> int:
        """Return a code that tells SQLite of a failure."""
        self._first()
        return code


def inject_into_files() -> Faults:
    """Make a VFS the default whose operations fail on demand."""
    sqlite, faults = _sqlite(), Faults()
    sqlite.sqlite3_vfs_find.restype = POINTER(Vfs)
    original = sqlite.sqlite3_vfs_find(None).contents
    ours = Vfs.from_buffer_copy(original)
    replaced: dict[int, Methods] = {}

    def opened(vfs: int, name: int, file: int, flags: int, out: int) -> int:
        if faults.due("open"):
            return faults.fail(sqlite3.SQLITE_CANTOPEN)
        result = int(original.xOpen(vfs, name, file, flags, out))
        methods = c_void_p.from_address(file)
        if methods.value:
            if methods.value not in replaced:
                table = Methods.from_address(methods.value)
                replaced[methods.value] = _failing(table, faults)
            methods.value = addressof(replaced[methods.value])
        return result

    ours.zName, ours.xOpen = b"failing", OpenFunction(opened)
    assert sqlite.sqlite3_vfs_register(byref(ours), 1) == sqlite3.SQLITE_OK
    KEPT.extend((ours, replaced))
    return faults


def _failing(table: Methods, faults: Faults) -> Methods:
    """Return a copy of a file's operations that fail on demand."""

    def write(file: int, data: int, length: int, offset: int) -> int:
        if faults.due("write"):
            table.xWrite(file, data, length // 2, offset)  # a disk that fills up takes a part
            return faults.fail(WRITE_FAILURES[faults.n % 2])
        return int(table.xWrite(file, data, length, offset))

    def read(file: int, data: int, length: int, offset: int) -> int:
        if faults.due("read"):
            return faults.fail(sqlite3.SQLITE_IOERR_READ)
        return int(table.xRead(file, data, length, offset))

    def truncate(file: int, length: int) -> int:
        if faults.due("truncate"):
            return faults.fail(sqlite3.SQLITE_IOERR_TRUNCATE)
        return int(table.xTruncate(file, length))

    def sync(file: int, flags: int) -> int:
        if faults.due("sync"):
            return faults.fail(sqlite3.SQLITE_IOERR_FSYNC)
        return int(table.xSync(file, flags))

    ours = Methods.from_buffer_copy(table)
    ours.xRead, ours.xWrite = TransferFunction(read), TransferFunction(write)
    ours.xTruncate, ours.xSync = TruncateFunction(truncate), SyncFunction(sync)
    return ours


def inject_into_memory() -> Faults:
    """Have SQLite ask us for memory."""
    sqlite, faults, original, ours = _sqlite(), Faults(), Memory(), Memory()
    sqlite.sqlite3_shutdown()
    for table in (original, ours):
        assert sqlite.sqlite3_config(GET_MEMORY, byref(table)) == sqlite3.SQLITE_OK

    def allocate(size: int) -> int | None:
        return None if faults.due("memory") else original.xMalloc(size)

    def reallocate(block: int, size: int) -> int | None:
        return None if faults.due("memory") else original.xRealloc(block, size)

    ours.xMalloc, ours.xRealloc = MallocFunction(allocate), ReallocFunction(reallocate)
    assert sqlite.sqlite3_config(SET_MEMORY, byref(ours)) == sqlite3.SQLITE_OK
    sqlite.sqlite3_initialize()
    KEPT.extend((ours, original))
    return faults


def _sqlite() -> ctypes.CDLL:
    """Return the SQLite that Python uses: a library of its own, or inside Python's module."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[-1] for line in lines}
    found = sorted(path for path in paths if "sqlite3" in Path(path).name)
    libraries = [path for path in found if Path(path).name.startswith("libsqlite3")]
    return ctypes.CDLL((libraries or found)[0])
