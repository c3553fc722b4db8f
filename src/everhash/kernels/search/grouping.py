"""Building a segment: words in order of their shells, and equal words brought together.

Words stand in a table (rows, n), a column each, whose last row is the key of the word's shell. The
columns are sorted one row at a time, the last row first, and each row only inside the runs in which
all rows before it were equal. Shells are small, so nearly all of the sorting happens in the cache;
and as every run is sorted by radix, no choice of words makes it slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.search.shells import rank_groups
from everhash.kernels.search.topk import HALF, I, Ints, Places, U, Words, popcount

Flags = NDArray[np.bool_]
Distances = NDArray[np.int32]

CHUNK, BLOCK = 16384, 1024
"""Entries that are put in order of cycle at once, and those that meet a codeword at once."""
FEW = 96
"""Pairs up to which comparing them is faster than counting their bytes."""


@inner
def meet_codewords(
    block: Words,
    m: Any,
    codewords: Words,
    low: int,
    high: int,
    far: Distances,
    group: Distances,
    d: Distances,
) -> None:
    """Distance and number of the first nearest of codewords low .. high, for m words of a block.

    A choice between two values, and distances of 32 bits: LLVM makes vector code of both.
    """
    for i in range(m):
        far[i], group[i] = 2**31 - 1, 0
    for g in range(low, high):
        x, c, number = block[0], codewords[g, 0], np.int32(g)
        for i in range(m):
            d[i] = np.int32(popcount(x[i] ^ c))
        for w in range(1, codewords.shape[1]):
            x, c = block[w], codewords[g, w]
            for i in range(m):
                d[i] += np.int32(popcount(x[i] ^ c))
        for i in range(m):
            group[i] = number if d[i] < far[i] else group[i]
            far[i] = min(d[i], far[i])


@kernel("void(u8[:, ::1], i8[::1], u8[:, ::1], i8[::1], i8)")
def shell_keys(table: Words, cycles: Ints, codewords: Words, starts: Ints, bits: int) -> None:
    """Write the last row of a table. See `reference.shell_keys`.

    Args:
        table: (W + 1, n) the words, and a row for the keys.
        cycles: (n,) cycle of each word.
        codewords: (L, W) in order of cycle, one or more each.
        starts: (n_cycles + 1,) where each cycle's codewords begin.
        bits: width of a word.
    """
    words, span = codewords.shape[1], U(bits + 1)
    count, turns = np.empty(starts.size + 1, np.int64), np.empty(CHUNK, np.int64)
    block = np.empty((words, BLOCK), np.uint64)
    far, group = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    d = np.empty(BLOCK, np.int32)
    for s in range(0, cycles.size, CHUNK):
        own, keys = cycles[s : s + CHUNK], table[words, s : s + CHUNK]
        rank_groups(own, count, turns)
        start = 0
        while start < own.size:
            cycle = own[turns[start]]
            stop = min(count[cycle], start + BLOCK)
            at, m = turns[start:stop], U(stop - start)
            for w in range(words):
                x, row = block[w], table[w, s : s + CHUNK]
                for i in range(m):
                    x[i] = row[U(at[i])]
            meet_codewords(block, m, codewords, starts[cycle], starts[cycle + 1], far, group, d)
            for i in range(m):
                keys[U(at[i])] = U(group[i]) * span + U(far[i])
            start = stop


@inner
def sort_few(keys: Words, ids: Places) -> None:
    """Insertion sort of pairs by key; stable, as are all sorts here."""
    for i in range(1, keys.size):
        x, p = keys[i], ids[i]
        j = i
        while j > 0 and keys[j - 1] > x:
            keys[j], ids[j] = keys[j - 1], ids[j - 1]
            j -= 1
        keys[j], ids[j] = x, p


@inner
def spread_pairs(
    keys: Words, ids: Places, shift: Any, count: Words, to_keys: Words, to_ids: Places
) -> None:
    """One pass of the radix sort: a counting sort by the byte at `shift`."""
    n, byte = U(keys.size), U(255)
    for v in range(U(256)):
        count[v] = 0
    for i in range(n):
        count[(keys[i] >> shift) & byte] += U(1)
    at = U(0)
    for v in range(U(256)):
        at += count[v]
        count[v] = at - count[v]
    for i in range(n):
        v = (keys[i] >> shift) & byte
        to_keys[count[v]], to_ids[count[v]] = keys[i], ids[i]
        count[v] += U(1)


@inner
def sort_pairs(keys: Words, ids: Places, spare: Words, spare_ids: Places, count: Words) -> None:
    """Sort pairs by key: by radix, on the bytes that differ."""
    n = U(keys.size)
    if n <= FEW:
        sort_few(keys, ids)
        return
    differ, falls, passes = U(0), U(0), U(0)
    for i in range(U(1), n):
        differ |= keys[i] ^ keys[0]
        falls += U(keys[i] < keys[i - U(1)])
    if not falls:
        return
    source, own, to, to_own = keys, ids, spare, spare_ids
    for shift in range(U(0), U(64), U(8)):
        if (differ >> shift) & U(255):
            spread_pairs(source, own, shift, count, to, to_own)
            source, own, to, to_own = to, to_own, source, own
            passes ^= U(1)
    if passes:
        for i in range(n):
            keys[i], ids[i] = spare[i], spare_ids[i]


@kernel("i8(u8[:, ::1], u4[::1], b1[::1])")
def sort_columns(table: Words, order: Places, new: Flags) -> int:
    """Sort the columns of a table in place, by the last row first. See `reference.sort_columns`.

    Args:
        table: (rows, n).
        order: (n,) out: where each column stood, ascending among equal ones.
        new: (n,) out: whether a column differs from the one before.

    Returns:
        The number of distinct columns.
    """
    n, last = table.shape[1], table.shape[0] - 1
    spare, spare_order = np.empty(n, np.uint64), np.empty(n, np.uint32)
    count, distinct = np.empty(256, np.uint64), 0
    for i in range(n):
        order[i], new[i] = i, i == 0
    for r in range(last, -1, -1):
        row = table[r]
        if r < last:
            for i in range(n):
                spare[i] = row[order[i]]
            for i in range(n):
                row[i] = spare[i]
        start = 0
        for stop in range(1, n + 1):
            if stop == n or new[stop]:
                if stop > start + 1:
                    sort_pairs(row[start:stop], order[start:stop], spare[start:stop],
                               spare_order[start:stop], count)  # fmt: skip
                start = stop
        distinct = min(n, 1)
        for i in range(1, n):
            new[i] |= row[i] != row[i - 1]
            distinct += new[i]
    return distinct


@kernel("void(u8[:, ::1], u4[::1], b1[::1], u8[:, ::1], i8[::1], i8[::1], u4[::1])")
def lay_out(
    table: Words,
    order: Places,
    new: Flags,
    columns: Words,
    lead: Ints,
    starts: Ints,
    word_of: Places,
) -> None:
    """Write the last four, as `search_shells` wants them. See `reference.lay_out`.

    The others are those of `sort_columns`; the last row of the table, the keys, is cut down to the
    distinct words like the columns are.
    """
    last = table.shape[0] - 1
    for r in range(last + 1):
        row, out = table[r], columns[r] if r < last else table[r]
        w = -1
        for i in range(new.size):
            w += new[i]
            out[w] = row[i]
    w = -1
    for i in range(new.size):
        w += new[i]
        starts[w + 1] = i + 1
        word_of[order[i]] = w
    starts[0] = 0
    for w in range(lead.size):
        many = starts[w + 1] - starts[w]
        lead[w] = (I(order[starts[w]]) << I(1)) | I(many > 1) | (many << HALF)
