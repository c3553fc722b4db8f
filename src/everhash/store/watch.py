"""Notices that somebody else has changed, truncated or replaced a file that is being written.

Only the one writer changes a collection's file and its log. So both must be what it left after its
last transaction: the same files, of the same length. Where a time of change differs, contents are
compared, since systems and people touch files without changing them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from everhash.errors import StoreError

FIRST_BYTES = 1 << 17
"""Of the file, where SQLite's header and our head are: these are compared."""


class Look(NamedTuple):
    """A file as it was seen."""

    device: int
    inode: int
    size: int
    changed: int
    """Nanoseconds."""


def look(path: Path) -> Look | None:
    """Return what a file looks like now; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Look(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Watch:
    """What a writer left of its file and its log.

    Args:
        path: of the file, no symbolic link.
        name: of the collection, for messages.
        file: a descriptor of the file that stays open.
        same_head: tells whether the log, read anew, has the head that was written last.
    """

    def __init__(
        self, path: Path, name: Path | str, file: int, same_head: Callable[[], bool]
    ) -> None:
        self._path, self._log = path, path.with_name(path.name + "-wal")
        self._name, self._file, self._same_head = name, file, same_head
        self._seen: Look | None = None
        self._seen_log: Look | None = None
        self._print = 0
        self._changed: StoreError | None = None
        self.remember()

    def remember(self) -> bool:
        """Keep in mind what both are now; return whether the file has changed since the last time.

        To be called after every transaction. The file changes when its log is written back.
        """
        if self._changed is not None:
            return False
        self._seen_log = look(self._log)
        now = look(self._path)
        if now == self._seen:
            return False
        self._seen, self._print = now, self._fingerprint()
        return True

    def check(self) -> None:
        """Raise if either was changed; from then on always."""
        self.check_file()
        if self._log_differs():
            raise self._refusal(self._log)

    def check_file(self) -> None:
        """Raise if the file itself was changed."""
        if self._changed is not None:
            raise self._changed
        if self._file_differs():
            raise self._refusal(self._path)

    @property
    def log_is_ours(self) -> bool:
        """Whether the log at its name is the one that SQLite has open."""
        now, seen = look(self._log), self._seen_log
        return now is None or seen is None or now[:2] == seen[:2]

    @property
    def may_write_back(self) -> bool:
        """Whether the log still goes with the file, as far as SQLite has it open.

        One that was removed or replaced does: SQLite has the old one.
        """
        gone = look(self._log) is None or not self.log_is_ours
        return not self._file_differs() and (gone or not self._log_differs())

    def _file_differs(self) -> bool:
        now, seen = look(self._path), self._seen
        if now == seen:
            return False
        if now is None or seen is None or now[:3] != seen[:3] or self._fingerprint() != self._print:
            return True
        self._seen = now
        return False

    def _log_differs(self) -> bool:
        now, seen = look(self._log), self._seen_log
        if now == seen:
            return False
        if now is None or seen is None or now[:3] != seen[:3] or not self._same_head():
            return True
        self._seen_log = now
        return False

    def _refusal(self, path: Path) -> StoreError:
        self._changed = StoreError(
            f"{path} was changed by somebody else while {self._name} was open; nothing was written",
            hint="close it, and {call verify} before it is used again",
        )
        return self._changed

    def _fingerprint(self) -> int:
        return zlib.crc32(os.pread(self._file, FIRST_BYTES, 0))
