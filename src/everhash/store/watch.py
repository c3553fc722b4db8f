"""Notices that somebody else has changed, truncated or replaced a file that is being written.

Only the one writer changes a collection's file and its log. So both must be what it left after its
last transaction: the same files, of the same length. Where a time of change differs, contents are
compared, since systems and people touch files without changing them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from everhash.errors import StoreError
from everhash.store.creation import Head, head_row
from everhash.store.file_connection import SQLITE_FAILS, FileConnection

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
    """The connection of the one writer, and what it left of the file and its log.

    Args:
        path: of the file, no symbolic link.
        name: of the collection, for messages.
        file: a descriptor of the file that stays open.
        connection: the writer's.
        head: returns the head that was written last.
    """

    def __init__(
        self,
        path: Path,
        name: Path | str,
        file: int,
        connection: FileConnection,
        head: Callable[[], Head],
    ) -> None:
        self._path, self._log = path, path.with_name(path.name + "-wal")
        self._name, self._file, self._connection, self._head = name, file, connection, head
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

    def is_written_back(self) -> bool:
        """Return whether the file has all that its log has; SQLite is asked to see to it."""
        try:
            with suppress(*SQLITE_FAILS):
                busy, log, done = self._checkpoint("PASSIVE")
                return not busy and log == done
            return False
        finally:
            self.remember()

    def close(self) -> None:
        """Close the connection. The log is written back, if it still goes with the file.

        One that was removed or replaced does: SQLite has the old one open. Readers that go on do
        not hold this up.
        """
        log, seen = look(self._log), self._seen_log
        replaced = log is not None and seen is not None and log[:2] != seen[:2]
        sound = not self._file_differs() and (log is None or replaced or not self._log_differs())
        if sound:
            with suppress(*SQLITE_FAILS):
                self._connection.sqlite.execute("PRAGMA busy_timeout = 0")
                self._checkpoint("TRUNCATE")
        self._connection.close(keep_log=replaced or not sound)

    def _checkpoint(self, how: str) -> tuple[int, int, int]:
        found: tuple[int, int, int] = self._connection.sqlite.execute(
            f"PRAGMA wal_checkpoint({how})"
        ).fetchone()
        return found

    def _file_differs(self) -> bool:
        now, seen = look(self._path), self._seen
        if now == seen:
            return False
        if now is None or seen is None or now[:2] != seen[:2]:
            return True
        same = now.size == seen.size and self._fingerprint() == self._print
        if not same and not self._has_head(now):
            return True
        self._seen, self._print = now, self._fingerprint()
        return False

    def _has_head(self, now: Look) -> bool:
        """Whether the file has the last commit: then somebody had SQLite write the log back."""
        first = os.pread(self._file, FIRST_BYTES, 0)
        page = int.from_bytes(first[16:18], "big")
        page = 65_536 if page == 1 else page  # so SQLite writes it, in two bytes
        whole = now.size == page * int.from_bytes(first[28:32], "big")
        return whole and self._head()[0].encode() in first

    def _same_head(self) -> bool:
        """Whether another connection reads the head that was written last."""
        with (
            suppress(*SQLITE_FAILS),
            closing(FileConnection(self._path, readonly=True)) as other,
        ):
            return head_row(other.sqlite) == self._head()
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
