"""The calls of a collection that change nothing: searching, reading, catching up, copying."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import Attachment, read_attachments
from everhash.collection.catch_up import read_newer
from everhash.collection.finding import Looked, Wanted
from everhash.collection.labels import LabelInfo, label_infos, learned
from everhash.collection.loading import Loaded, load
from everhash.collection.process_lock import ProcessLock
from everhash.index.entries import Entry, Page, check_page
from everhash.index.index import Index
from everhash.learn.stream_hasher import StreamHasher
from everhash.store import sqlite_version
from everhash.store.store import Store
from everhash.wire.options import check_text

PAGE_ENTRIES = 8192
"""Entries that `entries` reads at a time."""


class ReadCalls:
    """The calls of a collection that change nothing.

    There are two locks, always taken in this order:

        _writer_lock    the file and its one connection: for a call that reads it, and for one that
                        changes the collection, until its commit is on the disk
        _state_lock     hasher and index in memory; released during a commit, so that searches go on
    """

    _make_index: ClassVar[type[Index]] = Index
    _is_kept = False
    """Whether a block of `_in_file` is under way; whoever looks has `_writer_lock`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer_lock = ProcessLock(store.check_process)
        self._state_lock = ProcessLock(store.check_process)
        self._loaded: Loaded | None = None
        self._load()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the collection as it is, so that several calls see one state.

        It waits for a write that is under way. Searches of other threads go on. A reader catches up
        first, then stays where it is whatever the writer does.
        """
        with self._in_file() if self._store.readonly else self._writer_lock:
            yield

    def _load(self) -> Loaded:
        """Return hasher and index, read from the file if memory does not have them.

        The caller has both locks.
        """
        if self._loaded is None:
            with self._store.reading():
                self._store.load_listing()
                self._loaded = load(self._store, self._make_index)
        return self._loaded

    @contextmanager
    def _in_memory(self) -> Iterator[Loaded]:
        """Lock hasher and index, which are read from the file again if a commit has failed."""
        with self._state_lock:
            if (state := self._loaded) is not None:
                yield state
                return
        with self._writer_lock, self._state_lock:
            yield self._load()

    @contextmanager
    def _in_file(self) -> Iterator[None]:
        """Keep the file at the state that memory has, to read from it; a reader catches up first.

        Memory knows entries by their places in the file, and a writer may compact it at any moment:
        what a call looks up in memory and reads from the file must be inside one such block. A
        block inside another has the state of that one.
        """
        with self._writer_lock:
            if self._is_kept:
                yield
                return
            with self._state_lock:
                self._load()
            with self._store.reading():
                if self._store.readonly:
                    with self._state_lock:
                        self._catch_up()
                self._is_kept = True
                try:
                    yield
                finally:
                    self._is_kept = False

    @property
    def hasher(self) -> StreamHasher:
        """The hasher; teach it through `learn` and `ingest`."""
        with self._in_memory() as state:
            return state.hasher

    def __len__(self) -> int:
        with self._in_memory() as state:
            return len(state.index)

    def __contains__(self, value: Any) -> bool:
        return bool(self.has([value])[0])

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it."""
        ids = drawn(ids)
        with self._in_memory() as state:
            return state.index.has(ids)

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return id, labels and code of entries."""
        ids = drawn(ids)
        with self._in_memory() as state:
            return state.index.get(ids)

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
        """Return entries in order of arrival, and where to go on; see `Index.page`.

        With `text`, only entries whose id or payload has it, in upper or lower case: as a part of a
        text id, as the whole of a number, or as a part of any text in the payload (names of its
        fields do not count). Payloads are read from the file: a reader catches up first.
        """
        check_page(start, limit, stop)
        found: list[Entry] = []
        place: int | None = start
        wanted = Wanted(stop, check_text(text), label, unlabelled)
        # a reader's page is of one state; a writer's other calls have their turn while it is made
        with self.held() if self._store.readonly and wanted.text else nullcontext():
            while place is not None and len(found) < limit:
                part, place = self._part(place, limit - len(found), wanted)
                found += part
        return Page(found, place)

    def entries(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        text: str | None = None,
        label: Hashable = None,
    ) -> Iterator[Entry]:
        """Yield entries in order of arrival: those from number `start` up to `stop`.

        `text` and `label` are those of `page`. Each entry is as it is when its turn comes; inside
        `held` all are of one state. `StoreError` if the collection is compacted meanwhile.
        """
        check_page(start, stop=stop)
        wanted = Wanted(stop, check_text(text), label)
        place: int | None = start
        while place is not None:
            found, place = self._part(place, PAGE_ENTRIES, wanted)
            yield from found

    def _part(self, start: int, limit: int, wanted: Wanted) -> Page:
        """Return the entries among the next ones that are wanted, and where to go on.

        All of a page if it takes memory only; with a text, as many as are read from the file while
        others wait.
        """
        if wanted.text is None:
            with self._in_memory() as state:
                wanted.check_numbers(state.index)
                label, unlabelled = wanted.label, wanted.unlabelled
                return state.index.page(
                    start, limit, wanted.stop, unlabelled=unlabelled, label=label
                )
        with self._in_file():
            with self._in_memory() as state:
                wanted.check_numbers(state.index)
                looked = Looked.at(state.index, start, wanted)
            places = looked.having(wanted.text, self._store)[:limit]
            with self._in_memory() as state:
                return Page(state.index.entries_at(places), looked.next(places, limit))

    def attachments(self, ids: Iterable[Any]) -> list[Attachment]:
        """Return payloads and thumbnails of entries, from the file; a reader catches up first."""
        ids = drawn(ids)
        with self._in_file():
            with self._in_memory() as state:
                places = state.index.find(ids)
            return read_attachments(self._store, places)

    def features(self, ids: Iterable[Any]) -> NDArray[np.float32]:
        """Return (n, d) features of entries, as they are stored: in half precision.

        `keep_features` of `create` says whose are kept. A reader catches up first, since the file
        may have features for the newest state only.
        """
        ids = drawn(ids)
        with self._in_file(), self._in_memory() as state:
            return state.index.features(ids)

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival: those from position `start` up to `stop`."""
        check_page(start, stop=stop)
        with self._in_memory() as state:
            names = state.hasher.labels_
            known = [number for number, name in enumerate(names) if name is not None]
            numbers = np.array(known, np.int64)[start:stop]
            return label_infos(state.hasher, state.index, numbers)

    # The file

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions for an operator.

        `commit` and `last_refresh` are those of the last write that was made durable. `sqlite` is
        the version of SQLite here, `wal_reset_bug` whether it can damage a file that several
        programs write.
        """
        with self._in_memory() as state:
            hasher, store = state.hasher, self._store
            return {
                "path": None if store.path is None else str(store.path),
                **state.index.stats(),
                "method": hasher.method,
                "learned": learned(hasher),
                "dim": hasher.n_features_in_,
                "bits": hasher.bits,
                "bytes": store.bytes_on_disk,
                "commit": store.commit,
                "last_refresh": store.about["refreshed"],
                "sqlite": sqlite_version.VERSION,
                "wal_reset_bug": sqlite_version.has_wal_reset_bug(),
            }

    def catch_up(self) -> bool:
        """Move a collection opened for reading to the newest state; return whether it is newer.

        Inside `held` it stays where it is.
        """
        with self._writer_lock:
            before = self._store.commit
            with self._in_file():
                return self._store.commit != before

    def _catch_up(self) -> None:
        """Bring memory to the state at which the file is kept."""
        store, state = self._store, self._load()
        before, parts, about = store.commit, store.parts, store.about
        store.load_listing()
        if store.commit != before:
            self._loaded = None  # stays so if anything fails from here on
            self._loaded = read_newer(store, parts, about, state)

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the last commit to a new file, compactly.

        The file appears whole or not at all, and never replaces another. Calls of other threads go
        on meanwhile; only those that write to a collection in memory wait.
        """
        with self._writer_lock if self._store.path is None else nullcontext():
            self._store.copy_to(Path(path))

    def close(self) -> None:
        """Close the file. Calls after this raise `ClosedError`.

        In a process that was forked from the one that opened it, it is closed already.
        """
        if self._store.inherited:
            return
        with self._writer_lock, self._state_lock:
            self._loaded = None
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = ", readonly=True" if self._store.readonly else ""
        return f"<everhash.Collection {self._store.name}{mode}>"


def drawn(values: Any) -> Any:
    """Return an iterator's values as a list, anything else as it is.

    A generator may call the collection itself, which it must not do while a search has a lock.
    """
    return list(values) if isinstance(values, Iterator) else values
