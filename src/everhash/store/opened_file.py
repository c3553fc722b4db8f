"""The file of a store as this process has it open: its connection, its lock, who watches it."""

from __future__ import annotations

import os
from pathlib import Path

from everhash.errors import ClosedError, StoreError
from everhash.store.durability import Syncer
from everhash.store.file_connection import SPAWN, FileConnection
from everhash.store.lock import WriterLock
from everhash.store.watch import Watch


class OpenedFile:
    """What a store has open, and the process that it has it open in.

    Args:
        path: of the file; None for a store in memory, which goes on in a child as a copy.
        name: for messages.
    """

    def __init__(self, path: Path | None, name: Path | str) -> None:
        self.path = None if path is None else path.resolve()
        """Where links lead to: SQLite's files and ours stand beside it."""
        self._name, self._process = name, os.getpid()
        self._found = None if path is None else path.stat()
        self.lock: WriterLock | None = None
        self.connection: FileConnection | None = None
        self.watch: Watch | None = None
        self.syncer: Syncer | None = None

    def opened(self) -> FileConnection:
        """Return the open connection."""
        self.check_process()
        if self.connection is None:
            raise ClosedError(f"{self._name} is closed", hint="{say open}")
        return self.connection

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that opened the file."""
        return self.path is not None and self._process != os.getpid()

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the file."""
        if self.inherited:
            raise ClosedError(
                f"{self._name} was opened by process {self._process}, and is not open in "
                f"process {os.getpid()}, which was forked from it",
                hint=f"open it again in this process, or {SPAWN}",
            )

    def check_there(self) -> None:
        """Raise if the file was removed or replaced: what is written would be lost."""
        self.check_process()
        try:
            same = self._found is None or os.path.samestat(os.stat(self.path or ""), self._found)
        except OSError:
            same = False
        if not same:
            raise StoreError(
                f"{self._name} is gone, or another file", hint="close it, open it again"
            )

    def close(self) -> None:
        """Close everything; in a child of the process that opened the file, touch nothing."""
        if self.inherited:
            return
        connection, self.connection = self.connection, None
        syncer, self.syncer = self.syncer, None
        lock, self.lock = self.lock, None
        watch, self.watch = self.watch, None
        try:
            if syncer is not None:
                syncer.close()
        except OSError as error:
            raise StoreError(
                f"{self._name}: the last calls may not be on the disk: {error}"
            ) from None
        finally:
            try:
                if watch is not None:
                    watch.close()
                elif connection is not None:
                    connection.close()
            finally:
                if lock is not None:
                    lock.release()
