"""The calls of a remote collection that change nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.client import answers, paging, requests
from everhash.client.session import ApiCall, ServiceLimits, Session
from everhash.codes import Codes
from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.index.entries import Entry, Page, check_page
from everhash.matches import Matches
from everhash.wire.match_tables import from_arrow
from everhash.wire.matches import FlatMatches, from_json
from everhash.wire.media import ARROW, media_type
from everhash.wire.options import RECALL, check_by, check_k, check_radius, check_recall
from everhash.wire.values import read_count, read_flag


class RemoteReading:
    """Entries, labels and matches on their way from a service."""

    _session: Session
    _limits: ServiceLimits

    def __len__(self) -> int:
        answer = self._session.call("/stats")
        with self._session.reading():
            return read_count(answer["entries"])

    def __contains__(self, value: Any) -> bool:
        return bool(self.has([value])[0])

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it."""
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

    def entries(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        text: str | None = None,
        label: Hashable = None,
    ) -> Iterator[Entry]:
        """Go through entries in order of arrival: those from number `start` up to `stop`."""
        check_page(start, stop=stop)
        wanted = requests.listing_query(stop, text, label)
        place: int | None = start
        while place is not None:
            found, place = paging.part_of(self._session, place, self._limits.page, wanted)
            yield from found

    def page(
        self,
        start: int = 0,
        limit: int = 100,
        stop: int | None = None,
        *,
        unlabelled: bool = False,
        text: str | None = None,
        label: Hashable = None,
    ) -> Page:
        """Return entries in order of arrival, and where to go on; see `Collection.page`."""
        check_page(start, limit, stop)
        wanted = requests.listing_query(stop, text, label)
        wanted["unlabelled"] = bool(unlabelled)
        return paging.page_of(self._session, start, limit, wanted)

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival, from number `start` up to `stop`: how each stands."""
        check_page(start, stop=stop)
        return paging.labels_of(self._session, start, stop)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return (n,) the likeliest label of each row; see `Collection.predict`."""
        parts = []
        for n, call in requests.row_calls("/predict", requests.queries_of(X), self._limits):
            answer = self._session.send(call)
            with self._session.reading():
                parts.append(answers.predicted(answer, n))
        return np.concatenate(parts)

    # Searching

    def search(
        self,
        X: ArrayLike | Codes,
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k best entries of each query; see `Index.search`. X has to be rows."""
        share = check_recall(recall)
        rows, flags = requests.queries_of(X), _flags(unlabelled, exact, explain, payloads)
        options = {"k": check_k(k), "by": check_by(by), "recall": share, **flags}
        options |= requests.filters_json(labels, ids)
        calls = requests.search_calls("/search", rows, options, self._limits)
        return self._find(calls, len(rows), options)

    def search_like(
        self,
        like: Iterable[Any],
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the best entries for entries, given by their ids; see `Index.search_like`."""
        share = check_recall(recall)
        names, flags = requests.ids_of(like), _flags(unlabelled, exact, explain, payloads)
        options = {"k": check_k(k), "by": by, "recall": share, **flags}
        options |= requests.filters_json(labels, ids)
        calls = requests.entry_search_calls(names, options, self._limits)
        return self._find(calls, len(names), options)

    def search_radius(
        self,
        X: ArrayLike | Codes,
        r: float,
        by: str = "hamming",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return all entries no farther than r, or with a score of at least r; X has to be rows."""
        rows, flags = requests.queries_of(X), _flags(unlabelled, exact, explain, payloads)
        options = {"by": check_by(by), "r": check_radius(r), **flags}
        options |= requests.filters_json(labels, ids)
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
            parts.append(found)
        with session.reading():
            return FlatMatches.joined(parts).padded(n, k)

    def stats(self) -> dict[str, Any]:
        """Return the stats of the collection, without the path of its file."""
        answer = self._session.call("/stats")
        with self._session.reading():
            return answers.stats_of(answer)


def _flags(unlabelled: Any, exact: Any, explain: Any, payloads: Any) -> dict[str, Any]:
    return {
        "unlabelled": bool(unlabelled),
        "exact": bool(exact),
        "explain": bool(explain),
        "payloads": bool(payloads),
    }
