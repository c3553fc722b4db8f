"""Bringing stale bits up to date, and proving of most that they need not be touched.

A bit is certified while its function has turned by less than the row's angle to its hyperplane; a
home is certified while its lead over all other cycles exceeds what the labels' scores can have
moved (a score is linear in the row: u·z with u = sum_t c_t w_t, see `FrozenMapping.scorers`). What
is not certified is computed again. The result equals a rebuild under the new mapping, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.coded import CodeColumns, CodedEntries, functions_of
from everhash.learn.mapping import FrozenMapping
from everhash.learn.views import margins_by

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
Steps = Generator[float, None, None]
"""Yields the share done after each slice; closed before its end, it leaves everything as it was."""

QUANTUM = 1 / 2048
"""Radians a step of an expiry stands for; 255 of them reach past most angles seen on real data."""
SLICE = 4096
"""Entries refreshed between two chances to do something else."""
EVERYTHING, NOTHING = 255, -1
"""Limits that every expiry, or none, is not above."""


@dataclass(frozen=True)
class RefreshReport:
    """What a refresh did, or with `dry_run` would do."""

    entries: int
    """Entries looked at."""
    entries_touched: int
    """Entries with a bit computed again."""
    bits_recomputed: int
    bits_certified: int
    """Bits whose function has moved, proved unchanged without computing them."""
    bits_flipped: int
    homes_checked: int
    """Entries whose home had to be chosen again."""
    homes_moved: int
    seconds: float
    dry_run: bool

    @classmethod
    def of_nothing(cls, dry_run: bool) -> RefreshReport:
        """Return the report of a refresh that found nothing it may change."""
        return cls(0, 0, 0, 0, 0, 0, 0, 0.0, dry_run)


def report_of(
    steps: Generator[float, None, RefreshReport], tell: Callable[[float], object] | None = None
) -> RefreshReport:
    """Go through a refresh to its end, telling the share done after each step."""
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            report: RefreshReport = end.value
            return report
        if tell is not None:
            tell(share)


@dataclass
class Odometer:
    """How far everything has moved: functions, in radians since expiries were rebased; labels."""

    turned: NDArray[np.float64]
    """(n_cycles, k)"""
    labels: float = 0.0

    @classmethod
    def start_with(cls, mapping: FrozenMapping, coding: str) -> Odometer:
        """Return odometers at zero."""
        return cls(np.zeros(functions_of(mapping, coding).shape[:2]))


def encode(mapping: FrozenMapping, coding: str, Z: Floats, odometer: Odometer) -> CodeColumns:
    """Code new entries: choose homes, then compute every bit there."""
    functions = functions_of(mapping, coding)
    n, k = len(Z), functions.shape[1]
    homes, best, lead = choose_homes(mapping, coding, Z)
    columns = CodeColumns(
        homes=homes,
        words=np.zeros((n, -(-k // 64)), np.uint64),
        expiries=np.zeros((n, k), np.uint8),
        best=best,
        lead=lead,
        asked=np.full(n, odometer.labels),
    )
    lengths, slack = _lengths(functions), _angle_slack(functions)
    for cycle in np.unique(homes).tolist():
        members = np.flatnonzero(homes == cycle)
        kernels.load_refresh().settle(
            margins_by(functions[cycle : cycle + 1], Z if len(members) == n else Z[members]),
            members,
            lengths[cycle],
            odometer.turned[cycle],
            slack,
            QUANTUM,
            columns.words,
            columns.expiries,
        )
    return columns


def choose_homes(mapping: FrozenMapping, coding: str, Z: Floats) -> tuple[Counts, Floats, Floats]:
    """Return each row's home, the score of its best label there, and the lead over other cycles."""
    n = len(Z)
    if coding == "full" or len(mapping.functions) == 1 or len(mapping.words) == 0:
        # no lead: should more cycles come, the first refresh compares them all
        return np.zeros(n, np.int64), np.zeros(n, np.float32), np.full(n, -np.inf, np.float32)
    by_cycle = np.full((n, len(mapping.functions)), -np.inf, np.float32)
    scores = mapping.scores(Z)
    for cycle in range(by_cycle.shape[1]):
        first = cycle * mapping.labels_per_cycle
        by_cycle[:, cycle] = scores[:, first : first + mapping.labels_per_cycle].max(axis=1)
    homes = by_cycle.argmax(axis=1)
    best = by_cycle[np.arange(n), homes].copy()
    by_cycle[np.arange(n), homes] = -np.inf
    return homes, best, best - by_cycle.max(axis=1)


class Refresh:
    """A refresh under way: `steps` does the work a slice at a time, on copies."""

    def __init__(
        self,
        entries: CodedEntries,
        old: FrozenMapping,
        new: FrozenMapping,
        odometer: Odometer,
        *,
        coding: str,
        certify: bool,
    ) -> None:
        self._entries, self._old, self._new, self._coding = entries, old, new, coding
        self._functions = functions_of(new, coding)
        self._columns = _widened(entries.columns, self._functions.shape[1])
        # where rows are seen differently every one of them has moved
        self._certify = certify and old.view.same_as(new.view)
        self._moved = _moved(old, new).reshape(self._functions.shape[:2])
        self.odometer = Odometer(self._turned(odometer), odometer.labels + self._labels_moved())
        steps = np.floor(self.odometer.turned / QUANTUM).astype(np.int64)
        reached = np.minimum(steps, EVERYTHING) if self._certify else EVERYTHING
        self._limits = np.where(self._moved, reached, NOTHING)
        self._counts = dict.fromkeys(
            ("entries_touched", "bits_recomputed", "bits_flipped", "homes_checked", "homes_moved"),
            0,
        )
        self._movable = 0
        self._done = 0

    @property
    def bits(self) -> int:
        """Bits an entry keeps under the new mapping."""
        return int(self._functions.shape[1])

    def steps(self) -> Steps:
        """Work through the entries; yield the share done after each slice.

        Entries that are added while it goes on are taken in at the end, those that are removed are
        passed over: nobody may have their features any more.
        """
        while self._done < len(self._entries):
            self._take_in_newcomers()
            part = slice(self._done, min(self._done + SLICE, len(self._entries)))
            alive = self._entries.alive.rows[part]
            stayed = self._settle_homes(part, alive)
            self._settle_bits(part, alive, stayed)
            self._done = part.stop
            yield self._done / len(self._entries)

    def _take_in_newcomers(self) -> None:
        n = len(self._columns.homes)
        if n < len(self._entries):
            newer = _rows_of(self._entries.columns, np.arange(n, len(self._entries)))
            wide = _widened(newer, self.bits)
            pairs = ((name, getattr(self._columns, name)) for name in vars(wide))
            both = {name: np.concatenate([old, getattr(wide, name)]) for name, old in pairs}
            self._columns = CodeColumns(**both)

    def finish(self, seconds: float, *, dry_run: bool) -> tuple[CodeColumns, RefreshReport]:
        """Return the refreshed columns and the account of it."""
        far = np.where(self._limits > EVERYTHING // 2, self._limits, 0) if self._certify else None
        if far is not None and far.any():
            kernels.load_refresh().rebase(self._columns.homes, self._columns.expiries, far)
            self.odometer.turned -= far * QUANTUM
        report = RefreshReport(
            entries=len(self._entries),
            bits_certified=self._movable - self._counts["bits_recomputed"],
            seconds=seconds,
            dry_run=dry_run,
            **self._counts,
        )
        return self._columns, report

    def _settle_homes(self, part: slice, alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Choose homes again where they may have moved; return which entries stayed."""
        n = part.stop - part.start
        if self._coding == "full" or len(self._new.functions) == 1:
            return np.ones(n, np.bool_)
        doubtful = alive & ~self._home_certified(part, alive) if self._certify else alive
        slots = part.start + np.flatnonzero(doubtful)
        stayed = np.ones(n, np.bool_)
        if len(slots):
            columns = self._columns
            before = columns.homes[slots].copy()
            homes, best, lead = choose_homes(self._new, self._coding, self._measured(slots))
            columns.homes[slots], columns.best[slots], columns.lead[slots] = homes, best, lead
            columns.asked[slots] = self.odometer.labels
            stayed[slots - part.start] = homes == before
            self._counts["homes_checked"] += len(slots)
            self._counts["homes_moved"] += int((homes != before).sum())
        return stayed

    def _home_certified(self, part: slice, alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which homes cannot have moved, and take account of labels that are new."""
        columns, slack = self._columns, self._score_slack()
        drift = (self.odometer.labels - columns.asked[part]) * (1 + 1e-6)
        lead = columns.lead[part] - drift
        certified: NDArray[np.bool_] = alive & (lead > slack)
        known = len(self._old.words)
        if known < len(self._new.words) and certified.any():
            slots = part.start + np.flatnonzero(certified)
            newcomers = margins_by(self._new.scorers[None, known:], self._measured(slots))
            elsewhere = self._new.label_cycles[known:] != columns.homes[slots, None]
            rival = np.where(elsewhere, newcomers, -np.inf).max(axis=1)
            best = columns.best[slots] - drift[certified] / 2
            lead = np.minimum(lead[certified], best - rival)
            certified[certified] = lead > slack
            kept, good = slots[lead > slack], lead > slack
            columns.lead[kept] = lead[good] - slack
            columns.best[kept] = best[good] - slack
            columns.asked[kept] = self.odometer.labels
        return certified

    def _settle_bits(
        self, part: slice, alive: NDArray[np.bool_], stayed: NDArray[np.bool_]
    ) -> None:
        """Compute again the bits that may have flipped, and all bits of entries that moved home."""
        homes, here = self._columns.homes[part], alive & stayed
        self._movable += int(self._moved.sum(axis=1)[homes[here]].sum())
        self._movable += int((~stayed).sum()) * self._functions.shape[1]
        stale = np.empty(len(homes), np.bool_)
        kernels.load_refresh().find_stale(homes, self._columns.expiries[part], self._limits, stale)
        everything = np.full_like(self._limits, EVERYTHING)
        for chosen, limits in ((stale & here, self._limits), (~stayed, everything)):
            slots = part.start + np.flatnonzero(chosen)
            if len(slots) == 0:
                continue
            columns = _rows_of(self._columns, slots)
            turned = self.odometer.turned
            Z = self._measured(slots)
            computed, flipped = _recompute(Z, columns, limits, self._functions, turned)
            self._columns.words[slots] = columns.words
            self._columns.expiries[slots] = columns.expiries
            self._counts["entries_touched"] += len(slots)
            self._counts["bits_recomputed"] += computed
            self._counts["bits_flipped"] += flipped

    def _measured(self, slots: Counts) -> Floats:
        return self._new.measure(self._entries.rows(slots))

    def _turned(self, odometer: Odometer) -> NDArray[np.float64]:
        """Add to each function's odometer the angle between its old and its new direction."""
        old = functions_of(self._old, self._coding)
        turned = np.zeros(self._functions.shape[:2])
        known = tuple(slice(0, size) for size in odometer.turned.shape)
        turned[known] = odometer.turned
        cycles, bits = np.nonzero(self._moved[known])
        a, b = (
            old[cycles, bits].astype(np.float64),
            self._functions[cycles, bits].astype(np.float64),
        )
        a /= np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)
        b /= np.maximum(np.linalg.norm(b, axis=1, keepdims=True), 1e-300)
        chord = np.minimum(np.linalg.norm(a - b, axis=1) / 2, 1.0)
        turned[cycles, bits] += 2 * np.arcsin(chord) * (1 + 1e-9) + 1e-12
        return turned

    def _labels_moved(self) -> float:
        """Return how far two scores can have moved apart: twice the longest move of a scorer."""
        known = len(self._old.words)
        if self._coding == "full" or known == 0:
            return 0.0
        moves = (self._new.scorers[:known] - self._old.scorers).astype(np.float64)
        return float(2 * np.linalg.norm(moves, axis=1).max() * (1 + 1e-6))

    def _score_slack(self) -> float:
        """Return how far rounding can move a score."""
        d = self._functions.shape[2]
        longest = np.linalg.norm(self._new.scorers.astype(np.float64), axis=1).max(initial=0.0)
        return float(longest * (d / 8 + 16) * 2.0**-22)


def _moved(old: FrozenMapping, new: FrozenMapping) -> NDArray[np.bool_]:
    """Return which functions of the new mapping differ from the old, or are new."""
    moved = np.ones(len(new.versions), np.bool_)
    moved[: len(old.versions)] = new.versions[: len(old.versions)] != old.versions
    return moved


def _recompute(
    Z: Floats, columns: CodeColumns, limits: Counts, functions: Floats, turned: NDArray[np.float64]
) -> tuple[int, int]:
    computed, flipped = kernels.load_refresh().recompute(
        Z,
        columns.homes,
        columns.words,
        columns.expiries,
        limits,
        functions,
        _lengths(functions),
        turned,
        _angle_slack(functions),
        QUANTUM,
    )
    return computed, flipped


def _lengths(functions: Floats) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.linalg.norm(functions.astype(np.float64), axis=2)
    return np.maximum(lengths, 1e-300)


def _angle_slack(functions: Floats) -> float:
    """Return how far rounding can move the sine of an angle."""
    return float((functions.shape[2] / 8 + 16) * 2.0**-22)


def _rows_of(columns: CodeColumns, slots: Counts) -> CodeColumns:
    return CodeColumns(**{name: getattr(columns, name)[slots] for name in vars(columns)})


def _widened(columns: CodeColumns, bits: int) -> CodeColumns:
    """Return copies with room for `bits` bits; new ones have expired already."""
    copies = CodeColumns(**{name: getattr(columns, name).copy() for name in vars(columns)})
    n, k = copies.expiries.shape
    if bits == k:
        return copies
    words = np.zeros((n, -(-bits // 64)), np.uint64)
    words[:, : copies.words.shape[1]] = copies.words
    expiries = np.zeros((n, bits), np.uint8)
    expiries[:, :k] = copies.expiries
    return replace(copies, words=words, expiries=expiries)
