"""Turning rows and lifting them to random features, LANES rows side by side.

The specification is in `reference`: `rotate` and `lift`.
"""

from __future__ import annotations

import math

import numpy as np

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.reference import Floats, Signs

LANES = 8
"""Rows turned side by side: floats of one vector register."""


@inner
def hadamard(tile: Floats, size: int) -> None:
    """Transform `size` coordinates of LANES rows side by side, two steps at a time; unscaled."""
    half = 1
    while 2 * half < size:
        n = half * LANES
        for first in range(0, size * LANES, 4 * n):
            t0, t1 = tile[first : first + n], tile[first + n : first + 2 * n]
            t2, t3 = tile[first + 2 * n : first + 3 * n], tile[first + 3 * n : first + 4 * n]
            for i in range(n):
                a, b = t0[i] + t1[i], t0[i] - t1[i]
                c, d = t2[i] + t3[i], t2[i] - t3[i]
                t0[i], t1[i], t2[i], t3[i] = a + c, b + d, a - c, b - d
        half *= 4
    if half < size:
        n = half * LANES
        t0, t1 = tile[:n], tile[n : 2 * n]
        for i in range(n):
            t0[i], t1[i] = t0[i] + t1[i], t0[i] - t1[i]


@inner
def rotate(tile: Floats, signs: Signs) -> None:
    """Turn LANES rows by `reference.rotate`; coordinate i of row r stands at i * LANES + r."""
    p = signs.shape[1]
    for flips in signs:
        start = 0
        while start < p:
            size = 1
            while 2 * size <= p - start:
                size *= 2
            piece = tile[start * LANES : (start + size) * LANES]
            scale = np.float32(1 / math.sqrt(size))
            for i in range(size):
                lanes, factor = piece[i * LANES : (i + 1) * LANES], scale * flips[start + i]
                for lane in range(LANES):
                    lanes[lane] *= factor
            hadamard(piece, size)
            start += size
        for i in range(p // 2):
            upper = tile[i * LANES : (i + 1) * LANES]
            lower = tile[(p - 1 - i) * LANES : (p - i) * LANES]
            for lane in range(LANES):
                upper[lane], lower[lane] = lower[lane], upper[lane]


@inner
def rectify(tile: Floats, count: int, squares: Floats) -> None:
    """Cut LANES rows off at zero, and add the squares of what is left of each to `squares`."""
    for i in range(count):
        lanes = tile[i * LANES : (i + 1) * LANES]
        for lane in range(LANES):
            lanes[lane] = max(lanes[lane], np.float32(0))
            squares[lane] += lanes[lane] * lanes[lane]


@inner
def to_lane(row: Floats, tile: Floats, lane: int) -> None:
    """Lay a row out in a lane. An array assignment would do, but takes Numba 2 s to compile."""
    for i in range(row.size):
        tile[i * LANES + lane] = row[i]


@inner
def from_lane(tile: Floats, lane: int, row: Floats) -> None:
    """Write the first coordinates of a lane into a row."""
    for i in range(row.size):
        row[i] = tile[i * LANES + lane]


@kernel("void(f4[:, ::1], i1[:, :, ::1], i8, f4[:, ::1])")
def lift_into(U: Floats, signs: Signs, features: int, out: Floats) -> None:
    """Write `reference.lift` into `out`, LANES rows at a time."""
    n, p = U.shape[0], signs.shape[2]
    tile = np.empty(p * LANES, np.float32)
    scale = np.float32(1 / math.sqrt(3.0 if features else 2.0))
    for first in range(0, n, LANES):
        rows = min(LANES, n - first)
        squares = np.zeros(LANES, np.float32)
        for block in range(signs.shape[0]):
            start = block * p
            count = min(p, p + features - start)
            tile[:] = 0
            for lane in range(rows):
                to_lane(U[first + lane], tile, lane)
            rotate(tile, signs[block])
            if block:
                rectify(tile, count, squares)
            for lane in range(rows):
                from_lane(tile, lane, out[first + lane, start : start + count])
        for lane in range(rows):
            row, length = out[first + lane], math.sqrt(squares[lane])
            rest = np.float32(scale / length) if length > 0 else scale
            for i in range(p + features):
                row[i] *= scale if i < p else rest
            row[p + features] = scale
