"""The entries that an index stores: adding, labelling, replacing and removing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everhash.errors import LabelError
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.coded import CodedEntries
from everhash.index.columns import REMOVED, UNLABELLED
from everhash.index.features import StoredFeatures
from everhash.index.postings import Postings
from everhash.index.state import EntryState
from everhash.learn.mapping import FrozenMapping
from everhash.stream import Labels, as_labels, as_rows, labels_for
from everhash.wire.ids import Id, IdList, plain_ids


class CheckedEntries(NamedTuple):
    """Entries to add that were checked: adding them cannot fail any more."""

    rows: Floats
    """As features are stored, in half precision: codes never disagree with features."""
    stored: StoredFeatures
    labels: Labels
    ids: IdList
    replaced: Counts
    """Places of entries that they replace."""


class StoredEntries(EntryState):
    """Adding, labelling, replacing and removing entries: the second part of an `Index`."""

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
        self._group_all()
        self.forget(checked.replaced)
        self.hasher.assign(labels.values)
        first, n = len(self._ids), len(rows)
        coded = np.ones(n, np.bool_)
        if self.hasher.assigns_codewords:
            coded[labels.rows] = False
        self._ids.extend(checked.ids)
        self._grouped = first + n  # they are, further down
        self._table.grow_to(first + n)
        self._keep(checked.stored, first, coded)
        self._code_likeness(rows, first)
        if self._cells is not None:
            self._cells.append(self._cells.nearest(rows))
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
        self._table["likeness"][first : first + len(rows)] = self._coder.encode(rows)

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
        labels = labels_for(y, len(places))
        if len(np.unique(labels.rows)) < len(places):
            raise LabelError(
                "some entries are given no label", hint="{call unlabel} takes labels away"
            )
        self.hasher.check_room(labels.values)
        return places, labels

    def relabel(self, places: Counts, labels: Labels, *, taught: bool = False) -> None:
        """Give entries the labels that `check_labels` returned."""
        self._group_all()
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
        self.clear_labels(self.check_unlabel(self.find_each(ids)))

    def check_unlabel(self, places: Counts) -> Counts:
        """Return those of the places that have labels; raise if these cannot be taken away."""
        places = places[self._labels.rows[places] != UNLABELLED]
        if len(places) and self.hasher.assigns_codewords:
            self.features_at(places[:1], "so it cannot be coded without its label")
        return np.sort(places)

    def clear_labels(self, places: Counts) -> None:
        """Take away the labels of entries that `check_unlabel` returned."""
        if len(places) == 0:
            return
        self._group_all()
        self._remove_postings(places)
        self._labels.clear(places)
        self._table["taught"][places] = False
        if self.hasher.assigns_codewords:
            self._code_again(places)

    def _code_again(self, places: Counts) -> None:
        """Give entries bits of their own that were known by their labels."""
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
            self._group_all()
            self._remove_codes(places)
            self._remove_postings(places)
            self._features.drop(self.with_features(places))
            for listed in (self._cells, self._clustering):
                if listed is not None:
                    listed.remove(places)
            self._labels.clear(places, REMOVED)
            self._removed += len(places)
        return len(places)

    # Groups and codes

    @property
    def _given(self) -> Postings:
        """Entries by the labels they have."""
        self._group_all()
        return self._given_lists

    @property
    def _guessed(self) -> Postings:
        """Entries by the labels they are taken for."""
        self._group_all()
        return self._guessed_lists

    def _group_all(self) -> None:
        """Group the entries that came from a file and have waited for the first to ask.

        Whoever only opens a collection, or reads its entries, need not wait for it, nor for the
        kernels that it takes.
        """
        first, self._grouped = self._grouped, self.arrived
        if first == self._grouped:
            return
        try:
            self._make_groups(np.arange(first, self._grouped))
        except BaseException:  # lists may be half made: the next one to ask makes them anew
            self._given_lists, self._guessed_lists, self._grouped = Postings(), Postings(), 0
            raise

    def _make_groups(self, places: Counts) -> None:
        """Group entries at successive places."""
        if self.hasher.assigns_codewords:
            at, numbers = self._labels.pairs(places)
            self._given_lists.append(numbers, places[at])
        self._guess(int(places[0]), int(places[-1]) + 1)

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
        self._guessed_lists.append(guesses.labels[taken], places[taken])

    def guess_again(self) -> None:
        """Group all coded entries anew: their codes or the labels have changed."""
        if self._grouped:  # or else they will be, when somebody asks
            self._guessed_lists = Postings()
            self._guess(0, self._grouped)

    def _post(self, labels: Labels, places: Counts) -> None:
        """Give entries their labels, and add them to the labels' posting lists."""
        numbers = self.hasher.numbers(labels.values)[labels.which]
        if self.hasher.assigns_codewords:
            self._given_lists.append(numbers, places)
        self._labels.give(places, numbers)

    def _remove_codes(self, places: Counts) -> None:
        if self._coded is None:
            return
        coded = self.coded_among(places)
        self._coded.remove(coded)
        for place, number in zip(coded.tolist(), self._table["guesses"][coded], strict=True):
            if number >= 0:
                self._guessed_lists.remove(int(number), place)
        self._table["guesses"][coded] = -1

    def _remove_postings(self, places: Counts) -> None:
        for place in places.tolist() if self.hasher.assigns_codewords else ():
            for number in self._labels.of(place):
                self._given_lists.remove(number, place)


def _nobody(places: Counts) -> Bools:
    return np.zeros(len(places), np.bool_)
