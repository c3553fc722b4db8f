"""Reading entries: by id, page by page, and the columns and groups that searches need."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Bools, Counts, Floats, Words
from everhash.index.cells import FIRST, Cells
from everhash.index.coded import CodedEntries
from everhash.index.codewords import Codewords
from everhash.index.entries import Entry, Page, check_page
from everhash.index.likeness import Likeness
from everhash.index.postings import Postings
from everhash.index.stored import StoredEntries
from everhash.learn.mapping import FrozenMapping
from everhash.wire.ids import as_ids


class Group(NamedTuple):
    """Posting lists as the search by meaning takes them."""

    lists: tuple[Any, ...]
    """Runs, arena, and the entries of each label; 0 for labels that are not searched."""
    several: int
    """Entries that are in more than one list."""


NO_PLACES = np.empty(0, np.int32)
EVERYBODY = np.empty(0, np.uint8)
WANTED, WANTED_EACH = 400, 100
"""Entries that a search of cells keeps by Hamming distance, and as many more for each result."""
SIGMAS = 2.5
"""Standard deviations that it expects an estimate to be too low by at the most."""
NO_CODES = np.empty((0, 1), np.uint64)


class ReadableEntries(StoredEntries):
    """The second part of an `Index`: what can be asked about entries."""

    _names: Codewords | None = None

    @property
    def removed(self) -> int:
        """Places that are empty because their entries were removed."""
        return self._removed

    @property
    def next_id(self) -> int:
        """The default id that the next entry gets."""
        return self._ids.next

    # By id, and page by page

    def has(self, ids: Iterable[Any]) -> Bools:
        """Return for each id whether an entry has it."""
        return self._is_living(self._ids.find(as_ids(ids)))

    def features(self, ids: Iterable[Any]) -> Floats:
        """Return (n, d) features of entries, as they are stored: in half precision."""
        return self.features_at(self.find(ids))

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return what is known about entries."""
        return self.entries_at(self.find(ids).tolist())

    def page(
        self,
        start: int = 0,
        limit: int = 100,
        stop: int | None = None,
        *,
        unlabelled: bool = False,
        label: Hashable = None,
    ) -> Page:
        """Return entries in order of arrival, with the number of the first one after them.

        Args:
            start: number of the first entry that may be on the page; removed entries count.
            limit: entries of the page at most.
            stop: number of the first entry that is not on the page any more.
            unlabelled: return only entries without a label.
            label: return only entries that have this label.
        """
        check_page(start, limit, stop)
        places = self.places_from(start, limit + 1, stop, unlabelled=unlabelled, label=label)
        entries = self.entries_at(places[:limit])
        return Page(entries, places[limit] if len(places) > limit else None)

    def places_from(
        self, start: int, limit: int, stop: int | None, *, unlabelled: bool, label: Hashable
    ) -> list[int]:
        """Return the places of the first entries that `page` may return."""
        end = self.arrived if stop is None else min(stop, self.arrived)
        if label is None:
            return self._labels.living(start, end, limit, unlabelled=unlabelled)
        number = int(self.hasher.numbers([label])[0])
        if self.hasher.assigns_codewords:
            having = self._given.places(number)
        else:
            having = self.places_with(np.array([number]))
        first, last = np.searchsorted(having, [start, end]).tolist()
        return [] if unlabelled else having[first : min(last, first + limit)].tolist()

    def entries_at(self, places: list[int]) -> list[Entry]:
        """Return what is known about the entries at these places."""
        known = self.hasher.labels_ if len(self) else []
        return [self._entry(place, known) for place in places]

    def _entry(self, place: int, known: list[Hashable]) -> Entry:
        name = self._ids.names(np.array([place])).tolist()[0]
        labels = tuple(known[number] for number in self._labels.of(place))
        guess = int(self.guess_column[place])
        taken_for = known[guess] if guess >= 0 else None
        if self._coded is not None and len(self.coded_among(np.array([place]))):
            return Entry(name, labels, *self._coded.code_of(place), taken_for)
        return Entry(name, labels, None, None, None)

    # Columns by place

    @property
    def label_column(self) -> NDArray[np.int32]:
        """(n,) number of each entry's label, or a mark of `columns`."""
        return self._labels.rows

    @property
    def guess_column(self) -> NDArray[np.int32]:
        """(n,) number of the label an unlabelled entry is taken for, or -1."""
        self._group_all()
        guesses: NDArray[np.int32] = self._table["guesses"]
        return guesses

    @property
    def taught_column(self) -> Bools:
        """(n,) which entries the hasher has learned with the labels they have."""
        return self._table["taught"]

    @property
    def distance_column(self) -> NDArray[np.uint16]:
        """(n,) distance of an unlabelled entry's word from its guess's codeword."""
        self._group_all()
        distances: NDArray[np.uint16] = self._table["distances"]
        return distances

    @property
    def likeness_column(self) -> Words:
        """(n, w) the likeness code of each entry; none are there without a coder."""
        return NO_CODES if self._coder is None else self._table["likeness"]

    @property
    def coder(self) -> Likeness | None:
        """What makes likeness codes; None if entries have none."""
        return self._coder

    @property
    def cells(self) -> Cells | None:
        """Entries by cell; None while there is one cell for all."""
        return self._cells

    def search_cells(
        self,
        cells: Cells,
        queries: Floats,
        k: int,
        recall: float,
        allowed: NDArray[np.uint8] = EVERYBODY,
    ) -> tuple[Floats, Counts, Counts]:
        """Search cells by queries of unit length; see `kernels.likeness.cells.search_cells`.

        Args:
            cells: of all entries.
            queries: (q, d).
            k: entries wanted.
            recall: share of the nearest that has to be found on average.
            allowed: (n,) by place, 0 where an entry is not searched; empty if all are.
        """
        assert self._coder is not None  # noqa: S101 - there are no cells without codes
        coded, pages, codes = (
            self._coder.queries(queries),
            self.pages_of(None),
            self.likeness_column,
        )
        found: tuple[Floats, Counts, Counts] = kernels.load_likeness().search_cells(
            *cells.lists(codes),
            cells.bounds(queries, recall),
            allowed,
            codes,
            *coded,
            self._coder.size,
            *pages,
            queries,
            k,
            FIRST,
            WANTED + WANTED_EACH * k,
            np.float32(SIGMAS),
        )
        return found

    def names_at(self, places: Counts) -> NDArray[Any]:
        """Return the ids of entries, None for place -1."""
        return self._ids.names(places)

    def label_numbers(self, place: int) -> tuple[int, ...]:
        """Return the labels of one entry by number."""
        return self._labels.of(place)

    def label_pairs(self, places: Counts) -> tuple[Counts, Counts]:
        """Return (position in `places`, label number) for each label of these entries."""
        return self._labels.pairs(places)

    def first_labels(self, places: Counts) -> Counts:
        """Return each entry's first label; -1 if it has none, and for place -1."""
        return self._labels.first(places)

    def places_with(self, numbers: Counts) -> Counts:
        """Return the places of entries with one of these labels, ascending."""
        return self._labels.places_with(numbers)

    def count_labelled(self, number: int) -> int:
        """Return how many entries have a label."""
        if self.hasher.assigns_codewords:
            return self._given.count(number)
        return len(self.places_with(np.array([number])))

    # Groups

    @property
    def given(self) -> Postings:
        """Entries by the labels they have; empty if labels are only names."""
        return self._given

    @property
    def coded(self) -> CodedEntries | None:
        """Entries with bits of their own; None while there are none."""
        return self._coded if self._coded is not None and len(self._coded) else None

    @property
    def mapping(self) -> FrozenMapping | None:
        """The mapping that coded entries were encoded by; None while there are none."""
        coded = self.coded
        return None if coded is None else coded.mapping

    @property
    def coded_by(self) -> FrozenMapping | None:
        """The mapping of the last coded entries, even if all of them were removed."""
        return None if self._coded is None else self._coded.mapping

    @property
    def codewords(self) -> Codewords:
        """The labels' codewords and names, read again only if labels were added or changed."""
        known = self._names
        if known is None or len(known.names) - 1 != len(self.hasher.words_):
            self._names = known = Codewords.of(self.hasher)
        return known

    def labels_changed(self) -> None:
        """Read the names of labels again, and group entries by those that there are."""
        self._names = None
        self.guess_again()

    def groups(
        self, labels: Counts | None, *, unlabelled: bool
    ) -> tuple[Group, Group, NDArray[np.int32]]:
        """Return entries by label, by guess, and those that have neither.

        Args:
            labels: only entries with one of these labels.
            unlabelled: only entries without a label.
        """
        n, nobody = len(self.hasher.words_), np.empty(0, np.int64)
        if not self.hasher.assigns_codewords:
            loose = _loose(self, labels, unlabelled=unlabelled)
            return self._group(self._given, n, nobody), self._group(self._guessed, n, nobody), loose
        given = self._group(self._given, n, nobody if unlabelled else labels)
        if labels is not None:
            return given, self._group(self._guessed, n, nobody), NO_PLACES
        guessed = self._group(self._guessed, n, None)
        loose = NO_PLACES
        if self._coded is not None and len(self._guessed) < len(self._coded):
            loose = self._unguessed()
        return given, guessed, loose

    def _group(self, postings: Postings, n_labels: int, only: Counts | None) -> Group:
        runs, arena, counts, several = postings.lists(n_labels, only)
        return Group((runs, arena, counts), several)

    def _unguessed(self) -> NDArray[np.int32]:
        """Return the places of coded entries that are taken for no label."""
        coded = self.has_code(self._labels.rows)
        return np.flatnonzero(coded & (self.guess_column < 0)).astype(np.int32)


def _loose(
    entries: ReadableEntries, labels: Counts | None, *, unlabelled: bool
) -> NDArray[np.int32]:
    """Return the places that are searched where labels are only names, and say nothing."""
    from everhash.index.ways.way import Scope

    return Scope(labels, None, unlabelled).places_in(entries).astype(np.int32)
