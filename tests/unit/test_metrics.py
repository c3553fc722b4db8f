"""Rankings scored by formula against rankings scored by trying every order of their ties."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score

from everhash.errors import InputError, OptionError
from everhash.metrics import (
    MAX_GRADE,
    NoRelevantWarning,
    Score,
    Ties,
    average_precision,
    mean_average_precision,
    ndcg,
    precision_at_k,
    precision_within_radius,
)

Ranking = tuple[list[int], list[int]]
"""One query's distances, and its entries' relevance."""

EXACT = 1e-12
CUTS = st.none() | st.integers(1, 9)
TIES: tuple[Ties, ...] = ("average", "optimistic", "pessimistic")


@st.composite
def rankings(draw: st.DrawFn, top: int = 1, entries: int = 7) -> Ranking:
    """Draw a few entries, at so few distances that most of them tie, some with worth 1 to top."""
    n = draw(st.integers(1, entries))
    distances = draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    worth = draw(st.lists(st.integers(0, top), min_size=n, max_size=n).filter(any))
    return distances, worth


def orders(ranking: Ranking) -> Iterator[list[int]]:
    """Yield the entries' worth by rank, once for each order a sort could leave the ties in."""
    distances, worth = ranking
    groups = [
        [w for d, w in zip(distances, worth, strict=True) if d == distance]
        for distance in sorted(set(distances))
    ]
    for choice in itertools.product(*map(itertools.permutations, groups)):
        yield [w for group in choice for w in group]


def textbook_ap(hits: list[int], at: int | None = None) -> float:
    ranks = [rank for rank, hit in enumerate(hits, 1) if hit]
    counted = [i / rank for i, rank in enumerate(ranks, 1) if at is None or rank <= at]
    return math.fsum(counted) / min(len(ranks), at or len(ranks))


def textbook_dcg(grades: list[int], at: int | None) -> float:
    return math.fsum((2**g - 1) / math.log2(r + 1) for r, g in enumerate(grades[:at], 1))


def textbook_ndcg(grades: list[int], at: int | None) -> float:
    return textbook_dcg(grades, at) / textbook_dcg(sorted(grades, reverse=True), at)


def bounds(values: list[float]) -> dict[Ties, float]:
    """Return what each way of treating ties should score, given the score of every order."""
    mean = math.fsum(values) / len(values)
    return {"average": mean, "optimistic": max(values), "pessimistic": min(values)}


@given(rankings(), CUTS)
def test_average_precision_is_the_mean_the_best_and_the_worst_of_all_tie_orders(
    ranking: Ranking, at: int | None
) -> None:
    expected = bounds([textbook_ap(hits, at) for hits in orders(ranking)])
    for ties in TIES:
        got = average_precision(*ranking, ties=ties, at=at)
        np.testing.assert_allclose(got, [expected[ties]], rtol=0, atol=EXACT)


@given(rankings(), st.integers(1, 9))
def test_precision_at_k_is_the_mean_the_best_and_the_worst_of_all_tie_orders(
    ranking: Ranking, k: int
) -> None:
    expected = bounds([sum(hits[:k]) / k for hits in orders(ranking)])
    for ties in TIES:
        assert precision_at_k(*ranking, k, ties=ties) == pytest.approx(expected[ties], abs=EXACT)


@given(rankings(top=3, entries=6), CUTS)
def test_ndcg_is_the_mean_of_all_tie_orders(ranking: Ranking, at: int | None) -> None:
    expected = bounds([textbook_ndcg(grades, at) for grades in orders(ranking)])["average"]
    assert ndcg(*ranking, at=at) == pytest.approx(expected, abs=EXACT)


@given(rankings(entries=40), CUTS)
def test_bounds_hold_the_average_between_zero_and_one(ranking: Ranking, at: int | None) -> None:
    worst, mean, best = (
        average_precision(*ranking, ties=ties, at=at).item()
        for ties in ("pessimistic", "average", "optimistic")
    )
    assert 0 <= worst <= mean + EXACT
    assert mean <= best + EXACT
    assert best <= 1


@given(rankings(top=3, entries=40), CUTS, st.randoms(use_true_random=False))
def test_order_of_entries_does_not_matter(ranking: Ranking, at: int | None, random: Any) -> None:
    pairs = list(zip(*ranking, strict=True))
    random.shuffle(pairs)
    distances, grades = map(list, zip(*pairs, strict=True))
    assert ndcg(distances, grades, at) == pytest.approx(ndcg(*ranking, at), abs=EXACT)
    hits, shuffled = [g > 0 for g in ranking[1]], [g > 0 for g in grades]
    for ties in TIES:
        before = average_precision(ranking[0], hits, ties, at)
        np.testing.assert_array_equal(before, average_precision(distances, shuffled, ties, at))


# Every type holds 0 to 3; the offsets reach its edges, where a difference could overflow.
INTEGERS = [
    (np.int8, -128),
    (np.uint8, 252),
    (np.int16, 32764),
    (np.int64, -(2**63)),
    (np.int64, 2**63 - 4),
    (np.uint64, 2**63 - 2),
    (np.uint64, 2**64 - 4),
]


@pytest.mark.parametrize(("dtype", "offset"), INTEGERS)
@given(ranking=rankings(top=3, entries=40), at=CUTS)
def test_integers_score_as_floats_do(
    dtype: type[np.integer[Any]], offset: int, ranking: Ranking, at: int | None
) -> None:
    small, grades = [d + 1 for d in ranking[0]], ranking[1]
    integers = np.array([d + offset for d in small], dtype=dtype)
    floats = np.array(small, dtype=np.float32)
    hits = [g > 0 for g in grades]
    for ties in TIES:
        np.testing.assert_array_equal(
            average_precision(integers, hits, ties, at), average_precision(floats, hits, ties, at)
        )
    assert ndcg(integers, grades, at) == pytest.approx(ndcg(floats, grades, at), abs=EXACT)


@given(rankings(top=3, entries=40))
def test_integers_far_apart_score_as_near_ones_do(ranking: Ranking) -> None:
    far = np.array(ranking[0], dtype=np.int64) * 2**61
    hits = [g > 0 for g in ranking[1]]
    np.testing.assert_array_equal(average_precision(far, hits), average_precision(ranking[0], hits))
    assert ndcg(far, ranking[1]) == pytest.approx(ndcg(*ranking), abs=EXACT)


def without_ties(entries: int) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int64]]:
    rng = np.random.default_rng(entries)
    distances = rng.permuted(np.arange(4 * entries).reshape(4, -1), axis=1).astype(np.float32)
    grades = rng.integers(0, 4, distances.shape)
    return distances, grades > 1, grades


@pytest.mark.parametrize("entries", [5, 100, 20_000])
def test_without_ties_average_precision_is_the_textbook_one_and_scikit_learns(entries: int) -> None:
    distances, relevant, _ = without_ties(entries)
    for ties in TIES:
        got = average_precision(distances, relevant, ties)
        for value, row, hits in zip(got, distances, relevant, strict=True):
            ranked = hits[np.argsort(row)].astype(int).tolist()
            assert value == pytest.approx(textbook_ap(ranked), abs=EXACT)
            assert value == pytest.approx(average_precision_score(hits, -row), abs=EXACT)


@pytest.mark.parametrize("at", [None, 1, 3, 50])
def test_without_ties_ndcg_is_scikit_learns_on_exponential_gains(at: int | None) -> None:
    distances, _, grades = without_ties(100)
    theirs = ndcg_score(2**grades - 1, -distances, k=at)
    assert ndcg(distances, grades, at) == pytest.approx(theirs, abs=EXACT)


def test_large_ties_agree_with_a_sum_rank_by_rank() -> None:
    rng = np.random.default_rng(0)
    distances = rng.binomial(32, 0.5, 59_000)
    relevant = rng.random(59_000) < 0.1
    total = 0.0
    for d in np.unique(distances):
        n, p = (distances == d).sum(), relevant[distances == d].sum()
        before, above = (distances < d).sum(), relevant[distances < d].sum()
        t = np.arange(1, n + 1)
        rise = (p - 1) / max(n - 1, 1)
        total += p / n * ((above + 1 + (t - 1) * rise) / (before + t)).sum()
    got = average_precision(distances, relevant)
    np.testing.assert_allclose(got, [total / relevant.sum()], rtol=1e-11)


def test_a_hit_at_rank_one_is_not_lost() -> None:
    """Public `get_AP` of TALR and deep-mihash drops it, and scores this ranking 1/3."""
    assert mean_average_precision([1, 2, 3, 4], [1, 0, 1, 0]) == pytest.approx(5 / 6, abs=EXACT)


@pytest.mark.parametrize("at", [None, 1, 7, 1000])
@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_a_perfect_ranking_scores_exactly_one(at: int | None, kind: type[Any]) -> None:
    distances = np.repeat(np.arange(20), np.arange(1, 21)).astype(kind)
    untied = np.arange(5000).astype(kind)
    for ties in TIES:
        assert mean_average_precision(distances, distances < 12, ties, at) == 1.0
        assert mean_average_precision(untied, untied < 4500, ties, at) == 1.0


@pytest.mark.parametrize("at", [None, 1, 7, 1000])
@pytest.mark.parametrize("entries", [3, 50, 5000])
def test_ndcg_of_a_perfect_ranking_is_never_above_one(at: int | None, entries: int) -> None:
    grades = np.random.default_rng(entries).integers(0, 4, entries)
    for distances in (-grades, np.argsort(np.argsort(-grades)).astype(np.float32)):
        score = ndcg(distances, grades, at)
        assert 1 - 1e-11 < score <= 1


def test_cut_average_precision_never_falls_as_more_is_found() -> None:
    """Dividing by the relevant entries within the cut would score these 1 and 0.7."""
    one, more = [1, 0, 0, 0, 0, 1], [1, 0, 0, 0, 1, 0]
    found = [average_precision(range(6), hits, at=5).item() for hits in (one, more)]
    assert found == pytest.approx([1 / 2, (1 + 2 / 5) / 2])


def test_precision_at_k_divides_by_k_beyond_the_last_entry() -> None:
    assert precision_at_k([0, 1], [1, 1], k=8) == 2 / 8


def test_infinite_distances_tie_at_the_end() -> None:
    far = [0.0, np.inf, np.inf, -np.inf]
    assert average_precision(far, [0, 1, 0, 0]) == pytest.approx((1 / 3 + 1 / 4) / 2)
    tied, ranked = [1.0, np.inf, np.inf, np.inf], [1, 7, 7, 7]
    assert average_precision(tied, [0, 1, 1, 0]) == average_precision(ranked, [0, 1, 1, 0])


def test_minus_zero_ties_with_zero() -> None:
    assert average_precision([0.0, -0.0], [1, 0]) == average_precision([0, 0], [1, 0]) == 0.75


def test_radius_takes_its_rim_and_scores_an_empty_ball_zero() -> None:
    distances = [[0, 2, 2, 3], [3, 4, 5, 6], [1, 1, 1, 1]]
    relevant = [[1, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0]]
    score = precision_within_radius(distances, relevant, radius=2)
    np.testing.assert_allclose(score.per_query, [2 / 3, 0, 1 / 4])
    assert score == pytest.approx(np.mean([2 / 3, 0, 1 / 4]))


def test_radius_is_compared_in_the_type_of_the_distances() -> None:
    tenth = np.array([0.1, 0.2], dtype=np.float32)
    assert precision_within_radius(tenth, [1, 0], radius=0.1) == 1.0
    with pytest.warns(NoRelevantWarning, match="counted as 0"):
        assert precision_within_radius(np.array([0, 1], np.uint8), [0, 0], radius=-1) == 0.0


MIXED = [[0, 1], [0, 1], [0, 1]], [[1, 0], [0, 0], [0, 1]]
LEAVE_OUT: list[Callable[..., Score]] = [
    mean_average_precision,
    ndcg,
    lambda d, r: precision_at_k(d, r, 1),
]


@pytest.mark.parametrize("metric", LEAVE_OUT)
def test_queries_without_a_relevant_entry_are_left_out_and_reported(
    metric: Callable[..., Score],
) -> None:
    with pytest.warns(NoRelevantWarning, match=r"^1 of 3 queries .* left out$") as caught:
        score = metric(*MIXED)
    assert len(caught) == 1
    assert (score.queries, score.without_relevant) == (3, 1)
    assert np.isnan(score.per_query).tolist() == [False, True, False]
    assert float(score) == pytest.approx(np.nanmean(score.per_query))
    assert repr(score) == f"{float(score)!r} (1 of 3 queries without a relevant entry, left out)"


def test_warning_points_at_the_line_that_asked() -> None:
    with pytest.warns(NoRelevantWarning) as caught:
        mean_average_precision(*MIXED)
    assert caught[0].filename == __file__


def test_radius_counts_queries_without_a_relevant_entry_as_zero_and_reports_them() -> None:
    with pytest.warns(NoRelevantWarning, match=r"^1 of 3 queries .* counted as 0$") as caught:
        score = precision_within_radius(*MIXED, radius=0)
    assert len(caught) == 1
    assert (score.queries, score.without_relevant) == (3, 1)
    assert score.per_query.tolist() == [1, 0, 0]
    assert score == pytest.approx(1 / 3)
    assert "counted as 0" in repr(score)


@pytest.mark.parametrize("metric", LEAVE_OUT)
def test_nothing_relevant_anywhere_is_nan(metric: Callable[..., Score]) -> None:
    with pytest.warns(NoRelevantWarning, match="2 of 2"):
        assert math.isnan(metric([[0, 1], [1, 1]], [[0, 0], [0, 0]]))


def test_values_a_query_need_no_warning_because_nan_shows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(average_precision(*MIXED)).tolist() == [False, True, False]


def test_score_is_a_float_that_copies_and_pickles() -> None:
    score = mean_average_precision([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    assert isinstance(score, float)
    assert repr(score) == str(score) == json.dumps(score) == "0.75"
    for twin in (copy.deepcopy(score), pickle.loads(pickle.dumps(score))):  # noqa: S301
        assert (twin, twin.queries, twin.without_relevant) == (0.75, 2, 0)
        np.testing.assert_array_equal(twin.per_query, [1, 0.5])


def test_score_freezes_its_own_values_only() -> None:
    values = np.array([0.25, 0.75])
    score = Score(values, without_relevant=0)
    with pytest.raises(ValueError, match="read-only"):
        score.per_query[0] = 0
    values[0] = 1
    assert score.per_query.tolist() == [0.25, 0.75]


def test_one_axis_is_one_query() -> None:
    assert mean_average_precision([3, 1, 2], [0, 1, 0]).queries == 1
    assert average_precision([3, 1, 2], [0, 1, 0]).shape == (1,)


def test_inputs_are_left_as_they_were() -> None:
    distances, relevant = np.array([[2, 0, 1]]), np.array([[1, 0, 1]])
    for array in (distances, relevant):
        array.setflags(write=False)
    mean_average_precision(distances, relevant)
    mean_average_precision(distances.astype(np.float32), relevant)
    ndcg(distances, relevant)


def test_counting_beats_sorting_by_far() -> None:
    """59,000 Hamming distances a query, in well under a millisecond on an idle machine."""
    rng = np.random.default_rng(0)
    distances = rng.integers(0, 33, (20, 59_000), dtype=np.uint8)
    relevant = rng.random(distances.shape) < 0.1

    def seconds(task: Callable[[], object]) -> float:
        started = time.perf_counter()
        task()
        return time.perf_counter() - started

    counting = min(seconds(lambda: average_precision(distances, relevant)) for _ in range(5))
    sorting = min(seconds(lambda: np.argsort(distances, axis=1)) for _ in range(2))
    assert counting < sorting


TWO: list[Any] = [[0, 1], [1, 0]]
HIT: list[Any] = [[1, 0], [0, 1]]
BAD_TABLES: list[tuple[Any, Any, str]] = [
    (TWO, HIT[:1], "shape"),
    (TWO, HIT[0], "shape"),
    ([], [], "shape"),
    ([[]], [[]], "shape"),
    (1, True, "shape"),
    ([TWO], [HIT], "shape"),
    ([[0, 1], [1]], HIT, "inhomogeneous"),
    ([[0, 1], [np.nan, 0]], HIT, "query 1 has a distance that is NaN"),
    ([["a", "b"]], [[0, 1]], "integers or floats"),
    ([[True, False]], [[0, 1]], "integers or floats"),
]
BAD_RELEVANT = [[[0, 2]], [[-1, 1]], [[0.0, 1.0]], [["yes", "no"]]]
BAD_GAINS = [[[0, -1]], [[0, np.nan]], [[0, np.inf]], [[0, MAX_GRADE + 1]], [["much", "little"]]]
BAD_RANKS: list[Any] = [0, -1, 2.0, True, "3"]


def refused(error: type[InputError], message: str, call: Callable[[], object]) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert caught.value.hint


@pytest.mark.parametrize(("distances", "relevant", "message"), BAD_TABLES)
def test_tables_that_do_not_line_up_are_refused(
    distances: Any, relevant: Any, message: str
) -> None:
    refused(InputError, message, lambda: mean_average_precision(distances, relevant))
    refused(InputError, message, lambda: average_precision(distances, relevant))
    refused(InputError, message, lambda: precision_at_k(distances, relevant, 1))
    refused(InputError, message, lambda: precision_within_radius(distances, relevant, 1))
    refused(InputError, message, lambda: ndcg(distances, relevant))


@pytest.mark.parametrize("relevant", BAD_RELEVANT)
def test_relevance_that_is_not_yes_or_no_is_refused(relevant: Any) -> None:
    refused(InputError, "booleans", lambda: average_precision([[0, 1]], relevant))


@pytest.mark.parametrize("gains", BAD_GAINS)
def test_gains_that_are_not_grades_are_refused(gains: Any) -> None:
    refused(InputError, "gains", lambda: ndcg([[0, 1]], gains))


@pytest.mark.parametrize("rank", BAD_RANKS)
def test_ranks_below_one_or_not_whole_are_refused(rank: Any) -> None:
    refused(OptionError, "at must be", lambda: average_precision(TWO, HIT, at=rank))
    refused(OptionError, "at must be", lambda: ndcg(TWO, HIT, at=rank))
    refused(OptionError, "k must be", lambda: precision_at_k(TWO, HIT, rank))


@pytest.mark.parametrize("ties", ["best", "", None, ["average"]])
def test_unknown_ties_are_refused(ties: Any) -> None:
    refused(OptionError, "unknown ties", lambda: average_precision(TWO, HIT, ties=ties))
    refused(OptionError, "unknown ties", lambda: precision_at_k(TWO, HIT, 1, ties=ties))


@pytest.mark.parametrize("radius", [np.nan, None, "2"])
def test_a_radius_that_is_no_number_is_refused(radius: Any) -> None:
    refused(OptionError, "radius", lambda: precision_within_radius(TWO, HIT, radius))
