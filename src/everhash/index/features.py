"""Features of coded entries, kept so that their codes can be refreshed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Bools, Counts, Floats
from everhash.learn.growing import GrowingArray


@dataclass
class StoredFeatures:
    """Rows as they are stored: in half precision, each scaled by its largest value."""

    halves: NDArray[np.float16]
    scales: Floats

    @classmethod
    def of(cls, X: Floats) -> StoredFeatures:
        """Round rows as they will be stored; entries are encoded from the rounded ones."""
        stored = cls.room_for(X.shape)
        stored.fill(X)
        return stored

    @classmethod
    def room_for(cls, shape: tuple[int, ...]) -> StoredFeatures:
        """Return empty arrays of this shape, for `fill`."""
        return cls(np.empty(shape, np.float16), np.empty(shape[0], np.float32))

    def fill(self, X: Floats) -> None:
        """Write these rows, rounded."""
        X = np.require(X, requirements="W")  # kernels only read it, but Numba wants it writable
        kernels.load_refresh().halve(X, self.halves.view(np.uint16), self.scales)

    def __getitem__(self, part: slice) -> StoredFeatures:
        return StoredFeatures(self.halves[part], self.scales[part])

    @property
    def rows(self) -> Floats:
        """The rows, in single precision."""
        rows = np.empty(self.halves.shape, np.float32)
        halves = np.require(self.halves, requirements=["C", "W"]).view(np.uint16)
        scales = np.require(self.scales, requirements=["C", "W"])
        kernels.load_refresh().unhalve(halves, scales, rows)
        return rows


class Features(Protocol):
    """Where features are kept, by place: in memory, or in a file."""

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """Add the features of new entries."""
        ...

    def read(self, places: Counts) -> StoredFeatures:
        """Return the features of entries, given by ascending places."""
        ...

    def keep(self, alive: Bools) -> None:
        """Keep only the features of entries that are alive, out of all in order of arrival."""
        ...


class MemoryFeatures:
    """Features in memory, in order of place."""

    def __init__(self, places: GrowingArray[np.int64], n_features: int) -> None:
        self._places = places
        self._halves: GrowingArray[np.float16] = GrowingArray((n_features,), np.float16)
        self._scales: GrowingArray[np.float32] = GrowingArray((), np.float32)

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        start = len(self._scales)
        for array in (self._halves, self._scales):
            array.grow_to(start + len(places))
        self._halves.rows[start:] = stored.halves
        self._scales.rows[start:] = stored.scales

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        slots = np.searchsorted(self._places.rows, places)
        return StoredFeatures(self._halves.rows[slots], self._scales.rows[slots])

    def keep(self, alive: Bools) -> None:
        """See `Features.keep`."""
        self._halves.replace(self._halves.rows[alive])
        self._scales.replace(self._scales.rows[alive])
