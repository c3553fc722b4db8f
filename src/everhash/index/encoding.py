"""Encoding rows: choose their homes, compute their bits, and how long each bit is certified.

A bit's expiry says how far its function may turn before the bit can flip; `Odometer` counts how far
functions and labels have moved, so a stored number can be compared with the way since. See
`refresh` for what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.arrays import Counts, Floats
from everhash.index.code_table import CodeColumns
from everhash.learn.mapping import FrozenMapping
from everhash.learn.views import margins_by

QUANTUM = 1 / 2048
"""Radians one step of an expiry stands for; 255 steps exceed most angles seen on real data."""


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


def functions_of(mapping: FrozenMapping, coding: str) -> Floats:
    """Return the functions of codes: (n_cycles, k, d), or (1, width, d) for full codes."""
    if coding == "home":
        return mapping.functions
    return mapping.functions.reshape(1, -1, mapping.functions.shape[2])


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
        scored_at=np.full(n, odometer.labels),
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


def recompute(
    Z: Floats, columns: CodeColumns, limits: Counts, functions: Floats, odometer: Odometer
) -> tuple[int, int]:
    """Compute bits again whose expiry is not above its function's limit, in place.

    Returns how many were computed, and how many of them flipped.
    """
    computed, flipped = kernels.load_refresh().recompute(
        Z,
        columns.homes,
        columns.words,
        columns.expiries,
        limits,
        functions,
        _lengths(functions),
        odometer.turned,
        _angle_slack(functions),
        QUANTUM,
    )
    return computed, flipped


def choose_homes(mapping: FrozenMapping, coding: str, Z: Floats) -> tuple[Counts, Floats, Floats]:
    """Return each row's home, the score of its best label there, and the lead over other cycles."""
    n = len(Z)
    if coding == "full" or len(mapping.functions) == 1 or len(mapping.words) == 0:
        # no lead: if more cycles come, the first refresh compares them all
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


def angles_between(old: Floats, new: Floats) -> NDArray[np.float64]:
    """Return the angle between each old and new function, in radians, rounded up."""
    a, b = old.astype(np.float64), new.astype(np.float64)
    a /= np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)
    b /= np.maximum(np.linalg.norm(b, axis=1, keepdims=True), 1e-300)
    chord = np.minimum(np.linalg.norm(a - b, axis=1) / 2, 1.0)
    angles: NDArray[np.float64] = 2 * np.arcsin(chord) * (1 + 1e-9) + 1e-12
    return angles


def _lengths(functions: Floats) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.linalg.norm(functions.astype(np.float64), axis=2)
    return np.maximum(lengths, 1e-300)


def _angle_slack(functions: Floats) -> float:
    """Return how far rounding can move the sine of an angle."""
    return float((functions.shape[2] / 8 + 16) * 2.0**-22)
