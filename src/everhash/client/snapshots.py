"""A copy of a collection, fetched into a file that appears whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everhash.client.connections import Request
from everhash.client.service import FOREIGN, Service
from everhash.errors import ServiceError, StoreError
from everhash.store.connection import check_free
from everhash.store.lock import WriterLock
from everhash.store.making import appearing

MAGIC = b"SQLite format 3\0"


def write_snapshot(path: Path, service: Service, request: Request) -> None:
    """Fetch a collection's file. What is there under its name is never replaced."""
    check_free(path)
    lock = WriterLock(path)
    arriving = path.with_name(f".{path.name}.arriving")
    try:
        with service.answering(request) as reply:
            start = _write(arriving, reply.pieces(), path)
        if start != MAGIC:
            raise ServiceError(f"{service.name}: what came is no collection's file", hint=FOREIGN)
        with appearing(path) as partial:
            arriving.replace(partial)
    finally:
        arriving.unlink(missing_ok=True)
        lock.release()


def _write(arriving: Path, pieces: Iterator[bytes], path: Path) -> bytes:
    """Write pieces down and return how the first begins."""
    start = b""
    try:
        with arriving.open("wb") as file:
            for piece in pieces:
                start = start or piece[: len(MAGIC)]
                file.write(piece)
    except ServiceError:  # an OSError too, but not of the disk
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None
    return start
