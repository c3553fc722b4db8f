"""The kernels of `reference`, compiled by Numba: the same names, the same meaning.

Each has one fixed signature and is compiled, or read from Numba's cache, when this module is
imported; import it through `everhash.kernels.load`. Sums use several partial sums at once
(`reassoc`), nothing else departs from the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar, cast

import numba
import numpy as np

from everhash.kernels.reference import (
    CHANCES,
    HINGE,
    PERCEPTRON,
    QUIET,
    REPLAYS,
    SQUARED_HINGE,
    Chances,
    Counts,
    Flags,
    Floats,
    Signs,
)

F = TypeVar("F", bound=Callable[..., Any])
KERNELS: dict[str, Any] = {}
SECONDS: dict[str, float] = {}
LANES = 8
"""Rows turned side by side: floats of one vector register."""


def compile_kernel(signature: str, **options: Any) -> Callable[[F], F]:
    """Compile for exactly this signature, and keep account of it for the report."""

    def compile_now(function: F) -> F:
        start = perf_counter()
        kernel = numba.njit(signature, cache=True, nogil=True, **options)(function)
        SECONDS[function.__name__] = perf_counter() - start
        if function.__module__ == __name__:
            KERNELS[function.__name__] = kernel
        return cast(F, kernel)

    return compile_now


@compile_kernel("void(f4[::1], f4[:, ::1], f4[::1])", fastmath={"reassoc", "contract", "nsz"})
def row_margins(z: Floats, W: Floats, out: Floats) -> None:
    """Write W @ z into `out`, four functions at a time so that they share the loads of z."""
    k, d = W.shape
    for j0 in range(0, k, 4):
        j1, j2, j3 = min(j0 + 1, k - 1), min(j0 + 2, k - 1), min(j0 + 3, k - 1)
        w0, w1, w2, w3 = W[j0], W[j1], W[j2], W[j3]
        a0 = a1 = a2 = a3 = np.float32(0)
        for i in range(d):
            a = z[i]
            a0 += a * w0[i]
            a1 += a * w1[i]
            a2 += a * w2[i]
            a3 += a * w3[i]
        out[j0], out[j1], out[j2], out[j3] = a0, a1, a2, a3


@compile_kernel(
    "void(f4[:, ::1], f4[:, ::1], i8[::1], f4[:, ::1])",
    fastmath={"reassoc", "contract", "nsz", "nnan"},
)
def unit_rows(X: Floats, centers: Floats, which: Counts, out: Floats) -> None:
    """Write `reference.unit_rows` into `out`."""
    for row in range(X.shape[0]):
        x, c, z = X[row], centers[which[row]], out[row]
        largest = length = np.float32(0)
        for i in range(x.size):
            z[i] = x[i] - c[i]
            largest = max(largest, abs(z[i]))
        largest = largest if largest > 0 else np.float32(1)
        for i in range(x.size):
            z[i] /= largest
            length += z[i] * z[i]
        length = np.float32(math.sqrt(length)) if length > 0 else np.float32(1)
        for i in range(x.size):
            z[i] /= length


@compile_kernel("f4(i8, f4)")
def slope(loss: int, margin: np.float32) -> np.float32:
    """See `reference.slope`; one margin at a time."""
    one = np.float32(1)
    if loss == HINGE:
        return one if margin < one else np.float32(0)
    if loss == PERCEPTRON:
        return one if margin <= 0 else np.float32(0)
    if loss == SQUARED_HINGE:
        return np.float32(2) * (one - margin) if margin < one else np.float32(0)
    return np.float32(np.float32(1 / math.log(2)) / (one + np.exp(min(margin, np.float32(80)))))


@compile_kernel(
    "void(f4[:, ::1], i8[::1], b1[::1], i1[:, ::1], i8, f4[:, :, ::1], f4[:, :, ::1], "
    "i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], f8, b1, i8)"
)
def learn(
    Z: Floats,
    labels: Counts,
    joins: Flags,
    codewords: Signs,
    labels_per_cycle: int,
    last: Floats,
    mean: Floats,
    updates: Counts,
    averaged: Counts,
    rounds: Counts,
    restarts: Counts,
    step: float,
    decays: bool,
    loss: int,
) -> None:
    """See `reference.learn`."""
    k, d = last.shape[1], last.shape[2]
    scores = np.empty(k, np.float32)
    for row in range(Z.shape[0]):
        z, word, cycle = Z[row], codewords[labels[row]], labels[row] // labels_per_cycle
        if joins[row]:
            averaged[cycle], restarts[cycle] = 0, rounds[cycle]
        nonzero = 0
        while nonzero < d and z[nonzero] == 0:
            nonzero += 1
        if nonzero == d:
            continue
        rounds[cycle] += 1
        eta = np.float32(step / math.sqrt(rounds[cycle]) if decays else step)
        row_margins(z, last[cycle], scores)
        for bit in range(k):
            w, sign = last[cycle, bit], np.float32(word[bit])
            push = slope(loss, sign * scores[bit])
            if push <= 0:
                continue
            updates[cycle, bit] += 1
            scale = eta * push * sign
            if mean.shape[0] == 0:
                for i in range(d):
                    w[i] += scale * z[i]
                continue
            number = rounds[cycle] - restarts[cycle]
            m, newest = mean[cycle, bit], np.float32(1) / np.float32(number)
            stood = np.float32(number - averaged[cycle, bit] - 1) / np.float32(max(number - 1, 1))
            averaged[cycle, bit] = number
            for i in range(d):
                m[i] += (w[i] - m[i]) * stood
                w[i] += scale * z[i]
                m[i] += (w[i] - m[i]) * newest


@compile_kernel(
    "void(f4[:, ::1], f4[:, :, ::1], f4[:, ::1])", fastmath={"reassoc", "contract", "nsz"}
)
def margins_into(Z: Floats, functions: Floats, out: Floats) -> None:
    """Write `reference.margins` into `out`.

    Two rows meet four functions at a time: eight sums share six loads, which brings this near the
    speed of BLAS. At the edges the last row or function is computed again instead of having code of
    its own, so that every sum is made by the same instructions wherever its row stands.
    """
    n, (cycles, k, d) = Z.shape[0], functions.shape
    for cycle in range(cycles):
        W, first = functions[cycle], cycle * k
        for r0 in range(0, n, 2):
            r1 = min(r0 + 1, n - 1)
            z0, z1 = Z[r0], Z[r1]
            out0, out1 = out[r0, first : first + k], out[r1, first : first + k]
            for j0 in range(0, k, 4):
                j1, j2, j3 = min(j0 + 1, k - 1), min(j0 + 2, k - 1), min(j0 + 3, k - 1)
                w0, w1, w2, w3 = W[j0], W[j1], W[j2], W[j3]
                a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = np.float32(0)
                for i in range(d):
                    a, b = z0[i], z1[i]
                    a0 += a * w0[i]
                    a1 += a * w1[i]
                    a2 += a * w2[i]
                    a3 += a * w3[i]
                    b0 += b * w0[i]
                    b1 += b * w1[i]
                    b2 += b * w2[i]
                    b3 += b * w3[i]
                out0[j0], out0[j1], out0[j2], out0[j3] = a0, a1, a2, a3
                out1[j0], out1[j1], out1[j2], out1[j3] = b0, b1, b2, b3


@compile_kernel("void(f4[:, ::1], i1[:, ::1], i8, f4[:, ::1])")
def word_margins_into(scores: Floats, words: Signs, labels_per_cycle: int, out: Floats) -> None:
    """Write `reference.word_margins` into `out`."""
    k = words.shape[1]
    out[:] = 0
    for row in range(scores.shape[0]):
        for label in range(words.shape[0]):
            first = label // labels_per_cycle * k
            sums, word, score = out[row, first : first + k], words[label], scores[row, label]
            for bit in range(k):
                sums[bit] += score * word[bit]


@compile_kernel(
    "void(f4[:, ::1], i1[:, ::1], i8, f4[:, ::1])", fastmath={"reassoc", "contract", "nsz"}
)
def word_scores_into(margins: Floats, words: Signs, labels_per_cycle: int, out: Floats) -> None:
    """Write `reference.word_scores` into `out`."""
    k = words.shape[1]
    for row in range(margins.shape[0]):
        for label in range(words.shape[0]):
            first = label // labels_per_cycle * k
            mine, word = margins[row, first : first + k], words[label]
            total = np.float32(0)
            for bit in range(k):
                total += mine[bit] * word[bit]
            out[row, label] = total


@compile_kernel("void(f4[::1], i8)")
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


@compile_kernel("void(f4[::1], i1[:, ::1])")
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


@compile_kernel("void(f4[::1], i8, f4[::1])")
def rectify(tile: Floats, count: int, squares: Floats) -> None:
    """Cut LANES rows off at zero, and add the squares of what is left of each to `squares`."""
    for i in range(count):
        lanes = tile[i * LANES : (i + 1) * LANES]
        for lane in range(LANES):
            lanes[lane] = max(lanes[lane], np.float32(0))
            squares[lane] += lanes[lane] * lanes[lane]


@compile_kernel("void(f4[:, ::1], i1[:, :, ::1], i8, f4[:, ::1])")
def lift_into(U: Floats, signs: Signs, features: int, out: Floats) -> None:
    """Write `reference.lift` into `out`, LANES rows at a time."""
    (n, d), p = U.shape, signs.shape[2]
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
                tile[lane : d * LANES : LANES] = U[first + lane]
            rotate(tile, signs[block])
            if block:
                rectify(tile, count, squares)
            for lane in range(rows):
                out[first + lane, start : start + count] = tile[lane : count * LANES : LANES]
        for lane in range(rows):
            row, length = out[first + lane], math.sqrt(squares[lane])
            row[:p] *= scale
            row[p : p + features] *= np.float32(scale / length) if length > 0 else scale
            row[p + features] = scale


@compile_kernel(
    "Tuple((i8[::1], i8[::1], i8[::1], b1[::1], i8[::1], i8))"
    "(i8[::1], i8, i8, f8[:, ::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8)"
)
def plan_replay(
    labels: Counts,
    labels_per_cycle: int,
    known: int,
    chances: Chances,
    clock: Counts,
    heard: Counts,
    seen: Counts,
    slots: Counts,
    stored: int,
) -> tuple[Counts, Counts, Counts, Flags, Counts, int]:
    """See `reference.plan_replay`."""
    keep = slots.shape[1]
    most = labels.size * (1 + REPLAYS)
    sources = np.empty(most, np.int64)
    times = np.empty(most, np.int64)
    learned = np.empty(most, np.int64)
    joins = np.zeros(most, np.bool_)
    written = np.full(stored + labels.size * min(keep, 1), -1, np.int64)
    steps = 0
    for row in range(labels.size):
        label = labels[row]
        sources[steps], times[steps], learned[steps], joins[steps] = row, row, label, label >= known
        steps += 1
        known = max(known, label + 1)
        if keep == 0:
            continue
        cycle = label // labels_per_cycle
        first = cycle * labels_per_cycle
        together = min(known - first, labels_per_cycle)
        clock[cycle] += 1
        heard[label] = clock[cycle]
        for draw in range(1, CHANCES, 2):
            other = first + int(chances[row, draw] * together)
            held = min(seen[other], keep)
            if held > 0 and clock[cycle] - heard[other] > QUIET * together:
                slot = slots[other, int(chances[row, draw + 1] * held)]
                sources[steps] = written[slot] if written[slot] >= 0 else ~slot
                times[steps], learned[steps] = row, other
                steps += 1
        seen[label] += 1
        if seen[label] <= keep:
            slots[label, seen[label] - 1] = stored
            written[stored] = row
            stored += 1
        else:
            forget = int(chances[row, 0] * seen[label])
            if forget < keep:
                written[slots[label, forget]] = row
    return (
        sources[:steps],
        times[:steps],
        learned[:steps],
        joins[:steps],
        written[:stored],
        stored,
    )


READY = True
"""Set last: a module that is still compiling does not have it."""
