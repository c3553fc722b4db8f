"""Searches by asymmetric distance, out of the tables and bounds of `scores`."""

from __future__ import annotations

import numpy as np

from everhash.kernels.compiling import inner, kernel
from everhash.kernels.search.scan import Scratch, WordTable, new_scratch, table_of
from everhash.kernels.search.scores import (
    BINS,
    BLOCK,
    QueryScores,
    bound_shells,
    centre_scores,
    differing,
    guess_scores,
    make_tables,
    order_sizes,
    prepare,
    reach,
    room_for_query,
    score_floor,
    score_rows,
    score_words,
)
from everhash.kernels.search.shells import (
    BASE,
    CYCLE,
    FIRST,
    LAST,
    Shells,
    open_words,
    rank_groups,
    shells_of,
    words_of,
)
from everhash.kernels.search.topk import (
    BELOW,
    F4,
    HALF,
    LOOKED,
    NOBODY,
    ROOM,
    Best,
    Doubles,
    Floats,
    I,
    Ints,
    Places,
    T,
    Words,
    begin,
    finish,
    float_rank,
    new_best,
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
    table: WordTable,
    shells: Shells,
    query: QueryScores,
    centres: Floats,
    visiting: Ints,
    bound: Doubles,
    best: Best,
    scratch: Scratch,
    scores: Floats,
) -> None:
    """Offer every shell that may hold one of the k best, best groups first."""
    (core, groups, edges), many, state = shells, shells.groups.shape[0], best.state
    _, every_table, signs, totals, sizes, sums, total, slack = query
    for g in visiting:
        c, first, last, base = groups[g, CYCLE], groups[g, FIRST], groups[g, LAST], groups[g, BASE]
        floor = score_floor(state[T], total, 2 * slack)
        if totals[c] < floor:
            continue
        if sizes[c, 0] < 0:
            order_sizes(query, c, scratch.candidates, scratch.notes)
        r = differing(core, many, g, signs[c])
        outside = max(r - last, first - r)
        if totals[c] - 2 * sums[c, max(outside, 0)] < floor:
            continue
        bound_shells(core, many, g, signs[c], centres[g], last, sizes[c], sums[c], bound)
        tables = every_table[c]
        left, right = reach(bound, first, last, r, np.inf)
        if state[T] < BINS:  # known or guessed: the shells that may matter stand side by side
            left, right = reach(bound, first, last, r, floor)
            start, stop = edges[base + left + 1], edges[base + right]
            score_rows(table, start, stop, tables, total, slack, best, scratch, scores)
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
            start, stop = edges[base + h], edges[base + h + 1]
            score_rows(table, start, stop, tables, total, slack, best, scratch, scores)


@inner
def score_all(
    table: WordTable,
    shells: Shells,
    query: QueryScores,
    best: Best,
    scratch: Scratch,
    scores: Floats,
) -> None:
    """Offer every word."""
    for g in range(shells.groups.shape[0]):
        start, stop = words_of(shells, g)
        tables = query.tables[shells.groups[g, CYCLE]]
        score_rows(table, start, stop, tables, query.total, query.slack, best, scratch, scores)


@kernel(
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
    (nq, cycles, bits), many = margins.shape, groups.shape[0]
    table, shells = table_of(columns, lead), shells_of(centres, groups, edges)
    best, scratch = new_best(k, BINS + 1), new_scratch(bits)
    room, scores = room_for_query(cycles, bits, columns.shape[0]), np.empty(BLOCK, np.float32)
    distances, places = np.empty((nq, k), np.float32), np.empty((nq, k), np.int64)
    wide, count = np.empty(k + ROOM, np.int64), np.empty(258, np.int64)
    bound, centre = np.empty(bits + 2, np.float64), np.empty(many, np.float32)
    visiting = np.empty(many, np.int64)
    looked = 0
    for j in range(nq):
        query = prepare(margins[j], room)
        guessed = I(BINS)
        if prune:
            centre_scores(shells, query.tables, centre)
            rank_by_score(centre, query.total, count, visiting)
            start, stop = words_of(shells, visiting[0])
            tables = query.tables[groups[visiting[0], CYCLE]]
            guessed = guess_scores(table, start, stop, tables, query.total, best, scores)
        while True:
            begin(best, guessed)
            if prune:
                visit_scores(table, shells, query, centre, visiting, bound, best, scratch, scores)
            else:
                score_all(table, shells, query, best, scratch, scores)
            looked += best.state[LOOKED]
            t = best.state[T]
            if guessed == BINS or t < guessed or best.state[BELOW] + best.histogram[guessed] >= k:
                break
            guessed = I(BINS)  # too bold: once more without
        cut = NOBODY >> HALF
        if t < BINS:
            cut = float_rank(F4(0) - F4(score_floor(t, query.total, query.slack)))
        m = finish(best, wide, cut, starts, posts, word_of)
        write_floats(wide, m, distances[j], places[j])
    return distances, places, looked


@kernel(
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
    (cycles, bits), many = margins.shape, groups.shape[0]
    table, shells = table_of(columns, starts), shells_of(centres, groups, edges)
    scores, bound = np.empty(BLOCK, np.float32), np.empty(bits + 2, np.float64)
    keys, spare = np.empty(bits, np.int64), np.empty(bits, np.int64)
    centre, found = np.empty(many, np.float32), np.empty(columns.shape[1], np.int64)
    query = prepare(margins, room_for_query(cycles, bits, columns.shape[0]))
    floor = -radius - 2 * query.slack
    core, signs, sizes, sums = shells.core, query.signs, query.sizes, query.sums
    centre_scores(shells, query.tables, centre)
    for c in range(cycles):
        order_sizes(query, c, keys, spare)
    m = I(0)
    for g in range(many):
        c, base = groups[g, CYCLE], groups[g, BASE]
        bound_shells(core, many, g, signs[c], centre[g], groups[g, LAST], sizes[c], sums[c], bound)
        r = differing(core, many, g, signs[c])
        left, right = reach(bound, groups[g, FIRST], groups[g, LAST], r, floor)
        for s in range(edges[base + left + 1], edges[base + right], BLOCK):
            e = min(s + BLOCK, edges[base + right])
            score_words(table, s, e, query.tables[c], scores)
            for i in range(e - s):
                d = F4(0) - scores[i]
                found[m] = (float_rank(d) << HALF) | (s + i)
                m += I(np.float64(d) <= radius)
    ranks, places = open_words(found, m, starts, posts)
    distances = np.empty(ranks.size, np.float32)
    for i in range(ranks.size):
        distances[i] = rank_float(ranks[i])
    return distances, places


@kernel("void(u8[:, ::1], i8[::1], i8[::1], f4[:, :, ::1], f4[:, ::1])")
def scores_at(columns: Words, at: Ints, cycles: Ints, margins: Floats, out: Floats) -> None:
    """out[j, i] = distance of query j to word at[i], which belongs to cycles[i]."""
    table = table_of(columns, at)
    tables = np.empty((margins.shape[1], 2048 * columns.shape[0]), np.float32)
    one = np.empty(1, np.float32)
    for j in range(out.shape[0]):
        for c in range(margins.shape[1]):
            make_tables(margins[j, c], tables[c])
        for i in range(at.size):
            score_words(table, at[i], at[i] + 1, tables[cycles[i]], one)
            out[j, i] = F4(0) - one[0]
