"""Which stored bits may have changed, and computing just those again.

A function's bit on a unit row can only flip when the function turns by more than the row's angle to
its hyperplane, which is at least its sine. Each function has an odometer: the angle it has turned
in all refreshes so far. Each stored bit has an expiry, one byte: the reading of the odometer up to
which it is certified.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import kernel, part
from everhash.kernels.halves import halve, unhalve
from everhash.kernels.reference import Counts, Flags, Floats, Words

__all__ = [
    "find_stale",
    "halve",
    "rebase",
    "recompute",
    "settle",
    "unhalve",
]

Bytes = NDArray[np.uint8]
Limits = NDArray[np.int64]


@kernel("void(i8[::1], u1[:, ::1], i8[:, ::1], b1[::1])")
def find_stale(homes: Counts, expiries: Bytes, limits: Limits, out: Flags) -> None:
    """Mark entries with a bit whose expiry is not above its function's limit.

    Args:
        homes: (n,) cycle of each entry.
        expiries: (n, k) bytes.
        limits: (n_cycles, k) odometers in steps; -1 for a function that has not moved.
        out: (n,) set where some bit must be computed again.
    """
    for entry in range(homes.size):
        mine, bounds = expiries[entry], limits[homes[entry]]
        stale = 0
        for bit in range(mine.size):
            stale += np.int64(mine[bit]) <= bounds[bit]
        out[entry] = stale > 0


@part(fastmath={"reassoc", "contract", "nsz"})
def function_margins(Z: Floats, rows: Counts, w: Floats, out: Floats) -> None:
    """Write w·z of the listed rows, eight at a time.

    Eight sums in one loop over one vector register each: the order in which `margins_into` adds, so
    that a bit computed alone equals the bit computed among others. A test holds them equal.
    """
    n, last = rows.size, rows.size - 1
    for i in range(0, n, 8):
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        i4, i5, i6, i7 = min(i + 4, last), min(i + 5, last), min(i + 6, last), min(i + 7, last)
        z0, z1, z2, z3 = Z[rows[i]], Z[rows[i1]], Z[rows[i2]], Z[rows[i3]]
        z4, z5, z6, z7 = Z[rows[i4]], Z[rows[i5]], Z[rows[i6]], Z[rows[i7]]
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.float32(0)
        for j in range(w.size):
            b = w[j]
            a0 += b * z0[j]
            a1 += b * z1[j]
            a2 += b * z2[j]
            a3 += b * z3[j]
            a4 += b * z4[j]
            a5 += b * z5[j]
            a6 += b * z6[j]
            a7 += b * z7[j]
        out[i], out[i1], out[i2], out[i3] = a0, a1, a2, a3
        out[i4], out[i5], out[i6], out[i7] = a4, a5, a6, a7


@numba.njit(inline="always")
def steps(reach: float, quantum: float) -> np.uint8:
    """Return an angle in whole steps of an expiry, rounded down."""
    return np.uint8(min(255.0, max(0.0, math.floor(reach / quantum))))


@kernel(
    "UniTuple(i8, 2)(f4[:, ::1], i8[::1], u8[:, ::1], u1[:, ::1], i8[:, ::1], f4[:, :, ::1], "
    "f8[:, ::1], f8[:, ::1], f8, f8)"
)
def recompute(
    Z: Floats,
    homes: Counts,
    words: Words,
    expiries: Bytes,
    limits: Limits,
    functions: Floats,
    lengths: NDArray[np.float64],
    turned: NDArray[np.float64],
    slack: float,
    quantum: float,
) -> tuple[int, int]:
    """Compute again every bit whose expiry is not above its limit; return how many, and the flips.

    Args:
        Z: (n, d) unit rows of the entries.
        homes: (n,) cycle of each entry.
        words: (n, w) packed bits, changed in place.
        expiries: (n, k) bytes, changed in place.
        limits: (n_cycles, k) as in `find_stale`.
        functions: (n_cycles, k, d) the new functions.
        lengths: (n_cycles, k) their lengths.
        turned: (n_cycles, k) their odometers, in radians since the last time expiries were rebased.
        slack: radians taken off each angle for rounding.
        quantum: radians a step of an expiry stands for.
    """
    n, (cycles, k, _) = homes.size, functions.shape
    members, rows = np.empty(n, np.int64), np.empty(n, np.int64)
    margins = np.empty(n, np.float32)
    computed = flipped = 0
    for cycle in range(cycles):
        at_home = 0
        for entry in range(n):
            members[at_home] = entry
            at_home += homes[entry] == cycle
        for bit in range(k):
            stale = 0
            for i in range(at_home):
                rows[stale] = members[i]
                stale += np.int64(expiries[members[i], bit]) <= limits[cycle, bit]
            if stale == 0:
                continue
            function_margins(Z, rows[:stale], functions[cycle, bit], margins[:stale])
            computed += stale
            at, one = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
            for i in range(stale):
                entry = rows[i]
                before = words[entry, at]
                after = before | one if margins[i] > 0 else before & ~one
                words[entry, at] = after
                flipped += before != after
                sine = abs(np.float64(margins[i])) / lengths[cycle, bit]
                expiries[entry, bit] = steps(sine - slack + turned[cycle, bit], quantum)
    return computed, flipped


@kernel("void(f4[:, ::1], i8[::1], f8[::1], f8[::1], f8, f8, u8[:, ::1], u1[:, ::1])")
def settle(
    margins: Floats,
    entries: Counts,
    lengths: NDArray[np.float64],
    turned: NDArray[np.float64],
    slack: float,
    quantum: float,
    words: Words,
    expiries: Bytes,
) -> None:
    """Write bits and expiries of entries at home in one cycle, given all their margins there.

    Args:
        margins: (m, k) of the new entries.
        entries: (m,) which rows of `words` and `expiries` are theirs.
        lengths: (k,) of the cycle's functions.
        turned: (k,) their odometers.
        slack: as in `recompute`.
        quantum: as in `recompute`.
        words: (n, w), zero at these rows.
        expiries: (n, k) bytes.
    """
    for i in range(entries.size):
        mine, bits, kept = margins[i], words[entries[i]], expiries[entries[i]]
        for bit in range(mine.size):
            sine = abs(np.float64(mine[bit])) / lengths[bit]
            kept[bit] = steps(sine - slack + turned[bit], quantum)
        for bit in range(mine.size):
            bits[bit >> 6] |= np.uint64(mine[bit] > 0) << np.uint64(bit & 63)


@kernel("void(i8[::1], u1[:, ::1], i8[:, ::1])")
def rebase(homes: Counts, expiries: Bytes, shifts: Limits) -> None:
    """Take `shifts` (n_cycles, k) steps off every expiry, as odometers are set back by as much."""
    for entry in range(homes.size):
        mine, shift = expiries[entry], shifts[homes[entry]]
        for bit in range(mine.size):
            mine[bit] = np.uint8(max(0, np.int64(mine[bit]) - shift[bit]))
