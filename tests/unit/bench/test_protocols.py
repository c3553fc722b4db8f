"""How hashers are judged: fast scores against slow ones, and splits that keep their word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import Index, OnlineHasher, peers
from everhash.bench.counts import Groups, ScoreRange, Shelf, precision_of_groups
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import (
    Split,
    given_split,
    hide_labels,
    joining,
    paper_split,
    sorted_by_label,
    with_wrong_labels,
)
from everhash.bench.scoring import (
    Scores,
    home_codes,
    score_codewords,
    score_index,
    score_mapping,
    score_mixture,
    score_novelty,
)
from everhash.codes import Codes, asymmetric, hamming
from everhash.metrics import Ties, average_precision, precision_at_k
from tests.conftest import Stream

EXACT = 1e-12
Signs = NDArray[np.int8]


@st.composite
def shelves(draw: st.DrawFn) -> tuple[Signs, Signs, NDArray[np.int64], NDArray[np.int64]]:
    """Draw codes of queries and of entries, bits of both at times inactive, and their labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    width, n, m = draw(st.integers(1, 140)), draw(st.integers(1, 6)), draw(st.integers(1, 40))
    # a few patterns again and again, so that many entries tie
    patterns = rng.integers(-1, 2, (draw(st.integers(1, 20)), width)).astype(np.int8)
    queries, entries = (patterns[rng.integers(0, len(patterns), k)] for k in (n, m))
    return queries, entries, rng.integers(0, 4, n), rng.integers(0, 3, m)


def groups_of(row: NDArray[np.int64], hits: NDArray[np.bool_]) -> Groups:
    """Return the groups of tied entries of one query."""
    values = np.unique(row)[:, None]
    before, size = (row < values).sum(axis=1), (row == values).sum(axis=1)
    return before, size, (hits & (row == values)).sum(axis=1)


@given(st.lists(st.tuples(st.integers(-2, 5), st.booleans()), min_size=1, max_size=60))
def test_precision_of_counts_equals_that_of_distances(entries: list[tuple[int, bool]]) -> None:
    row = np.array([distance for distance, _ in entries])
    hits = np.array([True, *(hit for _, hit in entries[1:])])
    score = ScoreRange.of(groups_of(row, hits))
    orders: tuple[Ties, ...] = ("average", "pessimistic", "optimistic")
    expected = [average_precision(row, hits, order).item() for order in orders]
    expected += [float(precision_at_k(row, hits, k)) for k in (1, 10)]
    np.testing.assert_allclose(score, expected, atol=EXACT, rtol=0)
    assert score.lowest - EXACT <= score.average <= score.highest + EXACT


def test_a_query_without_a_relevant_entry_has_no_precision() -> None:
    row, hits = np.array([1, 2, 2]), np.zeros(3, np.bool_)
    assert np.isnan(precision_of_groups(*groups_of(row, hits)))


@given(shelves())
def test_ranking_by_counts_equals_ranking_by_all_distances(
    drawn: tuple[Signs, Signs, NDArray[np.int64], NDArray[np.int64]],
) -> None:
    signs, stored, labels, entry_labels = drawn
    queries, entries = Codes.pack(signs, 0), Codes.pack(stored, 0)
    relevant = labels[:, None] == entry_labels
    expected = average_precision(hamming(queries, entries), relevant)
    got = precision_of_groups(*Shelf(entries, entry_labels).by_hamming(queries, labels))
    np.testing.assert_allclose(got, expected, atol=EXACT, rtol=0)


@given(shelves(), st.integers(0, 100))
def test_ranking_by_margins_equals_ranking_by_all_distances(
    drawn: tuple[Signs, Signs, NDArray[np.int64], NDArray[np.int64]], seed: int
) -> None:
    signs, stored, labels, entry_labels = drawn
    entries = Codes.pack(stored, 0)
    # whole numbers, so that no sum is rounded
    margins = np.random.default_rng(seed).integers(-9, 10, signs.shape).astype(np.float32)
    relevant = labels[:, None] == entry_labels
    expected = average_precision(asymmetric(margins, entries), relevant)
    got = precision_of_groups(*Shelf(entries, entry_labels).by_margins(margins, labels))
    np.testing.assert_allclose(got, expected, atol=EXACT, rtol=0)


@pytest.fixture(scope="module")
def data(digits: Stream) -> Dataset:
    return Dataset("digits", digits.X, digits.y, np.zeros(len(digits.y), np.bool_))


SPLIT = Split(np.arange(500), np.arange(600, 1797), np.arange(500, 600))


def by_index(index: Index, data: Dataset) -> list[float]:
    return [score_index(index, data, SPLIT, name) for name in ("hamming", "asymmetric")]


def averages(scores: Scores) -> tuple[float, float]:
    return scores.hamming.average, scores.asymmetric.average


@pytest.fixture(scope="module")
def cycles(digits: Stream) -> OnlineHasher:
    """Four cycles of up to three labels, which have learned a little."""
    return OnlineHasher(16, labels_per_cycle=3).partial_fit(digits.X[:500], digits.y[:500])


def test_codewords_score_as_entries_that_all_have_their_codeword(
    cycles: OnlineHasher, data: Dataset
) -> None:
    X, y, stored = data.X[SPLIT.queries], data.y[SPLIT.queries], data.y[SPLIT.entries]
    words = cycles.codewords_[cycles.numbers(stored.tolist())]
    entries, relevant = Codes.pack(words, 0), y[:, None] == stored
    expected = (
        average_precision(hamming(cycles.encode(X), entries), relevant).mean(),
        average_precision(asymmetric(cycles.margins(X), entries), relevant).mean(),
    )
    got = score_codewords(cycles, data, SPLIT)
    np.testing.assert_allclose(averages(got), expected, atol=1e-6)


@pytest.mark.parametrize("coding", ["home", "full"])
def test_mapping_scores_as_an_index_of_unlabelled_entries(
    cycles: OnlineHasher, data: Dataset, coding: str
) -> None:
    index = Index(cycles, coding=coding)
    index.add(data.X[SPLIT.entries])
    got = score_mapping(cycles, data, SPLIT, coding=coding)
    # an index codes rows in half precision, which turns about one bit in twenty thousand
    np.testing.assert_allclose(averages(got), by_index(index, data), atol=1e-3)


def test_one_hot_entries_rank_by_the_query_score_of_their_class(data: Dataset) -> None:
    hasher = peers.get("onehot").partial_fit(data.X[:500], data.y[:500])
    classes = hasher.margins(data.X[SPLIT.entries]).argmax(axis=1)
    relevant = data.y[SPLIT.queries, None] == data.y[SPLIT.entries]
    margins = hasher.margins(data.X[SPLIT.queries])
    expected = average_precision(-margins[:, classes], relevant).mean()
    got = score_mapping(hasher, data, SPLIT)
    assert got.asymmetric.average == pytest.approx(expected, abs=1e-6)


def test_home_codes_are_active_in_one_cycle_only(cycles: OnlineHasher, digits: Stream) -> None:
    codes = home_codes(cycles, digits.X[600:])
    active = codes.unpack().reshape(len(codes), cycles.n_cycles_, 16) != 0
    assert (active.any(axis=2).sum(axis=1) == 1).all()
    assert (active.sum(axis=(1, 2)) == 16).all()


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_a_mixture_scores_as_an_index_of_both_kinds(
    cycles: OnlineHasher, data: Dataset, share: float
) -> None:
    stored = data.y[SPLIT.entries]
    plain = np.random.default_rng(0).random(len(stored)) < share
    given_labels = [None if bare else label for bare, label in zip(plain, stored, strict=True)]
    index = Index(cycles)
    index.add(data.X[SPLIT.entries], y=given_labels)
    got = score_mixture(cycles, data, SPLIT, plain)
    np.testing.assert_allclose(averages(got), by_index(index, data), atol=1e-6)


def test_novelty_tells_noise_from_digits(digits: Stream) -> None:
    hasher = OnlineHasher(32).partial_fit(digits.X[:900], digits.y[:900])
    noise = np.random.default_rng(0).uniform(0, 16, (100, 64)).astype(np.float32)
    assert score_novelty(hasher, digits.X[900:], noise) > 0.9
    assert score_novelty(hasher, digits.X[900:1300], digits.X[1300:]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("seed", [0, 1])
def test_hidden_labels_are_never_learned_and_nothing_else_is_searched(
    digits: Stream, seed: int
) -> None:
    split = hide_labels(digits.y, paper_split(digits.y, 10, 20, seed), seed)
    learned, stored, asked = (set(digits.y[rows].tolist()) for rows in split)
    assert len(learned) == 7
    assert stored == asked == set(range(10)) - learned


def test_splits_keep_queries_out_of_stream_and_entries(digits: Stream) -> None:
    is_query = np.arange(len(digits.y)) % 5 == 0
    for split in (
        paper_split(digits.y, 10, 20, seed=0),
        given_split(digits.y, is_query, 20, seed=0),
    ):
        assert isinstance(split, Split)
        assert not set(split.queries) & set(split.entries)
        assert set(split.stream) <= set(split.entries)
        assert np.bincount(digits.y[split.stream]).tolist() == [20] * 10


@given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from([0.0, 0.3, 1.0]))
def test_wrong_labels_are_others_of_the_same_labels(seed: int, labels: int, share: float) -> None:
    y = np.random.default_rng(seed).integers(0, labels, 200) * 10
    if len(np.unique(y)) < 2:
        return
    wrong = with_wrong_labels(y, share, seed)
    assert set(wrong) <= set(y)
    assert (wrong != y).mean() == pytest.approx(share, abs=0.15)


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 60))
def test_streams_of_new_labels_are_the_same_rows_in_another_order(
    seed: int, labels: int, rows: int
) -> None:
    y = np.random.default_rng(seed).integers(0, labels, 100)
    stream = np.random.default_rng(seed).permutation(100)[:rows]
    for order in (joining, sorted_by_label):
        assert sorted(order(y, stream, seed)) == sorted(stream)
        np.testing.assert_array_equal(order(y, stream, seed), order(y, stream, seed))
    runs = 1 + int((np.diff(y[sorted_by_label(y, stream, seed)]) != 0).sum())
    assert runs == len(np.unique(y[stream]))


def test_joining_labels_come_one_after_the_other_and_stay(digits: Stream) -> None:
    stream = paper_split(digits.y, 10, 100, seed=0).stream
    labels = digits.y[joining(digits.y, stream, seed=0)]
    first = np.sort([np.flatnonzero(labels == label)[0] for label in range(10)])
    assert first[0] == 0
    assert (np.diff(first) >= 8).all()
    assert set(labels[-200:]) == set(range(10))
