"""A collection behind a service: the calls of `Collection`, and their results."""

from __future__ import annotations

import os
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import peers
from everhash.client import answers, reading, requests
from everhash.client.address import Address, check_key, check_timeout
from everhash.client.connections import Connections, Request
from everhash.client.service import Service
from everhash.client.snapshots import write_snapshot
from everhash.codes import Codes
from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.index.entries import Entry, Page, check_page
from everhash.index.refresh import RefreshReport, report_of
from everhash.matches import Matches
from everhash.stream import as_labels
from everhash.wire.ids import Id


class RemoteCollection:
    """Entries that keep coming, behind a service; calls and results are those of `Collection`.

    A call that changes something is one request, and one transaction there. Between the queries of
    one search others may write. Calls of several threads on one object go side by side.

    `connect` makes them.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limits = service.limits
        self._has_codewords: bool | None = None

    # Writing

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels; index nothing."""
        self._write("/learn", requests.batch_of(X, y))

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned, given as they were; see `Collection.forget`."""
        self._write("/forget", requests.learned_batch_of(X, y))

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
        return self._enter("/add", requests.batch_of(X, y, ids, payloads, thumbnails))

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
        return self._enter("/ingest", requests.batch_of(X, y, ids, payloads, thumbnails))

    def _enter(self, route: str, batch: requests.Batch) -> list[Id]:
        answer = self._write(route, batch)
        with self._service.reading():
            return answers.given_ids(answer["ids"], batch.ids, len(batch.rows))

    def _write(self, route: str, batch: requests.Batch) -> dict[str, Any]:
        most = self._limits.rows
        return self._service.send(requests.write_request(route, batch, most))

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Give entries these labels instead of what they had."""
        names = requests.plain_ids(ids)
        labels = requests.labels_of(as_labels(y, len(names)), len(names))
        self._service.post("/label", {"ids": names, "labels": labels}, writes=True)

    def attach(
        self,
        ids: Iterable[Any],
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> None:
        """Give entries payloads or thumbnails instead of what they had; see `Collection.attach`."""
        content = requests.attach_content(requests.plain_ids(ids), payloads, thumbnails)
        self._service.post("/attach", content, writes=True)

    def remove(self, ids: Iterable[Any]) -> int:
        """Forget entries and return how many there were. Their ids are never used again."""
        names = requests.plain_ids(ids)
        answer = self._service.post("/remove", {"ids": names}, writes=True)
        with self._service.reading():
            return answers.whole(answer["removed"], most=len(names))

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping; return when they are."""
        return report_of(self.refresh_steps(dry_run=dry_run))

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Begin a refresh and yield the share done now and then; see `Collection.refresh_steps`.

        It goes on if nobody waits for it. Of a dry run only the report comes back.
        """
        if dry_run:
            told = self._service.send(Request("POST", "/refresh?dry_run=true", b"{}"))
            with self._service.reading():
                return answers.report_of(told)
        started = self._service.send(Request("POST", "/refresh", b"{}", repeatable=False))
        with self._service.reading():
            number = answers.job_of(started)
        return (yield from reading.job_steps(self._service, number))

    # Reading

    def __len__(self) -> int:
        answer = self._service.get("/stats")
        with self._service.reading():
            return answers.whole(answer["entries"])

    def __contains__(self, value: Any) -> bool:
        return bool(self.has([value])[0])

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it, or had it before it was removed."""
        found = reading.told_of(self._service, "/has", "has", requests.plain_ids(ids))
        with self._service.reading():
            return np.array([answers.flag(told) for told in found], np.bool_)

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return what is known of entries."""
        names = requests.plain_ids(ids)
        found = reading.told_of(self._service, "/get", "entries", names)
        with self._service.reading():
            return answers.entries_of(found, names)

    def attachments(self, ids: Iterable[Any]) -> list[Attachment]:
        """Return what entries carry."""
        service, names = self._service, requests.plain_ids(ids)
        told = reading.told_of(service, "/get", "entries", names)
        with service.reading():
            answers.entries_of(told, names)
            carried = [(entry["payload"], answers.flag(entry["thumbnail"])) for entry in told]
        return [
            Attachment(payload, reading.picture_of(service, name) if has_picture else None)
            for name, (payload, has_picture) in zip(names, carried, strict=True)
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
        return reading.page_of(self._service, start, limit, stop, unlabelled=unlabelled)

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival, from number `start` up to `stop`: how each stands."""
        check_page(start)
        return reading.labels_of(self._service, start, stop)

    def search(
        self,
        X: ArrayLike | Codes,
        k: int = 10,
        distance: str = "asymmetric",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        explain: bool = False,
    ) -> Matches:
        """Return the k nearest entries of each query; see `Index.search`. X has to be rows."""
        rows = requests.queries_of(X, distance)
        options = {"k": requests.check_k(k), "distance": distance, "explain": bool(explain)}
        options |= requests.filters_of(labels, ids)
        asked = requests.searches("/search", rows, options, self._limits)
        return self._find(asked, len(rows), options)

    def search_like(
        self,
        entries: Iterable[Any],
        k: int = 10,
        distance: str = "asymmetric",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        explain: bool = False,
    ) -> Matches:
        """Return the k nearest entries of entries, given by their ids; see `Index.search_like`."""
        names = requests.plain_ids(entries)
        options = {"k": requests.check_k(k), "distance": distance, "explain": bool(explain)}
        options |= requests.filters_of(labels, ids)
        asked = requests.searches_like(names, options, self._limits)
        return self._find(asked, len(names), options)

    def search_radius(
        self, X: ArrayLike | Codes, r: float, distance: str = "hamming", *, explain: bool = False
    ) -> Matches:
        """Return all entries no farther than r, nearest first. X has to be rows."""
        rows = requests.queries_of(X, distance)
        options = {"r": requests.check_radius(r), "distance": distance, "explain": bool(explain)}
        asked = requests.searches("/radius", rows, options, self._limits)
        return self._find(asked, len(rows), options)

    def _find(self, asked: Iterator[Request], n: int, options: Mapping[str, Any]) -> Matches:
        """Return what was found for n queries."""
        service, parts, k = self._service, [], options.get("k")
        for request in asked:
            with service.answering(request) as reply, service.reading():
                if reply.content_type == requests.ARROW:
                    parts.append(answers.found_in_table(reply.whole(), n, k))
                    continue
                content = service.content(reply)
                found = answers.found_in_json(content, explain=options["explain"])
            parts.append(replace(found, novelty=self._novelty(found.novelty)))
        with service.reading():
            return answers.joined(parts, n, k)

    def _novelty(self, told: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return novelties with those that JSON cannot write: infinite while there is no label."""
        if not np.isnan(told).any():
            return told
        if self._has_codewords is None:
            stats = self.stats()
            with self._service.reading():
                self._has_codewords = peers.describe(stats["method"]).codewords
        return np.where(np.isnan(told), np.float32(np.inf), told) if self._has_codewords else told

    def stats(self) -> dict[str, Any]:
        """Return what an operator wants to see, but not where the file is."""
        told = self._service.get("/stats")
        with self._service.reading():
            return answers.stats_of(told)

    # The file

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to a file here. That takes a key of an admin."""
        request = Request("GET", "/snapshot", accept="application/vnd.sqlite3")
        write_snapshot(Path(path), self._service, request)

    def close(self) -> None:
        """Let go of the service. Calls after this raise `ReadOnlyError`."""
        self._service.connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<everhash.RemoteCollection {self._service.name}>"


def connect(
    url: str, key: str | None = None, timeout: float = 60, *, insecure: bool = False
) -> RemoteCollection:
    """Use a collection that `everhash serve` serves as if it were here.

    Args:
        url: of the service, as "https://example.org" or "http://localhost:8765".
        key: as `everhash key` printed it, if the service wants one.
        timeout: seconds to wait for an answer, and for the whole of it, but for a second for each
            64 KiB that came; also for a service that is starting or busy.
        insecure: send the key over plain http to another machine.
    """
    address = Address.of(url)
    seconds = check_timeout(timeout)
    secret = check_key(key, address, insecure=insecure)
    connections = Connections(address, secret, seconds)
    try:
        remote = RemoteCollection(Service(connections, seconds))
        len(remote)  # a service that is not ready, or a key that is not known, is found out here
    except BaseException:
        connections.close()
        raise
    return remote
