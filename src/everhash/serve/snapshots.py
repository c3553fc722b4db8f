"""Snapshots: a copy of the file, made while others go on, sent, and removed."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO
from weakref import WeakSet

from everhash.errors import EverhashError
from everhash.serve import limits
from everhash.serve.errors import ClientGoneError, busy
from everhash.serve.served import Served
from everhash.serve.service import Service

log = logging.getLogger(__name__)
PIECE = 1 << 18
"""Bytes sent at a time."""
FIRST_SECONDS = 60
"""Seconds before a client's speed counts."""


class Snapshots:
    """Makes one snapshot at a time, and sends a few."""

    def __init__(self, service: Service) -> None:
        self._service, self._making = service, False
        self._files: WeakSet[IO[bytes]] = WeakSet()

    async def take(self) -> tuple[int, AsyncIterator[bytes]]:
        """Return the size of a snapshot, and its bytes."""
        if self._making:
            raise busy("a snapshot is being made", "try again when it is done")
        if sum(not file.closed for file in self._files) >= limits.SNAPSHOTS:
            raise busy(f"{limits.SNAPSHOTS} snapshots are being sent", "try again when one is done")
        self._making = True
        try:
            file = await asyncio.to_thread(copy_of, self._service.collection)
        finally:
            self._making = False
        self._files.add(file)
        size = file.seek(0, 2)
        file.seek(0)
        return size, _pieces(file)


def copy_of(collection: Served) -> IO[bytes]:
    """Return a snapshot whose file has no name any more: closing it frees the space."""
    with tempfile.TemporaryDirectory(prefix="everhash-snapshot-") as folder:
        copy = Path(folder, "snapshot.ever")
        try:
            collection.snapshot(copy)
        except EverhashError as error:  # clients need not know that folder
            error.message_template = error.message_template.replace(f"{folder}{os.sep}", "")
            raise
        return copy.open("rb")


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield a snapshot, unless it is taken too slowly: it uses up the disk meanwhile."""
    loop = asyncio.get_running_loop()
    began, sent = loop.time(), 0
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            if loop.time() - began > FIRST_SECONDS + sent / limits.SNAPSHOT_SPEED:
                log.warning("a snapshot was taken too slowly, and given up")
                raise ClientGoneError
            yield piece
            sent += len(piece)
