"""Cosines of queries with rows that are kept in half precision: what every likeness shown is.

A row's scale cancels, so only its halves are read. One loop serves all searches: the cosine of a
query and an entry is the same float32 whichever way it was found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import kernel, part
from everhash.kernels.likeness.half_floats import half_float

Floats = NDArray[np.float32]
Bits = NDArray[np.uint16]
Ints = NDArray[np.int64]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32


@part(fastmath={"reassoc", "contract", "nsz"})
def cosine(half: Bits, query: Floats) -> Any:
    """Return the cosine of a row and a query of unit length; 0 for a row of zeros."""
    product, square = F4(0), F4(0)
    for i in range(U(half.size)):
        value = half_float(half[i])
        product += value * query[i]
        square += value * value
    if square == F4(0):
        return F4(0)
    found = product / np.sqrt(square)
    found = found if found < F4(1) else F4(1)
    found = found if found > F4(-1) else F4(-1)
    return found + F4(0)  # -0 becomes 0


@kernel("void(u2[:, ::1], i8[::1], f4[:, ::1], f4[:, ::1])")
def cosines_at(halves: Bits, slots: Ints, queries: Floats, out: Floats) -> None:
    """Write the (q, m) cosines of queries of unit length with the rows in these slots."""
    for j in range(queries.shape[0]):
        for i in range(slots.size):
            out[j, i] = cosine(halves[slots[i]], queries[j])


@kernel("void(u2[:, ::1], i8[:, ::1], f4[:, ::1], f4[:, ::1])")
def own_cosines_at(halves: Bits, slots: Ints, queries: Floats, out: Floats) -> None:
    """Write the (q, m) cosines of each query with rows of its own; slot -1 gives NaN."""
    for j in range(slots.shape[0]):
        for i in range(slots.shape[1]):
            there = slots[j, i] >= 0
            out[j, i] = cosine(halves[slots[j, i]], queries[j]) if there else F4(np.nan)


@kernel("void(u2[:, ::1], i8[::1], f4[:, ::1])", fastmath={"reassoc", "contract", "nsz"})
def unit_rows_at(halves: Bits, slots: Ints, out: Floats) -> None:
    """Write the rows in these slots, scaled to unit length."""
    for i in range(slots.size):
        half, row, square = halves[slots[i]], out[i], F4(0)
        for j in range(U(half.size)):
            value = half_float(half[j])
            row[j] = value
            square += value * value
        scale = F4(1) / np.sqrt(square) if square > F4(0) else F4(0)
        for j in range(U(half.size)):
            row[j] *= scale
