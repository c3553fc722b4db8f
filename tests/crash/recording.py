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
from tests.crash.vfs import Asked, GoOn

PASSING = ("-shm", "-lock")
"""Ends of names of files that nothing has to be left of."""
TO_FILES: dict[str, Callable[[int, Asked], Operation]] = {
    "write": lambda file, asked: Write(file, asked.place, asked.data),
    "truncate": lambda file, asked: Truncate(file, asked.place),
    "sync": lambda file, _: Sync(file),
}
Ignores = Callable[[Operation, str], bool]
"""Whether the disk ignores an operation, on the file of a name: a planted fault."""


def never(operation: Operation, name: str) -> bool:
    """No operation is ignored."""
    return False


class Recorder:
    """Records operations on one folder, inside `recording`; put it below SQLite first."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self.start = Contents()
        self._folder: Path | None = None
        self._now = Contents()
        self._open: dict[int, int] = {}
        self._files, self._folder_synced = 0, False
        self._ignores: Ignores = never

    @contextmanager
    def recording(self, folder: Path, ignores: Ignores = never) -> Iterator[None]:
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

    def ask(self, asked: Asked, go_on: GoOn) -> int:
        """See `Layer`: everything passes, and what has succeeded is recorded."""
        result = go_on()
        if result == sqlite3.SQLITE_OK and self._folder is not None:
            self._note(asked)
        done, self._folder_synced = self._folder_synced, False
        if done and self._folder is not None:
            self._do(SyncFolder())
        return result

    def folder_synced(self) -> None:
        """See `Layer`: a file's sync, or a name's removal, comes before that of the folder."""
        self._folder_synced = True

    def _note(self, asked: Asked) -> None:
        name, number = self._name(asked.path), self._open.get(asked.file)
        if asked.kind == "open":
            self._open.pop(asked.file, None)
            if name is not None:
                if name not in self._now.names:
                    self._do(Enter(name, self._new_file()))
                self._open[asked.file] = self._now.names[name]
        elif asked.kind == "delete" and name in self._now.names:
            self._do(Leave(name))
        elif number is not None and asked.kind in TO_FILES:
            self._do(TO_FILES[asked.kind](number, asked))

    # What Python does

    def _fsync(self, go_on: Callable[[int], None]) -> Callable[[int], None]:
        def fsync(file: int) -> None:
            self._catch_up()
            go_on(file)
            found, folder = os.fstat(file), self._folder
            assert folder is not None
            if stat.S_ISDIR(found.st_mode) and os.path.samestat(found, folder.stat()):
                self._do(SyncFolder())
            for name, number in self._now.names.items():
                if os.path.samestat(found, (folder / name).stat()):
                    self._do(Sync(number))
                    break  # another name of the same file

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
