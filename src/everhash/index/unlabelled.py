"""The unlabelled entries of an index: their codes, all under one mapping, and its refresh."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from everhash.codes import unpack_bits
from everhash.errors import OptionError
from everhash.index.coded import CodedEntries, Columns, Stored, functions_of
from everhash.index.refresh import Odometer, Refresh, RefreshReport, encode
from everhash.index.searchable import Searchable
from everhash.learn.mapping import FrozenMapping

Counts = NDArray[np.int64]
BATCH = 4096
"""Rows encoded at a time."""


class Unlabelled:
    """Entries known by their bits. All were encoded by `mapping`, and queries must be too."""

    def __init__(self, mapping: FrozenMapping, coding: str, *, keep_features: bool) -> None:
        self.mapping = mapping
        self.coding = coding
        self._odometer = Odometer.start_with(mapping, coding)
        _, bits, n_features = functions_of(mapping, coding).shape
        self._entries = CodedEntries(bits, n_features, keep_features=keep_features)
        self.searchable = Searchable(self._entries, mapping, coding)

    def __len__(self) -> int:
        return len(self._entries) - self._entries.dead

    @property
    def refreshing(self) -> bool:
        """Whether a refresh is under way."""
        return self._entries.pinned

    def add(self, rows: NDArray[np.float32], places: Counts) -> None:
        """Code rows, as they will be stored, and keep them."""
        for start in range(0, len(rows), BATCH):
            stored = Stored.of(rows[start : start + BATCH])
            self._entries.append(places[start : start + BATCH], stored, self._encode(stored.rows))

    def remove(self, places: Counts) -> None:
        """Forget entries."""
        self._entries.kill(places)

    def code_of(self, place: int) -> tuple[int, NDArray[np.bool_]]:
        """Return an entry's home and its bits there."""
        slot = int(self._entries.slots(np.array([place]))[0])
        columns = self._entries.columns
        bits = unpack_bits(columns.words[slot : slot + 1], self._entries.bits)[0]
        return int(columns.homes[slot]), bits

    def refresh(self, new: FrozenMapping, *, certify: bool, dry_run: bool) -> Iterator[float]:
        """Move all entries to a new mapping, a slice at a time; `report` tells afterwards."""
        if not self._entries.keep_features:
            self.report = RefreshReport.of_nothing(dry_run)
            return
        if self.refreshing:
            raise OptionError("a refresh is under way", hint="finish or close its steps first")
        start = perf_counter()
        self._entries.drop_dead()
        self.searchable = Searchable(self._entries, self.mapping, self.coding)
        self._entries.pinned = True
        try:
            task = Refresh(
                self._entries,
                self.mapping,
                new,
                self._odometer,
                coding=self.coding,
                certify=certify,
            )
            yield from task.steps()
            columns, self.report = task.finish(perf_counter() - start, dry_run=dry_run)
        finally:
            self._entries.pinned = False
        if not dry_run:
            self._entries.swap(columns, task.bits)
            self.mapping, self._odometer = new, task.odometer
            self.searchable = Searchable(self._entries, new, self.coding)

    def stale_bits(self, versions: Counts) -> int:
        """Return how many stored bits have a function that has changed since."""
        known = len(self.mapping.versions)
        moved = versions[:known] != self.mapping.versions
        if self.coding == "full":
            return int(moved.sum() + len(versions) - known) * len(self)
        homes = self._entries.columns.homes[self._entries.alive.rows]
        return int(moved.reshape(-1, self._entries.bits).sum(axis=1)[homes].sum())

    def sampled_flips(self, new: FrozenMapping, sample: int, rng: np.random.Generator) -> float:
        """Return how many bits an entry a new mapping would flip, on a sample."""
        if not self._entries.keep_features or len(self._entries) == 0:
            return 0.0
        slots, bits = rng.integers(0, len(self._entries), sample), self._entries.bits
        margins = new.margins(new.measure(self._entries.rows(slots)))
        columns = self._entries.columns
        if self.coding == "home":
            margins = margins.reshape(sample, -1, bits)[np.arange(sample), columns.homes[slots]]
        stored = unpack_bits(columns.words[slots], bits)
        return float((stored != (margins[:, :bits] > 0)).sum(axis=1).mean())

    def verify(self) -> int:
        """Encode every entry afresh under its mapping; return how many codes differ."""
        wrong, columns = 0, self._entries.columns
        for start in range(0, len(self._entries) if self._entries.keep_features else 0, BATCH):
            part = slice(start, start + BATCH)
            fresh = self._encode(self._entries.rows(part))
            same = (fresh.words == columns.words[part]).all(axis=1)
            wrong += int((~same | (fresh.homes != columns.homes[part])).sum())
        return wrong

    def _encode(self, rows: NDArray[np.float32]) -> Columns:
        return encode(self.mapping, self.coding, self.mapping.measure(rows), self._odometer)
