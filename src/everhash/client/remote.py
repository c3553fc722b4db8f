"""A collection behind a service: the calls of `Collection`, and their results."""

from __future__ import annotations

import os
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import peers
from everhash.client import answers, paging, requests
from everhash.client.address import Address, check_key, check_timeout
from everhash.client.session import ApiCall, Session
from everhash.client.snapshots import write_snapshot
from everhash.codes import Codes
from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.errors import EverhashError
from everhash.index.entries import Entry, Page, check_page
from everhash.index.refresh import RefreshReport, report_of
from everhash.matches import Matches
from everhash.stream import as_labels
from everhash.wire.ids import Id
from everhash.wire.matches import FlatMatches, from_arrow, from_json
from everhash.wire.media import ARROW, media_type
from everhash.wire.options import check_distance, check_k, check_radius
from everhash.wire.values import read_count, read_flag


class RemoteCollection:
    """Entries that keep coming, behind a service; calls and results are those of `Collection`.

    A call that changes something is one transaction there. One with more rows or bytes than the
    service takes at a time is sent in several requests, each a transaction of its own; if one of
    them fails, the error's hint says which rows were applied before. Between the queries of one
    search others may write. Calls of several threads on one object run side by side.

    `connect` makes them.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._limits = session, session.limits
        self._has_codewords: bool | None = None

    # Writing

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels; index nothing."""
        self._write("/learn", requests.row_batch(X, y))

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned, given as they were; see `Collection.forget`."""
        self._write("/forget", requests.learned_batch(X, y))

    def add(
        self,
        X: ArrayLike,
        ids: Iterable[Any] | None = None,
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Add entries and return their ids; see `Collection.add`."""
        return self._write("/add", requests.row_batch(X, y, ids, payloads, thumbnails))

    def ingest(
        self,
        X: ArrayLike,
        y: Any = None,
        ids: Iterable[Any] | None = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Learn from rows and add them, in one transaction; return their ids. See `add`."""
        return self._write("/ingest", requests.row_batch(X, y, ids, payloads, thumbnails))

    def _write(self, path: str, batch: requests.RowBatch) -> list[Id]:
        """Send rows, and return the ids of new entries where the route makes any."""
        ids: list[Id] = []
        done = 0
        for part, call in requests.write_calls(path, batch, self._limits):
            with _applied(done):
                answer = self._session.send(call)
            if path in ("/add", "/ingest"):
                with self._session.reading():
                    ids += answers.new_ids(answer["ids"], part.ids, len(part.rows))
            done += len(part.rows)
        return ids

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Give entries these labels instead of what they had."""
        names = requests.ids_of(ids)
        labels = requests.labels_json(as_labels(y, len(names)), len(names))
        for part in self._parts(names):
            with _applied(part.start):
                self._session.call("/label", {"ids": names[part], "labels": labels[part]})

    def attach(
        self,
        ids: Iterable[Any],
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> None:
        """Give entries payloads or thumbnails instead of what they had; see `Collection.attach`."""
        names = requests.ids_of(ids)
        calls = requests.attach_calls(names, payloads, thumbnails, self._limits)
        for part, content in calls:
            with _applied(part.start):
                self._session.call("/attach", content)

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove entries and return how many there were. Their ids are never used again."""
        names, removed = requests.ids_of(ids), 0
        for part in self._parts(names):
            with _applied(part.start):
                answer = self._session.call("/remove", {"ids": names[part]})
            with self._session.reading():
                removed += read_count(answer["removed"], most=len(names[part]))
        return removed

    def _parts(self, ids: list[Id]) -> Iterator[slice]:
        sizes = np.full(len(ids), requests.OVERHEAD)
        return requests.slices(sizes, self._limits.rows, self._limits.body)

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping; return when they are."""
        return report_of(self.refresh_steps(dry_run=dry_run))

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Begin a refresh and yield the share done now and then; see `Collection.refresh_steps`.

        It goes on if nobody waits for it. A dry run returns its report without a step.
        """
        answer = self._session.call("/refresh", dry_run=dry_run)
        with self._session.reading():
            if dry_run:
                return answers.report_of(answer)
            job = answers.job_of(answer)
        return (yield from paging.job_steps(self._session, job))

    # Reading

    def __len__(self) -> int:
        answer = self._session.call("/stats")
        with self._session.reading():
            return read_count(answer["entries"])

    def __contains__(self, value: Any) -> bool:
        return bool(self.has([value])[0])

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it, or had it before it was removed."""
        found = paging.read_all(self._session, "/has", "has", requests.ids_of(ids))
        with self._session.reading():
            return np.array([read_flag(one) for one in found], np.bool_)

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return what is known of entries."""
        names = requests.ids_of(ids)
        found = paging.read_all(self._session, "/get", "entries", names)
        with self._session.reading():
            return answers.entries_of(found, names)

    def attachments(self, ids: Iterable[Any]) -> list[Attachment]:
        """Return the payloads and thumbnails of entries."""
        session, names = self._session, requests.ids_of(ids)
        found = paging.read_all(session, "/get", "entries", names)
        with session.reading():
            answers.entries_of(found, names)
            attached = [(entry["payload"], read_flag(entry["thumbnail"])) for entry in found]
        return [
            Attachment(payload, paging.picture_of(session, name) if has_picture else None)
            for name, (payload, has_picture) in zip(names, attached, strict=True)
        ]

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Go through entries in order of arrival: those from number `start` up to `stop`."""
        check_page(start)
        place: int | None = start
        while place is not None:
            found, place = self.page(place, self._limits.page, stop)
            yield from found

    def page(
        self, start: int = 0, limit: int = 100, stop: int | None = None, *, unlabelled: bool = False
    ) -> Page:
        """Return entries in order of arrival, and where to go on; see `Index.page`."""
        check_page(start, limit)
        return paging.page_of(self._session, start, limit, stop, unlabelled=unlabelled)

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival, from number `start` up to `stop`: how each stands."""
        check_page(start)
        return paging.labels_of(self._session, start, stop)

    def search(
        self,
        X: ArrayLike | Codes,
        k: int = 10,
        distance: str = "asymmetric",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k nearest entries of each query; see `Index.search`. X has to be rows."""
        options = {"distance": check_distance(distance), **_flags(explain, payloads)}
        rows = requests.queries_of(X)
        options |= {"k": check_k(k), **requests.filters_json(labels, ids)}
        calls = requests.search_calls("/search", rows, options, self._limits)
        return self._find(calls, len(rows), options)

    def search_like(
        self,
        entries: Iterable[Any],
        k: int = 10,
        distance: str = "asymmetric",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k nearest entries of entries, given by their ids; see `Index.search_like`."""
        names = requests.ids_of(entries)
        options = {"k": check_k(k), "distance": distance, **_flags(explain, payloads)}
        options |= requests.filters_json(labels, ids)
        calls = requests.entry_search_calls(names, options, self._limits)
        return self._find(calls, len(names), options)

    def search_radius(
        self,
        X: ArrayLike | Codes,
        r: float,
        distance: str = "hamming",
        *,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return all entries no farther than r, nearest first. X has to be rows."""
        options = {"distance": check_distance(distance), **_flags(explain, payloads)}
        rows = requests.queries_of(X)
        options["r"] = check_radius(r)
        calls = requests.search_calls("/radius", rows, options, self._limits)
        return self._find(calls, len(rows), options)

    def _find(self, calls: Iterator[ApiCall], n: int, options: Mapping[str, Any]) -> Matches:
        """Return what was found for n queries."""
        session, parts, k = self._session, list[FlatMatches](), options.get("k")
        payloads, explain = options["payloads"], options["explain"]
        for call in calls:
            with session.open(call) as response, session.reading():
                if media_type(response.headers.get("content-type", "")) == ARROW:
                    parts.append(from_arrow(session.read(response), n, k, payloads=payloads))
                    continue
                found = from_json(session.read_json(response), explain=explain, payloads=payloads)
            parts.append(replace(found, novelty=self._novelty(found.novelty)))
        with session.reading():
            return FlatMatches.joined(parts).padded(n, k)

    def _novelty(self, said: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return novelties with those that JSON cannot write: infinite while there is no label."""
        if not np.isnan(said).any():
            return said
        if self._has_codewords is None:
            stats = self.stats()
            with self._session.reading():
                self._has_codewords = peers.describe(stats["method"]).codewords
        return np.where(np.isnan(said), np.float32(np.inf), said) if self._has_codewords else said

    def stats(self) -> dict[str, Any]:
        """Return the stats of the collection, without the path of its file."""
        answer = self._session.call("/stats")
        with self._session.reading():
            return answers.stats_of(answer)

    # The file

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to a file here. That takes a key of an admin."""
        write_snapshot(Path(path), self._session)

    def close(self) -> None:
        """Let go of the service. Calls after this raise `ReadOnlyError`."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<everhash.RemoteCollection {self._session.name}>"


def _flags(explain: Any, payloads: Any) -> dict[str, Any]:
    return {"explain": bool(explain), "payloads": bool(payloads)}


@contextmanager
def _applied(rows: int) -> Iterator[None]:
    """Say in the hint of an error how many rows were applied before it, in earlier requests."""
    try:
        yield
    except EverhashError as error:
        if rows:
            error.hint = f"{error.hint}; the first {rows} were applied before".lstrip("; ")
        raise


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
    address = Address.of(url)
    seconds = check_timeout(timeout)
    secret = check_key(key, address, insecure=insecure)
    session = Session(address, secret, seconds)
    try:
        remote = RemoteCollection(session)
        len(remote)  # fails here if the service is not ready, or the key is unknown
    except BaseException:
        session.close()
        raise
    return remote
