"""Search in the posting lists of `labels`: rank the labels, then emit their entries.

Labels are taken level by level, a level being all that are equally far; inside a level places are
merged. The cost does not depend on the number of entries. Where an entry may have several labels,
`seen` is a hash table of the places emitted so far; where none has, it is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.search.labels import LENGTH, START, Arena
from everhash.kernels.search.topk import (
    HALF,
    LOW,
    NOBODY,
    I,
    Ints,
    U,
    Words,
    lowest,
    popcount,
    sort_keys,
)

LEVELS = 8
"""Levels found by a pass over the labels each, before all labels are sorted instead."""
ABSENT = I(2**40)
"""Added to the distance of a label that has no entries."""
INDEX = I(31)
"""Bits of a key below the place: the number of the list inside its level."""


@inner
def slot(seen: Ints, place: int) -> int:
    """Where `place` stands in the hash table, or the free slot where it would."""
    at = (place * 2654435761) & (seen.size - 1)
    while seen[at] >= 0 and seen[at] != place:
        at = (at + 1) & (seen.size - 1)
    return at


@inner
def gather(
    runs: Ints,
    run: int,
    index: int,
    arena: Arena,
    seen: Ints,
    need: int,
    last: int,
    keys: Ints,
    c: int,
) -> int:
    """Append the first `need` places of a run, none after `last`, to keys[c:]; return the new c."""
    stop = c + need
    for p in range(runs[run, START], runs[run, START] + runs[run, LENGTH]):
        place = I(arena[p])
        if c == stop or place > last:
            break
        if place < 0 or (seen.size and seen[slot(seen, place)] == place):
            continue
        keys[c] = (place << INDEX) | index
        c += 1
    return c


@inner
def sort_places(keys: Ints, c: int, spare: Ints) -> int:
    """Sort keys[:c], keep the first of those with equal places, and return how many are left."""
    sort_keys(keys, c, spare)
    m = min(c, 1)
    for i in range(1, c):
        keys[m] = keys[i]
        m += (keys[i] >> INDEX) != (keys[m - 1] >> INDEX)
    return m


@inner
def copy_list(runs: Ints, run: int, arena: Arena, n: int, places: Ints) -> Any:
    """Append the places of one run, which are in order, to places[n:]; return the new n."""
    start, length, to = U(runs[run, START]), U(runs[run, LENGTH]), U(n)
    together = I(0)
    for i in range(min(length, U(places.size) - to)):
        together |= I(arena[start + i])
        places[to + i] = arena[start + i]
    if together >= 0:  # none of them removed
        return n + I(min(length, U(places.size) - to))
    for i in range(length):
        if n == places.size:
            break
        places[n] = arena[start + i]
        n += arena[start + i] >= 0
    return n


@inner
def take_level(
    level: int,
    near: Ints,
    m: int,
    runs: Ints,
    arena: Arena,
    seen: Ints,
    keys: Ints,
    spare: Ints,
    n: int,
    distances: Ints,
    places: Ints,
    labels: Ints,
) -> Any:
    """Emit the entries of labels near[:m], all at distance `level`, from result n on."""
    if m == 1 and runs[2 * near[0] + 1, LENGTH] == 0 and seen.size == 0:
        c = copy_list(runs, 2 * near[0], arena, n, places)
        label = near[0]
        for i in range(U(n), U(c)):
            distances[i] = level
            labels[i] = label
        return c
    need = places.size - n
    c, last, lists = I(0), I(2**31), 0
    for run in range(2 * m):
        at = 2 * near[run >> 1] + (run & 1)
        if runs[at, LENGTH] == 0:
            continue
        if c + need > keys.size:
            c = sort_places(keys, c, spare)
            if c >= need:
                c, last = need, keys[need - 1] >> INDEX
        c = gather(runs, at, run >> 1, arena, seen, need, last, keys, c)
        lists += 1
    if lists > 1:
        c = min(need, sort_places(keys, c, spare))
    for i in range(c):
        place = keys[i] >> INDEX
        distances[n + i] = level
        places[n + i] = place
        labels[n + i] = near[keys[i] & I(2**31 - 1)]
        if seen.size:
            seen[slot(seen, place)] = place
    return n + c


@inner
def next_level(far: Ints, level: int) -> Any:
    """The smallest distance above `level`."""
    best = NOBODY
    for i in range(U(far.size)):
        best = min(best, far[i] if far[i] > level else NOBODY)
    return best


@inner
def labels_at(far: Ints, level: int, near: Ints) -> int:
    """Write the labels at distance `level` to near; return how many. Blocks of 64, as `scan`."""
    m = 0
    many = U(far.size)
    for s in range(U(0), many, U(64)):
        hit = U(0)
        if s + U(64) <= many:
            for i in range(U(64)):
                hit |= U(far[s + i] == level) << i
        else:
            for i in range(many - s):
                hit |= U(far[s + i] == level) << i
        while hit:
            near[m] = s + lowest(hit)
            hit &= hit - U(1)
            m += 1
    return m


@inner
def emit(
    far: Ints,
    near: Ints,
    runs: Ints,
    arena: Arena,
    seen: Ints,
    keys: Ints,
    spare: Ints,
    distances: Ints,
    places: Ints,
    labels: Ints,
) -> None:
    """Write one row of results, given the distance of each label (ABSENT or more: no entries)."""
    for i in range(seen.size):
        seen[i] = -1
    n, level = I(0), -NOBODY
    for _ in range(LEVELS):
        level = next_level(far, level)
        if level >= ABSENT or n == places.size:
            break
        m = labels_at(far, level, near)
        n = take_level(level, near, m, runs, arena, seen, keys, spare, n, distances,
                       places, labels)  # fmt: skip
    if n < places.size and level < ABSENT:
        n = emit_rest(far, level, near, runs, arena, seen, keys, spare, n, distances,
                      places, labels)  # fmt: skip
    for i in range(n, places.size):
        distances[i] = -1
        places[i] = -1
        labels[i] = -1


@inner
def emit_rest(
    far: Ints,
    level: int,
    near: Ints,
    runs: Ints,
    arena: Arena,
    seen: Ints,
    keys: Ints,
    spare: Ints,
    n: int,
    distances: Ints,
    places: Ints,
    labels: Ints,
) -> Any:
    """Go on after `level` with all labels sorted; return how many results there are then."""
    order, other = np.empty(far.size, np.int64), np.empty(far.size, np.int64)
    c = 0
    for i in range(far.size):
        if level < far[i] < ABSENT:
            order[c] = (far[i] << HALF) | i
            c += 1
    sort_keys(order, c, other)
    first = 0
    while first < c and n < places.size:
        m = 0
        while first + m < c and (order[first + m] >> HALF) == (order[first] >> HALF):
            near[m] = order[first + m] & LOW
            m += 1
        n = take_level(order[first] >> HALF, near, m, runs, arena, seen, keys, spare, n,
                       distances, places, labels)  # fmt: skip
        first += m
    return n


@inner
def hash_size(several: int, k: int) -> int:
    """Slots of the table of places seen: a power of two over 2 k, or none."""
    size = 64
    while size < 4 * k:
        size *= 2
    return size if several else 0


@kernel(
    "Tuple((i8[:, ::1], i8[:, ::1], i8[:, ::1]))"
    "(i4[:, ::1], i8, i8[:, ::1], i4[::1], i8[::1], i8, i8)"
)
def search_lists(
    ranks: NDArray[np.int32],
    floats: int,
    runs: Ints,
    arena: Arena,
    live: Ints,
    several: int,
    k: int,
) -> tuple[Ints, Ints, Ints]:
    """Top-k of the entries in the lists. See `reference.nearest_labels`.

    Args:
        ranks: (q, L) distance of each label, or the bits of a float32 distance (never -0.0).
        floats: whether they are such bits.
        runs: (2 L, 3) see `labels`.
        arena: all runs.
        live: (L,) whether a label has entries and is wanted.
        several: how many entries have several labels.
        k: results wanted, at least 1.

    Returns:
        (q, k) distances (as `topk.float_rank` if floats), places and labels; -1 where there
        are fewer.
    """
    nq, many = ranks.shape
    distances, places = np.empty((nq, k), np.int64), np.empty((nq, k), np.int64)
    labels = np.empty((nq, k), np.int64)
    keys, spare = np.empty(3 * k + 64, np.int64), np.empty(3 * k + 64, np.int64)
    far, near = np.empty(many, np.int64), np.empty(many + 1, np.int64)
    seen = np.empty(hash_size(several, k), np.int64)
    for j in range(nq):
        for i in range(many):
            x = I(ranks[j, i])
            if floats and x < 0:
                x ^= I(0x7FFFFFFF)
            far[i] = x if live[i] else ABSENT
        emit(far, near, runs, arena, seen, keys, spare, distances[j], places[j], labels[j])
    return distances, places, labels


@kernel(
    "Tuple((i8[:, ::1], i8[:, ::1], i8[:, ::1]))"
    "(u8[:, ::1], i8[::1], u8[:, :, ::1], i8[:, ::1], i4[::1], i8[::1], i8, i8)"
)
def search_codewords(
    codewords: Words,
    cycles: Ints,
    queries: Words,
    runs: Ints,
    arena: Arena,
    live: Ints,
    several: int,
    k: int,
) -> tuple[Ints, Ints, Ints]:
    """`search_lists` by Hamming distance.

    codewords (W, L), cycles (L,), queries (q, n_cycles, W); the rest as there.
    """
    nq, words, many = queries.shape[0], queries.shape[2], U(cycles.size)
    core = codewords.reshape(codewords.size)
    distances, places = np.empty((nq, k), np.int64), np.empty((nq, k), np.int64)
    labels = np.empty((nq, k), np.int64)
    keys, spare = np.empty(3 * k + 64, np.int64), np.empty(3 * k + 64, np.int64)
    far, near = np.empty(cycles.size, np.int64), np.empty(cycles.size + 1, np.int64)
    seen = np.empty(hash_size(several, k), np.int64)
    absent = np.empty(cycles.size, np.int64)
    for i in range(cycles.size):
        absent[i] = 0 if live[i] else ABSENT
    for j in range(nq):
        if queries.shape[1] == 1:
            q = queries[j, 0, 0]
            for i in range(many):
                far[i] = I(popcount(core[i] ^ q)) + absent[i]
            for w in range(U(1), U(words)):
                at, q = w * many, queries[j, 0, w]
                for i in range(many):
                    far[i] += I(popcount(core[at + i] ^ q))
        else:
            for i in range(many):
                d = U(0)
                for w in range(U(words)):
                    d += popcount(core[w * many + i] ^ queries[j, cycles[i], w])
                far[i] = I(d) + absent[i]
        emit(far, near, runs, arena, seen, keys, spare, distances[j], places[j], labels[j])
    return distances, places, labels
