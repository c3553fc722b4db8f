"""Bring stale bits up to date, and prove of most bits that they have not changed.

A bit is certified while its function has turned by less than the row's angle to its hyperplane. A
home is certified while its lead over all other cycles exceeds what the labels' scores can have
moved (a score is linear in the row: u·z with u = sum_t c_t w_t, see `FrozenMapping.scorers`). What
is not certified is computed again. The result equals a rebuild under the new mapping, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.code_table import CodeColumns, CodeTable
from everhash.index.encoding import (
    QUANTUM,
    Odometer,
    angles_between,
    choose_homes,
    functions_of,
    recompute,
)
from everhash.learn.mapping import FrozenMapping
from everhash.learn.views import margins_by

Steps = Generator[float, None, None]
"""Yields the share done after each slice; closed before its end, it leaves everything as it was."""

SLICE = 4096
"""Entries refreshed at a time; searches may run in between."""
EVERYTHING, NOTHING = 255, -1
"""Limits for which every expiry counts as reached, or none."""


@dataclass(frozen=True)
class RefreshReport:
    """What a refresh did, or with `dry_run` would do."""

    entries: int
    """Entries examined."""
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
        """Return the report of a refresh that had nothing to do."""
        return cls(0, 0, 0, 0, 0, 0, 0, 0.0, dry_run)


def report_of(
    steps: Generator[float, None, RefreshReport],
    on_progress: Callable[[float], object] | None = None,
) -> RefreshReport:
    """Run a refresh to its end and return its report; call `on_progress` with each share done."""
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            report: RefreshReport = end.value
            return report
        if on_progress is not None:
            on_progress(share)


class Refresh:
    """A refresh under way: `steps` does the work a slice at a time, on copies."""

    def __init__(
        self,
        entries: CodeTable,
        old: FrozenMapping,
        new: FrozenMapping,
        odometer: Odometer,
        *,
        coding: str,
        certify: bool,
    ) -> None:
        self._entries, self._old, self._new, self._coding = entries, old, new, coding
        self._functions = functions_of(new, coding)
        self._columns = entries.columns.widened(self.bits)
        # if the view of rows has changed, every row may have moved
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

        Entries added meanwhile are refreshed at the end. Entries removed meanwhile are skipped:
        their features may no longer be there.
        """
        while self._done < len(self._entries):
            self._append_new_entries()
            part = slice(self._done, min(self._done + SLICE, len(self._entries)))
            alive = self._entries.alive.rows[part]
            stayed = self._settle_homes(part, alive)
            self._settle_bits(part, alive, stayed)
            self._done = part.stop
            yield self._done / len(self._entries)

    def _append_new_entries(self) -> None:
        n = len(self._columns.homes)
        if n < len(self._entries):
            added = self._entries.columns.rows(slice(n, None))
            self._columns = self._columns.followed_by(added.widened(self.bits))

    def finish(self, seconds: float, *, dry_run: bool) -> tuple[CodeColumns, RefreshReport]:
        """Return the refreshed columns and the report."""
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

    def _settle_homes(self, part: slice, alive: Bools) -> Bools:
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
            columns.scored_at[slots] = self.odometer.labels
            stayed[slots - part.start] = homes == before
            self._counts["homes_checked"] += len(slots)
            self._counts["homes_moved"] += int((homes != before).sum())
        return stayed

    def _home_certified(self, part: slice, alive: Bools) -> Bools:
        """Return which homes cannot have moved, neither to a known label nor to a new one."""
        columns, slack = self._columns, self._score_slack()
        drift = (self.odometer.labels - columns.scored_at[part]) * (1 + 1e-6)
        lead = columns.lead[part] - drift
        certified: Bools = alive & (lead > slack)
        known = len(self._old.words)
        if known < len(self._new.words) and certified.any():
            slots = part.start + np.flatnonzero(certified)
            new_scores = margins_by(self._new.scorers[None, known:], self._measured(slots))
            elsewhere = self._new.label_cycles[known:] != columns.homes[slots, None]
            rival = np.where(elsewhere, new_scores, -np.inf).max(axis=1)
            best = columns.best[slots] - drift[certified] / 2
            lead = np.minimum(lead[certified], best - rival)
            certified[certified] = lead > slack
            kept, good = slots[lead > slack], lead > slack
            columns.lead[kept] = lead[good] - slack
            columns.best[kept] = best[good] - slack
            columns.scored_at[kept] = self.odometer.labels
        return certified

    def _settle_bits(self, part: slice, alive: Bools, stayed: Bools) -> None:
        """Compute again the bits that may have flipped, and all bits of entries that moved home."""
        homes, here = self._columns.homes[part], alive & stayed
        self._movable += int(self._moved.sum(axis=1)[homes[here]].sum())
        self._movable += int((~stayed).sum()) * self.bits
        stale = np.empty(len(homes), np.bool_)
        kernels.load_refresh().find_stale(homes, self._columns.expiries[part], self._limits, stale)
        everything = np.full_like(self._limits, EVERYTHING)
        for chosen, limits in ((stale & here, self._limits), (~stayed, everything)):
            slots = part.start + np.flatnonzero(chosen)
            if len(slots) == 0:
                continue
            columns, Z = self._columns.rows(slots), self._measured(slots)
            computed, flipped = recompute(Z, columns, limits, self._functions, self.odometer)
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
        turned[cycles, bits] += angles_between(old[cycles, bits], self._functions[cycles, bits])
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


def _moved(old: FrozenMapping, new: FrozenMapping) -> Bools:
    """Return which functions of the new mapping differ from the old one, or are new."""
    moved = np.ones(len(new.versions), np.bool_)
    moved[: len(old.versions)] = new.versions[: len(old.versions)] != old.versions
    return moved
