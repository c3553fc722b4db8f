"""Likeness codes of entries and of queries, a row at a time: a code depends on its row only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel, part
from everhash.kernels.lifting import LANES, hadamard
from everhash.kernels.likeness.reference import LEVELS, PLANES, TINY

F = TypeVar("F", bound=Callable[..., Any])
Floats = NDArray[np.float32]
Words = NDArray[np.uint64]
Signs = NDArray[np.int8]
Ints = NDArray[np.int64]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32


@inner
def transform(piece: Floats) -> None:
    """Walsh-Hadamard transform of one piece, unscaled.

    Seen as columns of LANES rows, its larger steps are those of `hadamard`, in vector code.
    """
    size = piece.size
    if size >= LANES:
        hadamard(piece, size // LANES)
        for first in range(0, size, LANES):
            x = piece[first : first + LANES]
            a, b, c, d = x[0] + x[1], x[0] - x[1], x[2] + x[3], x[2] - x[3]
            e, f, g, h = x[4] + x[5], x[4] - x[5], x[6] + x[7], x[6] - x[7]
            a, b, c, d = a + c, b + d, a - c, b - d
            e, f, g, h = e + g, f + h, e - g, f - h
            x[0], x[1], x[2], x[3] = a + e, b + f, c + g, d + h
            x[4], x[5], x[6], x[7] = a - e, b - f, c - g, d - h
        return
    half = 1
    while half < size:
        for first in range(0, size, 2 * half):
            for i in range(first, first + half):
                piece[i], piece[i + half] = piece[i] + piece[i + half], piece[i] - piece[i + half]
        half *= 2


@inner
def turn(row: Floats, signs: Signs) -> None:
    """Turn one row by `kernels.reference.rotate`."""
    p = row.size
    for flips in signs:
        start = 0
        while start < p:
            size = 1
            while 2 * size <= p - start:
                size *= 2
            piece, flip = row[start : start + size], flips[start : start + size]
            scale = F4(1 / math.sqrt(size))
            for i in range(size):
                piece[i] *= scale * F4(flip[i])
            transform(piece)
            start += size
        for i in range(p // 2):
            row[i], row[p - 1 - i] = row[p - 1 - i], row[i]


@part(fastmath={"reassoc"})  # several partial sums at once
def split(row: Floats, direction: Floats, across: Floats) -> tuple[float, float]:
    """Write the part of a unit row across the direction; return that along it, and its length."""
    squares = product = 0.0
    for i in range(row.size):
        x = np.float64(row[i])
        squares += x * x
        product += x * np.float64(direction[i])
    across[:] = 0
    if squares == 0:
        return 0.0, 0.0
    inverse = 1 / math.sqrt(squares)
    along, rest = product * inverse, 0.0
    for i in range(row.size):
        x = np.float64(row[i]) * inverse - along * np.float64(direction[i])
        rest += x * x
        across[i] = F4(x)
    if rest < TINY * TINY:
        across[:] = 0
        return along, 0.0
    return along, math.sqrt(rest)


@part(fastmath={"reassoc"})  # several partial sums at once
def sum_of_sizes(turned: Floats) -> float:
    """Sum of absolute values."""
    total = 0.0
    for i in range(turned.size):
        total += np.float64(abs(turned[i]))
    return total


@inner
def pack_signs(turned: Floats, words: Words) -> None:
    """Write which coordinates are above 0, 64 a word."""
    for w in range(words.size):
        part = turned[64 * w : 64 * w + 64]
        word = U(0)
        for i in range(U(part.size)):
            word |= U(part[i] > 0) << i
        words[w] = word


@kernel("u8[:, ::1](f4[:, ::1], f4[::1], i1[:, ::1])")
def encode(rows: Floats, direction: Floats, signs: Signs) -> Words:
    """See `reference.encode`; codes are as `reference.join` lays them out."""
    n, p = rows.shape[0], signs.shape[1]
    count = (p + 63) // 64
    codes = np.empty((n, count + 1), np.uint64)
    floats = codes.view(np.float32)
    turned = np.empty(p, np.float32)
    for row in range(n):
        ahead, rest = split(rows[row], direction, turned)
        if rest > 0:
            scale = F4(1 / rest)
            for i in range(p):
                turned[i] *= scale
            turn(turned, signs)
        pack_signs(turned, codes[row, :count])
        floats[row, 2 * count] = F4(ahead)
        floats[row, 2 * count + 1] = F4(rest / sum_of_sizes(turned)) if rest > 0 else F4(0)
    return codes


@inner
def round_row(turned: Floats, steps: Signs) -> tuple[Any, int]:
    """Write coordinates in steps of the largest one's 127th; return the step and their sum."""
    largest = F4(0)
    for i in range(turned.size):
        largest = max(largest, abs(turned[i]))
    step = F4(largest / F4(LEVELS))
    steps[:] = 0
    total = 0
    if step > 0:
        for i in range(turned.size):
            rounded = np.rint(turned[i] / step)
            steps[i] = np.int8(max(F4(-LEVELS), min(F4(LEVELS), rounded)))
            total += steps[i]
    return step, total


@inner
def pack_planes(steps: Signs, planes: Words) -> None:
    """Write the bit planes of bytes: eight at a time, as a transposed 8 x 8 matrix of bits.

    Hacker's Delight (Warren, 2nd edition), 7-3.
    """
    for w in range(planes.shape[1]):
        for j in range(PLANES):
            planes[j, w] = 0
        for byte in range(8):
            eight = steps[64 * w + 8 * byte : 64 * w + 8 * byte + 8]
            x = U(0)
            for i in range(8):
                x |= U(np.uint8(eight[i])) << U(8 * i)
            t = (x ^ (x >> U(7))) & U(0x00AA00AA00AA00AA)
            x ^= t ^ (t << U(7))
            t = (x ^ (x >> U(14))) & U(0x0000CCCC0000CCCC)
            x ^= t ^ (t << U(14))
            t = (x ^ (x >> U(28))) & U(0x00000000F0F0F0F0)
            x ^= t ^ (t << U(28))
            for j in range(PLANES):
                planes[j, w] |= ((x >> U(8 * j)) & U(255)) << U(8 * byte)


@kernel(
    "Tuple((u8[:, :, ::1], i8[::1], f4[::1], f4[::1], f4[::1]))(f4[:, ::1], f4[::1], i1[:, ::1])"
)
def encode_queries(
    rows: Floats, direction: Floats, signs: Signs
) -> tuple[Words, Ints, Floats, Floats, Floats]:
    """See `reference.encode_queries`."""
    n, p = rows.shape[0], signs.shape[1]
    count = (p + 63) // 64
    planes, totals = np.empty((n, PLANES, count), np.uint64), np.empty(n, np.int64)
    along, step = np.empty(n, np.float32), np.empty(n, np.float32)
    rest = np.empty(n, np.float32)
    turned, steps = np.empty(p, np.float32), np.zeros(64 * count, np.int8)
    for row in range(n):
        ahead, length = split(rows[row], direction, turned)
        turn(turned, signs)
        step[row], totals[row] = round_row(turned, steps)
        pack_planes(steps, planes[row])
        along[row], rest[row] = F4(ahead), F4(length)
    return planes, totals, along, step, rest
