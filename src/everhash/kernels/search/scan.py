"""Words of a contiguous range, offered to one query's top-k.

Words stand in columns (W, m + 64): word w of entry i is columns[w, i], so that a scan reads each
column straight through; `flat` is the same as one row and `stride` its m + 64. The padding lets a
block of 64 begin at any word.

Indices are unsigned: a signed one is checked for wrap-around, and then LLVM no longer makes plain
vector loads. There is one loop a width: with the choice inside, LLVM drops the unrolled vector form
(2.5 times slower).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from everhash.kernels.compiling import inlined, inner
from everhash.kernels.search.topk import (
    BATCH,
    HALF,
    LOOKED,
    LOW,
    Best,
    I,
    Ints,
    T,
    U,
    Words,
    lowest,
    offer,
    popcount,
    prefetch,
)

AHEAD = U(512)  # words: the hardware's own prefetch stops at the end of a page
BLOCKS = U(32)
SUMS, HITS = U(64), U(128)
WORK = 128 + BATCH
"""Words of scratch: up to 64 masks, 64 sums, then the hits."""


class WordTable(NamedTuple):
    """The distinct words of a segment."""

    flat: Words
    """Columns (W, stride), one after the other."""
    stride: Any
    """An unsigned integer."""
    lead: Ints
    """(m,) a word's first place << 1 | it has more than one | how many << 32."""


class Scratch(NamedTuple):
    """Room for the words of some blocks that may be among the best."""

    work: Words
    candidates: Ints
    notes: Ints


@inner
def table_of(columns: Words, lead: Ints) -> WordTable:
    """Return columns (W, m + 64) as a table."""
    return WordTable(columns.reshape(columns.size), U(columns.shape[1]), lead)


@inner
def new_scratch(size: int) -> Scratch:
    """Return room for at least `size` words."""
    n = max(WORK, size)
    return Scratch(np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64))


@inlined
def near_one(flat: Words, s: Any, q0: Any, t: Any) -> Any:
    """Bit i is set where word s + i, i < 64, is nearer than t. One word an entry."""
    hit = U(0)
    for i in range(U(64)):
        hit |= ((popcount(flat[s + i] ^ q0) - t) >> U(63)) << i
    return hit


@inlined
def near_two(flat: Words, stride: Any, s: Any, q0: Any, q1: Any, t: Any) -> Any:
    """`near_one` for two words an entry."""
    hit = U(0)
    s1 = s + stride
    for i in range(U(64)):
        near = popcount(flat[s + i] ^ q0) + popcount(flat[s1 + i] ^ q1) - t
        hit |= (near >> U(63)) << i
    return hit


@inner
def near_many(flat: Words, stride: Any, s: Any, q: Words, t: Any, work: Words) -> Any:
    """`near_one` for any number of words an entry."""
    distances_of_block(flat, stride, s, q, work)
    hit = U(0)
    for i in range(U(64)):
        hit |= ((work[SUMS + i] - t) >> U(63)) << i
    return hit


@inner
def distances_of_block(flat: Words, stride: Any, s: Any, q: Words, work: Words) -> None:
    """Distances of words s .. s + 64 into work[SUMS:]."""
    q0 = q[0]
    for i in range(U(64)):
        work[SUMS + i] = popcount(flat[s + i] ^ q0)
    for w in range(U(1), U(q.size)):
        q0, s0 = q[w], s + w * stride
        for i in range(U(64)):
            work[SUMS + i] += popcount(flat[s0 + i] ^ q0)


@inner
def measure(
    flat: Words,
    stride: Any,
    lead: Ints,
    hits: Words,
    first: Any,
    m: Any,
    q: Words,
    candidates: Ints,
    notes: Ints,
) -> None:
    """Make candidates of the words hits[first : first + m].

    Takes arrays, as it is called for a few words at a time: tuples of them cost 5 % of a search.
    """
    for c in range(m):
        i = hits[U(first + c)]
        d = U(0)
        for w in range(U(q.size)):
            d += popcount(flat[w * stride + i] ^ q[w])
        x = lead[i]
        candidates[c] = (I(d) << HALF) | (x & LOW)
        notes[c] = ((x >> HALF) << I(24)) | I(d)


@inner
def mask_blocks(
    flat: Words, stride: Any, s: Any, blocks: Any, q: Words, t: Any, work: Words
) -> None:
    """work[b] = the words of block b that are nearer than t; blocks of 64 from word s on."""
    q0 = q[0]
    if q.size == 1:
        for b in range(blocks):
            at = s + (b << U(6))
            for line in range(U(8)):
                prefetch(flat, at + AHEAD + (line << U(3)))
            work[b] = near_one(flat, at, q0, t)
    elif q.size == 2:
        q1 = q[1]
        for b in range(blocks):
            at = s + (b << U(6))
            for line in range(U(8)):
                prefetch(flat, at + AHEAD + (line << U(3)))
                prefetch(flat, at + stride + AHEAD + (line << U(3)))
            work[b] = near_two(flat, stride, at, q0, q1, t)
    else:
        for b in range(blocks):
            work[b] = near_many(flat, stride, s + (b << U(6)), q, t, work)


@inner
def scan_rows(
    table: WordTable, start: int, stop: int, q: Words, best: Best, scratch: Scratch
) -> None:
    """Offer words start .. stop to one query's top-k.

    Words are not in order of insertion, so a tie with T may yet win: d <= T is taken. Masks of up
    to 32 blocks are made before any hit is looked at, because a branch on each would stall the
    pipeline. The number of blocks doubles while hits are rare: T is up to date while they are not.
    """
    s, e = U(start), U(stop)
    if e <= s:
        return
    (flat, stride, lead), state = table, best.state
    work, candidates, notes = scratch
    state[LOOKED] += stop - start
    blocks = U(1) if state[T] + 2 >= best.histogram.size else BLOCKS  # without a T it falls fast
    while s < e:
        m = min(blocks, (e - s + U(63)) >> U(6))
        mask_blocks(flat, stride, s, m, q, U(state[T]) + U(1), work)
        if s + (m << U(6)) > e:  # words of the last block that are not ours
            work[m - U(1)] &= (U(1) << ((e - s) & U(63))) - U(1)
        c = U(0)
        for b in range(m):
            hit = work[b]
            while hit:
                work[HITS + c] = s + (b << U(6)) + lowest(hit)
                hit &= hit - U(1)
                c += U(1)
        if c:
            measure(flat, stride, lead, work, HITS, c, q, candidates, notes)
            offer(candidates, notes, I(c), best)
        rare = c <= m << U(2)
        blocks = min(BLOCKS, blocks << U(1)) if rare else max(U(1), blocks >> U(1))
        s += m << U(6)


@inner
def guess(
    table: WordTable, start: int, stop: int, q: Words, k: int, blocks: int, count: Ints, work: Words
) -> int:
    """A distance within which words start .. stop probably hold k, from `blocks` x 64 of them.

    `count` has bits + 3 places. It only saves work: whoever begins with T = guess starts again
    without if fewer than k turn up. Returns bits + 1 where it cannot tell.
    """
    bits = count.size - 3
    m = stop - start
    if m < 128 * blocks:
        return bits + 1
    for t in range(count.size):
        count[t] = 0
    step = U((m - 64) // (blocks - 1))
    for b in range(U(blocks)):
        distances_of_block(table.flat, table.stride, U(start) + b * step, q, work)
        for i in range(U(64)):
            count[work[SUMS + i]] += 1
    share = k * 64 * blocks / m
    want = share + 2.5 * np.sqrt(share) + 2
    c = 0
    for t in range(bits + 1):
        c += count[t]
        if c >= want:
            return t
    return bits + 1
