"""A collection as it is read: searched, looked into, followed, copied."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import Codes
from everhash.collection.attachments import Attachment, read_attachments
from everhash.collection.following import follow
from everhash.collection.labels import LabelInfo, label_infos, learned
from everhash.collection.loading import Loaded, load
from everhash.index.entries import Entry, Page, check_page
from everhash.index.index import Index
from everhash.learn.stream_hasher import StreamHasher
from everhash.matches import Matches
from everhash.store.store import Store

ENTRIES = 8192
"""Entries read at a time by `entries`."""


class Readable:
    """What a collection can be asked, whether or not it may be changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.RLock()
        self._loaded: Loaded | None = None
        self._state()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let calls of other threads wait, so that those of this one see and change one state."""
        with self._turn:
            yield

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

    def page(
        self, start: int = 0, limit: int = 100, stop: int | None = None, *, unlabelled: bool = False
    ) -> Page:
        """Return entries in order of arrival, and where to go on; see `Index.page`."""
        with self._turn:
            return self._state().index.page(start, limit, stop, unlabelled=unlabelled)

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Go through entries in order of arrival: those from number `start` up to `stop`."""
        check_page(start)
        place: int | None = start
        while place is not None:
            found, place = self.page(place, ENTRIES, stop)
            yield from found

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
        with self._reading_features() as index:
            return index.features(ids)

    @contextmanager
    def _reading_features(self) -> Iterator[Index]:
        """Hold the file while features are read: those of a reader's older state may be gone."""
        with self._turn:
            state = self._state()
            if not self._store.readonly:
                yield state.index
                return
            with self._store.reading():
                yield self._move_on().index

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival, from number `start` up to `stop`: how each stands."""
        check_page(start)
        with self._turn:
            state = self._state()
            return label_infos(
                state.hasher, state.index, range(len(state.hasher.words_))[start:stop]
            )

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
        """Return the k nearest entries of entries, given by their ids; see `Index.search_like`.

        A reader catches up first, as for `features`.
        """
        with self._reading_features() as index:
            return index.search_like(entries, k, distance, labels=labels, ids=ids, explain=explain)

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
                "learned": learned(self.hasher),
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = ", readonly=True" if self._store.readonly else ""
        return f"<everhash.Collection {self._store.name}{mode}>"
