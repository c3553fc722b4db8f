"""The search by the probability of having the query's label, then by likeness, then by place.

Labels are taken by the best score their entries can have, until the k-th result is better. The
entries of a list are gathered in batches, without those that cannot enter any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiled import compile_kernel
from everhash.kernels.likeness.best import (
    BIAS,
    HELD,
    LIKENESS,
    SEVERAL,
    Best,
    floor_of,
    holds,
    rise,
    sink,
    write_best,
)
from everhash.kernels.likeness.estimates import TILE, Tile, estimate, gather, new_tile
from everhash.kernels.likeness.reference import GIVEN, GUESSED, LOOSE
from everhash.kernels.search.labels import LENGTH, START, Arena
from everhash.kernels.search.topk import (
    HALF,
    LOW,
    I,
    float_bits,
    float_rank,
    inner,
    prefetch,
    rank_float,
    sort_keys,
)

Floats = NDArray[np.float32]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
Steps = NDArray[np.uint16]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
F4: Any = np.float32

ROUNDS = 8
"""Labels found by a pass over all of them each, before the rest is sorted instead."""


class Entries(NamedTuple):
    """Likeness codes by place, and distances of guessed entries to their codewords."""

    words: Words
    along: Floats
    scale: Floats
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
def take(batch: Batch, m: int, entries: Entries, asked: Asked, note: int, best: Best) -> None:
    """Put those of the first m entries of a batch that belong there among the k best.

    An entry met before, under another label, had the better score then: if it is no longer among
    the best, it cannot come back.
    """
    tile, keys, places, state = batch.tile, best.keys, best.places, best.state
    cosines = tile.cosines
    if state[LIKENESS]:
        gather(entries.words, entries.along, entries.scale, batch.places, m, tile)
        estimate(tile, m, asked.planes, asked.total, asked.along, asked.step)
    n, k = state[HELD], keys.size
    for i in range(m):
        place = batch.places[i]
        key = (~float_rank(batch.scores[i]) << HALF) | (~float_rank(cosines[i]) + BIAS)
        if n == k and (key > keys[0] or (key == keys[0] and place >= places[0])):
            continue
        if state[SEVERAL] and holds(places, n, place):
            continue
        if n < k:
            rise(best, n, key, place, note)
            n += 1
        else:
            sink(best, n, key, place, note)
    state[HELD] = n


@inner
def take_run(
    run: Arena, chance: Any, note: int, entries: Entries, asked: Asked, batch: Batch, best: Best
) -> None:
    """Offer the entries of one run: batch after batch of those whose score may be enough."""
    places, scores, state = batch.places, batch.scores, best.state
    trust, distance = entries.trust, entries.distance
    kind, last, many = note & 3, trust.size - 1, entries.words.shape[1]
    flat, along, scale = entries.words.reshape(entries.words.size), entries.along, entries.scale
    floor = floor_of(best)
    m = 0
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
        if state[LIKENESS]:
            prefetch(flat, place * many)
            prefetch(flat, place * many + many - 1)
            prefetch(along, place)
            prefetch(scale, place)
        if m == TILE:
            take(batch, m, entries, asked, note, best)
            m = 0
            floor = floor_of(best)
    take(batch, m, entries, asked, note, best)


@inner
def take_label(
    label: int,
    chance: Any,
    kind: int,
    runs: Ints,
    arena: Arena,
    entries: Entries,
    asked: Asked,
    batch: Batch,
    best: Best,
) -> None:
    """Offer the entries of both runs of a label."""
    for run in range(2 * label, 2 * label + 2):
        start, length = runs[run, START], runs[run, LENGTH]
        if length:
            part = arena[start : start + length]
            take_run(part, chance, (label << 2) | kind, entries, asked, batch, best)


@inner
def rank_labels(chances: Floats, kinds: Signs, trust: Any, ranks: Ints) -> None:
    """Write a key a label that is larger where its entries' best score is; -1 without entries.

    Chances are not negative, so that their bits are in their order. Ties go to smaller numbers.
    """
    for label in range(U(chances.size)):
        chance = chances[label] if kinds[label] == GIVEN else chances[label] * trust
        key = (I(float_bits(chance + F4(0))) << HALF) | (LOW - I(label))
        ranks[label] = key if kinds[label] <= GUESSED else I(-1)


@inner
def next_label(ranks: Ints, turn: int, state: Ints, spare: Ints) -> Any:
    """Return the largest key left and forget it; -1 if there is none.

    After ROUNDS passes the keys that are left are sorted once; state[0] is then how many.
    """
    if turn < ROUNDS:
        best = I(-1)
        for label in range(U(ranks.size)):
            best = max(best, ranks[label])
        if best >= 0:
            ranks[LOW - (best & LOW)] = -1
        return best
    if turn == ROUNDS:
        n = 0
        for label in range(U(ranks.size)):
            key = ranks[label]
            ranks[n] = key
            n += key >= 0
        sort_keys(ranks, n, spare)
        state[0] = n
    if state[0] == 0:
        return I(-1)
    state[0] -= 1
    return ranks[state[0]]


@inner
def kinds_of(labels: int, given_counts: Ints, guessed_counts: Ints) -> Signs:
    """Whether each label has given entries, only guessed ones, or none (LOOSE)."""
    kinds = np.empty(labels, np.int8)
    for label in range(labels):
        guessed = GUESSED if guessed_counts[label] else LOOSE
        kinds[label] = GIVEN if given_counts[label] else guessed
    return kinds


@compile_kernel(
    "Tuple((f4[:, ::1], f4[:, ::1], i8[:, ::1], i8[:, ::1], i1[:, ::1]))"
    "(f4[:, ::1], f4[::1], u2[::1], i8[:, ::1], i4[::1], i8[::1], i8[:, ::1], i4[::1], i8[::1],"
    "i4[::1], i8, u8[:, ::1], f4[::1], f4[::1], u8[:, :, ::1], i8[::1], f4[::1], f4[::1], i8, i8)"
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
    words: Words,
    along: Floats,
    scale: Floats,
    planes: Words,
    totals: Ints,
    q_along: Floats,
    q_step: Floats,
    has_likeness: int,
    k: int,
) -> tuple[Floats, Floats, Ints, Ints, Signs]:
    """Top-k by relevance. See `reference.search_meaning`.

    Args:
        P: (q, L) probability of each label, not negative.
        trust: (T,) at most 1, never rising.
        distance: (n,) by place; only those of guessed entries are read.
        given_runs: (2 Lcap, 3) lists of given labels, Lcap >= L; see `kernels.search.labels`.
        given_arena: their places.
        given_counts: (Lcap,) entries of each label; 0 leaves a label out.
        guessed_runs: (2 Lcap, 3) lists of guessed labels.
        guessed_arena: their places.
        guessed_counts: (Lcap,) likewise.
        loose: (m,) places of entries with neither.
        several: how many entries are in more than one given list.
        words: (n, W) likeness codes by place.
        along: (n,) likewise.
        scale: (n,) likewise.
        planes: (q, 8, W) likeness codes of queries.
        totals: (q,) likewise.
        q_along: (q,) likewise.
        q_step: (q,) likewise.
        has_likeness: 0 if there are no codes: all likeness is 0, and none of them is read.
        k: results wanted, at least 1.

    Returns:
        (q, k) scores, likeness, places, labels and kinds; -inf and -1 where there are fewer.
    """
    nq, many = P.shape
    scores, likeness = np.empty((nq, k), np.float32), np.empty((nq, k), np.float32)
    places, labels = np.empty((nq, k), np.int64), np.empty((nq, k), np.int64)
    found = np.empty((nq, k), np.int8)
    heap, state, left = np.empty((3, k), np.int64), np.zeros(3, np.int64), np.zeros(1, np.int64)
    best = Best(heap[0], heap[1], heap[2], state)
    batch = Batch(np.empty(TILE, np.int64), np.empty(TILE, np.float32), new_tile(words.shape[1]))
    entries = Entries(words, along, scale, distance, trust)
    kinds = kinds_of(many, given_counts, guessed_counts)
    ranks, spare = np.empty(many, np.int64), np.empty(many, np.int64)
    asked = Asked(np.empty((8, 0), np.uint64), 0, F4(0), F4(0))
    state[LIKENESS], state[SEVERAL] = has_likeness, several
    for j in range(nq):
        if has_likeness:
            asked = Asked(planes[j], totals[j], q_along[j], q_step[j])
        state[HELD] = 0
        rank_labels(P[j], kinds, trust[0], ranks)
        turn = 0
        while True:
            key = next_label(ranks, turn, left, spare)
            turn += 1
            if key < 0 or rank_float(key >> HALF) < floor_of(best):
                break
            label = LOW - (key & LOW)
            if given_counts[label]:
                take_label(label, P[j, label], GIVEN, given_runs, given_arena,
                           entries, asked, batch, best)  # fmt: skip
            if guessed_counts[label] and P[j, label] * trust[0] >= floor_of(best):
                take_label(label, P[j, label], GUESSED, guessed_runs, guessed_arena,
                           entries, asked, batch, best)  # fmt: skip
        if floor_of(best) <= 0:
            take_run(loose, F4(0), (-1 << 2) | LOOSE, entries, asked, batch, best)
        write_best(best, scores[j], likeness[j], places[j], labels[j], found[j])
    return scores, likeness, places, labels, found
