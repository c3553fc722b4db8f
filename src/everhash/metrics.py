"""Retrieval metrics that treat ties fairly.

Distances between short codes tie by the thousand, and a sort puts tied entries in an arbitrary
order: the same codes then score differently from one program to the next. Here a score is the
*expected value over all orders of the tied entries* (He, Cakir, Bargal, Sclaroff, CVPR 2018), in
closed form, with the best and the worst order on request.

`distances` are (queries, entries), or (entries,) for one query: integers or floats, smaller is
nearer, negative and infinite ones are allowed. They are read row by row in their own type, never
copied as a whole. `relevant` has the same shape and holds booleans, or 0 and 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import InputError, OptionError

Ties = Literal["average", "optimistic", "pessimistic"]
"""How tied entries are scored: by the mean over all their orders, the best, or the worst."""

MAX_GRADE = 512
"""The highest graded relevance; sums of 2**grade stay far from overflow."""

Floats = NDArray[np.float64]
Table = NDArray[Any]


class NoRelevantWarning(UserWarning):
    """Some queries have no relevant entry, so no ranking of theirs can be scored."""


class Score(float):
    """A mean over queries: a float that also has the value of each query.

    Attributes:
        queries: number of queries, with or without a relevant entry.
        without_relevant: number of queries without a relevant entry.
        per_query: one value a query, NaN if it is left out of the mean; read-only.

    >>> Score(np.array([0.5, 1.0, np.nan]), without_relevant=1)
    0.75 (1 of 3 queries without a relevant entry, left out)
    """

    queries: int
    without_relevant: int
    per_query: Floats

    def __new__(cls, per_query: Floats, without_relevant: int) -> Self:
        """Take the mean of the values that are not NaN; NaN if there are none."""
        counted = per_query[~np.isnan(per_query)]
        score = super().__new__(cls, counted.mean() if counted.size else math.nan)
        score.per_query = per_query.copy()
        score.per_query.setflags(write=False)
        score.queries = len(per_query)
        score.without_relevant = without_relevant
        return score

    def __getnewargs__(self) -> tuple[Floats, int]:  # type: ignore[override]  # copy and pickle
        return self.per_query, self.without_relevant

    def __repr__(self) -> str:
        return float.__repr__(self) + (f" ({self._missing()})" if self.without_relevant else "")

    def _missing(self) -> str:
        fate = "left out" if np.isnan(self.per_query).any() else "counted as 0"
        return f"{self.without_relevant} of {self.queries} queries without a relevant entry, {fate}"


def mean_average_precision(
    distances: ArrayLike, relevant: ArrayLike, ties: Ties = "average", at: int | None = None
) -> Score:
    """Mean of `average_precision` over the queries that have a relevant entry.

    >>> mean_average_precision([[0, 1, 2, 3], [0, 0, 0, 0]], [[1, 0, 0, 0], [1, 1, 1, 1]])
    1.0
    """
    return _score(average_precision(distances, relevant, ties, at))


def average_precision(
    distances: ArrayLike, relevant: ArrayLike, ties: Ties = "average", at: int | None = None
) -> Floats:
    """Precision at the rank of each relevant entry, averaged: one value a query.

    With `at`, only the first `at` ranks count and the sum is divided by min(relevant entries, at),
    so that 1.0 can be reached and a better ranking never scores less. (Some public code divides by
    the relevant entries *within* those ranks, which can fall as recall rises.) A query without a
    relevant entry is NaN.

    >>> average_precision([1, 2, 3, 4], [True, False, True, False]).round(4).tolist()
    [0.8333]
    >>> [average_precision([0, 0], [1, 0], ties=t).item() for t in ("optimistic", "pessimistic")]
    [1.0, 0.5]
    """
    rows, hits = _rankings(distances, relevant, ties)
    last = _last_rank(at, rows.shape[1])
    harmonic = _prefix_sums(1 / np.arange(1, rows.shape[1] + 1))

    def value(row: Table, hit: Table) -> float:
        groups = _groups(row, np.flatnonzero(hit)).ordered(ties)
        return _precisions(groups, last, harmonic) / min(int(groups.found.sum()), last)

    return _each_query(value, rows, hits)


def precision_at_k(
    distances: ArrayLike, relevant: ArrayLike, k: int, ties: Ties = "average"
) -> Score:
    """Share of the first `k` ranks that is relevant, over the queries that have a relevant entry.

    The divisor is always `k`: if there are fewer entries, the missing ones count as misses.

    >>> precision_at_k([0, 1, 1, 2], [1, 1, 0, 0], k=2)
    0.75
    """
    rows, hits = _rankings(distances, relevant, ties)
    k = _at_least_one("k", k)

    def value(row: Table, hit: Table) -> float:
        before, size, found = _groups(row, np.flatnonzero(hit)).ordered(ties)
        return float((found / size * np.clip(k - before, 0, size)).sum()) / k

    return _score(_each_query(value, rows, hits))


def precision_within_radius(distances: ArrayLike, relevant: ArrayLike, radius: float) -> Score:
    """Share of the entries no further than `radius` that is relevant, over all queries.

    A query with no entry inside the radius scores 0. So does a query without a relevant entry: all
    that is found for it is wrong. Other metrics leave it out; `without_relevant` counts it too.

    >>> precision_within_radius([[0, 1, 2, 9], [7, 7, 7, 7]], [[1, 0, 0, 1], [1, 1, 1, 1]], 1)
    0.25
    """
    rows, hits = _rankings(distances, relevant)
    if not isinstance(radius, int | float | np.integer | np.floating) or math.isnan(radius):
        raise OptionError(f"radius must be a number, got {radius!r}", hint="try radius=2")
    per_query = np.zeros(len(rows))
    for i, (row, hit) in enumerate(zip(rows, hits, strict=True)):
        inside = row <= radius
        per_query[i] = np.count_nonzero(inside & hit) / max(1, int(np.count_nonzero(inside)))
    return _score(per_query, int((~hits.any(axis=1)).sum()))


def ndcg(distances: ArrayLike, gains: ArrayLike, at: int | None = None) -> Score:
    """Discounted gain of the ranking over that of the best one, averaged over the orders of ties.

    `gains` are graded relevances from 0 to `MAX_GRADE`: grade g at rank r is worth
    (2**g - 1) / log2(r + 1). With `at`, only the first `at` ranks count, in the best ranking too.
    Queries whose grades are all 0 are left out.

    >>> ndcg([1, 2, 3], [3, 1, 0])
    1.0
    >>> round(ndcg([5, 5], [1, 0]), 4)  # the mean of 1 and 1 / log2(3)
    0.8155
    """
    rows, grades = _aligned(distances, gains, "gains")
    if grades.dtype.kind not in "biuf" or not (grades.min() >= 0 and grades.max() <= MAX_GRADE):
        raise InputError(
            f"gains must be numbers from 0 to {MAX_GRADE}",
            hint="pass graded relevances, 0 for not relevant; 2**g - 1 is taken here",
        )
    last = _last_rank(at, rows.shape[1])
    discounts = 1 / np.log2(np.arange(2, rows.shape[1] + 2))
    discounted = _prefix_sums(discounts)

    def value(row: Table, grade: Table) -> float:
        held = np.flatnonzero(grade)
        gain = np.expm1(grade[held].astype(np.float64) * math.log(2))
        before, size, found = _groups(row, held, gain)
        after = before + np.clip(last - before, 0, size)
        got = (found / size * (discounted[after] - discounted[before])).sum()
        best = np.sort(gain)[::-1][:last]
        return min(1.0, float(got / (best @ discounts[: len(best)])))  # above 1 only by rounding

    return _score(_each_query(value, rows, grades))


class _Groups(NamedTuple):
    """Groups of tied entries of one query, nearest first; only groups with something relevant."""

    before: NDArray[np.int64]  # entries nearer than the group
    size: NDArray[np.int64]  # entries in it
    found: Floats  # relevant entries in it, or their gain

    def ordered(self, ties: Ties) -> _Groups:
        """For a bound, keep only the relevant entries of each group, at its front or its back."""
        if ties == "average":
            return self
        size = self.found.astype(np.int64)
        back = self.size - size if ties == "pessimistic" else 0
        return _Groups(self.before + back, size, self.found)


def _groups(row: Table, held: NDArray[np.intp], gain: Floats | None = None) -> _Groups:
    """Group entries by distance. Those at `held` count as 1 each, or as their `gain`."""
    gain = np.ones(len(held)) if gain is None else gain
    if row.dtype.kind in "iu" and int(row.max()) - int(row.min()) < max(1024, row.size):
        return _groups_by_counting(row, held, gain)
    order = np.argsort(row[held])
    near = row[held[order]]
    first = np.flatnonzero(np.concatenate(([True], near[1:] != near[:-1])))
    found = np.add.reduceat(gain[order], first)
    ranked = np.sort(row)  # the distances alone sort several times faster than argsort
    before = np.searchsorted(ranked, near[first], side="left")
    return _Groups(before, np.searchsorted(ranked, near[first], side="right") - before, found)


def _groups_by_counting(row: Table, held: NDArray[np.intp], gain: Floats) -> _Groups:
    """Group without sorting: for integers in a short range, such as Hamming distances."""
    bins = row.astype(np.int64)
    bins -= row.min().astype(np.int64)  # uint64 beyond int64 wraps, and here wraps back
    size = np.bincount(bins)
    found = np.bincount(bins[held], gain, len(size)).astype(np.float64, copy=False)
    kept = np.flatnonzero(found)
    return _Groups((np.cumsum(size) - size)[kept], size[kept], found[kept])


def _precisions(groups: _Groups, last: int, harmonic: Floats) -> float:
    """Sum the expected precision at the rank of every relevant entry, up to rank `last`.

    Rank t of a group is relevant with probability found / size, and has then on average
    above + 1 + (t - 1) rise relevant entries at or before it. Dividing by before + t, the sum over
    t splits into a constant and a harmonic part. A group of one leaves `rise` free; the value taken
    makes the harmonic part vanish, and its rounding with it.
    """
    before, size, found = groups
    above = np.cumsum(found) - found
    rise = np.where(size > 1, (found - 1) / np.maximum(size - 1, 1), (above + 1) / (before + 1))
    counted = np.clip(last - before, 0, size)
    reciprocals = harmonic[before + counted] - harmonic[before]
    sums = rise * counted + (above + 1 - rise * (before + 1)) * reciprocals
    return float((found / size * sums).sum())


def _prefix_sums(terms: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(terms)))


def _each_query(value: Callable[[Table, Table], float], rows: Table, worth: Table) -> Floats:
    pairs = zip(rows, worth, strict=True)
    return np.array([value(row, w) if w.any() else math.nan for row, w in pairs], dtype=np.float64)


def _score(per_query: Floats, without_relevant: int | None = None) -> Score:
    """Return the mean of a metric's values; warn about queries without a relevant entry."""
    left_out = int(np.isnan(per_query).sum())
    score = Score(per_query, left_out if without_relevant is None else without_relevant)
    if score.without_relevant:
        warnings.warn(score._missing(), NoRelevantWarning, stacklevel=3)
    return score


def _rankings(
    distances: ArrayLike, relevant: ArrayLike, ties: str = "average"
) -> tuple[Table, NDArray[np.bool_]]:
    rows, hits = _aligned(distances, relevant, "relevant")
    if hits.dtype.kind not in "biu" or hits.min() < 0 or hits.max() > 1:
        raise InputError(
            f"relevant must be booleans, or integers 0 and 1; got other {hits.dtype} values",
            hint="compare labels first: relevant = query_labels[:, None] == entry_labels",
        )
    if ties not in get_args(Ties):
        raise OptionError(f"unknown ties {ties!r}", hint=f"one of {', '.join(get_args(Ties))}")
    return rows, hits.astype(np.bool_, copy=False)


def _aligned(distances: ArrayLike, other: ArrayLike, name: str) -> tuple[Table, Table]:
    """Check that both tables have one shape and distances are numbers; return them 2-d."""
    shape_hint = "both are (queries, entries), or (entries,) for one query, and not empty"
    try:
        rows, table = np.asarray(distances), np.asarray(other)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"distances or {name}: {error}", hint=shape_hint) from None
    if rows.shape != table.shape or rows.ndim not in {1, 2} or rows.size == 0:
        shapes = f"distances have shape {rows.shape} and {name} {table.shape}"
        raise InputError(shapes, hint=shape_hint)
    if rows.dtype.kind not in "iuf":
        kind = f"distances must be integers or floats, got {rows.dtype}"
        raise InputError(kind, hint="pass the distances themselves, smaller is nearer")
    rows, table = np.atleast_2d(rows), np.atleast_2d(table)
    lost = np.flatnonzero(np.isnan(rows.min(axis=1)))
    if lost.size:
        hint = "drop the entry, or use infinity for one that is out of reach"
        raise InputError(f"query {lost[0]} has a distance that is NaN", hint=hint)
    return rows, table


def _last_rank(at: int | None, entries: int) -> int:
    return entries if at is None else min(_at_least_one("at", at), entries)


def _at_least_one(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        wrong = f"{name} must be a whole number of ranks, at least 1; got {value!r}"
        raise OptionError(wrong, hint=f"try {name}=10")
    return int(value)
