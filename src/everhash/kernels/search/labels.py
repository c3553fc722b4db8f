"""Posting lists: entries known by their label only.

A label has two runs of places in one arena of int32: run 2 l, to which later places are appended,
and run 2 l + 1 for places that came late (an old entry under a new label); both ascend. A run is a
row (start, length, capacity) of `runs`. A removed place p stays as ~p until the arena is rebuilt,
so that the order, and with it binary search, holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import inlined, inner, kernel
from everhash.kernels.search.topk import Ints

Arena = NDArray[np.int32]
START, LENGTH, CAPACITY = 0, 1, 2
LATE = 64
"""Late places a label may have, beyond the square root of the others, before they are merged."""


@inlined
def place_of(slot: Any) -> Any:
    """The place in a slot, removed or not."""
    return slot if slot >= 0 else ~slot


@inner
def find(runs: Ints, run: int, arena: Arena, place: int) -> int:
    """Index in the arena of the first slot of the run whose place is not below `place`."""
    low, high = runs[run, START], runs[run, START] + runs[run, LENGTH]
    while low < high:
        middle = (low + high) >> 1
        if place_of(arena[middle]) < place:
            low = middle + 1
        else:
            high = middle
    return int(low)


@inner
def make_room(runs: Ints, run: int, want: int, arena: Arena, used: Ints) -> bool:
    """Give the run a capacity of `want` or more; false if the arena is full."""
    start, length, capacity = runs[run, START], runs[run, LENGTH], runs[run, CAPACITY]
    if want <= capacity:
        return True
    capacity = max(want, 2 * capacity + 4)
    if used[0] + capacity > arena.size:
        return False
    for i in range(length):
        arena[used[0] + i] = arena[start + i]
    runs[run, START], runs[run, CAPACITY] = used[0], capacity
    used[0] += capacity
    return True


@inner
def merge_late(runs: Ints, label: int, arena: Arena, used: Ints) -> bool:
    """Merge a label's late run into the other, from the end; false if the arena is full."""
    late, n = runs[2 * label + 1, LENGTH], runs[2 * label, LENGTH]
    if not make_room(runs, 2 * label, n + late, arena, used):
        return False
    a, b = runs[2 * label, START], runs[2 * label + 1, START]
    runs[2 * label, LENGTH], runs[2 * label + 1, LENGTH] = n + late, 0
    while late > 0:
        if n > 0 and place_of(arena[a + n - 1]) > place_of(arena[b + late - 1]):
            n -= 1
            arena[a + n + late] = arena[a + n]
        else:
            late -= 1
            arena[a + n + late] = arena[b + late]
    return True


@inner
def insert_late(runs: Ints, label: int, place: int, arena: Arena, used: Ints) -> bool:
    """Insert a place that is not the label's last; false, and unchanged, if the arena is full."""
    length = runs[2 * label + 1, LENGTH]
    outgrown = length > LATE and (length - LATE) ** 2 > runs[2 * label, LENGTH]
    if outgrown and not merge_late(runs, label, arena, used):
        return False
    for run in range(2 * label, 2 * label + 2):
        at = find(runs, run, arena, place)
        if at < runs[run, START] + runs[run, LENGTH] and place_of(arena[at]) == place:
            arena[at] = place  # it stood here once
            return True
    run = 2 * label + 1
    length = runs[run, LENGTH]
    if not make_room(runs, run, length + 1, arena, used):
        return False
    at, end = find(runs, run, arena, place), runs[run, START] + length
    for i in range(end, at, -1):
        arena[i] = arena[i - 1]
    arena[at] = place
    runs[run, LENGTH] = length + 1
    return True


@inner
def insert(runs: Ints, label: int, place: int, arena: Arena, used: Ints) -> bool:
    """Insert one place under a label; false, and unchanged, if the arena is full."""
    run = 2 * label
    n = runs[run, LENGTH]
    if n and place_of(arena[runs[run, START] + n - 1]) >= place:
        return insert_late(runs, label, place, arena, used)
    if not make_room(runs, run, n + 1, arena, used):
        return False
    arena[runs[run, START] + n] = place
    runs[run, LENGTH] = n + 1
    return True


@kernel("i8(i8[::1], i8[::1], i8, i8[:, ::1], i4[::1], i8[::1], i8[::1], u4[::1])")
def insert_postings(
    labels: Ints,
    places: Ints,
    done: int,
    runs: Ints,
    arena: Arena,
    counts: Ints,
    live: Ints,
    labels_of: NDArray[np.uint32],
) -> int:
    """Insert pairs done, done + 1, ...; return how many are done when the arena is full, or all.

    counts = arena slots used, entries, entries with several labels; live (L,) entries of each
    label; labels_of (n,) labels of each place.
    """
    for i in range(done, labels.size):
        if not insert(runs, labels[i], places[i], arena, counts):
            return i
        live[labels[i]] += 1
        labels_of[places[i]] += 1
        counts[1] += labels_of[places[i]] == 1
        counts[2] += labels_of[places[i]] == 2
    return labels.size


@kernel("i8(i8[:, ::1], i4[::1], i8, i8)")
def find_posting(runs: Ints, arena: Arena, label: int, place: int) -> int:
    """Index in the arena of a place under a label, or -1 if it does not stand there."""
    for run in range(2 * label, 2 * label + 2):
        at = find(runs, run, arena, place)
        if at < runs[run, START] + runs[run, LENGTH] and arena[at] == place:
            return at
    return -1


@kernel("i8(i8[:, ::1], i4[::1], i8[:, ::1], i4[::1])")
def copy_postings(runs: Ints, arena: Arena, new_runs: Ints, new_arena: Arena) -> int:
    """Copy what is not removed, late places merged, into runs that start and end as prepared."""
    copied = 0
    for label in range(runs.shape[0] // 2):
        a, b = runs[2 * label, START], runs[2 * label + 1, START]
        a_end, b_end = a + runs[2 * label, LENGTH], b + runs[2 * label + 1, LENGTH]
        start = new_runs[2 * label, START]
        n = 0
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and place_of(arena[a]) < place_of(arena[b])):
                x = arena[a]
                a += 1
            else:
                x = arena[b]
                b += 1
            if x >= 0:
                new_arena[start + n] = x
                n += 1
        new_runs[2 * label, LENGTH] = n
        copied += n
    return copied
