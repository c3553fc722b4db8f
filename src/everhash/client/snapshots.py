"""A copy of a collection, fetched into a file that appears whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everhash.client.session import FOREIGN, ApiCall, Session
from everhash.errors import ServiceError, StoreError
from everhash.store.connection import check_free
from everhash.store.creation import new_file
from everhash.store.lock import WriterLock
from everhash.wire.media import SQLITE

MAGIC = b"SQLite format 3\0"


def write_snapshot(path: Path, session: Session) -> None:
    """Fetch a collection's file. A file that is there under its name is never replaced."""
    check_free(path)
    lock = WriterLock(path)
    arriving = path.with_name(f".{path.name}.arriving")
    try:
        with session.open(ApiCall("/snapshot", accept=SQLITE)) as response:
            start = _write(arriving, session.pieces(response), path)
        if start != MAGIC:
            raise ServiceError(f"{session.name}: the answer is no collection's file", hint=FOREIGN)
        with new_file(path) as partial:
            arriving.replace(partial)
    finally:
        arriving.unlink(missing_ok=True)
        lock.release()


def _write(arriving: Path, pieces: Iterator[bytes], path: Path) -> bytes:
    """Write pieces to a file and return how the first begins."""
    start = b""
    with arriving.open("wb") as file:
        for piece in pieces:
            start = (start + piece)[: len(MAGIC)] if len(start) < len(MAGIC) else start
            try:
                file.write(piece)
            except OSError as error:
                raise StoreError(f"{path} cannot be written: {error.strerror}") from None
    return start
