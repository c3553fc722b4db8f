"""Features of entries, kept so that they can be encoded again, corrected and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Counts, Floats
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


class Pages(NamedTuple):
    """Features where kernels can read them, without a copy."""

    halves: NDArray[np.uint16]
    """(slots, d) the bits of halves, without the rows' scales."""
    slots: NDArray[np.int32]
    """(n,) slot of each place; -1 where features are not kept, or not here yet."""

    def cosines(self, queries: Floats, places: Counts) -> Floats:
        """Return (q, m) cosines of queries, of unit length, with entries."""
        out = np.empty((len(queries), len(places)), np.float32)
        slots = self.slots[places].astype(np.int64)
        kernels.load_likeness().cosines_at(self.halves, slots, queries, out)
        return out

    def units(self, places: Counts) -> Floats:
        """Return (m, d) rows of entries, scaled to unit length."""
        out = np.empty((len(places), self.halves.shape[1]), np.float32)
        slots = self.slots[places].astype(np.int64)
        kernels.load_likeness().unit_rows_at(self.halves, slots, out)
        return out

    def own_cosines(self, queries: Floats, places: Counts) -> Floats:
        """Return (q, m) cosines of each query with entries of its own; NaN for place -1."""
        out = np.empty(places.shape, np.float32)
        slots = np.full(places.shape, -1)
        slots[places >= 0] = self.slots[places[places >= 0]]
        kernels.load_likeness().own_cosines_at(self.halves, slots, queries, out)
        return out


class Features(Protocol):
    """Where features are kept, by place: in memory, or in a file."""

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """Add the features of new entries; their places ascend and are above all others."""
        ...

    def read(self, places: Counts) -> StoredFeatures:
        """Return the features of entries, given by ascending places."""
        ...

    def pages(self, places: Counts | None) -> Pages:
        """Return pages that have the features of these entries, or of all that are kept."""
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
        self._slots: GrowingArray[np.int32] = GrowingArray((), np.int32)
        self._halves: GrowingArray[np.float16] | None = None
        self._scales: GrowingArray[np.float32] = GrowingArray((), np.float32)
        self._dropped = 0

    def append(self, places: Counts, stored: StoredFeatures) -> None:
        """See `Features.append`."""
        if self._halves is None:
            self._halves = GrowingArray((stored.halves.shape[1],), np.float16)
        start, end = len(self._scales), len(self._scales) + len(places)
        self._halves.grow_to(end)
        self._scales.grow_to(end)
        self._halves.rows[start:], self._scales.rows[start:] = stored.halves, stored.scales
        set_slots(self._slots, places, start)

    def read(self, places: Counts) -> StoredFeatures:
        """See `Features.read`."""
        assert self._halves is not None  # noqa: S101 - nobody reads what was not appended
        slots = self._slots.rows[places]
        return StoredFeatures(self._halves.rows[slots], self._scales.rows[slots])

    def pages(self, places: Counts | None) -> Pages:  # noqa: ARG002 - all are here
        """See `Features.pages`."""
        halves = np.empty((0, 1), np.float16) if self._halves is None else self._halves.rows
        return Pages(halves.view(np.uint16), self._slots.rows)

    def drop(self, places: Counts) -> None:
        """See `Features.drop`. Space is given back once half of the rows are dropped."""
        self._slots.rows[places] = -1
        self._dropped += len(places)
        if self._halves is not None and 2 * self._dropped >= len(self._scales):
            kept = np.flatnonzero(self._slots.rows >= 0)
            slots = self._slots.rows[kept]
            self._halves.replace(self._halves.rows[slots])
            self._scales.replace(self._scales.rows[slots])
            self._slots.rows[kept] = np.arange(len(kept))
            self._dropped = 0

    def renumber(self, kept: Counts) -> None:
        """See `Features.renumber`."""
        self._slots.replace(self._slots.rows[kept[kept < len(self._slots)]])


def set_slots(slots: GrowingArray[np.int32], places: Counts, first: int) -> None:
    """Say that entries, given by ascending places, have slots from `first` on."""
    before, end = len(slots), int(places.max(initial=-1)) + 1
    slots.grow_to(max(before, end))
    slots.rows[before:] = -1
    slots.rows[places] = np.arange(first, first + len(places), dtype=np.int32)
