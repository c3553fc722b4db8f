"""The kernels of `reference`, compiled by Numba: the same names, the same meaning.

Each has one fixed signature and is compiled, or read from Numba's cache, when it is first asked for
by `everhash.kernels.load`. Sums use several partial sums at once (`reassoc`), nothing else departs
from the reference.
"""

from __future__ import annotations

import math

import numpy as np

from everhash.kernels.compiling import inner, kernel, part
from everhash.kernels.lifting import lift_into
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

__all__ = [
    "learn",
    "lift_into",
    "margins_into",
    "plan_replay",
    "unit_rows",
    "word_margins_into",
    "word_scores_into",
]


@part(fastmath={"reassoc", "contract", "nsz"})
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


@kernel(
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


@inner
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


@kernel(
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


@kernel("void(f4[:, ::1], f4[:, :, ::1], f4[:, ::1])", fastmath={"reassoc", "contract", "nsz"})
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


@kernel("void(f4[:, ::1], i1[:, ::1], i8, f4[:, ::1])")
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


@kernel("void(f4[:, ::1], i1[:, ::1], i8, f4[:, ::1])", fastmath={"reassoc", "contract", "nsz"})
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


@kernel(
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
