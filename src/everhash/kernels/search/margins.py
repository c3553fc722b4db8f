"""Searches by asymmetric distance, out of the tables and bounds of `scores`."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.kernels.search.scan import WORK
from everhash.kernels.search.scores import (
    BINS,
    BLOCK,
    bound_shells,
    centre_scores,
    differing,
    guess_scores,
    make_tables,
    order_sizes,
    prepare,
    reach,
    score_floor,
    score_rows,
    score_words,
)
from everhash.kernels.search.shells import BASE, CYCLE, FIRST, LAST, open_words, rank_groups
from everhash.kernels.search.topk import (
    BELOW,
    F4,
    HALF,
    HELD,
    LOOKED,
    NOBODY,
    ROOM,
    STATE,
    Doubles,
    Floats,
    I,
    Ints,
    Places,
    T,
    U,
    Words,
    begin,
    finish,
    float_rank,
    inner,
    public,
    rank_float,
    write_floats,
)


@inner
def rank_by_score(scores: Floats, total: float, count: Ints, order: Ints) -> None:
    """Groups by score of their codeword, best first, in 256 steps."""
    rank = np.empty(order.size, np.int64)
    for g in range(order.size):
        rank[g] = min(max(I((total - scores[g]) * (127 / total)), I(0)), I(255))
    rank_groups(rank, count, order)


@inner
def visit_scores(
    flat: Words,
    stride: Any,
    lead: Ints,
    core: Words,
    groups: Ints,
    edges: Ints,
    margins: Floats,
    tables: Floats,
    signs: Words,
    totals: Doubles,
    total: float,
    slack: float,
    centres: Floats,
    visiting: Ints,
    sizes: Ints,
    sums: Doubles,
    bound: Doubles,
    k: int,
    keys: Ints,
    spare: Ints,
    histogram: Ints,
    state: Ints,
    work: Words,
    candidates: Ints,
    notes: Ints,
    scores: Floats,
) -> None:
    """Offer every shell that may hold one of the k best, best groups first.

    sizes (n_cycles, bits) and sums (n_cycles, bits + 1) are made for a cycle when it is first
    needed; until then sizes[c, 0] is -1.
    """
    words, many = signs.shape[1], groups.shape[0]
    for g in visiting:
        c, first, last, base = groups[g, CYCLE], groups[g, FIRST], groups[g, LAST], groups[g, BASE]
        floor = score_floor(state[T], total, 2 * slack)
        if totals[c] < floor:
            continue
        if sizes[c, 0] < 0:
            order_sizes(margins[c], sizes[c], sums[c], candidates, notes)
        r = differing(core, many, g, signs[c])
        outside = max(r - last, first - r)
        if totals[c] - 2 * sums[c, max(outside, 0)] < floor:
            continue
        bound_shells(core, many, g, signs[c], centres[g], last, sizes[c], sums[c], bound)
        left, right = reach(bound, first, last, r, np.inf)
        if state[T] < BINS:  # known or guessed: the shells that may matter stand side by side
            left, right = reach(bound, first, last, r, floor)
            score_rows(flat, stride, edges[base + left + 1], edges[base + right], words, tables[c],
                       total, slack, lead, k, keys, spare, histogram, state, work, candidates,
                       notes, scores)  # fmt: skip
            continue
        while left >= first or right <= last:
            if right > last or (left >= first and bound[left] >= bound[right]):
                h = left
                left -= 1
            else:
                h = right
                right += 1
            if bound[h] < score_floor(state[T], total, 2 * slack):
                break
            score_rows(flat, stride, edges[base + h], edges[base + h + 1], words, tables[c], total,
                       slack, lead, k, keys, spare, histogram, state, work, candidates, notes,
                       scores)  # fmt: skip


@public(
    "Tuple((f4[:, ::1], i8[:, ::1], i8))"
    "(u8[:, ::1], i8[::1], i8[::1], u4[::1], u4[::1], u8[:, ::1], i8[:, ::1], i8[::1], "
    "f4[:, :, ::1], i8, b1)"
)
def search_scores(
    columns: Words,
    lead: Ints,
    starts: Ints,
    posts: Places,
    word_of: Places,
    centres: Words,
    groups: Ints,
    edges: Ints,
    margins: Floats,
    k: int,
    prune: bool,
) -> tuple[Floats, Ints, int]:
    """Asymmetric top-k of margins (q, n_cycles, bits). See `reference.nearest_margins`.

    The other arguments, and the results, are those of `shells.search_shells`, with inf for a
    distance that is not there. Without `prune` every word is scored; the results are the same.
    """
    (nq, cycles, bits), many, words = margins.shape, groups.shape[0], columns.shape[0]
    flat, stride = columns.reshape(columns.size), U(columns.shape[1])
    core = centres.reshape(centres.size)
    distances, places = np.empty((nq, k), np.float32), np.empty((nq, k), np.int64)
    keys = np.empty(k + ROOM, np.int64)
    spare, wide = np.empty(k + ROOM, np.int64), np.empty(k + ROOM, np.int64)
    histogram, count = np.empty(BINS + 1, np.int64), np.empty(258, np.int64)
    state = np.empty(STATE, np.int64)
    work = np.empty(WORK, np.uint64)
    candidates, notes = np.empty(max(WORK, bits), np.int64), np.empty(max(WORK, bits), np.int64)
    scores = np.empty(BLOCK, np.float32)
    tables, signs = (
        np.empty((cycles, 2048 * words), np.float32),
        np.empty((cycles, words), np.uint64),
    )
    totals, bound = np.empty(cycles, np.float64), np.empty(bits + 2, np.float64)
    sizes, sums = np.empty((cycles, bits), np.int64), np.empty((cycles, bits + 1), np.float64)
    centre, visiting = np.empty(many, np.float32), np.empty(many, np.int64)
    looked = 0
    for j in range(nq):
        total = prepare(margins[j], tables, signs, totals)
        slack = (8 * words + 32) * 2.0**-23 * total
        guessed = I(BINS)
        if prune:
            centre_scores(core, groups, tables, centre)
            rank_by_score(centre, total, count, visiting)
            g = visiting[0]
            start = edges[groups[g, BASE] + groups[g, FIRST]]
            stop = edges[groups[g, BASE] + groups[g, LAST] + 1]
            guessed = guess_scores(flat, stride, start, stop, words, tables[groups[g, CYCLE]],
                                   total, k, histogram, scores)  # fmt: skip
            for c in range(cycles):
                sizes[c, 0] = -1
        while True:
            begin(state, histogram, guessed)
            if prune:
                visit_scores(flat, stride, lead, core, groups, edges, margins[j], tables, signs,
                             totals, total, slack, centre, visiting, sizes, sums, bound, k, keys,
                             spare, histogram, state, work, candidates, notes, scores)  # fmt: skip
            else:
                for g in range(many):
                    start = edges[groups[g, BASE] + groups[g, FIRST]]
                    stop = edges[groups[g, BASE] + groups[g, LAST] + 1]
                    score_rows(flat, stride, start, stop, words, tables[groups[g, CYCLE]], total,
                               slack, lead, k, keys, spare, histogram, state, work, candidates,
                               notes, scores)  # fmt: skip
            looked += state[LOOKED]
            t = state[T]
            if guessed == BINS or t < guessed or state[BELOW] + histogram[guessed] >= k:
                break
            guessed = I(BINS)  # too bold: once more without
        cut = NOBODY >> HALF
        if t < BINS:
            cut = float_rank(F4(0) - F4(score_floor(t, total, slack)))
        m = finish(keys, state[HELD], wide, spare, cut, k, starts, posts, word_of)
        write_floats(wide, m, distances[j], places[j])
    return distances, places, looked


@public(
    "Tuple((f4[::1], i8[::1]))"
    "(u8[:, ::1], i8[::1], u4[::1], u8[:, ::1], i8[:, ::1], i8[::1], f4[:, ::1], f8)"
)
def within_scores(
    columns: Words,
    starts: Ints,
    posts: Places,
    centres: Words,
    groups: Ints,
    edges: Ints,
    margins: Floats,
    radius: float,
) -> tuple[Floats, Ints]:
    """Distances and places, in order, of all entries at most `radius` from margins (cycles, bits).

    The other arguments are those of `shells.search_shells`.
    """
    (cycles, bits), many, words = margins.shape, groups.shape[0], columns.shape[0]
    flat, stride = columns.reshape(columns.size), U(columns.shape[1])
    core = centres.reshape(centres.size)
    scores = np.empty(BLOCK, np.float32)
    keys, spare = np.empty(bits, np.int64), np.empty(bits, np.int64)
    tables, signs = (
        np.empty((cycles, 2048 * words), np.float32),
        np.empty((cycles, words), np.uint64),
    )
    totals, bound = np.empty(cycles, np.float64), np.empty(bits + 2, np.float64)
    sizes, sums = np.empty((cycles, bits), np.int64), np.empty((cycles, bits + 1), np.float64)
    centre, found = np.empty(many, np.float32), np.empty(columns.shape[1], np.int64)
    total = prepare(margins, tables, signs, totals)
    floor = -radius - 2 * (8 * words + 32) * 2.0**-23 * total
    centre_scores(core, groups, tables, centre)
    for c in range(cycles):
        order_sizes(margins[c], sizes[c], sums[c], keys, spare)
    m = 0
    for g in range(many):
        c, base = groups[g, CYCLE], groups[g, BASE]
        bound_shells(core, many, g, signs[c], centre[g], groups[g, LAST], sizes[c], sums[c], bound)
        r = differing(core, many, g, signs[c])
        left, right = reach(bound, groups[g, FIRST], groups[g, LAST], r, floor)
        for s in range(edges[base + left + 1], edges[base + right], BLOCK):
            e = min(s + BLOCK, edges[base + right])
            score_words(flat, stride, s, e, words, tables[c], scores)
            for i in range(e - s):
                d = F4(0) - scores[i]
                found[m] = (float_rank(d) << HALF) | (s + i)
                m += I(np.float64(d) <= radius)
    ranks, places = open_words(found, m, starts, posts)
    distances = np.empty(ranks.size, np.float32)
    for i in range(ranks.size):
        distances[i] = rank_float(ranks[i])
    return distances, places


@public("void(u8[:, ::1], i8[::1], i8[::1], f4[:, :, ::1], f4[:, ::1])")
def scores_at(columns: Words, at: Ints, cycles: Ints, margins: Floats, out: Floats) -> None:
    """out[j, i] = distance of query j to word at[i], which belongs to cycles[i]."""
    words = columns.shape[0]
    flat, stride = columns.reshape(columns.size), U(columns.shape[1])
    tables = np.empty((margins.shape[1], 2048 * words), np.float32)
    one = np.empty(1, np.float32)
    for j in range(out.shape[0]):
        for c in range(margins.shape[1]):
            make_tables(margins[j, c], tables[c])
        for i in range(at.size):
            score_words(flat, stride, at[i], at[i] + 1, words, tables[cycles[i]], one)
            out[j, i] = F4(0) - one[0]
