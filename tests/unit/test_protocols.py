"""How hashers are judged: fast scores against slow ones, and splits that keep their word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import Index, OnlineHasher, peers
from everhash.bench.counts import Groups, Score, Shelf, precision_of_groups
from everhash.bench.datasets import Dataset
from everhash.bench.peers_run import COSINE, Task, run
from everhash.bench.protocols import (
    Scores,
    Split,
    given_split,
    hide_labels,
    home_codes,
    paper_split,
    score_codewords,
    score_index,
    score_mapping,
)
from everhash.codes import Codes, asymmetric, hamming
from everhash.metrics import Ties, average_precision
from tests.conftest import Stream

EXACT = 1e-12
UNTIMED = {"seconds": 0, "encoding": 0}
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
    score = Score.of(groups_of(row, hits))
    orders: tuple[Ties, ...] = ("average", "pessimistic", "optimistic")
    expected = [average_precision(row, hits, order).item() for order in orders]
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


def averages(scores: Scores) -> tuple[float, float]:
    return scores.hamming.average, scores.asymmetric.average


@pytest.fixture(scope="module")
def cycles(digits: Stream) -> OnlineHasher:
    """Four cycles of up to three labels, which have learned a little."""
    return OnlineHasher(16, labels_per_cycle=3).partial_fit(digits.X[:500], digits.y[:500])


def test_codewords_score_as_entries_that_all_have_their_codeword(
    cycles: OnlineHasher, digits: Stream
) -> None:
    X, y, stored = digits.X[500:600], digits.y[500:600], digits.y[600:]
    words = cycles.codewords_[cycles.numbers(stored.tolist())]
    entries, relevant = Codes.pack(words, 0), y[:, None] == stored
    expected = (
        average_precision(hamming(cycles.encode(X), entries), relevant).mean(),
        average_precision(asymmetric(cycles.margins(X), entries), relevant).mean(),
    )
    got = score_codewords(cycles, X, y, stored)
    np.testing.assert_allclose(averages(got), expected, atol=1e-6)


@pytest.mark.parametrize("coding", ["home", "full"])
def test_mapping_scores_as_an_index_of_unlabelled_entries(
    cycles: OnlineHasher, digits: Stream, coding: str
) -> None:
    X, y, entries, stored = digits.X[500:600], digits.y[500:600], digits.X[600:], digits.y[600:]
    index = Index(cycles, coding=coding)
    index.add(entries)
    by_index = [score_index(index, X, y, stored, name) for name in ("hamming", "asymmetric")]
    got = score_mapping(cycles, X, y, entries, stored, coding=coding)
    np.testing.assert_allclose(averages(got), by_index, atol=1e-6)


def test_one_hot_entries_rank_by_the_query_score_of_their_class(digits: Stream) -> None:
    hasher = peers.get("onehot").partial_fit(digits.X[:500], digits.y[:500])
    X, y, entries, stored = digits.X[500:600], digits.y[500:600], digits.X[600:], digits.y[600:]
    classes = hasher.margins(entries).argmax(axis=1)
    relevant = y[:, None] == stored
    expected = average_precision(-hasher.margins(X)[:, classes], relevant).mean()
    got = score_mapping(hasher, X, y, entries, stored, coding="home")
    assert got.asymmetric.average == pytest.approx(expected, abs=1e-6)


def test_home_codes_are_active_in_one_cycle_only(cycles: OnlineHasher, digits: Stream) -> None:
    codes = home_codes(cycles, digits.X[600:])
    active = codes.unpack().reshape(len(codes), cycles.n_cycles_, 16) != 0
    assert (active.any(axis=2).sum(axis=1) == 1).all()
    assert (active.sum(axis=(1, 2)) == 16).all()


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


@pytest.mark.parametrize("method", ["everhash", "hcoh", "onehot", COSINE])
@pytest.mark.parametrize("unseen", [False, True])
def test_a_run_gives_the_same_figures_again(digits: Stream, method: str, unseen: bool) -> None:
    is_query = np.arange(len(digits.y)) % 5 == 0
    data = Dataset("digits", digits.X, digits.y, is_query)
    task = Task("digits", method, 16, 0, 20, unseen, entries=500, queries=50)
    one, two = run(task, data), run(task, data)
    assert {**one, **UNTIMED} == {**two, **UNTIMED}
    assert 0.1 < one["mapping"]["asymmetric"].average <= 1
    assert ("codeword" in one) == (not unseen and method != COSINE)
