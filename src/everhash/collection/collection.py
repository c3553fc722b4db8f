"""The collection: hasher, index and file behind one small interface."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import Codes
from everhash.collection.attachments import (
    Attachment,
    Carried,
    as_blobs,
    at_places,
    nothing_at,
    read_attachments,
)
from everhash.collection.following import follow
from everhash.collection.formats import Lesson
from everhash.collection.labels import LabelInfo, label_infos
from everhash.collection.loading import Loaded, load
from everhash.collection.pending import Pending, write_down
from everhash.errors import InputError
from everhash.index.ids import Id
from everhash.index.index import Entry
from everhash.index.matches import Matches
from everhash.index.records import Change
from everhash.index.refresh import RefreshReport
from everhash.learn.model_format import label_to_json
from everhash.learn.stream_hasher import StreamHasher
from everhash.store.store import Store
from everhash.stream import Labels, as_labels, as_rows

ENTRIES = 8192
"""Entries read at a time by `entries`."""


class Collection:
    """Entries that keep coming, the hasher that codes them, and the file that keeps both.

    Every call that changes something is one transaction: when it returns, the file has it; when it
    raises, or the process dies, neither file nor memory has any of it. One process writes; others
    read with `open(path, readonly=True)`, each from the state the file had when it was opened or
    last caught up; only what is attached to an entry they read as it is by now. Calls of several
    threads on one collection take turns.

    `create` and `open` make collections.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.RLock()
        self._loaded: Loaded | None = None
        self._state()

    # Writing

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
                pending.change = Change(places, labels.rows, numbers)

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
                pending.change = Change(places, nothing, nothing)
                pending.attached = nothing_at(places)
                return index.forget(places)

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping.

        A reader may ask what it would do; it then catches up, since the features that takes may be
        there for the newest state only.
        """
        with self._turn:
            if dry_run and self._store.readonly:
                self._state()
                with self._store.reading():
                    return self._move_on().index.refresh(dry_run=True)
            if dry_run:
                return self._state().index.refresh(dry_run=True)
            index = self._writable().index
            with self._changing() as pending:
                pending.refreshed = index.refresh()
            return pending.refreshed

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

    # Reading

    def _state(self) -> Loaded:
        """Return hasher and index, read from the file if memory does not have them."""
        if self._loaded is None:
            with self._store.reading():
                self._store.load_listing()
                self._loaded = load(self._store)
        return self._loaded

    @property
    def hasher(self) -> StreamHasher:
        """The hasher; teach it through `learn` and `ingest`."""
        with self._turn:
            return self._state().hasher

    def __len__(self) -> int:
        with self._turn:
            return len(self._state().index)

    def __contains__(self, value: Any) -> bool:
        return bool(self.has([value])[0])

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it, or had it before it was removed."""
        with self._turn:
            return self._state().index.has(ids)

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return what is known of entries."""
        with self._turn:
            return self._state().index.get(ids)

    def entries(self) -> Iterator[Entry]:
        """Go through all entries in order of arrival."""
        start = 0
        while True:
            with self._turn:
                index = self._state().index
                if start >= index.arrived:
                    return
                entries = index.entries(start, start + ENTRIES)
            yield from entries
            start += ENTRIES

    def attachments(self, ids: Iterable[Any]) -> list[Attachment]:
        """Return what entries carry, read from the file as it is now.

        A reader that has not caught up gets what the entries of its own state carry by now:
        nothing, if they have been removed since.
        """
        with self._turn:
            places = self._state().index.find(ids)
            with self._store.reading():
                return read_attachments(self._store, places)

    def features(self, ids: Iterable[Any]) -> NDArray[np.float32]:
        """Return (n, d) features of unlabelled entries, as they are stored: in half precision.

        Of entries that are known by their label none are kept. A reader catches up first, since
        features may be there for the newest state only.
        """
        with self._turn:
            state = self._state()
            if self._store.readonly:
                with self._store.reading():
                    return self._move_on().features_of(ids)
            return state.features_of(ids)

    def labels(self) -> list[LabelInfo]:
        """Return all labels in order of arrival, and how each of them stands."""
        with self._turn:
            state = self._state()
            return label_infos(state.hasher, state.index)

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
        """Return the k nearest entries of each query; see `Index.search`."""
        with self._turn:
            index = self._state().index
            return index.search(X, k, distance, labels=labels, ids=ids, explain=explain)

    def search_radius(
        self, X: ArrayLike | Codes, r: float, distance: str = "hamming", *, explain: bool = False
    ) -> Matches:
        """Return all entries no farther than r, nearest first."""
        with self._turn:
            return self._state().index.search_radius(X, r, distance, explain=explain)

    def stats(self) -> dict[str, Any]:
        """Return what an operator wants to see."""
        with self._turn:
            stats, store = self._state().index.stats(), self._store
            return {
                "path": None if store.path is None else str(store.path),
                **stats,
                "method": self.hasher.method,
                "dim": self.hasher.n_features_in_,
                "bits": self.hasher.bits,
                "bytes": store.bytes_on_disk,
                "commit": store.commit,
                "last_refresh": store.about["refreshed"],
            }

    def catch_up(self) -> bool:
        """Move a collection opened for reading to the newest state; return whether it is newer."""
        with self._turn:
            before = self._store.commit
            self._state()
            if self._store.readonly:
                with self._store.reading():
                    self._move_on()
            return self._store.commit != before

    def _move_on(self) -> Loaded:
        """Return the newest state, while the file is held."""
        store, state = self._store, self._state()
        before, parts, about = store.commit, store.parts, store.about
        store.load_listing()
        if store.commit != before:
            self._loaded = None  # stays so if anything fails from here on
            self._loaded = state = follow(store, parts, about, state)
        return state

    # The file

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to another file, compactly."""
        with self._turn:
            self._store.copy_to(Path(path))

    def close(self) -> None:
        """Let go of the file. Calls after this raise `ReadOnlyError`."""
        with self._turn:
            self._loaded = None
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = ", readonly=True" if self._store.readonly else ""
        return f"<everhash.Collection {self._store.name}{mode}>"
