"""Features of unlabelled entries in the file: written with their call, read when needed."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from everhash.collection.formats import read_features, require
from everhash.index.features import StoredFeatures
from everhash.store.parts import Part, PartKey
from everhash.store.store import Store

Counts = NDArray[np.int64]


class FeatureStore:
    """Features kept in a store."""

    def __init__(self, store: Store, n_features: int) -> None:
        self._store, self._n_features = store, n_features
        self.unwritten: tuple[Counts, StoredFeatures] | None = None
        """Places and features of the call under way, until they are written."""
        self._last: tuple[PartKey, int, Counts, StoredFeatures] | None = None

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        self.unwritten = (places, stored)

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        halves = np.empty((len(places), self._n_features), np.float16)
        scales = np.empty(len(places), np.float32)
        starts = self._store.starts("features")
        done = 0
        while done < len(places):
            at = bisect_right(starts, int(places[done])) - 1
            require(at >= 0, "features", f"none for entry {places[done]}")
            stop = starts[at + 1] if at + 1 < len(starts) else np.iinfo(np.int64).max
            until = int(np.searchsorted(places, stop))
            wanted = places[done:until]
            key = PartKey("features", starts[at])
            known, stored = self.part(key, self._store.parts[key])
            slots = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            there = len(known) > 0 and np.array_equal(known[slots], wanted)
            require(there, key, "features are missing")
            halves[done:until], scales[done:until] = stored.halves[slots], stored.scales[slots]
            done = until
        return StoredFeatures(halves, scales)

    def part(self, key: PartKey, part: Part) -> tuple[Counts, StoredFeatures]:
        """Return the places and features of one part; the last one read is kept in memory."""
        if self._last is None or self._last[:2] != (key, part.written):
            arrays = self._store.read(key, part)
            self._last = (
                key,
                part.written,
                *read_features(arrays, key, part.rows, self._n_features),
            )
        return self._last[2:]

    def keep(self, alive: NDArray[np.bool_]) -> None:
        """Do nothing: those of removed entries leave the file when their block is rewritten."""
