"""The calls of a remote collection that change something."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everhash.client import answers, paging, requests
from everhash.client.session import ServiceLimits, Session
from everhash.collection.learning import LabelReport, NewLabel
from everhash.errors import EverhashError, TooLargeError
from everhash.index.refresh import RefreshReport, report_of
from everhash.stream import labels_for
from everhash.wire.ids import Id
from everhash.wire.values import read_count

MAKING = ("/add", "/ingest", "/upsert")
"""Routes that answer with the ids of entries."""


class RemoteWriting:
    """Rows, labels and entries on their way to a service."""

    _session: Session
    _limits: ServiceLimits

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

    def upsert(
        self,
        X: ArrayLike,
        ids: Iterable[Any],
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
        teach: bool = True,
    ) -> list[Id]:
        """Add entries, in place of those that have the same ids; see `Collection.upsert`."""
        batch = requests.row_batch(X, y, ids, payloads, thumbnails)
        return self._write("/upsert", batch, teach=teach)

    def update(self, ids: Iterable[Any], X: ArrayLike, *, teach: bool = True) -> None:
        """Give entries other features; see `Collection.update`."""
        self._write("/update", requests.update_batch(ids, X, self._limits), teach=teach)

    def _write(self, path: str, batch: requests.RowBatch, *, teach: bool | None = None) -> list[Id]:
        """Send rows, and return the ids of new entries where the route makes any."""
        ids: list[Id] = []
        done = 0
        for part, call in requests.write_calls(path, batch, self._limits, teach):
            with _applied(done):
                answer = self._session.send(call)
            if path in MAKING:
                with self._session.reading():
                    ids += answers.new_ids(answer["ids"], part.ids, len(part.rows))
            done += len(part.rows)
        return ids

    def label(
        self,
        ids: Iterable[Any],
        y: Any,
        *,
        teach: bool = True,
        expect: Any = None,
        new: bool = True,
    ) -> LabelReport:
        """Give entries these labels instead of what they had, and learn; see `Collection.label`."""
        names = requests.each_once(ids, self._limits)
        labels = requests.labels_json(labels_for(y, len(names)), len(names))
        labelled, made = 0, dict[Hashable, NewLabel]()
        options = {"teach": bool(teach), "new": bool(new)}
        for part, said in self._labelling(names, expect):
            with _applied(part.start):
                answer = self._session.call("/label", {**said, "labels": labels[part], **options})
            with self._session.reading():
                labelled += read_count(answer["labelled"], most=len(names[part]))
                for one in answers.new_labels(answer["new"]):
                    made.setdefault(one.label, one)
        return LabelReport(labelled, tuple(made.values()))

    def _labelling(self, names: list[Id], expect: Any) -> Iterator[tuple[slice, dict[str, Any]]]:
        """Yield parts of ids, and what requests about their labels have in common.

        What is expected holds for all entries or for none, so it is checked in one request.
        """
        parts = list(self._parts(names))
        expected = requests.expected_json(expect, len(names))
        if expected is not None and len(parts) > 1:
            raise TooLargeError(
                f"{len(names)} entries with {{option expect}}, which is checked in one request",
                hint=f"name at most {len(names[parts[0]])} entries at a time",
            )
        for part in parts:
            about = {} if expected is None else {"expect": expected}
            yield part, {"ids": names[part], **about}

    def unlabel(self, ids: Iterable[Any], *, teach: bool = True, expect: Any = None) -> int:
        """Take the labels of entries away; return how many had one. See `Collection.unlabel`."""
        names, unlabelled = requests.each_once(ids, self._limits), 0
        for part, said in self._labelling(names, expect):
            with _applied(part.start):
                answer = self._session.call("/unlabel", {**said, "teach": bool(teach)})
            with self._session.reading():
                unlabelled += read_count(answer["unlabelled"], most=len(names[part]))
        return unlabelled

    def rename_label(self, label: Hashable, to: Hashable) -> None:
        """Give a label another name, which no label has."""
        name = requests.label_json(to)
        self._session.call("/labels/rename", {"label": requests.known_label(label), "to": name})

    def merge_labels(self, label: Hashable, into: Hashable) -> int:
        """Make two labels one, `into`; return how many entries had the other."""
        known = requests.known_label(label), requests.known_label(into)
        answer = self._session.call("/labels/merge", {"label": known[0], "into": known[1]})
        with self._session.reading():
            return read_count(answer["entries"])

    def drop_label(self, label: Hashable, *, unused: bool = False) -> int:
        """Forget a label; return how many entries had it. See `Collection.drop_label`."""
        said = {"label": requests.known_label(label), "unused": bool(unused)}
        answer = self._session.call("/labels/drop", said)
        with self._session.reading():
            return read_count(answer["entries"])

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
        """Remove entries and return how many there were. Their ids are free again."""
        names, removed = list(dict.fromkeys(requests.ids_of(ids))), 0
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


@contextmanager
def _applied(rows: int) -> Iterator[None]:
    """Say in the hint of an error how many rows were applied before it, in earlier requests."""
    try:
        yield
    except EverhashError as error:
        if rows:
            hint = error.hint_template.removesuffix("nothing was added").rstrip("; ")
            error.hint_template = f"{hint}; the first {rows} were applied before".lstrip("; ")
        raise
