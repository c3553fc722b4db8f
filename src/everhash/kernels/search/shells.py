"""Words grouped by nearest codeword, and inside a group sorted by distance to it: the shells.

If a codeword is r away from the query, a word h away from that codeword is at least |r - h| away
from the query. So a query looks only at the shells |r - h| <= T, which stand side by side.

A table `groups` (G, 4) has one row a group that holds words, in order of cycle: its cycle, its
first and last shell lo and hi, and `base` such that the words at distance h, lo <= h <= hi, are
edges[base + h] .. edges[base + h + 1]. The codewords are `centres` (W, G). They are those of the
time of building; the bound holds around any word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.search.scan import (
    Scratch,
    WordTable,
    guess,
    new_scratch,
    scan_rows,
    table_of,
)
from everhash.kernels.search.topk import (
    BELOW,
    HALF,
    LOOKED,
    LOW,
    ROOM,
    Best,
    I,
    Ints,
    Places,
    T,
    U,
    Words,
    begin,
    finish,
    new_best,
    popcount,
    sort_keys,
    write_counts,
)

CYCLE, FIRST, LAST, BASE = 0, 1, 2, 3
"""Columns of `groups`."""


class Shells(NamedTuple):
    """The groups of a segment, their codewords and where their shells begin."""

    core: Words
    """(W G,) the codewords, column after column."""
    groups: Ints
    edges: Ints


@inner
def shells_of(centres: Words, groups: Ints, edges: Ints) -> Shells:
    """Return the shells around centres (W, G)."""
    return Shells(centres.reshape(centres.size), groups, edges)


@inner
def words_of(shells: Shells, g: int) -> tuple[int, int]:
    """Where the words of a group begin and end."""
    base, edges = shells.groups[g, BASE], shells.edges
    return edges[base + shells.groups[g, FIRST]], edges[base + shells.groups[g, LAST] + 1]


@inner
def centre_distances(core: Words, groups: Ints, query: Words, rank: Ints) -> None:
    """rank[g] = distance of group g's codeword to the query's word of its cycle."""
    many = U(groups.shape[0])
    for g in range(many):
        cycle = groups[g, CYCLE]
        d = U(0)
        for w in range(U(query.shape[1])):
            d += popcount(core[w * many + g] ^ query[cycle, w])
        rank[g] = I(d)


@inner
def rank_groups(rank: Ints, count: Ints, order: Ints) -> None:
    """Stable counting sort of the groups by rank, 0 .. count.size - 3, into order."""
    for r in range(count.size):
        count[r] = 0
    for g in range(rank.size):
        count[rank[g] + 1] += 1
    for r in range(count.size - 1):
        count[r + 1] += count[r]
    for g in range(rank.size):
        r = rank[g]
        order[count[r]] = g
        count[r] += 1


@inner
def serving_order(shells: Shells, queries: Words, rank: Ints) -> Ints:
    """Queries by nearest group: neighbours then find its words in the cache."""
    nq, many = queries.shape[0], rank.size
    turns = np.empty(nq, np.int64)
    for j in range(nq):
        turns[j] = j
    if nq < 8:
        return turns
    home, count = np.empty(nq, np.int64), np.empty(many + 2, np.int64)
    for j in range(nq):
        centre_distances(shells.core, shells.groups, queries[j], rank)
        home[j] = 0
        for g in range(1, many):
            if rank[g] < rank[home[j]]:
                home[j] = g
    rank_groups(home, count, turns)
    return turns


@inner
def visit_shells(
    table: WordTable,
    shells: Shells,
    rank: Ints,
    order: Ints,
    query: Words,
    bits: int,
    best: Best,
    scratch: Scratch,
) -> None:
    """Offer every shell that may hold one of the k best, nearest groups first."""
    groups, edges, state = shells.groups, shells.edges, best.state
    for o in range(order.size):
        g = order[o]
        r, first, last, base = rank[g], groups[g, FIRST], groups[g, LAST], groups[g, BASE]
        outside = max(r - last, first - r)
        b = max(outside, 0)
        if b > state[T]:
            continue
        q = query[groups[g, CYCLE]]
        if state[T] <= bits:  # known or guessed: the shells within T stand side by side
            start = edges[base + max(first, r - state[T])]
            stop = edges[base + min(last, r + state[T]) + 1]
            scan_rows(table, start, stop, q, best, scratch)
            continue
        side = 0  # outwards from h = r, so that T falls early: r - b, r + b, r - b - 1, ...
        while b <= state[T] and (r - b >= first or r + b <= last):
            h = r + b if side else r - b
            if first <= h <= last and (b or not side):
                scan_rows(table, edges[base + h], edges[base + h + 1], q, best, scratch)
            b += side
            side = 1 - side


@kernel(
    "Tuple((i8[:, ::1], i8[:, ::1], i8))"
    "(u8[:, ::1], i8[::1], i8[::1], u4[::1], u4[::1], u8[:, ::1], i8[:, ::1], i8[::1], "
    "u8[:, :, ::1], i8, i8)"
)
def search_shells(
    columns: Words,
    lead: Ints,
    starts: Ints,
    posts: Places,
    word_of: Places,
    centres: Words,
    groups: Ints,
    edges: Ints,
    queries: Words,
    k: int,
    bits: int,
) -> tuple[Ints, Ints, int]:
    """Hamming top-k. See `reference.nearest_hamming`.

    Args:
        columns: (W, m + 64) distinct words, in order of group and shell.
        lead: (m,) a word's first place << 1 | it has more than one | how many << 32.
        starts: (m + 1,) where a word's places begin in posts.
        posts: (n,) places, ascending inside a word.
        word_of: (n,) the word of each place.
        centres: (W, G) a codeword for each group.
        groups: (G, 4) see above; G >= 1.
        edges: where the shells begin.
        queries: (q, n_cycles, W) a query's word in each cycle.
        k: results wanted, at least 1.
        bits: width of a word.

    Returns:
        (q, k) distances, (q, k) places, -1 where there are fewer; the number of words looked at.
    """
    nq, many = queries.shape[0], groups.shape[0]
    table, shells = table_of(columns, lead), shells_of(centres, groups, edges)
    best, scratch = new_best(k, bits + 3), new_scratch(0)
    distances, places = np.empty((nq, k), np.int64), np.empty((nq, k), np.int64)
    wide, count = np.empty(k + ROOM, np.int64), np.empty(bits + 3, np.int64)
    rank, order = np.empty(many, np.int64), np.empty(many, np.int64)
    looked = 0
    for j in serving_order(shells, queries, rank):
        query = queries[j]
        centre_distances(shells.core, groups, query, rank)
        rank_groups(rank, count, order)
        start, stop = words_of(shells, order[0])
        q = query[groups[order[0], CYCLE]]
        t = guess(table, start, stop, q, k, 16, count, scratch.work)
        while True:
            begin(best, t)
            visit_shells(table, shells, rank, order, query, bits, best, scratch)
            looked += best.state[LOOKED]
            if t > bits or best.state[T] < t or best.state[BELOW] + best.histogram[t] >= k:
                break
            t = bits + 1  # the guess was too bold
        m = finish(best, wide, best.state[T], starts, posts, word_of)
        write_counts(wide, m, distances[j], places[j])
    return distances, places, looked


@inner
def open_words(found: Ints, c: int, starts: Ints, posts: Places) -> tuple[Ints, Ints]:
    """Ranks and places, in order, of the entries of the words found[:c], each rank << 32 | word."""
    total = 0
    for f in range(c):
        word = found[f] & LOW
        total += starts[word + 1] - starts[word]
    keys, spare = np.empty(total, np.int64), np.empty(total, np.int64)
    m = I(0)
    for f in range(c):
        word = found[f] & LOW
        for p in range(starts[word], starts[word + 1]):
            keys[m] = ((found[f] >> HALF) << HALF) | I(posts[p])
            m += 1
    sort_keys(keys, m, spare)
    for i in range(m):
        spare[i] = keys[i] & LOW
        keys[i] >>= HALF
    return keys, spare


@kernel(
    "Tuple((i8[::1], i8[::1]))"
    "(u8[:, ::1], i8[::1], u4[::1], u8[:, ::1], i8[:, ::1], i8[::1], u8[:, ::1], i8)"
)
def within_shells(
    columns: Words,
    starts: Ints,
    posts: Places,
    centres: Words,
    groups: Ints,
    edges: Ints,
    query: Words,
    radius: int,
) -> tuple[Ints, Ints]:
    """Distances and places of all entries at most `radius` from one query (n_cycles, W), in order.

    The other arguments are those of `search_shells`.
    """
    words = U(query.shape[1])
    flat, stride = columns.reshape(columns.size), U(columns.shape[1])
    rank = np.empty(groups.shape[0], np.int64)
    centre_distances(centres.reshape(centres.size), groups, query, rank)
    found = np.empty(columns.shape[1], np.int64)
    c = I(0)
    for g in range(rank.size):
        r, base, cycle = rank[g], groups[g, BASE], groups[g, CYCLE]
        first, last = max(groups[g, FIRST], r - radius), min(groups[g, LAST], r + radius)
        if first > last:
            continue
        for i in range(U(edges[base + first]), U(edges[base + last + 1])):
            d = U(0)
            for w in range(words):
                d += popcount(flat[w * stride + i] ^ query[cycle, w])
            found[c] = (I(d) << HALF) | I(i)
            c += I(d) <= radius
    return open_words(found, c, starts, posts)


@kernel("void(u8[:, ::1], i8[::1], i8[::1], u8[:, :, ::1], i8[:, ::1])")
def hamming_at(columns: Words, at: Ints, cycles: Ints, queries: Words, out: Ints) -> None:
    """out[j, i] = distance of query j to word at[i], which belongs to cycles[i]."""
    for j in range(out.shape[0]):
        for i in range(at.size):
            d = U(0)
            for w in range(columns.shape[0]):
                d += popcount(columns[w, at[i]] ^ queries[j, cycles[i], w])
            out[j, i] = I(d)
