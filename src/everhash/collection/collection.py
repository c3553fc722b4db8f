"""The collection: hasher, index and file behind one small interface."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import peers
from everhash.codes import Codes
from everhash.collection.following import follow
from everhash.collection.formats import Lesson
from everhash.collection.loading import Loaded, fresh_about, load
from everhash.collection.recorder import pieces_of
from everhash.errors import OptionError
from everhash.index.ids import Id
from everhash.index.index import CODINGS, Entry
from everhash.index.matches import Matches
from everhash.index.records import Change
from everhash.index.refresh import RefreshReport
from everhash.learn.model_format import label_to_json
from everhash.learn.stream_hasher import StreamHasher
from everhash.store.store import Store
from everhash.stream import Labels, as_labels, as_rows

ENTRIES = 8192
"""Entries read at a time by `entries`."""


@dataclass
class Pending:
    """What a call has done to hasher and index, to be written down."""

    lesson: Lesson | None = None
    new_labels: int = 0
    change: Change | None = None
    coded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    refreshed: RefreshReport | None = None


class Collection:
    """Entries that keep coming, the hasher that codes them, and the file that keeps both.

    Every call that changes something is one transaction: when it returns, the file has it; when it
    raises, or the process dies, neither file nor memory has any of it. One process writes; others
    read with `open(path, readonly=True)`, each from the state the file had when it was opened or
    last caught up. Calls of several threads on one collection take turns.

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

    def add(self, X: ArrayLike, ids: Iterable[Any] | None = None, y: Any = None) -> list[Id]:
        """Add entries and return their ids: labelled ones by codeword, others by their bits."""
        return self._enter(X, y, ids, learn=False)

    def ingest(self, X: ArrayLike, y: Any = None, ids: Iterable[Any] | None = None) -> list[Id]:
        """Learn from rows and add them, in one transaction; return their ids."""
        return self._enter(X, y, ids, learn=True)

    def _enter(self, X: ArrayLike, y: Any, ids: Iterable[Any] | None, *, learn: bool) -> list[Id]:
        with self._turn:
            state = self._writable()
            hasher, index = state.hasher, state.index
            incoming = index.check(X, ids, y)
            new = self._new_labels(incoming.labels)
            with self._changing() as pending:
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

    def remove(self, ids: Iterable[Any]) -> int:
        """Forget entries and return how many there were. Their ids are never used again."""
        with self._turn:
            index = self._writable().index
            places = np.unique(index.find(ids))
            with self._changing() as pending:
                pending.coded = index.coded_among(places)
                nothing = np.empty(0, np.int64)
                pending.change = Change(places, nothing, nothing)
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
            with self._store.transaction() as change:
                recorder.write_hasher(change, pending.lesson, pending.new_labels, whole=whole)
                recorder.write_mapping(change)
                if pending.change is not None and len(pending.change.places):
                    recorder.write_change(change, pending.change, pending.coded)
                recorder.write_entries(change)
                if pending.refreshed is not None:
                    when = datetime.now(UTC).isoformat(timespec="seconds")
                    change.about["refreshed"] = {"at": when, **asdict(pending.refreshed)}
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


def create(
    path: str | os.PathLike[str] | None,
    dim: int | None = None,
    bits: int = 32,
    *,
    labels_per_cycle: int | str | None = "auto",
    random_state: int | None = 0,
    method: str = "everhash",
    hasher: StreamHasher | None = None,
    coding: str = "home",
    keep_features: bool = True,
    durability: str = "commit",
) -> Collection:
    """Make a collection.

    Args:
        path: of the new file; None keeps the collection in memory.
        dim: features a row.
        bits: k, hash functions of a cycle; a code takes this many bits.
        labels_per_cycle: rho, labels that share k functions; see `OnlineHasher`.
        random_state: seed.
        method: how codes are learned; `everhash.peers.names()` lists what there is.
        hasher: one with other options, or one that has learned already, instead of the above.
        coding: "home" or "full"; see `Index`.
        keep_features: keep features of unlabelled entries, so that they can be refreshed.
        durability: "commit", "interval:100ms" or "none": when a call reaches the disk.
    """
    if hasher is None:
        hasher = _made(method, bits, labels_per_cycle, random_state)
    if not hasher.__sklearn_is_fitted__():
        if dim is None:
            raise OptionError("how many features has a row?", hint="pass dim=")
        hasher.begin(dim)
    elif dim not in (None, hasher.n_features_in_):
        raise OptionError(f"dim is {dim}, but the hasher has {hasher.n_features_in_} features")
    if coding not in CODINGS:
        raise OptionError(f"coding {coding!r} is unknown", hint="choose from home, full")
    options = {"coding": coding, "keep_features": bool(keep_features), "certify": True}
    model = hasher.to_bytes()
    about = {**fresh_about(options), "model_bytes": len(model)}
    target = None if path is None else Path(path)
    store = Store.create(target, about, pieces_of("model", model), durability=durability)
    try:
        return Collection(store)
    except BaseException:
        store.discard()
        raise


def _made(
    method: str, bits: int, labels_per_cycle: int | str | None, random_state: int | None
) -> StreamHasher:
    """Return a hasher; labels a cycle are passed on only if somebody chose them."""
    options: dict[str, Any] = {"random_state": random_state}
    if labels_per_cycle != "auto":
        options["labels_per_cycle"] = labels_per_cycle
    return peers.get(method, bits, **options)


def open(  # noqa: A001 - the name users know from files
    path: str | os.PathLike[str], *, readonly: bool = False, durability: str = "commit"
) -> Collection:
    """Open a collection.

    Args:
        path: of its file.
        readonly: read, beside a writer that may go on; see `Collection.catch_up`.
        durability: "commit", "interval:100ms" or "none": when a call reaches the disk.
    """
    store = Store.open(Path(path), readonly=readonly, durability=durability)
    try:
        return Collection(store)
    except BaseException:
        store.close()
        raise


def restore(snapshot: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Make a collection at `path` from a snapshot, after reading all of it."""
    with open(snapshot, readonly=True) as source:
        source.snapshot(path)
