"""Snapshots: a copy of the file, made beside the writer, sent, and gone."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

import everhash
from everhash.collection.collection import Collection
from everhash.serve.errors import busy
from everhash.serve.service import Service

PIECE = 1 << 18
"""Bytes sent at a time."""


class Snapshots:
    """Makes one snapshot at a time."""

    def __init__(self, service: Service) -> None:
        self._service, self._making = service, False

    async def take(self) -> tuple[int, AsyncIterator[bytes]]:
        """Return the size of a snapshot, and its bytes."""
        if self._making:
            raise busy("a snapshot is being made", "try again when it is done")
        self._making = True
        try:
            path = self._service.path
            if path is None:
                file = await self._service.beside(_copy)
            else:  # through a reader of its own, so that nobody waits for it
                self._service.collection  # noqa: B018 - refuses while there is none
                file = await asyncio.to_thread(_copy_file, path)
        finally:
            self._making = False
        size = file.seek(0, 2)
        file.seek(0)
        return size, _pieces(file)


def _copy_file(path: Path) -> IO[bytes]:
    with everhash.open(path, readonly=True) as collection:
        return _copy(collection)


def _copy(collection: Collection) -> IO[bytes]:
    """Return a snapshot whose file is gone from its folder: closing it frees the space."""
    with tempfile.TemporaryDirectory(prefix="everhash-snapshot-") as folder:
        copy = Path(folder, "snapshot.ever")
        collection.snapshot(copy)
        return copy.open("rb")


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
