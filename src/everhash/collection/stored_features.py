"""Features of unlabelled entries in the file: written with the call, read when they are needed."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from everhash.collection.formats import read_features, require
from everhash.index.features import StoredFeatures
from everhash.store.parts import Part, PartKey
from everhash.store.store import Store

Counts = NDArray[np.int64]


class FiledFeatures:
    """Features kept in a store. Those of a call wait in `pending` until its transaction."""

    def __init__(self, store: Store, n_features: int) -> None:
        self._store, self._n_features = store, n_features
        self.pending: tuple[Counts, StoredFeatures] | None = None
        self._last: tuple[PartKey, int, Counts, StoredFeatures] | None = None

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        self.pending = (places, stored)

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        halves = np.empty((len(places), self._n_features), np.float16)
        scales = np.empty(len(places), np.float32)
        starts = self._store.starts("features")
        done = 0
        while done < len(places):
            at = bisect_right(starts, int(places[done])) - 1
            require(at >= 0, "features", f"those of entry {places[done]} are missing")
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
        """Return the features of one part, and whose they are."""
        if self._last is None or self._last[:2] != (key, part.written):
            arrays = self._store.read(key, part)
            self._last = (
                key,
                part.written,
                *read_features(arrays, key, part.rows, self._n_features),
            )
        return self._last[2:]

    def keep(self, alive: NDArray[np.bool_]) -> None:
        """Do nothing: those of entries that are gone leave the file as it is compacted."""
