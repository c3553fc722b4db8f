"""The collection: hasher, index and file behind one small interface."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everhash.collection.attachments import Carried, as_blobs, at_places, nothing_at
from everhash.collection.formats import Lesson
from everhash.collection.loading import Loaded
from everhash.collection.pending import Pending, write_down
from everhash.collection.readable import Readable
from everhash.errors import InputError, StoreError
from everhash.index.index import Index
from everhash.index.records import LabelChange
from everhash.index.refresh import RefreshReport, Steps, report_of
from everhash.stream import Labels, as_labels, as_rows
from everhash.wire.ids import Id
from everhash.wire.labels import label_to_json


class Collection(Readable):
    """Entries that keep coming, the hasher that codes them, and the file that keeps both.

    Every call that changes something is one transaction: when it returns, the file has it; when it
    raises, or the process dies, neither file nor memory has any of it. One process writes; others
    read with `open(path, readonly=True)`, each from the state the file had when it was opened or
    last caught up; only what is attached to an entry they read as it is by now. Calls of several
    threads on one collection take turns.

    `create` and `open` make collections.
    """

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels; index nothing."""
        with self._turn:
            hasher = self._writable().hasher
            rows = as_rows(X, hasher.n_features_in_, "this collection")
            labels = as_labels(y, len(rows))
            hasher.check_room(labels.values)
            new = self._new_labels(labels)
            with self._changing() as pending:
                hasher.learn_rows(rows, labels)
                pending.lesson, pending.new_labels = Lesson(rows, labels), len(new)

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned, given as they were; entries stay as they are.

        A label that was wrong is corrected by forgetting the row with it and learning the row with
        the right one. See `OnlineHasher.forget`.
        """
        with self._turn:
            hasher = self._writable().hasher
            rows = as_rows(X, hasher.n_features_in_, "this collection")
            labels = as_labels(y, len(rows))
            hasher.check_forget(rows, labels)
            with self._changing() as pending:
                hasher.forget_rows(rows, labels)
                pending.lesson = Lesson(rows, labels, forget=True)

    def add(
        self,
        X: ArrayLike,
        ids: Iterable[Any] | None = None,
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Add entries and return their ids: labelled ones by codeword, others by their bits.

        Args:
            X: (n, d) rows.
            ids: int64 or strings; numbers in order of arrival if None.
            y: a label or a set of labels a row; None for none.
            payloads: a JSON value a row, None for none; see `attach`.
            thumbnails: a picture a row, None for none.
        """
        return self._enter(X, y, ids, (payloads, thumbnails), learn=False)

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
        return self._enter(X, y, ids, (payloads, thumbnails), learn=True)

    def _enter(
        self, X: ArrayLike, y: Any, ids: Iterable[Any] | None, carried: Carried, *, learn: bool
    ) -> list[Id]:
        with self._turn:
            state = self._writable()
            hasher, index = state.hasher, state.index
            incoming = index.check(X, ids, y)
            blobs = as_blobs(carried, len(incoming.rows))
            new = self._new_labels(incoming.labels)
            with self._changing() as pending:
                places = index.arrived + np.arange(len(incoming.rows))
                pending.attached = at_places(blobs, places)
                pending.lesson, pending.new_labels = self._words_for(new), len(new)
                if learn:
                    hasher.learn_rows(incoming.rows, incoming.labels)
                    pending.lesson = Lesson(incoming.rows, incoming.labels)
                return index.add_checked(incoming)

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Give entries these labels instead of what they had."""
        with self._turn:
            state = self._writable()
            hasher, index = state.hasher, state.index
            places, labels = index.check_labels(ids, y)
            new = self._new_labels(labels)
            with self._changing() as pending:
                pending.lesson, pending.new_labels = self._words_for(new), len(new)
                if hasher.assigns_codewords:
                    pending.coded = index.coded_among(places)
                index.relabel(places, labels)
                numbers = hasher.numbers(labels.values)[labels.which]
                pending.change = LabelChange(places, labels.rows, numbers)

    def attach(
        self,
        ids: Iterable[Any],
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> None:
        """Give entries payloads or thumbnails instead of what they had.

        Args:
            ids: of entries, each once.
            payloads: for each a JSON value of at most 4,096 bytes, or None to take it away; None
                instead of a list leaves all as they are.
            thumbnails: the same with PNG, JPEG, GIF or WebP pictures of at most 32,768 bytes.
        """
        with self._turn:
            places = self._writable().index.find(ids)
            if len(np.unique(places)) < len(places):
                raise InputError("an id stands twice", hint="give each entry its own once")
            blobs = as_blobs((payloads, thumbnails), len(places))
            with self._changing() as pending:
                pending.attached = at_places(blobs, places)

    def remove(self, ids: Iterable[Any]) -> int:
        """Forget entries and return how many there were. Their ids are never used again."""
        with self._turn:
            index = self._writable().index
            places = np.unique(index.find(ids))
            with self._changing() as pending:
                pending.coded = index.coded_among(places)
                nothing = np.empty(0, np.int64)
                pending.change = LabelChange(places, nothing, nothing)
                pending.attached = nothing_at(places)
                return index.forget(places)

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping.

        A reader may ask what it would do; it then catches up, since the features that takes may be
        there for the newest state only.
        """
        with self._turn:
            if dry_run and self._store.readonly:
                with self._reading_features() as index:
                    return index.refresh(dry_run=True)
            return report_of(self.refresh_steps(dry_run=dry_run))

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Refresh a slice at a time, yielding the share done; any other call may come in between.

        All of it becomes true with the last step, and nothing if that is not reached. The report is
        what the generator returns, and in `stats`.
        """
        with self._turn:
            index = self._writable().index
            steps = index.refresh_steps(dry_run=dry_run)
        with closing(steps):
            while (share := self._step(index, steps)) is not None:
                yield share
        return index.last_refresh

    def _step(self, index: Index, steps: Steps) -> float | None:
        """Refresh one slice; return None once there is none left and the file has it all."""
        with self._turn:
            if self._writable().index is not index:
                raise StoreError(
                    "a call in between failed, which undid the refresh", hint="refresh again"
                )
            share = next(steps, None)
            if share is None and not index.last_refresh.dry_run:
                with self._changing() as pending:
                    pending.refreshed = index.last_refresh
            return share

    def _new_labels(self, labels: Labels) -> list[Hashable]:
        """Return labels never seen before, or refuse those that cannot be written down."""
        new = self.hasher.unknown(labels.values)
        for label in new:
            label_to_json(label)
        return new

    def _words_for(self, new: list[Hashable]) -> Lesson | None:
        """Return the lesson that new labels are about to get their words."""
        rows, nothing = np.empty((0, self.hasher.n_features_in_), np.float32), np.empty(0, np.int64)
        return Lesson(rows, Labels(new, nothing, nothing)) if new else None

    def _writable(self) -> Loaded:
        state = self._state()
        self._store.check_writable()
        return state

    @contextmanager
    def _changing(self) -> Iterator[Pending]:
        """Write down what the block does. If anything fails, memory is read again from the file."""
        recorder = self._state().recorder
        whole, pending = not recorder.in_step, Pending()
        try:
            yield pending
            write_down(self._store, recorder, pending, whole=whole)
            recorder.mark()
        except BaseException:
            self._loaded = None
            raise
