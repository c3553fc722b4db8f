"""The search by the probability of having the query's label, then by likeness, then by place.

Labels are taken by the best score their entries can have, until the k-th result is better. The
entries of a list are gathered in batches, without those that cannot enter any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.likeness.best import (
    BIAS,
    HELD,
    LIKENESS,
    SEVERAL,
    Best,
    floor_of,
    holds,
    new_best,
    rise,
    sink,
    write_best,
)
from everhash.kernels.likeness.estimates import TILE, Tile, estimate, gather, new_tile
from everhash.kernels.likeness.order import Lists, Order, new_order, next_label, rank_labels
from everhash.kernels.likeness.reference import GIVEN, GUESSED, LOOSE
from everhash.kernels.search.labels import LENGTH, START, Arena
from everhash.kernels.search.topk import HALF, LOW, I, float_rank, rank_float

Floats = NDArray[np.float32]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
Steps = NDArray[np.uint16]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32


class Entries(NamedTuple):
    """Likeness codes by place, and distances of guessed entries to their codewords."""

    codes: Words
    distance: Steps
    trust: Floats


class Asked(NamedTuple):
    """One query."""

    planes: Words
    total: int
    along: Any
    step: Any


class Batch(NamedTuple):
    """Entries of a list that may be among the k best."""

    places: Ints
    scores: Floats
    tile: Tile


@inner
def take(batch: Batch, m: int, entries: Entries, asked: Asked, note: int, best: Best) -> int:
    """Put those of the first m entries of a batch that belong there among the k best.

    Returns how many were near enough, whether or not they were there already.

    An entry met before, under another label, had the better score then: if it is no longer among
    the best, it cannot come back.
    """
    tile, keys, places, state = batch.tile, best.keys, best.places, best.state
    cosines = tile.cosines
    if state[LIKENESS]:
        gather(entries.codes, batch.places, m, tile)
        estimate(tile, m, asked.planes, asked.total, asked.along, asked.step)
    n, k, near = state[HELD], keys.size, 0
    for i in range(m):
        place = batch.places[i]
        key = (~float_rank(batch.scores[i]) << HALF) | (~float_rank(cosines[i]) + BIAS)
        if n == k and (key > keys[0] or (key == keys[0] and place >= places[0])):
            continue
        near += 1
        if state[SEVERAL] and holds(places, n, place):
            continue
        if n < k:
            rise(best, n, key, place, note)
            n += 1
        else:
            sink(best, n, key, place, note)
    state[HELD] = n
    return near


@inner
def take_run(
    run: Arena, chance: Any, note: int, entries: Entries, asked: Asked, batch: Batch, best: Best
) -> None:
    """Offer the entries of one run: batch after batch of those whose score may be enough."""
    places, scores = batch.places, batch.scores
    trust, distance = entries.trust, entries.distance
    kind, last = note & 3, trust.size - 1
    alike = kind == GIVEN and not best.state[LIKENESS]
    floor = floor_of(best)
    m = I(0)
    for at in range(U(run.size)):
        place = I(run[at])
        if place < 0:
            continue
        score = chance
        if kind == GUESSED:
            score = chance * trust[min(I(distance[U(place)]), last)]
        if score < floor:
            continue
        places[m], scores[m] = place, score
        m += 1
        if m == TILE:
            near = take(batch, m, entries, asked, note, best)
            m = I(0)
            floor = floor_of(best)
            if alike and near == 0:  # places ascend, so no later one is near enough
                break
    take(batch, m, entries, asked, note, best)


@inner
def take_label(
    label: int,
    chance: Any,
    kind: int,
    lists: Lists,
    entries: Entries,
    asked: Asked,
    batch: Batch,
    best: Best,
) -> None:
    """Offer the entries of both runs of a label."""
    for run in range(2 * label, 2 * label + 2):
        start, length = lists.runs[run, START], lists.runs[run, LENGTH]
        if length:
            part = lists.arena[start : start + length]
            take_run(part, chance, (label << 2) | kind, entries, asked, batch, best)


@inner
def take_labels(
    chances: Floats,
    order: Order,
    given: Lists,
    guessed: Lists,
    entries: Entries,
    asked: Asked,
    batch: Batch,
    best: Best,
) -> None:
    """Offer the entries of one label after the other, until no label can be near enough."""
    most = entries.trust[0]
    rank_labels(chances, most, order)
    turn = I(0)
    while True:
        key = next_label(order, turn)
        turn += 1
        if key < 0 or rank_float(key >> HALF) < floor_of(best):
            break
        label = LOW - (key & LOW)
        chance = chances[label]
        if given.counts[label]:
            take_label(label, chance, I(GIVEN), given, entries, asked, batch, best)
        if guessed.counts[label] and chance * most >= floor_of(best):
            take_label(label, chance, I(GUESSED), guessed, entries, asked, batch, best)


@kernel(
    "Tuple((f4[:, ::1], f4[:, ::1], i8[:, ::1], i8[:, ::1], i1[:, ::1]))"
    "(f4[:, ::1], f4[::1], u2[::1], i8[:, ::1], i4[::1], i8[::1], i8[:, ::1], i4[::1], i8[::1],"
    "i4[::1], i8, u8[:, ::1], u8[:, :, ::1], i8[::1], f4[::1], f4[::1], i8, i8)"
)
def search_meaning(
    P: Floats,
    trust: Floats,
    distance: Steps,
    given_runs: Ints,
    given_arena: Arena,
    given_counts: Ints,
    guessed_runs: Ints,
    guessed_arena: Arena,
    guessed_counts: Ints,
    loose: Arena,
    several: int,
    codes: Words,
    planes: Words,
    totals: Ints,
    q_along: Floats,
    q_step: Floats,
    has_likeness: int,
    k: int,
) -> tuple[Floats, Floats, Ints, Ints, Signs]:
    """Top-k by relevance. See `reference.search_meaning`.

    Runs, arena and counts are lists of at least as many labels as P has; see
    `kernels.search.labels`. A count of 0 leaves a label out. `several` is how many entries are in
    more than one given list. Codes are as `reference.join` lays them out; without `has_likeness`
    all likeness is 0, and neither they nor the queries' are read.
    """
    nq = P.shape[0]
    scores, likeness = np.empty((nq, k), np.float32), np.empty((nq, k), np.float32)
    places, labels = np.empty((nq, k), np.int64), np.empty((nq, k), np.int64)
    kinds = np.empty((nq, k), np.int8)
    given = Lists(given_runs, given_arena, given_counts)
    guessed = Lists(guessed_runs, guessed_arena, guessed_counts)
    entries, order = Entries(codes, distance, trust), new_order(P.shape[1], given, guessed)
    tile = new_tile(codes.shape[1] - 1)
    batch = Batch(np.empty(TILE, np.int64), np.empty(TILE, np.float32), tile)
    best = new_best(k, has_likeness, several)
    asked = Asked(np.empty((8, 0), np.uint64), 0, F4(0), F4(0))
    for j in range(nq):
        if has_likeness:
            asked = Asked(planes[j], totals[j], q_along[j], q_step[j])
        best.state[HELD] = 0
        take_labels(P[j], order, given, guessed, entries, asked, batch, best)
        if floor_of(best) <= 0:
            take_run(loose, F4(0), (-1 << 2) | LOOSE, entries, asked, batch, best)
        write_best(best, scores[j], likeness[j], places[j], labels[j], kinds[j])
    return scores, likeness, places, labels, kinds
