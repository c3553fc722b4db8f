"""The stored codes of entries, one row each, with what a refresh needs to know about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.index.arrays import Bools, Counts, Floats, Words
from everhash.index.features import Features
from everhash.learn.growing import GrowingArray


@dataclass
class CodeColumns:
    """What a refresh may change of entries, one row each."""

    homes: Counts
    """(n,) the cycle whose bits are kept."""
    words: Words
    """(n, w) packed bits."""
    expiries: NDArray[np.uint8]
    """(n, k) how far each bit's function may turn; see `kernels.refresh`."""
    best: Floats
    """(n,) score of the home's best label, when it was last computed."""
    lead: Floats
    """(n,) how far that was above the best label of any other cycle."""
    scored_at: NDArray[np.float64]
    """(n,) what the labels' odometer showed at that time."""

    @classmethod
    def uncertified(cls, homes: Counts, words: Words, bits: int) -> CodeColumns:
        """Return codes of which nothing is proved: a refresh recomputes all that has moved."""
        n = len(homes)
        return cls(
            homes=homes,
            words=words,
            expiries=np.zeros((n, bits), np.uint8),
            best=np.zeros(n, np.float32),
            lead=np.full(n, -np.inf, np.float32),
            scored_at=np.zeros(n),
        )

    def rows(self, slots: Counts | slice) -> CodeColumns:
        """Return the rows at these slots; copies if slots are an array."""
        return CodeColumns(**{name: column[slots] for name, column in vars(self).items()})

    def followed_by(self, other: CodeColumns) -> CodeColumns:
        """Return these rows and those of another table after them."""
        pairs = ((name, column, getattr(other, name)) for name, column in vars(self).items())
        return CodeColumns(**{name: np.concatenate([a, b]) for name, a, b in pairs})

    def widened(self, bits: int) -> CodeColumns:
        """Return copies with room for `bits` bits; the new ones have already expired."""
        copies = CodeColumns(**{name: column.copy() for name, column in vars(self).items()})
        n, k = copies.expiries.shape
        if bits > k:
            copies.words = np.zeros((n, -(-bits // 64)), np.uint64)
            copies.words[:, : self.words.shape[1]] = self.words
            copies.expiries = np.zeros((n, bits), np.uint8)
            copies.expiries[:, :k] = self.expiries
        return copies


class CodeTable:
    """Codes of entries by ascending place, removed ones among them until `drop_dead`.

    A slot is a row of this table; a place is an entry's number in the index. Features are kept
    elsewhere, and only read here; None if they are not kept.
    """

    def __init__(self, bits: int, features: Features | None) -> None:
        self.bits = bits
        self.features = features
        self.dead = 0
        self.refresh: object | None = None
        """The refresh under way, which needs entries to keep their slots."""
        self.places: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.alive: GrowingArray[np.bool_] = GrowingArray((), np.bool_)
        self._columns: dict[str, GrowingArray[Any]] = {
            "homes": GrowingArray((), np.int64),
            "words": GrowingArray((-(-bits // 64),), np.uint64),
            "expiries": GrowingArray((bits,), np.uint8),
            "best": GrowingArray((), np.float32),
            "lead": GrowingArray((), np.float32),
            "scored_at": GrowingArray((), np.float64),
        }

    def __len__(self) -> int:
        return len(self.places)

    @property
    def columns(self) -> CodeColumns:
        """Views of what a refresh may change."""
        return CodeColumns(**{name: column.rows for name, column in self._columns.items()})

    def replace(self, columns: CodeColumns, bits: int) -> None:
        """Replace all columns at once, by refreshed ones."""
        self.bits = bits
        for name, column in self._columns.items():
            column.replace(getattr(columns, name))

    def append(self, places: Counts, columns: CodeColumns) -> None:
        """Add codes of new entries, whose places are above all others."""
        if len(places) == 0:
            return
        start, end = len(self), len(self) + len(places)
        if start == 0:  # a file just opened: columns of zeros take no memory until they are used
            self.places.replace(places)
            self.alive.replace(np.ones(end, np.bool_))
            self.replace(columns, self.bits)
            return
        self.places.grow_to(end)
        self.alive.grow_to(end)
        self.places.rows[start:] = places
        self.alive.rows[start:] = True
        for name, column in self._columns.items():
            column.grow_to(end)
            column.rows[start:] = getattr(columns, name)

    def insert(self, places: Counts, columns: CodeColumns) -> None:
        """Add codes of entries that are older than others; slots move, and a refresh ends."""
        self.refresh = None
        self.drop_dead()
        order = np.argsort(np.concatenate([self.places.rows, places]), kind="stable")
        joined = self.columns.followed_by(columns)
        self.places.replace(np.concatenate([self.places.rows, places])[order])
        self.alive.replace(np.ones(len(order), np.bool_))
        self.replace(joined.rows(order), self.bits)

    def rows(self, slots: NDArray[np.integer] | slice) -> Floats:
        """Return features as they are stored; entries are always encoded from these."""
        if self.features is None:
            raise OptionError(
                "features are not kept", hint='{option keep_features="all"} keeps them'
            )
        return self.features.read(self.places.rows[slots]).rows

    def slots(self, places: Counts) -> Counts:
        """Return the slots of entries, given their places."""
        return np.searchsorted(self.places.rows, places)

    def living(self) -> Counts:
        """Return the slots of all entries that are not removed."""
        return np.flatnonzero(self.alive.rows)

    def kill(self, places: Counts) -> None:
        """Mark entries as removed."""
        self.alive.rows[self.slots(places)] = False
        self.dead += len(places)

    def drop_dead(self) -> None:
        """Delete the rows of removed entries."""
        if self.dead == 0:
            return
        self.dead = 0
        alive: Bools = self.alive.rows.copy()
        arrays: list[GrowingArray[Any]] = [self.places, self.alive, *self._columns.values()]
        for array in arrays:
            array.replace(array.rows[alive])
