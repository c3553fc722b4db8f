"""The k smallest (distance, place) of a stream of candidates, by counting.

A candidate is one int64, `rank << 32 | first place << 1 | shared`: a word with one entry or, if
shared, with a list of them. Its rank is the Hamming distance, or `float_rank` of a float distance,
so that sorting keys sorts results. A histogram of the ranks accepted so far gives T, the k-th best;
what lies above T is refused by one comparison. No heap: T only falls, each step once.

Numba counts references to array arguments, with locked instructions, at every call that is not a
straight line, even when the callee is inlined (70 ns a candidate). So inner functions work on
whole batches and never once a candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from everhash.kernels.compiling import inlined, inner

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Places = NDArray[np.uint32]

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U: Any = np.uint64
I: Any = np.int64  # noqa: E741
F4: Any = np.float32

SECONDS: dict[str, float] = {}

NOBODY = I(2**63 - 1)
LOW = I(0xFFFFFFFF)
HALF = I(32)
BATCH = 32 * 64 + 32
"""Candidates offered at once, at most."""
ROOM = 2 * BATCH
"""Candidates held beyond k before they are cut back to k."""
HELD, T, BELOW, LIMIT, LOOKED, STATE = 0, 1, 2, 3, 4, 5
"""A query's state: candidates held, the k-th best rank, entries held below it, the key from which
on all are refused, words looked at; and how many such fields there are."""


class Best(NamedTuple):
    """The k best candidates of one query so far, and room to find them in."""

    k: int
    keys: Ints
    """(k + ROOM,) candidates; state[HELD] of them count."""
    spare: Ints
    """(k + ROOM,) to sort in."""
    histogram: Ints
    """Entries by rank, or by step of the histogram."""
    state: Ints
    """(STATE,)"""


_declare: Any = cgutils.get_or_insert_function


def _intrinsic(function: Callable[..., Any]) -> Any:
    return intrinsic(function)


@_intrinsic
def popcount(_typing: Any, x: Any) -> Any:
    """Set bits of an unsigned integer; LLVM turns loops of it into vector code."""

    def emit(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return x(x), emit


@_intrinsic
def lowest(_typing: Any, x: Any) -> Any:
    """Index of the lowest set bit of a non-zero unsigned integer."""

    def emit(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 1))

    return x(x), emit


@_intrinsic
def float_bits(_typing: Any, _x: Any) -> Any:
    """The 32 bits of a float32, as int32."""

    def emit(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), emit


@_intrinsic
def bits_float(_typing: Any, _x: Any) -> Any:
    """The float32 of 32 bits."""

    def emit(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), emit


@_intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array[index] (1-D, contiguous); past the end is harmless."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        at = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        call = _declare(builder.module, kind, "llvm.prefetch.p0")
        builder.call(call, [at, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, index), emit


@inlined
def float_rank(x: Any) -> Any:
    """Monotone map of float32 to int64 in [-2**31, 2**31); -0.0 must have been made 0.0."""
    b = I(float_bits(x))
    return b if b >= 0 else (b ^ I(0x7FFFFFFF))


@inlined
def rank_float(rank: Any) -> Any:
    """The float32 of a `float_rank`."""
    return bits_float(np.int32(rank if rank >= 0 else (rank ^ I(0x7FFFFFFF))))


@inner
def insertion_sort(keys: Ints, n: int) -> None:
    """Sort keys[:n] in place; for a few."""
    for i in range(1, n):
        x = keys[i]
        j = i
        while j > 0 and keys[j - 1] > x:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = x


@inner
def sort_keys(keys: Ints, n: int, spare: Ints) -> None:
    """Sort keys[:n] in place: by radix, on the bytes that differ. Comparisons mispredict."""
    if n <= 24:
        insertion_sort(keys, n)
        return
    differ = I(0)
    falls = I(0)
    for i in range(1, n):
        differ |= keys[i] ^ keys[0]
        falls += keys[i] < keys[i - 1]
    if not falls:
        return
    count = np.empty(256, np.int64)
    flipped = False
    for byte in range(8):
        shift = I(8 * byte)
        if (differ >> shift) & I(255) == 0:
            continue
        if flipped:
            spread(spare, n, shift, count, keys)
        else:
            spread(keys, n, shift, count, spare)
        flipped = not flipped
    if flipped:
        for i in range(n):
            keys[i] = spare[i]


@inner
def spread(source: Ints, n: int, shift: Any, count: Ints, to: Ints) -> None:
    """One pass of the radix sort: a stable counting sort by the byte at `shift`."""
    sign = I(-(2**63))
    for v in range(256):
        count[v] = 0
    for i in range(n):
        count[((source[i] ^ sign) >> shift) & I(255)] += 1
    at = 0
    for v in range(256):
        c = count[v]
        count[v] = at
        at += c
    for i in range(n):
        v = ((source[i] ^ sign) >> shift) & I(255)
        to[count[v]] = source[i]
        count[v] += 1


@inner
def new_best(k: int, ranks: int) -> Best:
    """Room for the k best of candidates with so many ranks; `begin` makes it ready for a query."""
    keys, spare = np.empty(k + ROOM, np.int64), np.empty(k + ROOM, np.int64)
    return Best(k, keys, spare, np.empty(ranks, np.int64), np.empty(STATE, np.int64))


@inner
def begin(best: Best, top: int) -> None:
    """Forget all candidates; `top` is more than any rank, or a guess of T."""
    state, histogram = best.state, best.histogram
    state[HELD] = 0
    state[T] = top
    state[BELOW] = 0
    state[LIMIT] = NOBODY
    state[LOOKED] = 0
    for i in range(histogram.size):
        histogram[i] = 0


@inner
def offer(candidates: Ints, notes: Ints, m: int, best: Best) -> None:
    """Take those of candidates[:m], m <= BATCH, that may be among the k smallest keys.

    notes[i] = weight << 24 | bin: the candidate stands for `weight` entries, and `bin` is its rank
    (Hamming) or the step of the histogram it falls into. When the room is full it is cut back to
    the best k and keys from the k-th on are refused: heavy ties stay linear.
    """
    k, keys, histogram, state = best.k, best.keys, best.histogram, best.state
    n, t, below, limit = state[HELD], state[T], state[BELOW], state[LIMIT]
    if n + m > keys.size:
        sort_keys(keys, n, best.spare)
        n = k
        limit = keys[k - 1]
    for i in range(m):  # no branches: whether a candidate enters is a coin toss
        key = candidates[i]
        d = notes[i] & I(0xFFFFFF)
        weight = notes[i] >> I(24)
        keys[n] = key
        n += (d <= t) & (key < limit)
        histogram[d] += weight
        below += weight * (d < t)
    while below >= k:
        t -= 1
        below -= histogram[t]
    state[HELD], state[T], state[BELOW], state[LIMIT] = n, t, below, limit


@inner
def finish(best: Best, wide: Ints, cut: int, starts: Ints, posts: Places, word_of: Places) -> int:
    """Sort the entries of the candidates into `wide`; return how many of the k places they fill.

    No entry of rank above `cut` is among them. A shared word is known by its first place: its list
    is opened only here, once it is certain to matter (random reads were the dearest part).
    """
    k, keys, spare = best.k, best.keys, best.spare
    m = I(0)
    limit = NOBODY
    for i in range(best.state[HELD]):
        key = keys[i]
        rank = key >> HALF
        if rank > cut or key >= limit:
            continue
        p, last = I(0), I(1)
        shared = key & I(1)
        if shared:
            word = word_of[(key & LOW) >> I(1)]
            p, last = starts[word], starts[word + 1]
        while p < last:
            if shared:
                key = (rank << HALF) | (I(posts[p]) << I(1))
            if key >= limit:
                break
            if m == wide.size:
                sort_keys(wide, m, spare)
                m = k
                limit = wide[k - 1]
            wide[m] = key
            m += 1
            p += 1
    sort_keys(wide, m, spare)
    return m if m < k else k


@inner
def write_counts(keys: Ints, m: int, distances: Ints, places: Ints) -> None:
    """Write keys[:m] as one row of results; -1 where there are fewer."""
    for i in range(m):
        distances[i] = keys[i] >> HALF
        places[i] = (keys[i] & LOW) >> I(1)
    for i in range(m, places.size):
        distances[i] = -1
        places[i] = -1


@inner
def write_floats(keys: Ints, m: int, distances: Floats, places: Ints) -> None:
    """Write keys[:m] as one row of results; inf and -1 where there are fewer."""
    for i in range(m):
        distances[i] = rank_float(keys[i] >> HALF)
        places[i] = (keys[i] & LOW) >> I(1)
    for i in range(m, places.size):
        distances[i] = F4(np.inf)
        places[i] = -1
