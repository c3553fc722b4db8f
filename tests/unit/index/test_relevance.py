"""Relevance: what trees are asked, what they keep to, and what a search by it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash.index.index import Index
from everhash.index.relevance import FEATURES, Pairs, features, relevance, usual_rows
from everhash.learn.hasher import OnlineHasher
from tests.conftest import Stream

TABLES = ("meaning", "likeness", "labelled", "own", "places")


def pairs_of(seed: int, n: int = 3, m: int = 40, absent: float = 0.2) -> Pairs:
    rng = np.random.default_rng(seed)
    places = np.where(rng.random((n, m)) < absent, -1, np.arange(m))
    meaning = rng.random((n, m)).astype(np.float32) ** 3
    likeness = rng.uniform(-1, 1, (n, m)).astype(np.float32)
    own = rng.integers(-1, 4, (n, m))
    return Pairs(meaning, likeness, rng.random((n, m)) < 0.5, own, places, 5.0)


def moved(pairs: Pairs, order: Any) -> Pairs:
    columns: Any = {name: getattr(pairs, name)[:, order] for name in TABLES}
    return pairs._replace(**columns)


@given(seed=st.integers(0, 999), m=st.integers(1, 50))
def test_the_order_of_entries_changes_nothing(seed: int, m: int) -> None:
    pairs = pairs_of(seed, m=m)
    order = np.random.default_rng(seed).permutation(m)
    there = relevance(pairs)[:, order]
    np.testing.assert_array_equal(relevance(moved(pairs, order)), there)


@given(seed=st.integers(0, 999))
def test_what_is_not_there_changes_nothing_and_has_no_relevance(seed: int) -> None:
    pairs = pairs_of(seed, absent=0)
    gone = np.full((3, 7), -1)
    nothing = np.full((3, 7), np.nan, np.float32)
    more = (nothing, nothing, gone < 0, gone, gone)
    padded: Any = {
        name: np.concatenate([getattr(pairs, name), column], axis=1)
        for name, column in zip(TABLES, more, strict=True)
    }
    found = relevance(pairs._replace(**padded))
    np.testing.assert_array_equal(found[:, :40], relevance(pairs))
    assert np.isnan(found[:, 40:]).all()


@given(seed=st.integers(0, 999))
def test_each_query_is_judged_alone(seed: int) -> None:
    pairs = pairs_of(seed)
    alone = [relevance(pairs.part(slice(i, i + 1))) for i in range(3)]
    np.testing.assert_array_equal(np.concatenate(alone), relevance(pairs))


@given(seed=st.integers(0, 999))
def test_it_rises_with_the_probability_and_with_the_cosine(seed: int) -> None:
    """Of entries that are alike otherwise, neither among the nearest nor the likeliest."""
    rng = np.random.default_rng(seed)
    pairs = pairs_of(seed, n=1, absent=0)
    twins = 30  # entries far away, with one label, and none of them the likeliest
    like = rng.uniform(-3, -1.5, twins).astype(np.float32)
    for rising in ("meaning", "likeness"):
        low = np.sort(rng.uniform(0, pairs.meaning.max() / 2, twins)).astype(np.float32)
        columns = {
            "meaning": low if rising == "meaning" else np.full(twins, low[0]),
            "likeness": np.sort(like) if rising == "likeness" else np.full(twins, like[0]),
            "labelled": np.ones(twins, np.bool_),
            "own": np.full(twins, 2),
            "places": np.arange(100, 100 + twins),
        }
        both = {
            name: np.concatenate([getattr(pairs, name), column[None]], axis=1)
            for name, column in columns.items()
        }
        found = relevance(Pairs(**both, rows_a_label=5.0))[0, 40:]
        assert (np.diff(found) >= 0).all()
        assert ((found > 0) & (found < 1)).all()


def test_numbers_have_no_scale() -> None:
    """Cosines that are all nearer to each other, and to 1, say the same."""
    pairs = pairs_of(3, absent=0)
    pairs = pairs._replace(likeness=pairs.likeness * np.float32(0.5))
    squeezed = pairs._replace(likeness=1 - (1 - pairs.likeness) / np.float32(4))
    one, other = features(pairs), features(squeezed)
    assert one.shape == (3, 40, FEATURES)
    np.testing.assert_allclose(one, other, rtol=0.05, atol=0.05)


def test_a_usual_label_is_the_median_of_those_that_were_learned() -> None:
    assert usual_rows(np.array([0, 0, 1, 5, 9])) == 5
    assert usual_rows(np.array([0])) == usual_rows(None) == 1


@pytest.fixture(name="filled", scope="module")
def make_filled(digits: Stream) -> tuple[Index, Any]:
    """Two rows of each label are labelled, thirty are not."""
    y = [str(label) for label in digits.y]
    rows: list[int] = []
    given: list[str | None] = []
    for label in sorted({*y}):
        mine = [i for i, each in enumerate(y) if each == label][:32]
        rows += mine
        given += [label if i < 2 else None for i in range(32)]
    hasher = OnlineHasher().partial_fit(digits.X[rows], given)
    index = Index(hasher)
    index.add(digits.X[rows], rows, given)
    return index, [i for i in range(len(y)) if i not in rows][:300]


def test_with_two_labelled_rows_a_label_it_finds_what_cosine_finds(
    filled: tuple[Index, Any], digits: Stream
) -> None:
    index, asked = filled
    right = {
        by: digits.y[index.search(digits.X[asked], 10, by).ids.astype(int)]
        == digits.y[asked][:, None]
        for by in ("relevance", "meaning", "likeness")
    }
    first = {by: found[:, 0].mean() for by, found in right.items()}
    ten = {by: found.mean() for by, found in right.items()}
    assert first["relevance"] > max(first["meaning"], first["likeness"]) - 0.02
    assert ten["relevance"] > max(ten["meaning"], ten["likeness"]) - 0.02


def test_it_is_the_default(filled: tuple[Index, Any], digits: Stream) -> None:
    index, asked = filled
    found, named = (index.search(digits.X[asked[:5]], 7, *by) for by in ((), ("relevance",)))
    assert found.by == ["relevance"] * 5
    np.testing.assert_array_equal(found.ids, named.ids)
    assert ((found.scores > 0) & (found.scores < 1)).all()
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_scores_do_not_depend_on_how_many_are_asked_for(
    filled: tuple[Index, Any], digits: Stream
) -> None:
    index, asked = filled
    few, more = (index.search(digits.X[asked[:9]], k) for k in (3, 10))
    np.testing.assert_array_equal(few.ids, more.ids[:, :3])
    np.testing.assert_array_equal(few.scores, more.scores[:, :3])


def test_a_radius_returns_what_is_relevant_enough(
    filled: tuple[Index, Any], digits: Stream
) -> None:
    index, asked = filled
    found = index.search_radius(digits.X[asked[:9]], 0.5, "relevance")
    best = index.search(digits.X[asked[:9]], 10)
    for row, n in enumerate(found.counts.tolist()):
        assert (found.scores[row, :n] >= 0.5).all()
        scores = dict(zip(found.ids[row, :n].tolist(), found.scores[row, :n].tolist(), strict=True))
        pairs = zip(best.ids[row].tolist(), best.scores[row].tolist(), strict=True)
        assert all(scores[name] == score for name, score in pairs if score >= 0.5)


def test_before_anything_is_learned_it_ranks_by_likeness(digits: Stream) -> None:
    index = Index(OnlineHasher().partial_fit(digits.X[:1], [None]))
    index.add(digits.X[:200], range(200))
    found, near = (index.search(digits.X[300:310], 10, by) for by in ("relevance", "likeness"))
    np.testing.assert_array_equal(found.ids, near.ids)


def test_without_likeness_it_is_meaning(digits: Stream) -> None:
    y = [str(label) for label in digits.y]
    hasher = OnlineHasher().partial_fit(digits.X[:500], y[:500])
    index = Index(hasher, keep_features="none", likeness=False)
    index.add(digits.X[:500], range(500), y[:500])
    found, meant = (index.search(digits.X[600:610], 5, by) for by in ("relevance", "meaning"))
    np.testing.assert_array_equal(found.scores, meant.scores)
    np.testing.assert_array_equal(found.ids, meant.ids)
