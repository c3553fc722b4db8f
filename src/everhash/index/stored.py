"""The entries that an index stores: adding, labelling, removing and reading them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import LabelError, UnknownIdError
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.coded import CodedEntries
from everhash.index.entries import Entry, Page, check_page
from everhash.index.entry_query import features_at
from everhash.index.features import Features
from everhash.index.hasher import Hasher
from everhash.index.ids import Ids
from everhash.index.labels import REMOVED, UNLABELLED, EntryLabels
from everhash.index.postings import Postings
from everhash.learn.mapping import FrozenMapping
from everhash.stream import Labels, as_labels, as_rows
from everhash.wire.ids import Id, IdList, as_ids, plain_ids


class CheckedEntries(NamedTuple):
    """Entries to add that were checked: adding them cannot fail any more."""

    rows: Floats
    labels: Labels
    ids: IdList


class StoredEntries:
    """Ids, labels, posting lists and codes of entries, each known by its place.

    The first half of an `Index`, which says what its arguments mean; search and refresh are the
    second half.
    """

    def __init__(
        self,
        hasher: Hasher,
        *,
        coding: str,
        keep_features: bool,
        features: Features | None,
    ) -> None:
        self.hasher = hasher
        self.coding = coding
        self.keep_features = keep_features
        self._features = features
        self._ids = Ids()
        self._labels = EntryLabels()
        self._postings = Postings()
        self._coded: CodedEntries | None = None
        self._removed = 0

    def __len__(self) -> int:
        return len(self._ids) - self._removed

    @property
    def arrived(self) -> int:
        """Entries that have ever been added."""
        return len(self._ids)

    # Writing

    def add(self, X: ArrayLike, ids: Iterable[Any] | None = None, y: Any = None) -> list[Id]:
        """Add entries and return their ids. All or nothing.

        A row with a label is stored by it, a row without by its bits. A label seen for the first
        time gets its codeword here.
        """
        return self.add_checked(self.check(X, ids, y))

    def check(self, X: ArrayLike, ids: Iterable[Any] | None, y: Any) -> CheckedEntries:
        """Return entries ready to be added; raise if they cannot be, before anything changes."""
        n_features = getattr(self.hasher, "n_features_in_", None)
        rows = as_rows(X, n_features, "this index")
        labels = as_labels(y, len(rows))
        self.hasher.check_room(labels.values)
        return CheckedEntries(rows, labels, self._ids.check(ids, len(rows)))

    def add_checked(self, checked: CheckedEntries) -> list[Id]:
        """Add entries that `check` returned."""
        rows, labels, ids = checked
        self.hasher.assign(labels.values)
        coded = np.ones(len(rows), np.bool_)
        if self.hasher.assigns_codewords:
            coded[labels.rows] = False
        first = len(self._ids)
        if coded.any():
            bare = rows if coded.all() else rows[coded]
            self._coded_to_join().add(bare, first + np.flatnonzero(coded))
        self._ids.extend(ids)
        self._labels.grow_to(len(self._ids))
        self._post(labels, first + labels.rows)
        return list(plain_ids(ids))

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Replace the labels of entries. All or nothing."""
        self.relabel(*self.check_labels(ids, y))

    def check_labels(self, ids: Iterable[Any], y: Any) -> tuple[Counts, Labels]:
        """Return places and new labels; raise if they cannot be given, before anything changes."""
        places = self.find(ids)
        labels = as_labels(y, len(places))
        if len(np.unique(labels.rows)) < len(places):
            raise LabelError("an entry cannot lose its label", hint="remove it and add it again")
        if len(np.unique(places)) < len(places):
            raise LabelError("an id is given twice", hint="give each entry its labels once")
        self.hasher.check_room(labels.values)
        return places, labels

    def relabel(self, places: Counts, labels: Labels) -> None:
        """Give entries the labels that `check_labels` returned."""
        self.hasher.assign(labels.values)
        if self.hasher.assigns_codewords:
            self._remove_codes(places)
        self._remove_postings(places)
        self._post(labels, places[labels.rows])

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove entries and return how many there were. Their ids are never used again."""
        return self.forget(np.unique(self.find(ids)))

    def forget(self, places: Counts) -> int:
        """Remove the entries at these places, each given once; return how many there were."""
        self._remove_codes(places)
        self._remove_postings(places)
        self._labels.clear(places, REMOVED)
        self._removed += len(places)
        return len(places)

    def _coded_to_join(self) -> CodedEntries:
        """Return the coded entries; while there are none, a new set under the newest mapping."""
        coded = self._coded
        if coded is None or (len(coded) == 0 and not coded.refreshing):
            self._coded = coded = self._new_coded(self.hasher.freeze())
        return coded

    def _new_coded(self, mapping: FrozenMapping) -> CodedEntries:
        keep = self.keep_features
        return CodedEntries(mapping, self.coding, keep_features=keep, features=self._features)

    def _post(self, labels: Labels, places: Counts) -> None:
        """Give entries their labels, and add them to the labels' posting lists."""
        numbers = self.hasher.numbers(labels.values)[labels.which]
        if self.hasher.assigns_codewords:
            self._postings.append(numbers, places)
        self._labels.give(places, numbers)

    def _remove_codes(self, places: Counts) -> None:
        if self._coded is not None:
            self._coded.remove(self.coded_among(places))

    def _remove_postings(self, places: Counts) -> None:
        for place in places.tolist() if self.hasher.assigns_codewords else ():
            for number in self._labels.of(place):
                self._postings.remove(number, place)

    # Reading

    def has_code(self, labels: NDArray[np.int32]) -> Bools:
        """Return which entries keep bits of their own, given their column of labels."""
        coded: Bools = labels == UNLABELLED
        return coded if self.hasher.assigns_codewords else labels != REMOVED

    def coded_among(self, places: Counts) -> Counts:
        """Return those places whose entries keep bits of their own."""
        coded: Counts = places[self.has_code(self._labels.rows[places])]
        return coded

    def find(self, ids: Iterable[Any]) -> Counts:
        """Return the places of entries; raise if an id is unknown, or its entry was removed."""
        places = self._ids.places(ids)
        gone = np.flatnonzero(self._labels.rows[places] == REMOVED)
        if len(gone):
            raise UnknownIdError(self._ids.names(places[gone[:1]]).tolist()[0])
        return places

    def has(self, ids: Iterable[Any]) -> Bools:
        """Return for each id whether it is taken: by an entry, or by one that was removed."""
        taken: Bools = self._ids.find(as_ids(ids)) >= 0
        return taken

    def features(self, ids: Iterable[Any]) -> Floats:
        """Return (n, d) features of coded entries, as they are stored: in half precision."""
        return features_at(self, self.find(ids))

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return what is known about entries."""
        return self._entries_at(self.find(ids).tolist())

    def page(
        self, start: int = 0, limit: int = 100, stop: int | None = None, *, unlabelled: bool = False
    ) -> Page:
        """Return entries in order of arrival, with the number of the first one after them.

        Args:
            start: number of the first entry that may be on the page; removed entries count.
            limit: entries of the page at most.
            stop: number of the first entry that is not on the page any more.
            unlabelled: return only entries without a label.
        """
        check_page(start, limit)
        end = self.arrived if stop is None else min(stop, self.arrived)
        places = self._labels.living(start, end, limit + 1, unlabelled=unlabelled)
        entries = self._entries_at(places[:limit])
        return Page(entries, places[limit] if len(places) > limit else None)

    def _entries_at(self, places: list[int]) -> list[Entry]:
        known = self.hasher.labels_ if len(self) else []
        return [self._entry(place, known) for place in places]

    def _entry(self, place: int, known: list[Hashable]) -> Entry:
        name = self._ids.names(np.array([place])).tolist()[0]
        labels = tuple(known[number] for number in self._labels.of(place))
        if self._coded is not None and len(self.coded_among(np.array([place]))):
            return Entry(name, labels, *self._coded.code_of(place))
        return Entry(name, labels, None, None)
