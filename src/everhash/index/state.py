"""The state of an index: columns, groups and codes of entries, each known by its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import LabelError, OptionError, UnknownIdError
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.cells import Cells
from everhash.index.clustering import Clustering
from everhash.index.coded import CodedEntries
from everhash.index.columns import REMOVED, UNLABELLED, EntryTable
from everhash.index.features import Features, MemoryFeatures, Pages
from everhash.index.hasher import Hasher
from everhash.index.ids import Ids
from everhash.index.labels import EntryLabels
from everhash.index.likeness import Likeness
from everhash.index.postings import Postings
from everhash.wire.ids import as_ids, plain_ids

KEEPING = ("all", "unlabelled", "none")
"""Whose features are kept: of all entries, of those that keep bits of their own, of none."""


class EntryState:
    """What an index holds of its entries: the first part of an `Index`."""

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
        self.numbering = object()
        """Another one after entries were given other numbers; see `compact`."""
        self._features = features or MemoryFeatures()
        self._coder: Likeness | None = None
        self._cells: Cells | None = None
        self._clustering: Clustering | None = None
        self._empty()
        if (n_features := getattr(hasher, "n_features_in_", None)) is not None:
            self._begin(n_features)

    def _empty(self) -> None:
        """Start without entries."""
        self._ids = Ids()
        self._table = EntryTable(0 if self._coder is None else self._coder.width)
        self._labels = EntryLabels(self._table)
        self._given_lists = Postings()
        self._guessed_lists = Postings()
        self._grouped = 0
        """Entries that are in these lists; those after them came from a file, and wait."""
        self._coded: CodedEntries | None = None
        self._removed = 0

    def _begin(self, n_features: int) -> None:
        """Make room for likeness codes, once it is known how many features rows have."""
        if self.likeness and self._coder is None:
            self._coder = Likeness.draw(n_features)
            self._empty()

    def __len__(self) -> int:
        return len(self._ids) - self._removed

    @property
    def arrived(self) -> int:
        """Entries that have ever been added."""
        return len(self._ids)

    # What entries have

    def has_code(self, labels: NDArray[np.int32]) -> Bools:
        """Return which entries keep bits of their own, given their column of labels."""
        coded: Bools = labels == UNLABELLED
        return coded if self.hasher.assigns_codewords else labels != REMOVED

    def coded_among(self, places: Counts) -> Counts:
        """Return those places whose entries keep bits of their own."""
        coded: Counts = places[self.has_code(self._labels.rows[places])]
        return coded

    def keeps_features(self) -> Bools:
        """Return which entries, removed ones included, have their features kept."""
        labels = self._labels.rows
        if self.keep_features == "none":
            return np.zeros(len(labels), np.bool_)
        living: Bools = labels != REMOVED
        return living if self.keep_features == "all" else self.has_code(labels)

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
                hint='a collection made with {option keep_features="all"} keeps them',
            )
        if len(places) == 0:
            return np.empty((0, self.hasher.n_features_in_), np.float32)
        distinct, which = np.unique(places, return_inverse=True)
        return self._features.read(distinct).rows[which]

    def pages_of(self, places: Counts | None) -> Pages:
        """Return pages with the features of these entries, or of all; they must be kept."""
        return self._features.pages(places)

    def find(self, ids: Iterable[Any]) -> Counts:
        """Return the places of entries; raise for the first id that no entry has, or has now."""
        wanted = as_ids(ids)
        places = self._ids.find(wanted)
        missing = np.flatnonzero(~self._is_living(places))
        if len(missing):
            raise UnknownIdError(plain_ids(wanted)[int(missing[0])])
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
