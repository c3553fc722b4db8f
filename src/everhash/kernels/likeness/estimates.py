"""Cosines estimated from likeness codes, and the searches of all entries by them.

Entries are taken in tiles whose words are laid out by word, not by entry: popcounts of one word of
many entries are then vector code. A tile is laid out once for all queries of a call.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.likeness.reference import SLACK, SURE
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
Bytes = NDArray[np.uint8]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32

TILE = 256
"""Entries compared at a time."""
SPARE = 256
"""Results held beyond k, at least, before they are cut back to k."""


class Tile(NamedTuple):
    """Some entries, and what one query makes of them."""

    words: Words
    """(W * TILE,) word w of entry i at w * TILE + i."""
    along: Floats
    scale: Floats
    products: Ints
    """(TILE,) room for sums."""
    cosines: Floats
    """(TILE,) estimates."""


@inner
def new_tile(n_words: int) -> Tile:
    """Room for a tile; what no entry fills stays zero."""
    along, scale = np.zeros(TILE, np.float32), np.zeros(TILE, np.float32)
    words, products = np.zeros(n_words * TILE, np.uint64), np.zeros(TILE, np.int64)
    return Tile(words, along, scale, products, np.zeros(TILE, np.float32))


@inner
def lay_out(codes: Words, first: int, m: int, tile: Tile) -> None:
    """Copy entries first .. first + m into a tile."""
    row, to = U(codes.shape[1]), tile.words
    flat = codes.reshape(codes.size)[U(first) * row : (U(first) + U(m)) * row]
    for w in range(row - U(1)):
        column = to[w * U(TILE) : (w + U(1)) * U(TILE)]
        for i in range(U(m)):
            column[i] = flat[i * row + w]
    floats, along, scale = flat.view(np.float32), tile.along, tile.scale
    for i in range(U(m)):
        end = U(2) * (i + U(1)) * row
        along[i], scale[i] = floats[end - U(2)], floats[end - U(1)]


@inner
def gather(codes: Words, places: Ints, m: int, tile: Tile) -> None:
    """Copy the entries at places[:m] into a tile."""
    row, to = U(codes.shape[1]), tile.words
    flat = codes.reshape(codes.size)
    for i in range(U(m)):
        prefetch(flat, U(places[i]) * row)
        prefetch(flat, U(places[i]) * row + row - U(1))
    for w in range(row - U(1)):
        column = to[w * U(TILE) : (w + U(1)) * U(TILE)]
        for i in range(U(m)):
            column[i] = flat[U(places[i]) * row + w]
    floats, along, scale = flat.view(np.float32), tile.along, tile.scale
    for i in range(U(m)):
        end = U(2) * (U(places[i]) + U(1)) * row
        along[i], scale[i] = floats[end - U(2)], floats[end - U(1)]


@inner
def estimate(tile: Tile, m: int, planes: Words, total: int, q_along: Any, q_step: Any) -> None:
    """Estimate the cosines of one query with the first m entries of a tile."""
    products, cosines, along, scale = tile.products, tile.cosines, tile.along, tile.scale
    many, start = U(m), I(total)
    for i in range(many):
        products[i] = 0
    for w in range(planes.shape[1]):
        x = tile.words[w * TILE : (w + 1) * TILE]
        p0, p1, p2, p3 = planes[0, w], planes[1, w], planes[2, w], planes[3, w]
        p4, p5, p6, p7 = planes[4, w], planes[5, w], planes[6, w], planes[7, w]
        for i in range(many):
            s = I(popcount(x[i] & p6)) - (I(popcount(x[i] & p7)) << I(1))
            s = (s << I(1)) + I(popcount(x[i] & p5))
            s = (s << I(1)) + I(popcount(x[i] & p4))
            s = (s << I(1)) + I(popcount(x[i] & p3))
            s = (s << I(1)) + I(popcount(x[i] & p2))
            s = (s << I(1)) + I(popcount(x[i] & p1))
            s = (s << I(1)) + I(popcount(x[i] & p0))
            products[i] += s
    for i in range(many):
        T = F4(np.int32((products[i] << I(1)) - start))
        cosine = q_along * along[i] + (q_step * T) * scale[i]
        cosine = cosine if cosine < F4(1) else F4(1)
        cosine = cosine if cosine > F4(-1) else F4(-1)
        cosines[i] = cosine + F4(0)  # -0 becomes 0


@kernel("void(u8[:, ::1], i8[::1], u8[:, :, ::1], i8[::1], f4[::1], f4[::1], f4[:, ::1])")
def estimates_at(
    codes: Words,
    places: Ints,
    planes: Words,
    totals: Ints,
    q_along: Floats,
    q_step: Floats,
    out: Floats,
) -> None:
    """Write the (q, m) estimates of the entries at `places`. See `reference.estimates`."""
    tile = new_tile(codes.shape[1] - 1)
    for first in range(0, places.size, TILE):
        m = min(TILE, places.size - first)
        gather(codes, places[first : first + m], m, tile)
        for j in range(totals.size):
            estimate(tile, m, planes[j], totals[j], q_along[j], q_step[j])
            part, cosines = out[j, first : first + m], tile.cosines
            for i in range(m):
                part[i] = cosines[i]


@inner
def keep(cosines: Floats, alive: Bytes, first: int, keys: Ints, state: Ints, spare: Ints) -> None:
    """Take those of a tile that may be among the k best; `state` is how many are held, and k.

    A key is `~rank << 32 | place`, so that sorting keys sorts results. When there is no room, keys
    are cut back to the best k; since places ascend, only what exceeds the k-th enters from then on.
    """
    n, k, floor = state[0], state[1], rank_float(state[2])
    if n + alive.size > keys.size:
        sort_keys(keys, n, spare)
        n = k
        state[2] = ~(keys[k - 1] >> HALF)
        floor = rank_float(state[2])
    some = 0
    for i in range(U(alive.size)):
        some |= (cosines[i] > floor) & (alive[i] != 0)
    if some:
        for i in range(U(alive.size)):  # no branches: whether an entry enters is a coin toss
            keys[n] = (~float_rank(cosines[i]) << HALF) | (I(first) + I(i))
            n += (cosines[i] > floor) & (alive[i] != 0)
    state[0] = n


@kernel(
    "Tuple((f4[:, ::1], i8[:, ::1]))"
    "(u8[:, ::1], u1[::1], u8[:, :, ::1], i8[::1], f4[::1], f4[::1], i8)"
)
def nearest_likeness(
    codes: Words,
    alive: Bytes,
    planes: Words,
    totals: Ints,
    q_along: Floats,
    q_step: Floats,
    k: int,
) -> tuple[Floats, Ints]:
    """Top-k of the living entries by (estimate descending, place).

    See `reference.nearest_likeness`.

    Args:
        codes: (n, W + 1) likeness codes by place; see `reference.join`.
        alive: (n,) 0 where an entry was removed.
        planes: (q, 8, W) likeness codes of queries.
        totals: (q,) likewise.
        q_along: (q,) likewise.
        q_step: (q,) likewise.
        k: results wanted, at least 1.

    Returns:
        (q, k) estimates and places; -inf and -1 where there are fewer.
    """
    n, nq = codes.shape[0], totals.size
    scores, places = np.empty((nq, k), np.float32), np.empty((nq, k), np.int64)
    room = k + max(k, SPARE) + TILE
    keys, spare = np.empty((nq, room), np.int64), np.empty(room, np.int64)
    state = np.empty((nq, 3), np.int64)
    for j in range(nq):
        state[j, 0], state[j, 1], state[j, 2] = 0, k, float_rank(F4(-np.inf))
    tile = new_tile(codes.shape[1] - 1)
    for first in range(0, n, TILE):
        m = min(TILE, n - first)
        lay_out(codes, first, m, tile)
        for j in range(nq):
            estimate(tile, m, planes[j], totals[j], q_along[j], q_step[j])
            keep(tile.cosines, alive[first : first + m], first, keys[j], state[j], spare)
    for j in range(nq):
        sort_keys(keys[j], state[j, 0], spare)
        for i in range(k):
            there = i < state[j, 0]
            scores[j, i] = rank_float(~(keys[j, i] >> HALF)) if there else F4(-np.inf)
            places[j, i] = keys[j, i] & LOW if there else I(-1)
    return scores, places


@kernel("i8[::1](u8[:, ::1], u1[::1], u8[:, ::1], i8, f4, f4, f4, i8, f4)")
def above_likeness(
    codes: Words,
    alive: Bytes,
    planes: Words,
    total: int,
    q_along: Any,
    q_step: Any,
    q_rest: Any,
    size: int,
    floor: Any,
) -> Ints:
    """Places, ascending, of living entries whose cosine with one query may reach `floor`.

    See `reference.above_likeness`. `planes` is (8, W), `size` the coordinates of the rotation.
    """
    found = np.empty(alive.size + 1, np.int64)
    n = 0
    turned, steps = F4(SURE / math.sqrt(size - 1)), q_step * F4(size / 2)
    tile, one, most = new_tile(codes.shape[1] - 1), F4(1), F4(size)
    for first in range(0, alive.size, TILE):
        m = min(TILE, alive.size - first)
        lay_out(codes, first, m, tile)
        estimate(tile, m, planes, total, q_along, q_step)
        living, cosines = alive[first : first + m], tile.cosines
        some_along, some_scale = tile.along, tile.scale
        for i in range(U(m)):
            a, s = some_along[i], some_scale[i]
            spread = most * (s * s) - (one - a * a)
            spread = np.sqrt(spread if spread > F4(0) else F4(0)) * turned
            bound = (q_rest * spread + steps * s) + F4(SLACK)
            found[n] = I(first) + I(i)
            n += (cosines[i] + bound >= floor) & (living[i] != 0)
    return found[:n].copy()
