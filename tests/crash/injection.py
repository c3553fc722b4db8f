"""SQLite's calls to the system and for memory, counted, and made to fail when a test says so.

Files fail in the layer of `vfs`, memory in SQLite's own table of allocations.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, Structure, byref, c_int, c_void_p

from tests.crash.vfs import KEPT, Asked, GoOn, find_sqlite, put_below

SET_MEMORY, GET_MEMORY = 4, 5
"""SQLITE_CONFIG_MALLOC and SQLITE_CONFIG_GETMALLOC."""
FAILURES = {
    "open": (sqlite3.SQLITE_CANTOPEN,),
    "read": (sqlite3.SQLITE_IOERR_READ,),
    "write": (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE),
    "truncate": (sqlite3.SQLITE_IOERR_TRUNCATE,),
    "sync": (sqlite3.SQLITE_IOERR_FSYNC,),
}
"""What SQLite is told of an operation that fails, in turn."""

MallocFunction = CFUNCTYPE(c_void_p, c_int)
ReallocFunction = CFUNCTYPE(c_void_p, c_void_p, c_int)


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
            if not gc.isenabled():
                gc.collect(1)

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


class FailingFiles:
    """Lets operations pass, but for those that are to fail."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def ask(self, asked: Asked, go_on: GoOn) -> int:
        if not self._faults.due(asked.kind):
            return go_on()
        if asked.kind == "write":
            go_on(len(asked.data) // 2)  # a disk that fills up takes a part
        return self._faults.fail(FAILURES[asked.kind][self._faults.n % len(FAILURES[asked.kind])])

    def folder_synced(self) -> None:
        pass


def inject_into_files() -> Faults:
    """Put a layer below SQLite whose operations fail on demand."""
    faults = Faults()
    put_below(FailingFiles(faults))
    return faults


def inject_into_memory() -> Faults:
    """Have SQLite ask us for memory.

    It does so while it holds a lock of its own. If Python collected a connection there, closing
    that would wait for the lock without end: garbage is collected between faults only.
    """
    gc.disable()
    sqlite, faults, original, ours = find_sqlite(), Faults(), Memory(), Memory()
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
