"""Coded entries: those that keep bits of their own, all computed by one mapping."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from everhash.codes import unpack_bits
from everhash.errors import OptionError, StoreError
from everhash.index.arrays import Bools, Counts, Floats, Words
from everhash.index.code_search import CodeSearch
from everhash.index.code_table import CodeColumns, CodeTable
from everhash.index.encoding import Odometer, encode, functions_of
from everhash.index.features import Features
from everhash.index.guesses import Guesses, guess
from everhash.index.refresh import Refresh, RefreshReport, Steps
from everhash.learn.mapping import FrozenMapping

BATCH = 2048
"""Rows encoded at a time."""
MANY_DEAD = 64
"""Removed entries, or a twentieth of all, from which on their rows are dropped."""


class CodedEntries:
    """Entries that keep bits of their own.

    All were encoded by `mapping`, and queries must be encoded by it too.
    """

    def __init__(
        self, mapping: FrozenMapping, coding: str, *, features: Features | None = None
    ) -> None:
        self.mapping = mapping
        self.coding = coding
        self._odometer = Odometer.start_with(mapping, coding)
        self._table = CodeTable(functions_of(mapping, coding).shape[1], features)
        self.search = CodeSearch(self._table, mapping, coding)

    def __len__(self) -> int:
        return len(self._table) - self._table.dead

    @property
    def refreshing(self) -> bool:
        """Whether a refresh is under way."""
        return self._table.refresh is not None

    def add(self, rows: Floats, places: Counts) -> None:
        """Encode new entries from their rows, rounded as features are stored."""
        parts = [slice(start, start + BATCH) for start in range(0, len(rows), BATCH)]

        def encode_part(part: slice) -> CodeColumns:
            return self._encode(rows[part])

        for part, columns in zip(parts, self._on_all_cores(encode_part, parts), strict=True):
            self._table.append(places[part], columns)

    def insert(self, rows: Floats, places: Counts) -> None:
        """Encode entries that are older than others, and have lost their labels."""
        self._table.insert(places, self._encode(rows))
        self.search = CodeSearch(self._table, self.mapping, self.coding)

    def _on_all_cores(
        self, encode_part: Callable[[slice], CodeColumns], parts: list[slice]
    ) -> Iterator[CodeColumns]:
        if len(parts) == 1:
            yield encode_part(parts[0])
            return
        self.mapping.scorers  # noqa: B018 - computed once, not by each thread
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # kernels run without the GIL
            yield from pool.map(encode_part, parts)

    def restore(self, places: Counts, homes: Counts, words: Words) -> None:
        """Add codes that this mapping made earlier, such as those of a file."""
        self._table.append(places, CodeColumns.uncertified(homes, words, self._table.bits))

    def codes(self, start: int, stop: int) -> tuple[Counts, Counts, Words]:
        """Return places, homes and words of the entries at places from start to stop."""
        table = self._table
        inside = slice(*table.slots(np.array([start, stop])).tolist())
        alive, columns = table.alive.rows[inside], table.columns.rows(inside)
        return table.places.rows[inside][alive], columns.homes[alive], columns.words[alive]

    def remove(self, places: Counts) -> None:
        """Remove entries."""
        self._table.kill(places)
        self._tidy()

    def _tidy(self) -> None:
        """Drop the rows of removed entries once they are many; a refresh needs them where they are.

        Slots change, so only calls that change entries do it, never one that searches.
        """
        table = self._table
        if table.dead > max(MANY_DEAD, len(table) // 20) and not self.refreshing:
            table.drop_dead()
            self.search = CodeSearch(table, self.mapping, self.coding)

    def code_of(self, place: int) -> tuple[int, Bools]:
        """Return an entry's home and its bits there."""
        slot = int(self._table.slots(np.array([place]))[0])
        columns = self._table.columns
        bits = unpack_bits(columns.words[slot : slot + 1], self._table.bits)[0]
        return int(columns.homes[slot]), bits

    def guesses(self, start: int, stop: int, usable: Bools) -> tuple[Counts, Guesses]:
        """Return the entries at places from start to stop, and what they are taken for.

        `usable` says which labels may be a guess.
        """
        places, homes, words = self.codes(start, stop)
        return places, guess(self.mapping, self.coding, homes, words, usable)

    def refresh(self, new: FrozenMapping, *, certify: bool, dry_run: bool) -> Steps:
        """Move all entries to a new mapping, a slice at a time; `report` has the result."""
        if self._table.features is None:
            self.report = RefreshReport.of_nothing(dry_run)
            return
        if self.refreshing:
            raise OptionError("a refresh is under way", hint="finish or close its steps first")
        start = perf_counter()
        self._table.drop_dead()
        self.search = CodeSearch(self._table, self.mapping, self.coding)
        task = Refresh(
            self._table, self.mapping, new, self._odometer, coding=self.coding, certify=certify
        )
        self._table.refresh = task
        try:
            for share in task.steps():
                yield share
                if self._table.refresh is not task:
                    raise StoreError("entries have moved meanwhile", hint="refresh again")
            columns, self.report = task.finish(perf_counter() - start, dry_run=dry_run)
        finally:
            if self._table.refresh is task:
                self._table.refresh = None
        if not dry_run:
            self._table.replace(columns, task.bits)
            self.mapping, self._odometer = new, task.odometer
            self.search = CodeSearch(self._table, new, self.coding)
        self._tidy()

    def stop_refresh(self) -> None:
        """Make the next step of a refresh under way raise."""
        self._table.refresh = None

    def stale_bits(self, versions: Counts) -> int:
        """Return how many stored bits have a function that has changed since they were computed."""
        known = len(self.mapping.versions)
        moved = versions[:known] != self.mapping.versions
        if self.coding == "full":
            return int(moved.sum() + len(versions) - known) * len(self)
        homes = self._table.columns.homes[self._table.alive.rows]
        return int(moved.reshape(-1, self._table.bits).sum(axis=1)[homes].sum())

    def sampled_flips(self, new: FrozenMapping, sample: int, rng: np.random.Generator) -> float:
        """Return how many bits a new mapping would flip in each of some entries, on average."""
        if self._table.features is None or len(self) == 0:
            return 0.0
        slots, bits = np.sort(rng.choice(self._table.living(), sample)), self._table.bits
        margins = new.margins(new.measure(self._table.rows(slots)))
        columns = self._table.columns
        if self.coding == "home":
            margins = margins.reshape(sample, -1, bits)[np.arange(sample), columns.homes[slots]]
        stored = unpack_bits(columns.words[slots], bits)
        return float((stored != (margins[:, :bits] > 0)).sum(axis=1).mean())

    def verify(self) -> int:
        """Encode every entry again by its mapping; return how many codes differ."""
        wrong, columns = 0, self._table.columns
        living = self._table.living()
        for start in range(0, 0 if self._table.features is None else len(living), BATCH):
            part = living[start : start + BATCH]
            fresh = self._encode(self._table.rows(part))
            same = (fresh.words == columns.words[part]).all(axis=1)
            wrong += int((~same | (fresh.homes != columns.homes[part])).sum())
        return wrong

    def _encode(self, rows: Floats) -> CodeColumns:
        return encode(self.mapping, self.coding, self.mapping.measure(rows), self._odometer)
