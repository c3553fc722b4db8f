"""Features of entries in the file: written with their call, read when needed, kept for searches.

What was read stays at hand in half precision, in a scratch file without a name that is mapped into
memory: the system may take its pages back when memory is short, and reads them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.collection.entry_formats import read_features
from everhash.collection.part_arrays import require
from everhash.collection.scratch import Scratch
from everhash.index.features import Pages, StoredFeatures, set_slots
from everhash.learn.growing import GrowingArray
from everhash.store.parts import Part, PartKey
from everhash.store.store import Store

Counts = NDArray[np.int64]


class Loaded(NamedTuple):
    """The features of some entries."""

    places: Counts
    stored: StoredFeatures


class NotAtHandError(Exception):
    """Features would have to be read from the file, which the caller has not locked."""


class FeatureStore:
    """Features kept in a store. An entry's never change: another row is another entry."""

    def __init__(self, store: Store, n_features: int) -> None:
        self._store, self._n_features = store, n_features
        self.unwritten: Loaded | None = None
        """Places and features of the call under way, until they are written."""
        self.dropped: list[Counts] = []
        """Places whose features the call under way does not need any more."""
        self.complete = not store.starts("features")
        """Whether the features of all entries are at hand, so that nobody has to read the file."""
        self._file_is_locked = True
        self._scratch = Scratch(n_features, _folder_of(store))
        self._brought: set[tuple[PartKey, Part]] = set()
        """Parts that were read; one that was written again is another one."""
        self._slots: GrowingArray[np.int32] = GrowingArray((), np.int32)
        self._scales: GrowingArray[np.float32] = GrowingArray((), np.float32)

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        self.unwritten = Loaded(places, stored)
        if self.complete:
            self._keep(self.unwritten)

    def drop(self, places: Counts) -> None:
        """See `Features.drop`: they leave the file when their part is written again."""
        if len(places):
            self.dropped.append(places)

    def renumber(self, kept: Counts) -> None:
        """See `Features.renumber`: whoever writes the file does it there."""
        self._slots.replace(self._slots.rows[kept[kept < len(self._slots)]])

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        self._bring(places)
        slots = self._slots.rows[places]
        halves = self._scratch.rows[slots].view(np.float16)
        return StoredFeatures(halves, self._scales.rows[slots])

    def pages(self, places: Counts | None) -> Pages:
        """See `Features.pages`."""
        if places is not None:
            self._bring(places)
        elif not self.complete:
            for start in self._store.starts("features"):
                self._bring_part(PartKey("features", start))
            if self.unwritten is not None:
                self._keep(self.unwritten)
            self.complete = True
        return Pages(self._scratch.rows, self._slots.rows)

    @contextmanager
    def without_file(self) -> Iterator[None]:
        """Raise `NotAtHandError` in this block instead of reading the file."""
        self._file_is_locked = False
        try:
            yield
        finally:
            self._file_is_locked = True

    def part(self, key: PartKey, part: Part) -> Loaded:
        """Return the places and features of one part."""
        if not self._file_is_locked:
            raise NotAtHandError
        arrays = self._store.read(key, part)
        return Loaded(*read_features(arrays, key, part.rows, self._n_features))

    def _missing(self, places: Counts) -> Counts:
        known = places < len(self._slots)
        missing = ~known
        missing[known] = self._slots.rows[places[known]] < 0
        return places[missing]

    def _bring(self, places: Counts) -> None:
        """Have the features of these entries at hand."""
        missing = self._missing(places)
        if len(missing) and self.unwritten is not None:
            self._keep(self.unwritten)
            missing = self._missing(missing)
        if len(missing) == 0:
            return
        starts = self._store.starts("features")
        at = np.unique(np.searchsorted(starts, missing, side="right") - 1)
        require(at[0] >= 0, "features", "features are missing")
        for number in at.tolist():
            self._bring_part(PartKey("features", starts[number]))
        require(len(self._missing(missing)) == 0, "features", "features are missing")

    def _bring_part(self, key: PartKey) -> None:
        """Have the features of one part at hand."""
        part = self._store.parts[key]
        if (key, part) not in self._brought:
            loaded = self.part(key, part)
            there = loaded.places.max(initial=-1) < self._store.about["places"]
            require(bool(there), key, "features of entries that are not there")
            self._keep(loaded)
            self._brought.add((key, part))

    def _keep(self, loaded: Loaded) -> None:
        """Take over those features that are not at hand."""
        new = np.isin(loaded.places, self._missing(loaded.places), assume_unique=True)
        if new.any():
            first = self._scratch.append(loaded.stored.halves[new].view(np.uint16))
            self._scales.grow_to(first + int(new.sum()))
            self._scales.rows[first:] = loaded.stored.scales[new]
            set_slots(self._slots, loaded.places[new], first)


def _folder_of(store: Store) -> Path | None:
    """Return the folder of a collection's file; None for one in memory."""
    return store.path.parent if store.path is not None else None
