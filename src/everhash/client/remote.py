"""A collection behind a service: the calls of `Collection`, and their results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from everhash.client.address import Address, check_key, check_timeout
from everhash.client.reading import RemoteReading
from everhash.client.session import Session
from everhash.client.snapshots import write_snapshot
from everhash.client.writing import RemoteWriting
from everhash.places import Place


class RemoteCollection(RemoteWriting, RemoteReading):
    """Entries that keep coming, behind a service; calls and results are those of `Collection`.

    A call that changes something is one transaction there. One with more rows or bytes than the
    service takes at a time is sent in several requests, each a transaction of its own; if one of
    them fails, the error's hint says which rows were applied before. Between the queries of one
    search others may write. Calls of several threads on one object run side by side.

    `connect` makes them.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._limits = session, session.limits

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to a file here. That takes a key of an admin."""
        write_snapshot(Path(path), self._session)

    def close(self) -> None:
        """Let go of the service. Calls after this raise `ClosedError`."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<everhash.RemoteCollection {self._session.name}>"


def connect(
    url: str, key: str | None = None, timeout: float = 60, *, insecure: bool = False
) -> RemoteCollection:
    """Use a collection that `everhash serve` serves as if it were here.

    Args:
        url: of the service, as "https://example.org" or "http://localhost:8765".
        key: as `everhash key` printed it, if the service wants one.
        timeout: seconds to wait for an answer, and for the whole of it, with one more for each
            64 KiB that came; also for a service that is starting or busy.
        insecure: send the key over plain http to another machine.
    """
    return connect_from("python", url, key, timeout, insecure=insecure)


def connect_from(
    place: Place, url: str, key: str | None = None, timeout: float = 60, *, insecure: bool = False
) -> RemoteCollection:
    """Do what `connect` does, with errors in the words of a place."""
    address = Address.of(url)
    seconds = check_timeout(timeout)
    secret = check_key(key, address, insecure=insecure)
    session = Session(address, secret, seconds, place)
    try:
        remote = RemoteCollection(session)
        len(remote)  # fails here if the service is not ready, or the key is unknown
    except BaseException:
        session.close()
        raise
    return remote
