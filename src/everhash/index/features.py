"""Features of entries, kept so that they can be encoded again, corrected and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

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
        """Add the features of new entries; their places ascend and are above all others."""
        ...

    def read(self, places: Counts) -> StoredFeatures:
        """Return the features of entries, given by ascending places."""
        ...

    def drop(self, places: Counts) -> None:
        """Forget the features of these entries; they are not read any more."""
        ...

    def renumber(self, kept: Counts) -> None:
        """Entries at the places `kept` are at 0, 1, 2, … from now on; no others are left."""
        ...


class MemoryFeatures:
    """Features in memory, in order of place."""

    def __init__(self) -> None:
        self._places: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self._halves: GrowingArray[np.float16] | None = None
        self._scales: GrowingArray[np.float32] = GrowingArray((), np.float32)
        self._dropped: set[int] = set()

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        if self._halves is None:
            self._halves = GrowingArray((stored.halves.shape[1],), np.float16)
        start, end = len(self._scales), len(self._scales) + len(places)
        pairs = ((self._places, places), (self._halves, stored.halves))
        for array, rows in (*pairs, (self._scales, stored.scales)):
            array.grow_to(end)
            array.rows[start:] = rows

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        assert self._halves is not None  # noqa: S101 - nobody reads what was not appended
        slots = np.searchsorted(self._places.rows, places)
        return StoredFeatures(self._halves.rows[slots], self._scales.rows[slots])

    def drop(self, places: Counts) -> None:
        """See `Features.drop`. Space is given back once half of the rows are dropped."""
        self._dropped.update(places.tolist())
        if self._halves is None or 2 * len(self._dropped) < len(self._places):
            return
        self._keep(~np.isin(self._places.rows, np.array(list(self._dropped))))

    def _keep(self, left: Bools) -> None:
        assert self._halves is not None  # noqa: S101 - the caller has looked
        arrays: tuple[GrowingArray[Any], ...] = (self._places, self._halves, self._scales)
        for array in arrays:
            array.replace(array.rows[left])
        self._dropped = set()

    def renumber(self, kept: Counts) -> None:
        """See `Features.renumber`."""
        if self._halves is not None:
            self._keep(np.isin(self._places.rows, kept))
            self._places.replace(np.searchsorted(kept, self._places.rows))
