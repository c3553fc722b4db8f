"""Entries kept by their bits: the codes, all under one mapping, and its refresh."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from everhash.codes import unpack_bits
from everhash.errors import OptionError
from everhash.index.coded import CodeColumns, CodedEntries, functions_of, without_certificates
from everhash.index.features import Features, StoredFeatures
from everhash.index.refresh import Odometer, Refresh, RefreshReport, Steps, encode
from everhash.index.searchable import Searchable
from everhash.learn.mapping import FrozenMapping

Counts = NDArray[np.int64]
BATCH = 2048
"""Rows encoded at a time."""


class Unlabelled:
    """Entries known by their bits. All were encoded by `mapping`, and queries must be too."""

    def __init__(
        self,
        mapping: FrozenMapping,
        coding: str,
        *,
        keep_features: bool,
        features: Features | None = None,
    ) -> None:
        self.mapping = mapping
        self.coding = coding
        self._odometer = Odometer.start_with(mapping, coding)
        bits, n_features = functions_of(mapping, coding).shape[1], mapping.view.n_features
        self._entries = CodedEntries(
            bits, n_features, keep_features=keep_features, features=features
        )
        self.searchable = Searchable(self._entries, mapping, coding)

    def __len__(self) -> int:
        return len(self._entries) - self._entries.dead

    @property
    def refreshing(self) -> bool:
        """Whether a refresh is under way."""
        return self._entries.pinned

    def add(self, rows: NDArray[np.float32], places: Counts) -> None:
        """Code rows, as they will be stored, and keep them."""
        stored = StoredFeatures.room_for(rows.shape)
        parts = [slice(start, start + BATCH) for start in range(0, len(rows), BATCH)]

        def code(part: slice) -> CodeColumns:
            batch = stored[part]
            batch.fill(rows[part])
            return self._encode(batch.rows)

        for part, columns in zip(parts, self._on_all_cores(code, parts), strict=True):
            self._entries.append(places[part], columns)
        if self._entries.features is not None:
            self._entries.features.append(places, stored)

    def _on_all_cores(
        self, code: Callable[[slice], CodeColumns], parts: list[slice]
    ) -> Iterator[CodeColumns]:
        if len(parts) == 1:
            yield code(parts[0])
            return
        self.mapping.scorers  # noqa: B018 - worked out once, not by each thread
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # kernels run without the GIL
            yield from pool.map(code, parts)

    def restore(self, places: Counts, homes: Counts, words: NDArray[np.uint64]) -> None:
        """Take over codes that this mapping made; nothing of them is certified."""
        self._entries.append(places, without_certificates(homes, words, self._entries.bits))

    def codes(self, start: int, stop: int) -> tuple[Counts, Counts, NDArray[np.uint64]]:
        """Return places, homes and words of the live entries at places from start to stop."""
        entries = self._entries
        inside = slice(*entries.slots(np.array([start, stop])).tolist())
        alive, columns = entries.alive.rows[inside], entries.columns
        return (
            entries.places.rows[inside][alive],
            columns.homes[inside][alive],
            columns.words[inside][alive],
        )

    def remove(self, places: Counts) -> None:
        """Forget entries."""
        self._entries.kill(places)

    def code_of(self, place: int) -> tuple[int, NDArray[np.bool_]]:
        """Return an entry's home and its bits there."""
        slot = int(self._entries.slots(np.array([place]))[0])
        columns = self._entries.columns
        bits = unpack_bits(columns.words[slot : slot + 1], self._entries.bits)[0]
        return int(columns.homes[slot]), bits

    def rows(self, places: Counts) -> NDArray[np.float32]:
        """Return features of entries, given by ascending places."""
        return self._entries.rows(self._entries.slots(places))

    def refresh(self, new: FrozenMapping, *, certify: bool, dry_run: bool) -> Steps:
        """Move all entries to a new mapping, a slice at a time; `report` tells afterwards."""
        if self._entries.features is None:
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
        if self._entries.features is None or len(self) == 0:
            return 0.0
        living = np.flatnonzero(self._entries.alive.rows)
        slots, bits = np.sort(rng.choice(living, sample)), self._entries.bits
        margins = new.margins(new.measure(self._entries.rows(slots)))
        columns = self._entries.columns
        if self.coding == "home":
            margins = margins.reshape(sample, -1, bits)[np.arange(sample), columns.homes[slots]]
        stored = unpack_bits(columns.words[slots], bits)
        return float((stored != (margins[:, :bits] > 0)).sum(axis=1).mean())

    def verify(self) -> int:
        """Encode every entry afresh under its mapping; return how many codes differ."""
        wrong, columns = 0, self._entries.columns
        living = np.flatnonzero(self._entries.alive.rows)
        for start in range(0, 0 if self._entries.features is None else len(living), BATCH):
            part = living[start : start + BATCH]
            fresh = self._encode(self._entries.rows(part))
            same = (fresh.words == columns.words[part]).all(axis=1)
            wrong += int((~same | (fresh.homes != columns.homes[part])).sum())
        return wrong

    def _encode(self, rows: NDArray[np.float32]) -> CodeColumns:
        return encode(self.mapping, self.coding, self.mapping.measure(rows), self._odometer)
