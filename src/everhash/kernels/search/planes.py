"""All words, for a batch of queries, where pruning does not pay.

A tile of 64 x LANES words is turned into bit planes once for all queries. Then the distances of one
query to 256 words at a time are counted in carry-save form: 64 xors and 63 full adders for 4 words
of lanes, no popcount and no sum for each word. From some 64 queries on this beats the scan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.kernels.compiling import inlined, inner, kernel
from everhash.kernels.search.scan import (
    Scratch,
    WordTable,
    guess,
    measure,
    new_scratch,
    scan_rows,
    table_of,
)
from everhash.kernels.search.topk import (
    BELOW,
    ROOM,
    STATE,
    Best,
    Ints,
    Places,
    T,
    U,
    Words,
    begin,
    finish,
    lowest,
    offer,
    write_counts,
)

LANES = 32  # 16 KiB of planes: twice as many leave the first cache
TILE = 64 * LANES
L: Any = U(LANES)
QUERIES = 128
"""Queries a call, at most: their masks then stay in the second cache."""
SAMPLE = 32
"""Blocks of 64 words from which T is guessed."""


@inner
def to_planes(tile: Words, planes: Words) -> None:
    """Transpose bits: tile[r * LANES + i] bit t -> planes[t * LANES + i] bit r."""
    for i in range(TILE):
        planes[i] = tile[i]
    j = 32
    mask = U(0x00000000FFFFFFFF)
    while j:
        shift = U(j)
        r = 0
        while r < 64:
            a = planes[r * LANES : (r + 1) * LANES]
            b = planes[(r + j) * LANES : (r + j + 1) * LANES]
            for i in range(LANES):
                x = ((a[i] >> shift) ^ b[i]) & mask
                b[i] ^= x
                a[i] ^= x << shift
            r = (r + j + 1) & ~j
        j >>= 1
        mask ^= mask << U(j)


@inlined
def add(a: Any, b: Any, c: Any) -> Any:
    """A full adder: carry, sum."""
    x = a ^ b
    return (a & b) | (x & c), x ^ c


@inlined
def add8(p: Words, i: Any, m: Words, o: Any, one: Any, two: Any, four: Any) -> Any:
    """Add the eight planes from o on (xor masks) at lane i; also return the carry of weight 8."""
    i += o * L
    ta, one = add(one, p[i] ^ m[o], p[i + L] ^ m[o + U(1)])
    tb, one = add(one, p[i + U(2) * L] ^ m[o + U(2)], p[i + U(3) * L] ^ m[o + U(3)])
    fa, two = add(two, ta, tb)
    ta, one = add(one, p[i + U(4) * L] ^ m[o + U(4)], p[i + U(5) * L] ^ m[o + U(5)])
    tb, one = add(one, p[i + U(6) * L] ^ m[o + U(6)], p[i + U(7) * L] ^ m[o + U(7)])
    fb, two = add(two, ta, tb)
    eight, four = add(four, fa, fb)
    return one, two, four, eight


@inlined
def add32(p: Words, i: Any, m: Words, o: Any, one: Any, two: Any, four: Any, eight: Any) -> Any:
    """`add8` for the 32 planes from o on; also return the two carries of weight 16."""
    one, two, four, x = add8(p, i, m, o, one, two, four)
    one, two, four, y = add8(p, i, m, o + U(8), one, two, four)
    u, eight = add(eight, x, y)
    one, two, four, x = add8(p, i, m, o + U(16), one, two, four)
    one, two, four, y = add8(p, i, m, o + U(24), one, two, four)
    v, eight = add(eight, x, y)
    return one, two, four, eight, u, v


@inner
def add_word(p: Words, m: Words, acc: Words) -> None:
    """Add the 64 planes p, each xored with its mask m[t], into counters.

    acc[0..6] hold bits 0..6 of each lane's count (LANES words each); acc[7] takes the carry of
    weight 128, which the caller sends on. One flat array with constant offsets: as sixteen arrays
    the planes exceed LLVM's limit of alias checks and the loop stays scalar.
    """
    for i in range(L):
        one, two, four, eight = acc[i], acc[i + L], acc[i + U(2) * L], acc[i + U(3) * L]
        one, two, four, eight, u, v = add32(p, i, m, U(0), one, two, four, eight)
        z, s16 = add(acc[i + U(4) * L], u, v)
        one, two, four, eight, u, v = add32(p, i, m, U(32), one, two, four, eight)
        y, s16 = add(s16, u, v)
        x, s32 = add(acc[i + U(5) * L], z, y)
        s64 = acc[i + U(6) * L]
        acc[i], acc[i + L], acc[i + U(2) * L], acc[i + U(3) * L] = one, two, four, eight
        acc[i + U(4) * L], acc[i + U(5) * L] = s16, s32
        acc[i + U(6) * L] = s64 ^ x
        acc[i + U(7) * L] = s64 & x


@inner
def carry_on(acc: Words, plane: Any, carry: Any) -> None:
    """Add the plane at `carry` into plane number `plane`, and leave what carries over there."""
    for i in range(L):
        x, y = acc[plane * L + i], acc[carry * L + i]
        acc[plane * L + i] = x ^ y
        acc[carry * L + i] = x & y


@inner
def count_tile(planes: Words, masks: Words, t: int, high: int, acc: Words) -> bool:
    """Mark in plane `high` of acc the lanes whose distance is t or more; true if some are below.

    A counter starts at 2**high - t, so its bit `high` is set in the end exactly if distance >= t.
    """
    first = U((1 << high) - t)
    for b in range(U(high + 1)):
        x = U(0) - ((first >> b) & U(1))
        for i in range(L):
            acc[b * L + i] = x
    words = masks.size >> 6
    if words == 1:
        add_word(planes, masks, acc)
    else:
        carry = U(high + 1)
        for w in range(words):
            for i in range(L):  # park plane 7 while add_word uses its place for the carry
                acc[carry * L + i] = acc[U(7) * L + i]
            add_word(planes[w * TILE : (w + 1) * TILE], masks[w * 64 : (w + 1) * 64], acc)
            for b in range(U(7), U(high + 1)):
                carry_on(acc, b, carry)
    near = U(0)
    for i in range(L):
        near |= ~acc[U(high) * L + i]
    return bool(near != U(0))


@inner
def spread_bits(queries: Words, cycle: int, masks: Words) -> None:
    """masks[j, t] = all ones where bit t of query j's word of this cycle is set."""
    for j in range(masks.shape[0]):
        for t in range(masks.shape[1]):
            masks[j, t] = U(0) - ((queries[j, cycle, t >> 6] >> U(t & 63)) & U(1))


@inner
def largest_range(edges: Ints) -> int:
    """The number of the longest of the ranges edges[i] .. edges[i + 1]."""
    best = 0
    for i in range(edges.size - 1):
        if edges[i + 1] - edges[i] > edges[best + 1] - edges[best]:
            best = i
    return best


@inner
def lanes_below(acc: Words, high: int, first: int, waiting: Words, c: int) -> int:
    """Append the words whose lane is not marked to waiting[c:]; return how many wait then."""
    for i in range(L):
        hit = ~acc[U(high) * L + i]
        while hit:
            waiting[c] = U(first) + lowest(hit) * L + i
            hit &= hit - U(1)
            c += 1
    return c


@inner
def row_of(every: Best, j: int) -> Best:
    """The best of query j, out of arrays with a row for each query."""
    return Best(every.k, every.keys[j], every.spare, every.histogram[j], every.state[j])


@inner
def scan_cycle(
    columns: Words,
    s: int,
    e: int,
    queries: Words,
    cycle: int,
    table: WordTable,
    high: int,
    every: Best,
    scratch: Scratch,
) -> None:
    """Offer words s .. e, all of one cycle, to every query's top-k (a row each)."""
    nq, words = queries.shape[0], columns.shape[0]
    (flat, stride, lead), (_, candidates, notes) = table, scratch
    masks, waiting = np.empty((nq, 64 * words), np.uint64), np.empty((nq, TILE + 32), np.uint64)
    planes = np.empty(words * TILE, np.uint64)
    acc = np.empty((high + 2) * LANES, np.uint64)  # bits 0..high and a carry
    held = np.zeros(nq, np.int64)
    spread_bits(queries, cycle, masks)
    while s + TILE <= e:
        for w in range(words):
            to_planes(columns[w, s : s + TILE], planes[w * TILE : (w + 1) * TILE])
        for j in range(nq):
            if count_tile(planes, masks[j], every.state[j, T] + 1, high, acc):
                c = lanes_below(acc, high, s, waiting[j], held[j])
                held[j] = c
                if c >= 32:  # a row view for each hit would cost more than the hit
                    best, q = row_of(every, j), queries[j, cycle]
                    measure(flat, stride, lead, waiting[j], 0, c, q, candidates, notes)
                    offer(candidates, notes, c, best)
                    held[j] = 0
        s += TILE
    for j in range(nq):
        best, q = row_of(every, j), queries[j, cycle]
        measure(flat, stride, lead, waiting[j], 0, held[j], q, candidates, notes)
        offer(candidates, notes, held[j], best)
        scan_rows(table, s, e, q, best, scratch)


@kernel(
    "Tuple((i8[:, ::1], i8[:, ::1]))"
    "(u8[:, ::1], i8[::1], i8[::1], u4[::1], u4[::1], i8[::1], u8[:, :, ::1], i8, i8)"
)
def search_planes(
    columns: Words,
    lead: Ints,
    starts: Ints,
    posts: Places,
    word_of: Places,
    cycle_starts: Ints,
    queries: Words,
    k: int,
    bits: int,
) -> tuple[Ints, Ints]:
    """Hamming top-k of up to QUERIES queries over all words; equals `shells.search_shells`.

    Args and results as there; cycle_starts (n_cycles + 1,) is where each cycle's words begin.
    """
    nq, cycles = queries.shape[0], queries.shape[1]
    table, scratch = table_of(columns, lead), new_scratch(0)
    high = 7
    while (1 << high) <= bits + 2:
        high += 1
    distances, places = np.empty((nq, k), np.int64), np.empty((nq, k), np.int64)
    keys, spare = np.empty((nq, k + ROOM), np.int64), np.empty(k + ROOM, np.int64)
    histogram, state = np.empty((nq, bits + 3), np.int64), np.empty((nq, STATE), np.int64)
    every = Best(k, keys, spare, histogram, state)
    wide, count = np.empty(k + ROOM, np.int64), np.empty(bits + 3, np.int64)
    guessed = np.empty(nq, np.int64)
    largest = largest_range(cycle_starts)
    for j in range(nq):
        s, e = cycle_starts[largest], cycle_starts[largest + 1]
        guessed[j] = guess(table, s, e, queries[j, largest], k, SAMPLE, count, scratch.work)
        begin(row_of(every, j), guessed[j])
    for c in range(cycles):
        s, e = cycle_starts[c], cycle_starts[c + 1]
        scan_cycle(columns, s, e, queries, c, table, high, every, scratch)
    for j in range(nq):
        t, best = guessed[j], row_of(every, j)
        if t <= bits and state[j, T] == t and state[j, BELOW] + histogram[j, t] < k:
            begin(best, bits + 1)  # the guess was too bold
            for c in range(cycles):
                s, e = cycle_starts[c], cycle_starts[c + 1]
                scan_rows(table, s, e, queries[j, c], best, scratch)
        m = finish(best, wide, state[j, T], starts, posts, word_of)
        write_counts(wide, m, distances[j], places[j])
    return distances, places
