"""Asymmetric distance: minus the score, score = sum over an entry's bits of (+1 or -1) x margin.

A score is always summed in float32, byte by byte from byte 0, out of tables of 256: every path
gives the same floats. Bounds are float64 and widened by `slack`, more than all rounding can be.
The absolute margins of a row must sum to less than 1e38.

Flipping h bits of a codeword gains at most the h largest margins among the bits where it differs
from the query and, once those are spent, loses the smallest of the others. That bounds the scores
of shell h (see `shells`), rising up to h = r and falling after.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from everhash.kernels.compiling import inlined, inner
from everhash.kernels.search.scan import Scratch, WordTable
from everhash.kernels.search.shells import CYCLE, Shells
from everhash.kernels.search.topk import (
    F4,
    HALF,
    LOOKED,
    LOW,
    Best,
    Doubles,
    Floats,
    I,
    Ints,
    T,
    U,
    Words,
    float_bits,
    float_rank,
    offer,
    popcount,
    sort_keys,
)

BINS = 4096
"""Steps of the histogram of total - score, which lies in 0 .. 2 total."""
BLOCK = 1024


class QueryScores(NamedTuple):
    """What the margins of one query, cycle by cycle, turn into before any word is scored."""

    margins: Floats
    """(n_cycles, bits)"""
    tables: Floats
    """(n_cycles, 2048 W) see `make_tables`."""
    signs: Words
    """(n_cycles, W) the query's own code."""
    totals: Doubles
    """(n_cycles,) sum of |margin|."""
    sizes: Ints
    """(n_cycles, bits) bits by |margin|; see `order_sizes`. sizes[c, 0] is -1 until it is made."""
    sums: Doubles
    """(n_cycles, bits + 1)"""
    total: float
    """The largest of the totals, or 1 for 0."""
    slack: float
    """More than all rounding of a score can be."""


@inlined
def bin_of(x: Any, total: Any) -> Any:
    """The step of the histogram into which a score falls."""
    d = I((total - x) * ((BINS - 1) / (2 * total)))
    return min(max(d, I(0)), I(BINS - 1))


@inlined
def score_floor(t: Any, total: Any, slack: Any) -> Any:
    """No score below this falls into bin t or a better one."""
    return total - (t + 1) * (2 * total) / (BINS - 1) - slack if t < BINS else -np.inf


@inner
def make_tables(margins: Floats, tables: Floats) -> None:
    """tables[256 b + v] = what byte b adds to the score when its value is v; margins (bits,)."""
    bits = margins.size
    for b in range(tables.size >> 8):
        m = F4(0)
        for t in range(8 * b, min(8 * b + 8, bits)):
            m -= margins[t]
        tables[b * 256] = m
        for i in range(8):
            t = 8 * b + i
            twice = F4(2) * margins[t] if t < bits else F4(0)
            for v in range(1 << i):
                tables[b * 256 + (1 << i) + v] = tables[b * 256 + v] + twice


@inner
def score_words(table: WordTable, start: int, stop: int, tables: Floats, out: Floats) -> None:
    """Scores of words start .. stop into out."""
    flat, stride, words = table.flat, table.stride, tables.size >> 11
    s, mask = U(start), U(255)
    for i in range(U(stop) - s):
        x = flat[s + i]
        a = tables[x & mask]
        a += tables[U(256) + ((x >> U(8)) & mask)]
        a += tables[U(512) + ((x >> U(16)) & mask)]
        a += tables[U(768) + ((x >> U(24)) & mask)]
        a += tables[U(1024) + ((x >> U(32)) & mask)]
        a += tables[U(1280) + ((x >> U(40)) & mask)]
        a += tables[U(1536) + ((x >> U(48)) & mask)]
        a += tables[U(1792) + (x >> U(56))]
        for w in range(U(1), U(words)):
            x = flat[w * stride + s + i]
            at = w << U(11)
            for b in range(U(8)):
                a += tables[at + (b << U(8)) + ((x >> (b << U(3))) & mask)]
        out[i] = a


@inner
def score_rows(
    table: WordTable,
    start: int,
    stop: int,
    tables: Floats,
    total: float,
    slack: float,
    best: Best,
    scratch: Scratch,
    scores: Floats,
) -> None:
    """Offer words start .. stop by score."""
    lead, state = table.lead, best.state
    work, candidates, notes = scratch
    state[LOOKED] += max(0, stop - start)
    for s in range(start, stop, BLOCK):
        e = min(s + BLOCK, stop)
        score_words(table, s, e, tables, scores)
        low = F4(score_floor(state[T], total, slack))
        c = U(0)
        for i in range(U(e - s)):  # no branch
            work[c] = i
            c += U(scores[i] >= low)
        for j in range(c):
            x = scores[work[j]]
            y = lead[U(s) + work[j]]
            candidates[j] = (float_rank(F4(0) - x) << HALF) | (y & LOW)
            notes[j] = ((y >> HALF) << I(24)) | bin_of(x, total)
        if c:
            offer(candidates, notes, I(c), best)


@inner
def room_for_query(cycles: int, bits: int, words: int) -> Any:
    """Arrays for `prepare`, which queries use one after the other."""
    tables = np.empty((cycles, 2048 * words), np.float32)
    signs, totals = np.empty((cycles, words), np.uint64), np.empty(cycles, np.float64)
    sizes, sums = np.empty((cycles, bits), np.int64), np.empty((cycles, bits + 1), np.float64)
    return tables, signs, totals, sizes, sums


@inner
def prepare(margins: Floats, room: Any) -> QueryScores:
    """Tables, own code and sum of |margin| for each cycle. The order of sizes is left to make."""
    tables, signs, totals, sizes, sums = room
    total = 0.0
    for c in range(margins.shape[0]):
        make_tables(margins[c], tables[c])
        sizes[c, 0] = -1
        totals[c] = 0.0
        for w in range(signs.shape[1]):
            signs[c, w] = U(0)
        for t in range(margins.shape[1]):
            totals[c] += abs(np.float64(margins[c, t]))
            signs[c, t >> 6] |= U(margins[c, t] > 0) << U(t & 63)
        total = max(total, totals[c])
    total = total if total > 0.0 else 1.0
    slack = (8 * signs.shape[1] + 32) * 2.0**-23 * total
    return QueryScores(margins, tables, signs, totals, sizes, sums, total, slack)


@inner
def order_sizes(query: QueryScores, c: int, keys: Ints, spare: Ints) -> None:
    """Bits of a cycle by |margin|, ascending, into its sizes; sums[i] = sum of the i smallest."""
    margins, order, sums = query.margins[c], query.sizes[c], query.sums[c]
    bits = margins.size
    for t in range(bits):
        keys[t] = (I(float_bits(abs(margins[t]))) << HALF) | t
    sort_keys(keys, bits, spare)
    sums[0] = 0.0
    for i in range(bits):
        order[i] = keys[i] & LOW
        sums[i + 1] = sums[i] + abs(np.float64(margins[order[i]]))


@inner
def centre_scores(shells: Shells, tables: Floats, out: Floats) -> None:
    """out[g] = score of group g's codeword."""
    core, groups = shells.core, shells.groups
    many = groups.shape[0]
    for g in range(many):
        cycle = groups[g, CYCLE]
        a = F4(0)
        for b in range(tables.shape[1] >> 8):
            v = (core[(b >> 3) * many + g] >> U(8 * (b & 7))) & U(255)
            a += tables[cycle, b * 256 + I(v)]
        out[g] = a


@inner
def bound_shells(
    core: Words,
    many: int,
    g: int,
    signs: Words,
    centre: float,
    high: int,
    order: Ints,
    sums: Doubles,
    bound: Doubles,
) -> None:
    """bound[h], h <= high: no word h away from codeword g, which scores `centre`, exceeds it.

    Wherever fewer than `high` bits differ, those are spent first, largest margin first.
    """
    h = 0
    bound[0] = centre
    for o in range(order.size - 1, -1, -1):
        t = order[o]
        if ((core[(t >> 6) * many + g] ^ signs[t >> 6]) >> U(t & 63)) & U(1):
            bound[h + 1] = bound[h] + 2.0 * (sums[o + 1] - sums[o])
            h += 1
    for o in range(order.size):
        if h >= high:
            break
        t = order[o]
        if not ((core[(t >> 6) * many + g] ^ signs[t >> 6]) >> U(t & 63)) & U(1):
            bound[h + 1] = bound[h] - 2.0 * (sums[o + 1] - sums[o])
            h += 1


@inner
def differing(core: Words, many: int, g: int, signs: Words) -> int:
    """Distance of codeword g to the query's own code."""
    r = U(0)
    for w in range(signs.size):
        r += popcount(core[w * many + g] ^ signs[w])
    return int(I(r))


@inner
def guess_bin(scores: Floats, m: int, n: int, k: int, total: float, histogram: Ints) -> int:
    """A bin within which n words probably hold k, judging by scores[:m]; see `scan.guess`."""
    held = 0
    for i in range(m):
        histogram[bin_of(scores[i], total)] += 1
    share = k * m / n
    want = share + 2.5 * np.sqrt(share) + 2
    for t in range(BINS):
        held += histogram[t]
        if held >= want:
            return t
    return BINS


@inner
def guess_scores(
    table: WordTable,
    start: int,
    stop: int,
    tables: Floats,
    total: float,
    best: Best,
    scores: Floats,
) -> int:
    """Guess T from 16 blocks of 64 words; BINS where it cannot tell."""
    n = stop - start
    if n < 2048:
        return BINS
    step = (n - 64) // 15
    for b in range(16):
        s = start + b * step
        score_words(table, s, s + 64, tables, scores[64 * b : 64 * b + 64])
    for t in range(best.histogram.size):
        best.histogram[t] = 0
    return guess_bin(scores, 1024, n, best.k, total, best.histogram)


@inner
def reach(bound: Doubles, first: int, last: int, r: int, floor: float) -> tuple[int, int]:
    """The shells whose bound is at least `floor`: left + 1 .. right - 1, side by side."""
    left = min(max(r, first), last)
    right = left + 1
    while left >= first and bound[left] >= floor:
        left -= 1
    while right <= last and bound[right] >= floor:
        right += 1
    return left, right
