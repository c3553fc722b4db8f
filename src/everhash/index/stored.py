"""The entries that an index stores: adding, labelling, replacing and removing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import LabelError, OptionError, UnknownIdError
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.coded import CodedEntries
from everhash.index.columns import REMOVED, UNLABELLED, EntryTable
from everhash.index.features import Features, MemoryFeatures, StoredFeatures
from everhash.index.hasher import Hasher
from everhash.index.ids import Ids
from everhash.index.labels import EntryLabels
from everhash.index.likeness import Likeness
from everhash.index.postings import Postings
from everhash.learn.mapping import FrozenMapping
from everhash.stream import Labels, as_labels, as_rows
from everhash.wire.ids import Id, IdList, plain_ids

KEEPING = ("all", "unlabelled", "none")
"""Whose features are kept: of all entries, of those that keep bits of their own, of none."""


class CheckedEntries(NamedTuple):
    """Entries to add that were checked: adding them cannot fail any more."""

    rows: Floats
    """As features are stored, in half precision: codes never disagree with features."""
    stored: StoredFeatures
    labels: Labels
    ids: IdList
    replaced: Counts
    """Places of entries that they replace."""


class StoredEntries:
    """Columns, groups and codes of entries, each known by its place.

    The first half of an `Index`, which says what its arguments mean; reading, searching and upkeep
    are the others.
    """

    def __init__(
        self,
        hasher: Hasher,
        *,
        coding: str,
        keep_features: str,
        likeness: bool,
        features: Features | None,
    ) -> None:
        if keep_features not in KEEPING:
            raise OptionError(
                f"keep_features {keep_features!r:.40} is unknown",
                hint=f"choose from {', '.join(KEEPING)}",
            )
        self.hasher = hasher
        self.coding = coding
        self.keep_features = keep_features
        self.likeness = likeness
        self._features = features or MemoryFeatures()
        self._coder: Likeness | None = None
        self._ids = Ids()
        self._table = EntryTable(0)
        self._labels = EntryLabels(self._table)
        if (n_features := getattr(hasher, "n_features_in_", None)) is not None:
            self._begin(n_features)
        self._given = Postings()
        self._guessed = Postings()
        self._coded: CodedEntries | None = None
        self._removed = 0

    def _begin(self, n_features: int) -> None:
        """Make room for likeness codes, once it is known how many features rows have."""
        if self.likeness and self._coder is None:
            self._coder = Likeness.draw(n_features)
            self._table = EntryTable(self._coder.n_words)
            self._labels = EntryLabels(self._table)

    def __len__(self) -> int:
        return len(self._ids) - self._removed

    @property
    def arrived(self) -> int:
        """Entries that have ever been added."""
        return len(self._ids)

    # Adding

    def add(
        self,
        X: ArrayLike,
        ids: Iterable[Any] | None = None,
        y: Any = None,
        *,
        replace: bool = False,
    ) -> list[Id]:
        """Add entries and return their ids. All or nothing.

        A row with a label is stored by it, a row without by its bits. A label seen for the first
        time gets its codeword here. With `replace` entries that have one of the ids are replaced.
        """
        return self.add_checked(self.check(X, ids, y, replace=replace))

    def check(
        self, X: ArrayLike, ids: Iterable[Any] | None, y: Any, *, replace: bool = False
    ) -> CheckedEntries:
        """Return entries ready to be added; raise if they cannot be, before anything changes."""
        n_features = getattr(self.hasher, "n_features_in_", None)
        rows = as_rows(X, n_features, "this index")
        labels = as_labels(y, len(rows))
        self.hasher.check_room(labels.values)
        replaced = np.empty(0, np.int64)
        if replace:
            wanted = self._ids.check(ids, len(rows), _nobody)
            places = self._ids.find(wanted)
            replaced = places[self._is_living(places)]
        else:
            wanted = self._ids.check(ids, len(rows), self._is_living)
        stored = StoredFeatures.of(rows)
        return CheckedEntries(stored.rows, stored, labels, wanted, replaced)

    def add_checked(self, checked: CheckedEntries, *, taught: Bools | None = None) -> list[Id]:
        """Add entries that `check` returned; `taught` says which the hasher has learned."""
        rows, labels = checked.rows, checked.labels
        self._begin(rows.shape[1])
        self.forget(checked.replaced)
        self.hasher.assign(labels.values)
        first, n = len(self._ids), len(rows)
        coded = np.ones(n, np.bool_)
        if self.hasher.assigns_codewords:
            coded[labels.rows] = False
        self._ids.extend(checked.ids)
        self._table.grow_to(first + n)
        self._keep(checked.stored, first, coded)
        self._code_likeness(rows, first)
        self._code(rows, first + np.flatnonzero(coded), coded)
        self._post(labels, first + labels.rows)
        if taught is not None:
            learned = labels.rows[taught[labels.rows]]
            self._table["taught"][first + learned] = True
        return list(plain_ids(checked.ids))

    def _keep(self, stored: StoredFeatures, first: int, coded: Bools) -> None:
        """Keep features of new entries, or of those that have bits of their own."""
        kept = np.ones(len(coded), np.bool_) if self.keep_features == "all" else coded
        if self.keep_features != "none" and kept.any():
            places = first + np.flatnonzero(kept)
            part = StoredFeatures(stored.halves[kept], stored.scales[kept])
            self._features.append(places, stored if kept.all() else part)

    def _code_likeness(self, rows: Floats, first: int) -> None:
        """Make the likeness codes of new entries; the first ones again once there are enough."""
        if self._coder is None:
            return
        if self._coder.meet(rows) and len(self._coder.first_rows):
            self._write_likeness(self._coder.first_rows, 0)
        self._write_likeness(rows, first)

    def _write_likeness(self, rows: Floats, first: int) -> None:
        assert self._coder is not None  # noqa: S101 - the caller has looked
        codes, part = self._coder.encode(rows), slice(first, first + len(rows))
        self._table["likeness_words"][part] = codes.words
        self._table["likeness_along"][part] = codes.along
        self._table["likeness_scale"][part] = codes.scale

    def _code(self, rows: Floats, places: Counts, coded: Bools) -> None:
        """Give new entries bits of their own."""
        if len(places):
            entries = self._coded_to_join()
            entries.add(rows if coded.all() else rows[coded], places)
            self._guess(int(places[0]), int(places[-1]) + 1)

    # Labels

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Replace the labels of entries. All or nothing."""
        self.relabel(*self.check_labels(ids, y))

    def check_labels(self, ids: Iterable[Any], y: Any) -> tuple[Counts, Labels]:
        """Return places and new labels; raise if they cannot be given, before anything changes."""
        places = self.find_each(ids)
        labels = as_labels(y, len(places))
        if len(np.unique(labels.rows)) < len(places):
            raise LabelError("some entries are given no label", hint="unlabel takes labels away")
        self.hasher.check_room(labels.values)
        return places, labels

    def relabel(self, places: Counts, labels: Labels, *, taught: bool = False) -> None:
        """Give entries the labels that `check_labels` returned."""
        self.hasher.assign(labels.values)
        self._remove_postings(places)
        if self.hasher.assigns_codewords:
            self._remove_codes(places)
            if self.keep_features == "unlabelled":
                self._features.drop(places[self._labels.rows[places] == UNLABELLED])
        self._post(labels, places[labels.rows])
        self._table["taught"][places] = taught

    def unlabel(self, ids: Iterable[Any]) -> None:
        """Take the labels of entries away; from then on they are found by their bits."""
        self.clear_labels(self.check_unlabel(ids))

    def check_unlabel(self, ids: Iterable[Any]) -> Counts:
        """Return the places of entries that have labels; raise if these cannot be taken away."""
        places = self.find_each(ids)
        places = places[self._labels.rows[places] != UNLABELLED]
        if len(places) and self.hasher.assigns_codewords:
            self.features_at(places[:1], "so it cannot be coded without its label")
        return np.sort(places)

    def clear_labels(self, places: Counts) -> None:
        """Take away the labels of entries that `check_unlabel` returned."""
        if len(places) == 0:
            return
        self._remove_postings(places)
        self._labels.clear(places)
        self._table["taught"][places] = False
        if self.hasher.assigns_codewords:
            entries, rows = self._coded_to_join(), self.features_at(places)
            entries.insert(rows, places)
            for place in places.tolist():
                self._guess(place, place + 1)

    # Removing

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove entries and return how many there were. Their ids are free again."""
        return self.forget(np.unique(self.find(ids)))

    def forget(self, places: Counts) -> int:
        """Remove the entries at these places, each given once; return how many there were."""
        if len(places):
            self._remove_codes(places)
            self._remove_postings(places)
            self._features.drop(self.with_features(places))
            self._labels.clear(places, REMOVED)
            self._removed += len(places)
        return len(places)

    # Groups and codes

    def _coded_to_join(self) -> CodedEntries:
        """Return the coded entries; while there are none, a new set under the newest mapping."""
        coded = self._coded
        if coded is None or (len(coded) == 0 and not coded.refreshing):
            self._coded = coded = self._new_coded(self.hasher.freeze())
        return coded

    def _new_coded(self, mapping: FrozenMapping) -> CodedEntries:
        features = None if self.keep_features == "none" else self._features
        return CodedEntries(mapping, self.coding, features=features)

    def _guess(self, start: int, stop: int) -> None:
        """Group coded entries at places from start to stop by the label they are taken for."""
        if self._coded is None or not self.hasher.assigns_codewords:
            return
        usable = np.array([name is not None for name in self.hasher.labels_], np.bool_)
        places, guesses = self._coded.guesses(start, stop, usable)
        self._table["guesses"][places] = guesses.labels
        self._table["distances"][places] = guesses.distances
        taken = guesses.labels >= 0
        self._guessed.append(guesses.labels[taken], places[taken])

    def guess_again(self) -> None:
        """Group all coded entries anew: their codes or the labels have changed."""
        self._guessed = Postings()
        self._guess(0, self.arrived)

    def _post(self, labels: Labels, places: Counts) -> None:
        """Give entries their labels, and add them to the labels' posting lists."""
        numbers = self.hasher.numbers(labels.values)[labels.which]
        if self.hasher.assigns_codewords:
            self._given.append(numbers, places)
        self._labels.give(places, numbers)

    def _remove_codes(self, places: Counts) -> None:
        if self._coded is None:
            return
        coded = self.coded_among(places)
        self._coded.remove(coded)
        for place, number in zip(coded.tolist(), self._table["guesses"][coded], strict=True):
            if number >= 0:
                self._guessed.remove(int(number), place)
        self._table["guesses"][coded] = -1

    def _remove_postings(self, places: Counts) -> None:
        for place in places.tolist() if self.hasher.assigns_codewords else ():
            for number in self._labels.of(place):
                self._given.remove(number, place)

    # What entries have

    def has_code(self, labels: NDArray[np.int32]) -> Bools:
        """Return which entries keep bits of their own, given their column of labels."""
        coded: Bools = labels == UNLABELLED
        return coded if self.hasher.assigns_codewords else labels != REMOVED

    def coded_among(self, places: Counts) -> Counts:
        """Return those places whose entries keep bits of their own."""
        coded: Counts = places[self.has_code(self._labels.rows[places])]
        return coded

    def with_features(self, places: Counts) -> Counts:
        """Return those places whose entries have their features kept."""
        if self.keep_features == "unlabelled":
            return self.coded_among(places)
        living: Counts = places[self._is_living(places)]
        return living if self.keep_features == "all" else places[:0]

    def features_at(self, places: Counts, therefore: str = "") -> Floats:
        """Return (n, d) features as they are stored, or raise if some are not kept."""
        there = self.with_features(places)
        if len(there) < len(places):
            name = self._ids.names(np.setdiff1d(places, there)[:1]).tolist()[0]
            reason = f", {therefore}" if therefore else ""
            raise OptionError(
                f"the features of entry {name!r} are not kept{reason}",
                hint='a collection made with keep_features="all" keeps them',
            )
        if len(places) == 0:
            return np.empty((0, self.hasher.n_features_in_), np.float32)
        distinct, which = np.unique(places, return_inverse=True)
        return self._features.read(distinct).rows[which]

    def find(self, ids: Iterable[Any]) -> Counts:
        """Return the places of entries; raise if an id is unknown, or its entry was removed."""
        places = self._ids.places(ids)
        gone = np.flatnonzero(~self._is_living(places))
        if len(gone):
            raise UnknownIdError(self._ids.names(places[gone[:1]]).tolist()[0])
        return places

    def find_each(self, ids: Iterable[Any]) -> Counts:
        """Return the places of entries; raise if one of them is given twice."""
        places = self.find(ids)
        if len(np.unique(places)) < len(places):
            raise LabelError("an id is given twice", hint="name each entry once")
        return places

    def _is_living(self, places: Counts) -> Bools:
        """Return which places have an entry that is not removed; -1 has none."""
        if len(self._table) == 0:
            return np.zeros(len(places), np.bool_)
        living: Bools = (places >= 0) & (self._labels.rows[places] != REMOVED)
        return living


def _nobody(places: Counts) -> Bools:
    return np.zeros(len(places), np.bool_)
