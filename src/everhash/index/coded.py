"""Unlabelled entries: their bits in one cycle, and what it takes to keep them up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.index.features import Features, MemoryFeatures
from everhash.learn.growing import GrowingArray
from everhash.learn.mapping import FrozenMapping

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


@dataclass
class CodeColumns:
    """What a refresh may change of the entries, a row each."""

    homes: Counts
    """(n,) the cycle whose bits are kept."""
    words: NDArray[np.uint64]
    """(n, w) packed bits."""
    expiries: NDArray[np.uint8]
    """(n, k) how far each bit's function may turn; see `kernels.refresh`."""
    best: Floats
    """(n,) score of the home's best label, when it was last computed."""
    lead: Floats
    """(n,) how far that was above the best label of any other cycle."""
    asked: NDArray[np.float64]
    """(n,) the labels' odometer at that time."""


class CodedEntries:
    """Columns of the unlabelled entries in order of arrival, dead ones among them.

    Features are kept in `features`, in memory by default.
    """

    def __init__(
        self, bits: int, n_features: int, *, keep_features: bool, features: Features | None
    ) -> None:
        self.bits = bits
        self.dead = 0
        self.pinned = False
        """Whether a refresh under way counts on entries staying where they stand."""
        self.places: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.alive: GrowingArray[np.bool_] = GrowingArray((), np.bool_)
        self.features: Features | None = None
        if keep_features:
            self.features = features or MemoryFeatures(self.places, n_features)
        self._columns: dict[str, GrowingArray[Any]] = {
            "homes": GrowingArray((), np.int64),
            "words": GrowingArray((-(-bits // 64),), np.uint64),
            "expiries": GrowingArray((bits,), np.uint8),
            "best": GrowingArray((), np.float32),
            "lead": GrowingArray((), np.float32),
            "asked": GrowingArray((), np.float64),
        }

    def __len__(self) -> int:
        return len(self.places)

    @property
    def columns(self) -> CodeColumns:
        """Views of what a refresh may change."""
        views = {name: column.rows for name, column in self._columns.items()}
        return CodeColumns(**views)

    def swap(self, columns: CodeColumns, bits: int) -> None:
        """Take over refreshed columns, all at once."""
        self.bits = bits
        for name, column in self._columns.items():
            column.replace(getattr(columns, name))

    def append(self, places: Counts, columns: CodeColumns) -> None:
        """Add entries; their features are kept apart."""
        if len(places) == 0:
            return
        start, end = len(self), len(self) + len(places)
        self.places.grow_to(end)
        self.alive.grow_to(end)
        self.places.rows[start:] = places
        self.alive.rows[start:] = True
        if start == 0:  # a file just opened: columns of zeros take no memory until they are used
            self.swap(columns, self.bits)
            return
        for name, column in self._columns.items():
            column.grow_to(end)
            column.rows[start:] = getattr(columns, name)

    def rows(self, slots: NDArray[np.integer] | slice) -> Floats:
        """Return features as they are stored: every encoding starts from these."""
        if self.features is None:
            raise OptionError("features are not kept", hint="keep_features=True keeps them")
        return self.features.read(self.places.rows[slots]).rows

    def slots(self, places: Counts) -> Counts:
        """Return where entries stand, given their places."""
        return np.searchsorted(self.places.rows, places)

    def kill(self, places: Counts) -> None:
        """Mark entries as removed."""
        self.alive.rows[self.slots(places)] = False
        self.dead += len(places)

    def drop_dead(self) -> None:
        """Close the gaps that removed entries left."""
        self.dead = 0
        alive = self.alive.rows.copy()
        arrays: list[GrowingArray[Any]] = [self.places, self.alive, *self._columns.values()]
        if self.features is not None:
            self.features.keep(alive)
        for array in arrays:
            array.replace(array.rows[alive])


def functions_of(mapping: FrozenMapping, coding: str) -> Floats:
    """Return what entries are coded by: (n_cycles, k, d), or (1, width, d) for full codes."""
    if coding == "home":
        return mapping.functions
    return mapping.functions.reshape(1, -1, mapping.functions.shape[2])


def without_certificates(homes: Counts, words: NDArray[np.uint64], bits: int) -> CodeColumns:
    """Return columns of codes of which nothing is proved: a refresh computes what has moved."""
    n = len(homes)
    return CodeColumns(
        homes=homes,
        words=words,
        expiries=np.zeros((n, bits), np.uint8),
        best=np.zeros(n, np.float32),
        lead=np.full(n, -np.inf, np.float32),
        asked=np.zeros(n),
    )
