"""Features of entries in the file: written with their call, read when needed."""

from __future__ import annotations

import json
from collections import OrderedDict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.collection.entry_formats import check_features, read_features
from everhash.collection.part_arrays import require
from everhash.index.features import StoredFeatures
from everhash.store.parts import Part, PartKey
from everhash.store.store import Store

Counts = NDArray[np.int64]

CACHED_BYTES = 256 << 20
"""Features that are kept in memory once they were read, at most."""
FEW = 16
"""Of a part that is not in memory, a row in so many is read by itself; more read the whole part."""


class Loaded(NamedTuple):
    """A part in memory."""

    places: Counts
    stored: StoredFeatures


class Directory(NamedTuple):
    """What is needed to read single rows of a part."""

    places: Counts
    scales: NDArray[np.float32]
    halves: int
    """Where they begin among the part's bytes."""


class FeatureStore:
    """Features kept in a store."""

    def __init__(self, store: Store, n_features: int) -> None:
        self._store, self._n_features = store, n_features
        self.unwritten: Loaded | None = None
        """Places and features of the call under way, until they are written."""
        self.dropped: list[Counts] = []
        """Places whose features the call under way does not need any more."""
        self._parts: OrderedDict[tuple[PartKey, Part], Loaded] = OrderedDict()
        self._directories: dict[tuple[PartKey, Part], Directory] = {}

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        self.unwritten = Loaded(places, stored)

    def drop(self, places: Counts) -> None:
        """See `Features.drop`: they leave the file when their part is written again."""
        if len(places):
            self.dropped.append(places)

    def renumber(self, kept: Counts) -> None:
        """See `Features.renumber`: whoever writes the file does it."""

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        result = StoredFeatures.room_for((len(places), self._n_features))
        starts = self._store.starts("features")
        at = np.searchsorted(starts, places, side="right") - 1
        new = 0 if self.unwritten is None else len(self.unwritten.places)
        first = int(self.unwritten.places[0]) if self.unwritten is not None and new else 2**62
        at[places >= first] = len(starts)
        edges = [0, *(np.flatnonzero(np.diff(at)) + 1).tolist(), len(places)]
        for begin, end in pairwise(edges) if len(places) else ():
            wanted, part = places[begin:end], slice(begin, end)
            number = int(at[begin])
            require(number >= 0, "features", f"none for entry {wanted[0]}")
            if number < len(starts):
                found = self._rows(PartKey("features", starts[number]), wanted)
            else:
                found = _chosen(self.unwritten, wanted, "features")
            result.halves[part], result.scales[part] = found.halves, found.scales
        return result

    def _rows(self, key: PartKey, wanted: Counts) -> StoredFeatures:
        """Return the features of some entries of one part."""
        part = self._store.parts[key]
        if (key, part) not in self._parts and FEW * len(wanted) < part.rows:
            return self._single_rows(key, part, wanted)
        return _chosen(self.part(key, part), wanted, key)

    def _single_rows(self, key: PartKey, part: Part, wanted: Counts) -> StoredFeatures:
        """Read rows one by one, without the rest of their part."""
        known = self._directory(key, part)
        slots = _slots(known.places, wanted, key)
        halves = np.empty((len(wanted), self._n_features), np.float16)
        width = 2 * self._n_features
        with self._store.open_blob(key) as blob:
            for row, slot in enumerate(slots.tolist()):
                begin = known.halves + slot * width
                blob.seek(begin)
                halves[row] = np.frombuffer(blob.read(width), np.float16)
        stored = StoredFeatures(halves, known.scales[slots])
        check_features(stored, key)
        return stored

    def _directory(self, key: PartKey, part: Part) -> Directory:
        """Return where the rows of a part are; the part is read and checked once for it."""
        name = (key, part)  # one commit may write a part twice
        if name not in self._directories:
            data = self._store.read_bytes(key, part)
            loaded = self.part(key, part)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            begin = 8 + int.from_bytes(data[:8], "little") + header["halves"]["data_offsets"][0]
            known = {item for item in self._store.parts.items() if item[0].kind == "features"}
            for old in set(self._directories) - known:
                del self._directories[old]
            scales = loaded.stored.scales.copy()
            self._directories[name] = Directory(loaded.places.copy(), scales, begin)
        return self._directories[name]

    def part(self, key: PartKey, part: Part) -> Loaded:
        """Return the places and features of one part; those read last are kept in memory."""
        name = (key, part)
        if name in self._parts:
            self._parts.move_to_end(name)
            return self._parts[name]
        arrays = self._store.read(key, part)
        loaded = Loaded(*read_features(arrays, key, part.rows, self._n_features))
        self._parts[name] = loaded
        while len(self._parts) > 1 and self._cached() > CACHED_BYTES:
            self._parts.popitem(last=False)
        return loaded

    def _cached(self) -> int:
        return sum(loaded.stored.halves.nbytes for loaded in self._parts.values())


def _slots(known: Counts, wanted: Counts, key: PartKey | str) -> Counts:
    """Return where the wanted places are among the known ones, both ascending."""
    slots = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    require(len(known) > 0 and np.array_equal(known[slots], wanted), key, "features are missing")
    return slots


def _chosen(loaded: Loaded | None, wanted: Counts, key: PartKey | str) -> StoredFeatures:
    assert loaded is not None  # noqa: S101 - the caller has looked
    slots = _slots(loaded.places, wanted, key)
    return StoredFeatures(loaded.stored.halves[slots], loaded.stored.scales[slots])
