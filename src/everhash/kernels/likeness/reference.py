"""The specification of likeness codes and of the searches by them: slow, short, in NumPy.

Entries are arrays by place: words (n, W), along (n,), scale (n,). Queries are planes (q, 8, W),
totals, along and step (q,). See the package for what they mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.reference import rotate

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Words = NDArray[np.uint64]
Signs = NDArray[np.int8]
Ints = NDArray[np.int64]

PLANES = 8
"""Bits of a query's coordinate."""
LEVELS = 127
"""Steps from 0 to a query's largest coordinate."""
TINY = 1e-6
"""A part across the direction that is shorter than this is rounding, and taken for zero."""
SURE = 6.5
"""Standard deviations of an estimate that the error bound allows: a miss in 1e9 or fewer."""
SLACK = 1e-5
"""Added to the error bound, for rounding."""
GIVEN, GUESSED, LOOSE = 0, 1, 2
"""Kinds of entries: a label was given, a label was guessed, neither."""


def split(rows: Floats, direction: Floats) -> tuple[Doubles, Doubles, Doubles]:
    """Return, of rows scaled to unit length, the part along, the part across, and its length."""
    exact = rows.astype(np.float64)
    length = np.sqrt((exact * exact).sum(axis=1, keepdims=True))
    unit = np.divide(exact, length, out=np.zeros_like(exact), where=length > 0)
    along = unit @ direction.astype(np.float64)
    across = unit - along[:, None] * direction
    rest = np.sqrt((across * across).sum(axis=1))
    across[rest < TINY] = 0
    return along, across, np.where(rest < TINY, 0, rest)


def turn(rows: Doubles, signs: Signs) -> Floats:
    """Rotate rows, filled up with zeros."""
    filled = np.zeros((len(rows), signs.shape[1]), np.float32)
    filled[:, : rows.shape[1]] = rows
    return rotate(filled, signs)


def pack(bits: NDArray[np.bool_]) -> Words:
    """Pack (..., p) booleans, 64 a word, the first lowest."""
    padded = np.zeros((*bits.shape[:-1], -(-bits.shape[-1] // 64) * 64), np.bool_)
    padded[..., : bits.shape[-1]] = bits
    packed = np.packbits(padded, axis=-1, bitorder="little")
    return packed.view("<u8").astype(np.uint64)


def join(words: Words, along: Floats, scale: Floats) -> Words:
    """Return (n, W + 1) codes as they are kept: the words of an entry, then its two floats.

    One row of one table, so that an entry costs a search one or two cache lines.
    """
    codes = np.empty((len(words), words.shape[1] + 1), np.uint64)
    codes[:, :-1] = words
    codes[:, -1:].view(np.float32)[:] = np.stack([along, scale], axis=1)
    return codes


def parts(codes: Words) -> tuple[Words, Floats, Floats]:
    """Return words (n, W), along and scale (n,) of codes that `join` has put together.

    >>> codes = join(np.array([[7]], np.uint64), np.float32([0.5]), np.float32([0.25]))
    >>> [part.tolist() for part in parts(codes)]
    [[[7]], [0.5], [0.25]]
    """
    floats = np.ascontiguousarray(codes[:, -1:]).view(np.float32)
    return np.ascontiguousarray(codes[:, :-1]), floats[:, 0].copy(), floats[:, 1].copy()


def encode(rows: Floats, direction: Floats, signs: Signs) -> tuple[Words, Floats, Floats]:
    """Return words (n, W), along and scale (n,) of entries.

    Args:
        rows: (n, d).
        direction: (d,) of unit length, or zeros.
        signs: (rounds, p) of -1 and +1, p >= d: the rotation; see `kernels.reference.rotate`.
    """
    along, across, rest = split(rows, direction)
    some = rest > 0
    turned = turn(across / np.where(some, rest, 1)[:, None], signs)
    sizes = np.abs(turned).sum(axis=1, dtype=np.float64)
    scale = np.divide(rest, sizes, out=np.zeros_like(rest), where=some)
    return pack(turned > 0), along.astype(np.float32), scale.astype(np.float32)


def encode_queries(
    rows: Floats, direction: Floats, signs: Signs
) -> tuple[Words, Ints, Floats, Floats, Floats]:
    """Return planes (q, 8, W), totals, along, step and rest (q,) of queries.

    A query's coordinates are whole steps from -127 to 127, kept as bit planes of their two's
    complement; `totals` are their sums, and `rest` is the length of the part across.
    """
    along, across, rest = split(rows, direction)
    turned = turn(across, signs)
    step = np.abs(turned).max(axis=1, initial=0) / np.float32(LEVELS)
    steps = np.rint(turned / np.where(step > 0, step, np.float32(1))[:, None])
    whole = np.clip(steps, -LEVELS, LEVELS).astype(np.int8)
    bits = (whole.view(np.uint8)[:, None, :] >> np.arange(PLANES)[None, :, None]) & 1
    totals = whole.sum(axis=1, dtype=np.int64)
    single = along.astype(np.float32), step.astype(np.float32), rest.astype(np.float32)
    return pack(bits > 0), totals, *single


def estimates(
    words: Words,
    along: Floats,
    scale: Floats,
    planes: Words,
    totals: Ints,
    q_along: Floats,
    q_step: Floats,
) -> Floats:
    """Return (q, n) estimated cosines, within -1 .. 1; 0 is never -0."""
    counts = np.bitwise_count(planes[:, :, None, :] & words[None, None]).sum(axis=3, dtype=np.int64)
    weights = np.array([1, 2, 4, 8, 16, 32, 64, -128])
    T = 2 * np.einsum("qjn,j->qn", counts, weights) - totals[:, None]
    there = q_along[:, None] * along[None]
    cosines = there + (q_step[:, None] * T.astype(np.float32)) * scale[None]
    clipped: Floats = np.clip(cosines, np.float32(-1), np.float32(1)) + np.float32(0)
    return clipped


def error_bounds(along: Floats, scale: Floats, step: Floats, rest: Floats, size: int) -> Floats:
    """Return (q, n) bounds on the errors of estimates, of entries (n,) and queries (q,).

    The first term is the spread of a random rotation of `size` coordinates, the second what
    rounding a query to whole steps can add up to.
    """
    f4 = np.float32
    spread = np.sqrt(np.maximum(f4(size) * (scale * scale) - (f4(1) - along * along), f4(0)))
    spread = spread * f4(SURE / np.sqrt(size - 1))
    bounds: Floats = rest[:, None] * spread[None] + (step * f4(size / 2))[:, None] * scale[None]
    return bounds + f4(SLACK)


def nearest_likeness(cosines: Floats, alive: NDArray[np.uint8], k: int) -> tuple[Floats, Ints]:
    """Return (q, k) scores and places of living entries by (estimate descending, place).

    Takes (q, n) estimates instead of codes. Padded with -inf and -1.
    """
    scores = np.full((len(cosines), k), -np.inf, np.float32)
    places = np.full((len(cosines), k), -1, np.int64)
    living = np.flatnonzero(alive)
    for row, mine in enumerate(cosines):
        best = living[np.lexsort((living, -mine[living]))][:k]
        scores[row, : len(best)], places[row, : len(best)] = mine[best], best
    return scores, places


def above_likeness(cosines: Floats, bounds: Floats, alive: NDArray[np.uint8], floor: float) -> Ints:
    """Return places, ascending, of living entries whose estimate and bound reach `floor`.

    Takes (n,) estimates and bounds of one query instead of codes.
    """
    return np.flatnonzero((cosines + bounds >= np.float32(floor)) & (alive != 0))


class Listed(NamedTuple):
    """Posting lists: label y has runs 2 y and 2 y + 1 of places; see `kernels.search.labels`."""

    runs: Ints
    arena: NDArray[np.int32]
    counts: Ints
    """Living entries of each label; 0 leaves it out."""

    def places(self, label: int) -> Ints:
        """Return the places under a label that are not removed."""
        runs = self.runs[2 * label : 2 * label + 2, :2].tolist()
        listed = np.concatenate([self.arena[start : start + many] for start, many in runs])
        return listed[listed >= 0].astype(np.int64)


def search_meaning(
    P: Floats,
    trust: Floats,
    distance: NDArray[np.uint16],
    given: Listed,
    guessed: Listed,
    loose: NDArray[np.int32],
    cosines: Floats,
    k: int,
) -> tuple[Floats, Floats, Ints, Ints, Signs]:
    """Rank entries by the probability of having the query's label, then by likeness, then place.

    An entry with a given label y scores P[y]; one whose label y was guessed, from a word at
    some distance from y's codeword, P[y] * trust[distance]; a loose one 0. An entry with several
    given labels counts under the likeliest, ties to the smallest number.

    Args:
        P: (q, L) probability of each label.
        trust: (T,) share of right guesses by distance, never rising; the last serves all beyond.
        distance: (n,) by place.
        given: lists of given labels.
        guessed: lists of guessed labels.
        loose: (m,) places of entries with neither.
        cosines: (q, n) estimates; the compiled kernel takes codes instead.
        k: results wanted.

    Returns:
        (q, k) scores, likeness, places, labels and kinds; -inf and -1 where there are fewer.
    """
    floats = np.full((2, len(P), k), -np.inf, np.float32)
    whole = np.full((3, len(P), k), -1, np.int64)
    for row, chances in enumerate(P):
        found: dict[int, tuple[float, int, int]] = {}
        for place in loose.tolist():
            found[place] = (0.0, -1, LOOSE)
        for label in np.flatnonzero(guessed.counts[: P.shape[1]]).tolist():
            for place in guessed.places(label).tolist():
                sure = trust[min(int(distance[place]), len(trust) - 1)]
                found[place] = (float(chances[label] * sure), label, GUESSED)
        for label in np.lexsort((np.arange(P.shape[1]), -chances))[::-1].tolist():
            if given.counts[label]:  # likelier labels come later and replace others
                for place in given.places(label).tolist():
                    found[place] = (float(chances[label]), label, GIVEN)
        order = sorted(found, key=lambda p: (-found[p][0], -float(cosines[row, p]), p))[:k]
        for at, place in enumerate(order):
            score, label, kind = found[place]
            floats[:, row, at] = score, cosines[row, place]
            whole[:, row, at] = place, label, kind
    return floats[0], floats[1], whole[0], whole[1], whole[2].astype(np.int8)


def cosines(halves: NDArray[np.float16], queries: Floats) -> Doubles:
    """Return (q, n) cosines of rows and queries of unit length; 0 for a row of zeros."""
    rows = halves.astype(np.float64)
    lengths = np.sqrt((rows * rows).sum(axis=1))
    rows /= np.where(lengths > 0, lengths, 1)[:, None]
    return np.clip(queries.astype(np.float64) @ rows.T, -1, 1)


def search_cells(
    bounds: Floats,
    numbers: Ints,
    distances: Ints,
    reach: Floats,
    exact: Floats,
    k: int,
    first: int,
    wanted: int,
) -> tuple[Floats, Ints, int]:
    """Return the cosines and places found for one query, and how many cells it has looked into.

    Args:
        bounds: (cells,) how large a cosine is expected in a cell at the most.
        numbers: (n,) cell of each entry; -1 for one that is not searched.
        distances: (n,) Hamming distances.
        reach: (n,) how large a cosine may be by its estimate.
        exact: (n,) cosines by features.
        k: results wanted.
        first: cells of the first round; each looks into a quarter of all before it, at least two.
        wanted: entries that Hamming distance keeps.
    """
    order, best = np.argsort(-bounds, kind="stable"), list[tuple[float, int]]()
    met, start, here = np.empty(0, np.int64), 0, order[:first]
    while len(here):
        each = [np.flatnonzero(numbers == cell) for cell in here]
        mine = np.concatenate([np.empty(0, np.int64), *each])
        met = np.concatenate([met, distances[mine]])
        limit = np.sort(met)[wanted - 1] if len(met) >= wanted else np.inf
        mine = mine[distances[mine] <= limit]
        for place in mine[np.argsort(-reach[mine], kind="stable")].tolist():
            if len(best) == k and reach[place] < best[-1][0]:
                break
            joined = [*best, (float(exact[place]), place)]
            best = sorted(joined, key=lambda pair: (-pair[0], pair[1]))[:k]
        start += len(here)
        here = order[start : start + max(2, start // 4)]
        here = here[bounds[here] >= best[-1][0]] if len(best) == k else here
    scores, places = (np.array([pair[i] for pair in best]) for i in range(2))
    return scores.astype(np.float32), places.astype(np.int64), start
