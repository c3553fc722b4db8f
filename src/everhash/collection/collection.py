"""The collection: hasher, index and file behind one small interface."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everhash.collection.attachments import AttachmentColumns, as_blobs, at_places, cleared_at
from everhash.collection.changeset import Changeset, write_changeset
from everhash.collection.formats import Lesson
from everhash.collection.loading import Loaded
from everhash.collection.read_calls import ReadCalls
from everhash.errors import InputError, StoreError
from everhash.index.index import Index
from everhash.index.records import LabelChange
from everhash.index.refresh import RefreshReport, Steps, report_of
from everhash.learn.stream_hasher import StreamHasher
from everhash.stream import Labels, as_labels, as_rows
from everhash.wire.ids import Id
from everhash.wire.labels import label_to_json


@dataclass
class WriteCall:
    """A call that may change the collection, while it has both locks."""

    state: Loaded
    changes: Changeset | None = None
    """None until memory begins to change."""

    def begin(self) -> Changeset:
        """Say that memory is about to change; return where to note what has to be written."""
        self.changes = Changeset(whole=not self.state.recorder.hasher_is_saved)
        return self.changes


class Collection(ReadCalls):
    """Entries that keep coming, the hasher that codes them, and the file that keeps both.

    Every call that changes something is one transaction: when it returns, the file has it; when it
    raises, or the process dies, neither file nor memory has any of it. One process writes; others
    read with `open(path, readonly=True)`, each from the state the file had when it was opened or
    last caught up; only payloads and thumbnails they read as they are now.

    Threads may share a collection. Calls that change something take turns. Searches and other calls
    that only need memory do not wait for the disk: while a commit is being made durable they go on,
    and see its changes already. If it fails, the writing call raises and memory is read again from
    the file, so what they saw may be gone. Calls that read the file (`attachments`, `features`,
    `search_like`, `payloads=True`, `catch_up`) and `held` wait for the commit.

    `create` and `open` make collections.
    """

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels; index nothing."""
        with self._writing() as call:
            hasher = call.state.hasher
            rows = as_rows(X, hasher.n_features_in_, "this collection")
            labels = as_labels(y, len(rows))
            hasher.check_room(labels.values)
            new = _new_labels(hasher, labels)
            changes = call.begin()
            hasher.learn_rows(rows, labels)
            changes.lesson, changes.new_labels = Lesson(rows, labels), len(new)

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned, given as they were; entries stay as they are.

        A label that was wrong is corrected by forgetting the row with it and learning the row with
        the right one. See `OnlineHasher.forget`.
        """
        with self._writing() as call:
            hasher = call.state.hasher
            rows = as_rows(X, hasher.n_features_in_, "this collection")
            labels = as_labels(y, len(rows))
            hasher.check_forget(rows, labels)
            changes = call.begin()
            hasher.forget_rows(rows, labels)
            changes.lesson = Lesson(rows, labels, forget=True)

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
        return self._add(X, y, ids, (payloads, thumbnails), learn=False)

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
        return self._add(X, y, ids, (payloads, thumbnails), learn=True)

    def _add(
        self,
        X: ArrayLike,
        y: Any,
        ids: Iterable[Any] | None,
        attachments: AttachmentColumns,
        *,
        learn: bool,
    ) -> list[Id]:
        with self._writing() as call:
            hasher, index = call.state.hasher, call.state.index
            incoming = index.check(X, ids, y)
            blobs = as_blobs(attachments, len(incoming.rows))
            new = _new_labels(hasher, incoming.labels)
            changes = call.begin()
            places = index.arrived + np.arange(len(incoming.rows))
            changes.attached = at_places(blobs, places)
            changes.lesson, changes.new_labels = _codeword_lesson(hasher, new), len(new)
            if learn:
                hasher.learn_rows(incoming.rows, incoming.labels)
                changes.lesson = Lesson(incoming.rows, incoming.labels)
            return index.add_checked(incoming)

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Give entries these labels instead of what they had."""
        with self._writing() as call:
            hasher, index = call.state.hasher, call.state.index
            places, labels = index.check_labels(ids, y)
            new = _new_labels(hasher, labels)
            changes = call.begin()
            changes.lesson, changes.new_labels = _codeword_lesson(hasher, new), len(new)
            if hasher.assigns_codewords:
                changes.coded = index.coded_among(places)
            index.relabel(places, labels)
            numbers = hasher.numbers(labels.values)[labels.which]
            changes.change = LabelChange(places, labels.rows, numbers)

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
            payloads: for each a JSON value of at most 4,096 bytes, or None to remove it; None
                instead of a list leaves all as they are.
            thumbnails: the same with PNG, JPEG, GIF or WebP pictures of at most 32,768 bytes.
        """
        with self._writing() as call:
            places = call.state.index.find(ids)
            if len(np.unique(places)) < len(places):
                raise InputError("an id is given twice", hint="name each entry once")
            blobs = as_blobs((payloads, thumbnails), len(places))
            call.begin().attached = at_places(blobs, places)

    def remove(self, ids: Iterable[Any]) -> int:
        """Forget entries and return how many there were. Their ids are never used again."""
        with self._writing() as call:
            index = call.state.index
            places = np.unique(index.find(ids))
            changes, nothing = call.begin(), np.empty(0, np.int64)
            changes.coded = index.coded_among(places)
            changes.change = LabelChange(places, nothing, nothing)
            changes.attached = cleared_at(places)
            return index.forget(places)

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping.

        A reader may ask what it would do; it catches up first, since the file may have the features
        that it takes for the newest state only.
        """
        if dry_run and self._store.readonly:
            with self._in_file(), self._in_memory() as state:
                return state.index.refresh(dry_run=True)
        with self._writer_lock:
            return report_of(self.refresh_steps(dry_run=dry_run))

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Refresh a slice at a time, yielding the share done; any other call may come in between.

        All of it becomes true with the last step, and nothing if that is not reached. The report is
        what the generator returns, and in `stats`.
        """
        with self._writing() as call:
            index = call.state.index
            steps = index.refresh_steps(dry_run=dry_run)
        with closing(steps):
            while (share := self._step(index, steps)) is not None:
                yield share
        return index.last_refresh

    def _step(self, index: Index, steps: Steps) -> float | None:
        """Refresh one slice; return None once there is none left and the file has it all."""
        with self._writing() as call:
            if call.state.index is not index:
                raise StoreError(
                    "a call in between failed, which undid the refresh", hint="refresh again"
                )
            share = next(steps, None)
            if share is None and not index.last_refresh.dry_run:
                call.begin().refreshed = index.last_refresh
            return share

    @contextmanager
    def _writing(self) -> Iterator[WriteCall]:
        """Lock the collection for a call that changes it; when the block ends, commit its changes.

        The commit waits for the disk, so the state lock is released before it.
        """
        with self._writer_lock:
            with self._state_lock:
                call = WriteCall(self._load())
            self._store.check_writable()
            undone = self._undone_on_error
            # left from right to left: the state lock is released, then `commit` commits
            with undone(call), ExitStack() as commit, self._state_lock, undone(call):
                yield call
                if call.changes is not None:
                    transaction = commit.enter_context(self._store.transaction())
                    write_changeset(transaction, call.state.recorder, call.changes)
                    call.state.recorder.mark_saved()  # a commit that fails drops the recorder too

    @contextmanager
    def _undone_on_error(self, call: WriteCall) -> Iterator[None]:
        """If the block fails, have memory read again from the file: it may be half changed."""
        try:
            yield
        except BaseException:
            if call.changes is not None:
                self._loaded = None
            raise


def _new_labels(hasher: StreamHasher, labels: Labels) -> list[Hashable]:
    """Return labels never seen before; raise if one cannot be written to the file."""
    new = hasher.unknown(labels.values)
    for label in new:
        label_to_json(label)
    return new


def _codeword_lesson(hasher: StreamHasher, new: list[Hashable]) -> Lesson | None:
    """Return the lesson, without rows, that gives new labels their codewords."""
    rows, nothing = np.empty((0, hasher.n_features_in_), np.float32), np.empty(0, np.int64)
    return Lesson(rows, Labels(new, nothing, nothing)) if new else None
