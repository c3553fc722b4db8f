"""The specification of every kernel, in NumPy. `compiled` must agree; a Hypothesis test says so.

Sums run in another order there, so results agree to the last bit wherever sums are exact (whole
numbers, dyadic fractions) and to rounding elsewhere. All else is the same operation in the same
order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.products import product

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
Words = NDArray[np.uint64]
Signs = NDArray[np.int8]
Flags = NDArray[np.bool_]
Chances = NDArray[np.float64]

HINGE, SQUARED_HINGE, LOGISTIC, PERCEPTRON = 0, 1, 2, 3
"""Losses l(m) of a margin m = c·(w·x). The first three are at least 1 where the bit is wrong
(m <= 0), so their sum bounds the Hamming distance from above: max(0, 1 - m), its square, and
log2(1 + exp(-m)). The last, max(0, -m), is that of a perceptron."""


def slope(loss: int, margins: Floats) -> Floats:
    """Return -l'(m) for each margin: how hard the loss pushes it up. Zero means no update.

    >>> slope(HINGE, np.array([-1, 0.5, 1, 2], np.float32)).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    m = margins.astype(np.float32)
    if loss == HINGE:
        return (m < 1).astype(np.float32)
    if loss == PERCEPTRON:
        return (m <= 0).astype(np.float32)
    pushes: Floats
    if loss == SQUARED_HINGE:
        pushes = np.maximum(np.float32(0), np.float32(2) * (np.float32(1) - m))
    else:
        grown = np.exp(np.minimum(m, np.float32(80)))
        pushes = (np.float32(1 / np.log(2)) / (np.float32(1) + grown)).astype(np.float32)
    return pushes


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
    """Line 20 of Algorithm 1, for every row in order: one step of SGD on the label's own functions.

    The mean is that of the iterates up to the function's last update. So it moves, like the last
    iterate, only when the function errs.

    Args:
        Z: (n, d) rows of unit length; a row of zeros teaches nothing.
        labels: (n,) number of each row's label, in order of arrival.
        joins: (n,) where a label meets its cycle for the first time: averages start again.
        codewords: (n_labels, k) of -1/+1, each label's word on its own cycle.
        labels_per_cycle: label number i lives in cycle i // labels_per_cycle.
        last: (n_cycles, k, d) the newest iterate, changed in place.
        mean: (n_cycles, k, d) mean of the iterates, changed in place; (0, k, d) for no averaging.
        updates: (n_cycles, k) how often each function has changed, changed in place.
        averaged: (n_cycles, k) rounds each mean accounts for, changed in place.
        rounds: (n_cycles,) rows each cycle has learned from, changed in place.
        restarts: (n_cycles,) the round after which averages started again, changed in place.
        step: the step size, divided by the square root of the cycle's round if `decays`.
        decays: whether the step shrinks.
        loss: HINGE, SQUARED_HINGE, LOGISTIC or PERCEPTRON.
    """
    for z, label, joined in zip(Z, labels, joins, strict=True):
        cycle = label // labels_per_cycle
        W, word = last[cycle], codewords[label].astype(np.float32)
        if joined:
            averaged[cycle], restarts[cycle] = 0, rounds[cycle]
        if not z.any():
            continue
        rounds[cycle] += 1
        eta = np.float32(step / np.sqrt(rounds[cycle]) if decays else step)
        push = slope(loss, word * product(W, z))
        moved = push > 0
        before = W[moved]
        W[moved] += (eta * push * word)[moved, None] * z
        updates[cycle, moved] += 1
        if len(mean):
            number = rounds[cycle] - restarts[cycle]
            stood = (number - averaged[cycle, moved] - 1).astype(np.float32)
            share = stood / np.float32(max(number - 1, 1))
            M = mean[cycle, moved]
            M += (before - M) * share[:, None]
            M += (W[moved] - M) * (np.float32(1) / np.float32(number))
            mean[cycle, moved] = M
            averaged[cycle, moved] = number


def margins(Z: Floats, functions: Floats) -> Floats:
    """Return w·z for every row and hash function.

    A result depends on its own row and function only, to the last bit: not on the other rows of the
    batch, not on how many cycles there are. BLAS does not promise that.

    Args:
        Z: (n, d) rows.
        functions: (n_cycles, k, d) hash functions.

    Returns:
        (n, n_cycles * k), cycle by cycle.
    """
    return product(Z, functions.reshape(-1, functions.shape[2]).T)


def word_margins(scores: Floats, words: Signs, labels_per_cycle: int, n_cycles: int) -> Floats:
    """Return each cycle's margins of rows whose scores are known: sums of words, score times word.

    A result depends on its own row only, to the last bit.

    Args:
        scores: (n, n_labels) of classifiers a_y; functions are W_c = sum over y of word_y a_y'.
        words: (n_labels, k) of -1 and +1.
        labels_per_cycle: label number i lives in cycle i // labels_per_cycle.
        n_cycles: how many there are.

    Returns:
        (n, n_cycles * k), cycle by cycle.
    """
    out = np.zeros((len(scores), n_cycles, words.shape[1]), np.float32)
    for cycle in range(n_cycles):
        members = slice(cycle * labels_per_cycle, (cycle + 1) * labels_per_cycle)
        out[:, cycle] = product(scores[:, members], words[members].astype(np.float32))
    return out.reshape(len(scores), n_cycles * words.shape[1])


def word_scores(margins: Floats, words: Signs, labels_per_cycle: int) -> Floats:
    """Return (n, n_labels) how far each row's margins point towards each label's word.

    Args:
        margins: (n, n_cycles * k), cycle by cycle.
        words: (n_labels, k) of -1 and +1.
        labels_per_cycle: label number i lives in cycle i // labels_per_cycle.
    """
    k = words.shape[1]
    out = np.empty((len(margins), len(words)), np.float32)
    for label, word in enumerate(words.astype(np.float32)):
        first = label // labels_per_cycle * k
        out[:, label] = product(margins[:, first : first + k], word)
    return out


QUIET = 4
"""A label is quiet once its cycle has heard this many rows, times its labels, without it."""
REPLAYS = 2
"""Quiet labels that may be replayed after each new row."""
CHANCES = 2 * REPLAYS + 1
"""Random numbers a new row takes."""


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
    """Follow each new row with remembered ones of labels gone quiet; keep the memory a sample.

    After each new row labels of the same cycle are drawn. If one has not come for a long while, one
    of its remembered rows is learned again. The memory holds a uniform sample of each label's rows
    (reservoir sampling). Weights play no part, so a whole block is planned at once.

    Args:
        labels: (n,) number of each new row's label.
        labels_per_cycle: label number i lives in cycle i // labels_per_cycle.
        known: how many labels had arrived before this block.
        chances: (n, CHANCES) uniform: the row to forget, then a label and a row for each replay.
        clock: (n_cycles,) new rows each cycle has had, changed in place.
        heard: (n_labels,) its cycle's clock when each label last came, changed in place.
        seen: (n_labels,) rows seen of each label, changed in place.
        slots: (n_labels, r) where in the memory each label's rows lie, changed in place.
        stored: how many rows the memory holds.

    Returns:
        In the order of learning, the row of the block or ~slot for a remembered one; the new row
        each one is or follows; its label's number; whether the label arrives with it. Then, for
        each slot of the memory, the row it now holds, -1 if unchanged; and how many rows it holds.
    """
    keep, steps = slots.shape[1], []
    written = np.full(stored + len(labels) * min(keep, 1), -1, np.int64)
    for row, label in enumerate(labels):
        steps.append((row, row, label, label >= known))
        known = max(known, int(label) + 1)
        if keep == 0:
            continue
        cycle = label // labels_per_cycle
        first = cycle * labels_per_cycle
        together = min(known - first, labels_per_cycle)
        clock[cycle] += 1
        heard[label] = clock[cycle]
        for draw in range(1, CHANCES, 2):
            other = first + int(chances[row, draw] * together)
            held = min(int(seen[other]), keep)
            if held and clock[cycle] - heard[other] > QUIET * together:
                slot = int(slots[other, int(chances[row, draw + 1] * held)])
                source = int(written[slot]) if written[slot] >= 0 else ~slot
                steps.append((source, row, other, False))
        seen[label] += 1
        if seen[label] <= keep:
            slots[label, seen[label] - 1], written[stored] = stored, row
            stored += 1
        elif (forget := int(chances[row, 0] * seen[label])) < keep:
            written[slots[label, forget]] = row
    sources, times, learned, joins = np.array(steps, np.int64).reshape(-1, 4).T
    return sources, times, learned, joins.astype(np.bool_), written[:stored], stored


def masked_hamming(query: Words, bits: Words, mask: Words) -> Counts:
    """Count the bits that differ from `query`, looking only where `mask` is set.

    Paper: d_h = sum_t [f_t(x) != c_yt] |c_yt|, Section 3.

    Args:
        query: (w,) packed query code, all bits active.
        bits: (n, w) packed stored codes; bit t of word j is hash function 64 j + t.
        mask: (n, w) packed activity; 0 marks an inactive (ternary zero) bit.

    >>> u = lambda *v: np.array(v, dtype=np.uint64)
    >>> masked_hamming(u(0b1100), u(0b1010)[None], u(0b0111)[None]).tolist()
    [2]
    """
    differs = (bits ^ query) & mask
    total: Counts = np.bitwise_count(differs).sum(axis=1, dtype=np.int64)
    return total


def unit_rows(X: Floats, centers: Floats, which: Counts) -> Floats:
    """Return rows measured from centers[which] and scaled to unit length; zero rows stay zero."""
    Z = X - centers[which]
    largest = np.abs(Z).max(axis=1, keepdims=True)  # divided out first, so that squares stay finite
    Z /= np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    Z /= np.where(lengths > 0, lengths, 1)
    return Z


def halve(X: Floats) -> tuple[NDArray[np.float16], Floats]:
    """Return rows in half precision, each divided by its largest value, and those values.

    >>> halve(np.array([[2, -4], [0, 0]], np.float32))
    (array([[ 0.5, -1. ],
           [ 0. ,  0. ]], dtype=float16), array([4., 1.], dtype=float32))
    """
    largest = np.abs(X).max(axis=1, initial=0)
    scales = np.where(largest > 0, largest, 1).astype(np.float32)
    return (X / scales[:, None]).astype(np.float16), scales


def unhalve(halves: NDArray[np.float16], scales: Floats) -> Floats:
    """Return the rows that `halve` was given, as far as halves can hold them."""
    return halves.astype(np.float32) * scales[:, None]


def rotate(rows: Floats, signs: Signs) -> Floats:
    """Turn rows by a random rotation that costs O(p log p) and no matrix.

    Three rounds of random signs and Walsh-Hadamard transforms. A length that is no power of two is
    cut into pieces that are, the largest first; the order is reversed after each round, so that
    the pieces mix. Fast Hadamard transforms as random projections: Ailon and Chazelle, STOC 2006.

    Args:
        rows: (n, p).
        signs: (rounds, p) of -1 and +1.

    >>> turned = rotate(np.array([[3, 4, 12]], np.float32), np.ones((1, 3), np.int8))
    >>> turned.astype(float).round(2).tolist()
    [[12.0, -0.71, 4.95]]
    """
    turned, p = rows.astype(np.float32), rows.shape[1]
    for flips in signs:
        turned = turned * flips.astype(np.float32)
        start = 0
        while start < p:
            size = 1 << ((p - start).bit_length() - 1)
            turned[:, start : start + size] = _hadamard(turned[:, start : start + size])
            start += size
        turned = turned[:, ::-1]
    return np.ascontiguousarray(turned)


def _hadamard(rows: Floats) -> Floats:
    """Return the orthonormal Walsh-Hadamard transform of rows whose length is a power of two."""
    n, size = rows.shape
    half = 1
    while half < size:
        pairs = rows.reshape(n, -1, 2, half)
        sums, differences = pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]
        rows = np.stack([sums, differences], axis=2).reshape(n, size)
        half *= 2
    scaled: Floats = rows * np.float32(1 / np.sqrt(size))
    return scaled


def lift(U: Floats, signs: Signs, features: int) -> Floats:
    """Return rows turned, with rectified random features beside them and a constant at the end.

    Each of the three parts has the same length, 1 / sqrt(parts) where there are as many.

    Args:
        U: (n, d) rows of unit length, or zeros.
        signs: (1 + blocks, rounds, p) of -1 and +1: one rotation for the rows themselves, the
            others for the features; p >= d, and rows are filled up with zeros.
        features: how many random features, at most blocks * p.
    """
    filled = np.zeros((len(U), signs.shape[2]), np.float32)
    filled[:, : U.shape[1]] = U
    parts = [rotate(filled, signs[0])]
    if features:
        turned = np.hstack([rotate(filled, each) for each in signs[1:]])[:, :features]
        rectified = np.maximum(turned, np.float32(0))
        lengths = np.sqrt((rectified * rectified).sum(axis=1, keepdims=True))
        parts.append((rectified / np.where(lengths > 0, lengths, 1)).astype(np.float32))
    parts.append(np.ones((len(U), 1), np.float32))
    lifted: Floats = np.hstack(parts) * np.float32(1 / np.sqrt(len(parts)))
    return lifted
