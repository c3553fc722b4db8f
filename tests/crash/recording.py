"""What a process does to the files of a folder, recorded below SQLite and below Python."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.crash.disk import (
    Begun,
    Contents,
    Enter,
    Folder,
    Leave,
    Operation,
    Promised,
    Rename,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)
from tests.crash.vfs import GoOn, Layer

PASSING = ("-shm", "-lock")
"""Ends of names of files that nothing has to be left of."""
Ignores = Callable[[Operation, str], bool]
"""Whether the disk ignores an operation, on the file of a name: a planted fault."""


def _never(operation: Operation, name: str) -> bool:
    return False


class Recorder(Layer):
    """Records operations on one folder, inside `recording`; put it below SQLite first."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self.start = Contents()
        self._folder: Path | None = None
        self._now = Contents()
        self._open: dict[int, int] = {}
        self._files, self._folder_synced = 0, False
        self._ignores: Ignores = _never

    @contextmanager
    def recording(self, folder: Path, ignores: Ignores = _never) -> Iterator[None]:
        """Record what is done to files in a folder; what is there already is on the disk.

        At the end, all that was recorded must give the folder as it is: nothing was missed.
        """
        self.history, self._folder, self._ignores = [], folder.resolve(), ignores
        self._now, self._open = Contents(), {}
        self._catch_up()
        self.history, self.start = [], self._now.after([])
        names = ("fsync", "link", "unlink", "remove", "replace", "rename")
        replaced = {name: getattr(self, f"_{name}")(getattr(os, name)) for name in names}
        try:
            with mock.patch.multiple(os, **replaced):
                yield
            missed = read_folder(folder).keys() ^ self.folder.keys()
            assert read_folder(folder) == self.folder, f"not all was recorded: {missed}"
        finally:
            self._folder = None

    @property
    def folder(self) -> Folder:
        """What the folder holds by now, by what was recorded."""
        return self._now.folder

    def begin(self, state: int, what: str) -> None:
        """Note that something begins, after which a state may be found."""
        self.history.append(Begun(state, what))

    def promise(self, state: int) -> None:
        """Note that a state was acknowledged."""
        self.history.append(Promised(state))

    # What SQLite does

    def open(self, path: str, file: int, go_on: GoOn) -> int:
        result, name = go_on(), self._name(path)
        self._open.pop(file, None)
        if result == sqlite3.SQLITE_OK and name is not None:
            if name not in self._now.names:
                self._do(Enter(name, self._new_file()))
            self._open[file] = self._now.names[name]
        return result

    def delete(self, path: str, go_on: GoOn) -> int:
        result, name = go_on(), self._name(path)
        if result == sqlite3.SQLITE_OK and name in self._now.names:
            self._do(Leave(name))
        self._after_folder_sync()
        return result

    def write(self, file: int, data: bytes, offset: int, go_on: Callable[[int], int]) -> int:
        result = go_on(len(data))
        self._to_file(file, result, lambda number: Write(number, offset, data))
        return result

    def truncate(self, file: int, length: int, go_on: GoOn) -> int:
        result = go_on()
        self._to_file(file, result, lambda number: Truncate(number, length))
        return result

    def sync(self, file: int, go_on: GoOn) -> int:
        result = go_on()
        self._to_file(file, result, Sync)
        self._after_folder_sync()
        return result

    def folder_synced(self) -> None:
        self._folder_synced = True

    def _after_folder_sync(self) -> None:
        done, self._folder_synced = self._folder_synced, False
        if done and self._folder is not None:
            self._do(SyncFolder())

    def _to_file(self, file: int, result: int, operation: Callable[[int], Operation]) -> None:
        if self._folder is not None and result == sqlite3.SQLITE_OK and file in self._open:
            self._do(operation(self._open[file]))

    # What Python does

    def _fsync(self, go_on: Callable[[int], None]) -> Callable[[int], None]:
        def fsync(file: int) -> None:
            self._catch_up()
            go_on(file)
            found = os.fstat(file)
            if stat.S_ISDIR(found.st_mode):
                if self._folder and os.path.samestat(found, self._folder.stat()):
                    self._do(SyncFolder())
                return
            for name, number in self._now.names.items():
                if self._folder and os.path.samestat(found, (self._folder / name).stat()):
                    return self._do(Sync(number))

        return fsync

    def _link(self, go_on: Any) -> Any:
        def link(source: Any, target: Any, **options: Any) -> None:
            self._catch_up()
            go_on(source, target, **options)
            old, new = self._name(source), self._name(target)
            if old and new:
                self._do(Enter(new, self._now.names[old]))

        return link

    def _unlink(self, go_on: Any) -> Any:
        def unlink(path: Any, **options: Any) -> None:
            self._catch_up()
            go_on(path, **options)
            if name := self._name(path):
                self._do(Leave(name))

        return unlink

    _remove = _unlink

    def _replace(self, go_on: Any) -> Any:
        def replace(source: Any, target: Any, **options: Any) -> None:
            self._catch_up()
            go_on(source, target, **options)
            old, new = self._name(source), self._name(target)
            if old and new:
                self._do(Rename(old, new, self._now.names[old]))

        return replace

    _rename = _replace

    def _catch_up(self) -> None:
        """Record what Python has written to files of its own since the last time."""
        assert self._folder is not None
        for name, data in read_folder(self._folder).items():
            if name not in self._now.names:
                self._do(Enter(name, self._new_file()))
            number = self._now.names[name]
            known = self._now.files.get(number, b"")
            if len(data) < len(known):
                self._do(Truncate(number, len(data)))
            if data != known[: len(data)]:
                start = len(known) if data.startswith(known) else 0
                self._do(Write(number, start, data[start:]))

    def _name(self, path: Any) -> str | None:
        """Return the name of a path in the folder that is recorded; None for all others."""
        found = Path(os.fsdecode(path)) if path else None
        if found is None or self._folder is None or found.name.endswith(PASSING):
            return None
        return found.name if found.parent.resolve() == self._folder else None

    def _new_file(self) -> int:
        self._files += 1
        return self._files

    def _do(self, operation: Operation) -> None:
        """Record an operation; one that a planted fault ignores is done, but not on the disk."""
        if not isinstance(operation, Sync | SyncFolder | Begun | Promised):
            self._now = self._now.after([operation])
        if not self._ignores(operation, self._named(operation)):
            self.history.append(operation)

    def _named(self, operation: Operation) -> str:
        number = getattr(operation, "file", None)
        return next((name for name, one in self._now.names.items() if one == number), "")


def read_folder(folder: Path) -> Folder:
    """Return what is in a folder, without the files that nothing has to be left of."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.endswith(PASSING)
    }


def write_folder(folder: Path, contents: Folder) -> None:
    """Have a folder hold this and nothing else."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in contents.items():
        (folder / name).write_bytes(data)
