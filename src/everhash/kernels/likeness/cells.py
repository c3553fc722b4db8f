"""The search of cells: lists of entries around centroids, the most promising lists first.

A query looks into `first` cells, then into a quarter as many more, and so on, until no other cell
is expected to hold an entry that is better than the k-th best so far. In each round

    1. the signs of all entries of its cells are compared by Hamming distance, and some hundreds
       of the nearest so far go on;
    2. their cosines are estimated, with the query in 8 bits a coordinate;
    3. those whose estimate, and `sigmas` standard deviations of its error, reach the k-th best
       cosine are compared by their features, the likeliest first.

Signs stand in blocks of 64 entries, laid out by word, so that popcounts are vector code. The blocks
of a cell are a chain. `reference.search_cells` is the specification.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.likeness.cell_lists import BLOCK, Lists
from everhash.kernels.likeness.cosines import cosine
from everhash.kernels.likeness.estimates import TILE, Tile, estimate, gather, new_tile
from everhash.kernels.likeness.heap import Best, push, worst, write
from everhash.kernels.search.topk import (
    HALF,
    LOW,
    I,
    float_rank,
    popcount,
    prefetch,
    rank_float,
    sort_keys,
)

Floats = NDArray[np.float32]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Int32 = NDArray[np.int32]
Halves = NDArray[np.uint16]
Bytes = NDArray[np.uint8]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32

QUARTER, LEAST = 4, 2
"""A round looks into a quarter as many cells as all before it, but at least two."""
LINE = U(32)
"""Halves of a cache line."""
AHEAD = 4
"""Rows whose features are asked for before they are needed."""


class Near(NamedTuple):
    """The entries of a round that may be among the nearest by Hamming distance."""

    distances: NDArray[np.uint16]
    places: Int32
    histogram: Ints
    """Entries met in all rounds, by distance, as far as they are within the limit."""
    limit: Ints
    """The smallest distance within which there are enough entries, and how many there are."""


@inner
def scan(lists: Lists, cell: int, sign: Words, allowed: Bytes, near: Near, n: int) -> int:
    """Measure the Hamming distances of a cell's entries; append the near ones to the first n."""
    distances, places, histogram, limit = near
    block, found = lists.heads[cell], np.zeros(BLOCK, np.uint64)
    while block >= 0:
        words, here = lists.words[block], lists.places[block]
        block = lists.following[block]
        if block >= 0:
            ask_for(lists, block)
        for i in range(U(BLOCK)):
            found[i] = U(0)
        for w in range(U(sign.size)):
            column, mine = words[w * U(BLOCK) : (w + U(1)) * U(BLOCK)], sign[w]
            for i in range(U(BLOCK)):
                found[i] += popcount(column[i] ^ mine)
        furthest, before = U(limit[0]), n
        for i in range(U(BLOCK)):
            if found[i] <= furthest and here[i] >= 0:
                if allowed.size and allowed[here[i]] == 0:
                    continue
                distances[n], places[n] = np.uint16(found[i]), here[i]
                histogram[found[i]] += 1
                n += 1
        limit[1] += n - before
    return n


@inner
def ask_for(lists: Lists, block: int) -> None:
    """Ask for a block before it is needed: the blocks of a cell stand anywhere in memory."""
    words, places = lists.words[block], lists.places[block]
    for line in range(U(0), U(words.size), U(8)):
        prefetch(words, line)
    for line in range(U(0), U(places.size), U(16)):
        prefetch(places, line)


@inner
def tighten(near: Near, wanted: int) -> None:
    """Lower the limit while there are enough entries within the next smaller one."""
    histogram, limit = near.histogram, near.limit
    while limit[0] > 0 and limit[1] - histogram[limit[0]] >= wanted:
        limit[1] -= histogram[limit[0]]
        limit[0] -= 1


@inner
def shortlist(near: Near, n: int) -> int:
    """Move the entries within the limit to the front; return how many there are."""
    distances, places, furthest, m = near.distances, near.places, near.limit[0], 0
    for i in range(U(n)):
        places[m] = places[i]
        m += distances[i] <= furthest
    return m


class Pages(NamedTuple):
    """The features of entries."""

    halves: Halves
    """(slots, d)"""
    slots: Int32
    """(n,) by place."""


@inner
def rank(
    codes: Words,
    near: Near,
    m: int,
    tile: Tile,
    query: tuple[Words, int, Any, Any, Any],
    floor: Any,
    keys: Ints,
) -> int:
    """Write `~rank << 32 | position` of the shortlisted that may reach `floor`; return how many."""
    planes, total, along, step, rest = query
    size, one = F4(near.histogram.size - 1), F4(1)
    turned, chosen = rest / F4(math.sqrt(near.histogram.size - 2)), np.empty(TILE, np.int64)
    found = 0
    for start in range(0, m, TILE):
        many = min(TILE, m - start)
        for i in range(many):
            chosen[i] = near.places[start + i]
        gather(codes, chosen[:many], many, tile)
        estimate(tile, many, planes, total, along, step)
        cosines, alongs, scales = tile.cosines, tile.along, tile.scale
        for i in range(U(many)):
            spread = size * (scales[i] * scales[i]) - (one - alongs[i] * alongs[i])
            spread = np.sqrt(spread if spread > F4(0) else F4(0)) * turned
            reach = cosines[i] + spread + F4(0)
            keys[found] = (~float_rank(reach) << HALF) | (I(start) + I(i))
            found += reach >= floor
    return found


@inner
def compare(pages: Pages, near: Near, keys: Ints, m: int, query: Floats, best: Best) -> int:
    """Compare entries by their features, the likeliest first; return how many were."""
    halves, slots, places = pages.halves, pages.slots, near.places
    flat, d = halves.reshape(halves.size), U(halves.shape[1])
    for i in range(m):
        if rank_float(~(keys[i] >> HALF)) < worst(best):
            return i
        if i + AHEAD < m:
            coming = U(slots[places[keys[i + AHEAD] & LOW]]) * d
            for line in range(U(0), d, LINE):
                prefetch(flat, coming + line)
        place = places[keys[i] & LOW]
        found = cosine(halves[slots[place]], query)
        push(best, (~float_rank(found) << HALF) | I(place))
    return m


class Query(NamedTuple):
    """One query: its signs, what estimates need of it, and itself."""

    sign: Words
    coded: tuple[Words, int, Any, Any, Any]
    row: Floats


@inner
def one_round(
    lists: Lists,
    pages: Pages,
    codes: Words,
    allowed: Bytes,
    cells: Ints,
    query: Query,
    near: Near,
    wanted: int,
    best: Best,
    tile: Tile,
) -> None:
    """Look into some cells; see the module."""
    n = 0
    for i in range(cells.size):
        n = scan(lists, cells[i] & LOW, query.sign, allowed, near, n)
        tighten(near, wanted)
    m = shortlist(near, n)
    keys = np.empty(2 * m + 2, np.int64)
    m = rank(codes, near, m, tile, query.coded, worst(best), keys)
    sort_keys(keys, m, keys[m:])
    compare(pages, near, keys, m, query.row, best)


@inner
def by_bounds(bounds: Floats, order: Ints, spare: Ints) -> None:
    """Write the cells, the most promising first, into the low halves of `order`."""
    for cell in range(bounds.size):
        order[cell] = (~float_rank(bounds[cell] + F4(0)) << HALF) | I(cell)
    sort_keys(order, bounds.size, spare)


@inner
def next_cells(order: Ints, start: int, stop: int, best: Best) -> int:
    """Return where the cells end, from `start` to at most `stop`, that may hold a better entry."""
    floor = worst(best)
    for i in range(start, min(stop, order.size)):
        if rank_float(~(order[i] >> HALF)) < floor:
            return i
    return min(stop, order.size)


@inner
def signs_of(planes: Words, size: int) -> Words:
    """Return the signs of a query, from the plane that has them."""
    sign: Words = ~planes[7]
    if size & 63:
        sign[-1] &= (U(1) << U(size & 63)) - U(1)
    return sign


@kernel(
    "Tuple((f4[:, ::1], i8[:, ::1], i8[::1]))"
    "(u8[:, ::1], i4[:, ::1], i4[::1], i4[::1], i4[::1], f4[:, ::1], u1[::1],"
    " u8[:, ::1], u8[:, :, ::1], i8[::1], f4[::1], f4[::1], f4[::1], i8,"
    " u2[:, ::1], i4[::1], f4[:, ::1], i8, i8, i8, f4)"
)
def search_cells(
    words: Words,
    places: Int32,
    following: Int32,
    heads: Int32,
    sizes: Int32,
    bounds: Floats,
    allowed: Bytes,
    codes: Words,
    planes: Words,
    totals: Ints,
    q_along: Floats,
    q_step: Floats,
    q_rest: Floats,
    size: int,
    halves: Halves,
    slots: Int32,
    queries: Floats,
    k: int,
    first: int,
    wanted: int,
    sigmas: Any,
) -> tuple[Floats, Ints, Ints]:
    """The k best entries by cosine, as far as cells are looked into; see the module.

    The first five arrays are `Lists`; `bounds` (q, cells) say how large a cosine is expected in a
    cell at the most; `allowed` (n,) is 0 where an entry is not searched, and empty if all are;
    `codes` are those of entries by place; the next five are codes of queries, in a rotation
    of `size` coordinates; `halves` and `slots` are `Pages`; `queries` (q, d) have unit length.
    `first` cells are looked into in the first round, `wanted` entries kept by Hamming distance, and
    an estimate may be too low by `sigmas` standard deviations.

    Returns:
        (q, k) cosines and places, padded with -inf and -1, and (q,) cells looked into.
    """
    nq, n_cells = queries.shape[0], heads.size
    lists, pages = Lists(words, places, following, heads, sizes), Pages(halves, slots)
    scores, found = np.empty((nq, k), np.float32), np.empty((nq, k), np.int64)
    looked, spare = np.empty(nq, np.int64), np.empty(max(n_cells, k), np.int64)
    order, tile = np.empty(n_cells, np.int64), new_tile(codes.shape[1] - 1)
    room, histogram, limit = places.size, np.empty(size + 1, np.int64), np.empty(2, np.int64)
    near = Near(np.empty(room, np.uint16), np.empty(room, np.int32), histogram, limit)
    for j in range(nq):
        by_bounds(bounds[j], order, spare)
        best = Best(np.empty(k, np.int64), np.zeros(1, np.int64))
        coded = (planes[j], totals[j], q_along[j], q_step[j], q_rest[j] * sigmas)
        query = Query(signs_of(planes[j], size), coded, queries[j])
        histogram[:], limit[0], limit[1] = 0, size, 0
        start, stop = 0, min(first, n_cells)
        while start < stop:
            cells = order[start:stop]
            one_round(lists, pages, codes, allowed, cells, query, near, wanted, best, tile)
            more = stop + max(LEAST, stop // QUARTER)
            start, stop = stop, next_cells(order, stop, more, best)
        looked[j] = start
        write(best, scores[j], found[j], spare)
    return scores, found, looked
