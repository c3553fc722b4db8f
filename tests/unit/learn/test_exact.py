"""What the exact learner promises: order, batches, merging and forgetting change nothing."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from everhash import OnlineHasher
from everhash.errors import InputError, OptionError, UnknownNameError
from everhash.learn.exact import ExactLearner
from everhash.learn.ridge import PENALTIES
from everhash.peers.model_file import hasher_from_bytes
from tests.conftest import Stream

FIRST = 1000
"""Rows that settle the view."""


def small(**options: Any) -> OnlineHasher:
    return OnlineHasher(**{"bits": 16, "labels_per_cycle": 4, "features": 80, **options})


def learner_of(hasher: OnlineHasher) -> ExactLearner:
    assert isinstance(hasher._learner, ExactLearner)
    return hasher._learner


def classifiers(hasher: OnlineHasher) -> dict[Any, np.ndarray]:
    """Return what says which label a row has: for its functions, and how likely that is."""
    served = learner_of(hasher).served
    both = np.concatenate([served.classifiers.rows, served.pooled.rows], axis=1)
    return dict(zip(hasher.labels_, both, strict=True))


def assert_same_classifiers(one: OnlineHasher, other: OnlineHasher) -> None:
    mine, theirs = classifiers(one), classifiers(other)
    assert mine.keys() == theirs.keys()
    for label, row in mine.items():
        np.testing.assert_array_equal(row, theirs[label])


@pytest.fixture
def settled(digits: Stream) -> OnlineHasher:
    return small().partial_fit(digits.X[:FIRST], digits.y[:FIRST])


# Exactness


@pytest.mark.parametrize("features", [0, 80])
@pytest.mark.parametrize("rows", [60, FIRST, 1700])
def test_classifiers_equal_scikit_learns_ridge(digits: Stream, rows: int, features: int) -> None:
    """With the same penalty, on rows as they are counted: few of them, and many."""
    X, y = digits.X[:rows], digits.y[:rows]
    hasher = small(features=features).partial_fit(X, y).publish()
    learner = learner_of(hasher)
    Z = learner.memory.on_grid(X) * learner.view.steps
    level = PENALTIES[learner.penalty] * ((Z - Z.mean(axis=0)) ** 2).sum() / Z.shape[1]
    labels = hasher.labels_
    targets = (y[:, None] == np.array(labels)).astype(float)
    oracle = Ridge(alpha=level).fit(Z, targets)
    found = learner.served.classifiers.rows
    scale = np.abs(oracle.coef_).max()
    np.testing.assert_allclose(found[:, :-1], oracle.coef_, atol=1e-5 * scale)
    biases = oracle.intercept_ - targets.mean(axis=0)  # how frequent a label is does not count
    np.testing.assert_allclose(found[:, -1] * learner.view.constant, biases, atol=1e-5 * scale)


def test_functions_are_words_times_classifiers(settled: OnlineHasher) -> None:
    found = learner_of(settled).served.classifiers.rows
    expected = settled.codewords_.T.astype(np.float32) @ found
    np.testing.assert_allclose(settled._functions.reshape(expected.shape), expected, rtol=1e-4)


def test_functions_are_composed_label_by_label_whatever_the_processor(
    settled: OnlineHasher,
) -> None:
    found = learner_of(settled).served.classifiers.rows
    for cycle, functions in enumerate(settled._functions):
        members = slice(cycle * settled._labels_per_cycle, (cycle + 1) * settled._labels_per_cycle)
        expected = np.zeros_like(functions)
        for word, classifier in zip(settled.words_[members], found[members], strict=True):
            expected += word[:, None] * classifier
        assert functions.tobytes() == expected.tobytes()


def test_orthogonal_words_rank_labels_as_their_own_classifiers_do(digits: Stream) -> None:
    hasher = OnlineHasher(bits=16, features=80).partial_fit(digits.X, digits.y)
    scores = hasher.margins(digits.X) @ hasher.codewords_.T
    own = learner_of(hasher).served.scores(hasher._view.of(digits.X))
    assert (scores.argmax(axis=1) == own.argmax(axis=1)).mean() > 0.999


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_order_changes_no_classifier(settled: OnlineHasher, digits: Stream, seed: int) -> None:
    """Once the view is settled the same rows in any order give the same, to the last bit."""
    rows = np.arange(FIRST, len(digits.X))
    content = settled.to_bytes()
    one, other = (hasher_from_bytes(content, "settled") for _ in range(2))
    assert isinstance(one, OnlineHasher)
    assert isinstance(other, OnlineHasher)
    one.partial_fit(digits.X[rows], digits.y[rows]).publish()
    rows = np.random.default_rng(seed).permutation(rows)
    other.partial_fit(digits.X[rows], digits.y[rows]).publish()
    assert_same_classifiers(one, other)


@settings(max_examples=10)
@given(cuts=st.lists(st.integers(1, 1796), max_size=8))
def test_batches_change_no_byte(digits: Stream, cuts: list[int]) -> None:
    whole, parts = small().partial_fit(digits.X, digits.y), small()
    for start, stop in pairwise([0, *sorted(set(cuts)), len(digits.X)]):
        parts.partial_fit(digits.X[start:stop], digits.y[start:stop])
    assert whole.to_bytes() == parts.to_bytes()


def test_sorted_streams_are_learned_as_well_as_shuffled_ones(digits: Stream) -> None:
    learned, asked = slice(0, 1400), slice(1400, None)
    order = np.argsort(digits.y[learned], kind="stable")
    shuffled = OnlineHasher(features=300).partial_fit(digits.X[learned], digits.y[learned])
    by_label = OnlineHasher(features=300).partial_fit(
        digits.X[learned][order], digits.y[learned][order]
    )
    scores = [h.score(digits.X[asked], digits.y[asked]) for h in (shuffled, by_label)]
    assert min(scores) > 0.95
    assert abs(scores[0] - scores[1]) < 0.03


# Publications


def test_functions_stand_still_between_publications(digits: Stream) -> None:
    hasher = small(publish=1.5).partial_fit(digits.X[:1050], digits.y[:1050])
    assert hasher.published_rows_ == FIRST
    before, versions = hasher.margins(digits.X), hasher.versions_
    hasher.partial_fit(digits.X[1050:1499], digits.y[1050:1499])
    np.testing.assert_array_equal(hasher.margins(digits.X), before)
    np.testing.assert_array_equal(hasher.versions_, versions)
    hasher.partial_fit(digits.X[1499:1500], digits.y[1499:1500])
    assert hasher.published_rows_ == 1500
    assert (hasher.versions_ > versions).all()


def test_a_new_label_is_served_at_once_and_moves_only_its_own_cycle(settled: OnlineHasher) -> None:
    rng = np.random.default_rng(0)
    news = 16 * (rng.random((5, 64)) < 0.3).astype(np.float32)
    before = settled.versions_.reshape(-1, 16)
    settled.partial_fit(news[:1], ["new"])
    after = settled.versions_.reshape(-1, 16)
    moved = (after[: len(before)] != before).all(axis=1)
    assert moved.tolist() == [False, False, True], "10 labels in cycles of 4: the third has room"
    assert settled.predict(news[:1]) == ["new"]
    assert settled.predict_proba(news[:1]).max() > 0.3


def test_scores_stay_bounded_while_the_factor_has_not_seen_a_label(settled: OnlineHasher) -> None:
    far = np.zeros((40, 64), np.float32)
    far[:, 7] = 100 + np.arange(40)
    for row in far:
        settled.partial_fit(row[None], ["far"])
        served, seen = learner_of(settled).served, settled._view.of(far)
        assert np.abs(served.scores(seen)[:, -1]).max() < 2
        assert np.abs(served.pooled_scores(seen)[:, -1]).max() < 20, "these rows stand far out"


def test_publishing_more_often_ends_in_the_same_classifiers(digits: Stream) -> None:
    hashers = [small(publish=p).partial_fit(digits.X, digits.y).publish() for p in (1.1, 3.0)]
    assert_same_classifiers(*hashers)


# Forgetting and merging


@settings(max_examples=15)
@given(data=st.data())
def test_forgotten_rows_were_never_there(
    settled: OnlineHasher, digits: Stream, data: st.DataObject
) -> None:
    """Learned with any labels, forgotten in any order and batches: not a bit of them is left."""
    n = data.draw(st.integers(1, 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows = FIRST + rng.permutation(700)[:n]
    wrong = [{int(a), int(b)} for a, b in rng.integers(0, 10, (n, 2))]
    one = hasher_from_bytes(settled.to_bytes(), "settled")
    assert isinstance(one, OnlineHasher)
    one.partial_fit(digits.X[rows], wrong)
    for part in np.array_split(rng.permutation(n), 3):
        if len(part):
            one.forget(digits.X[rows[part]], [wrong[i] for i in part])
    one.publish()
    assert_same_classifiers(one, settled.publish())
    assert one.rows_ == FIRST


def test_kept_rows_are_forgotten_with_the_view_they_shaped(digits: Stream) -> None:
    hasher = small().partial_fit(digits.X[:300], digits.y[:300])
    hasher.forget(digits.X[100:200], digits.y[100:200])
    rows = np.r_[0:100, 200:300]
    never = small().partial_fit(digits.X[rows], digits.y[rows]).publish()
    np.testing.assert_array_equal(hasher.margins(digits.X), never.margins(digits.X))


def test_a_fifth_of_wrong_labels_corrected_is_as_if_never_wrong(digits: Stream) -> None:
    right = small().partial_fit(digits.X, digits.y).publish()
    rng = np.random.default_rng(1)
    at = FIRST + np.flatnonzero(rng.random(len(digits.X) - FIRST) < 0.2)
    wrong = digits.y.copy()
    wrong[at] = (wrong[at] + 1 + rng.integers(0, 9, len(at))) % 10
    hasher = small().partial_fit(digits.X, wrong)
    hasher.forget(digits.X[at], wrong[at]).partial_fit(digits.X[at], digits.y[at]).publish()
    assert_same_classifiers(hasher, right)


def test_what_was_never_learned_cannot_be_forgotten(settled: OnlineHasher, digits: Stream) -> None:
    before, versions = settled.margins(digits.X), settled.versions_
    y = digits.y[:FIRST]
    several = np.flatnonzero(y == y[0])
    for X, labels, error in (
        (digits.X[:1], ["owl"], UnknownNameError),
        (
            np.repeat(digits.X[:1], len(several) + 1, axis=0),
            [y[0]] * (len(several) + 1),
            InputError,
        ),
        (np.repeat(-digits.X[:1], len(several), axis=0), [y[0]] * len(several), InputError),
    ):
        with pytest.raises(error):
            settled.forget(X, labels)
    few = small().partial_fit(digits.X[:50], digits.y[:50])
    with pytest.raises(InputError, match="row 1, which was not learned"):
        few.forget(digits.X[[0, 60]], digits.y[[0, 0]])
    assert few.rows_ == 50
    np.testing.assert_array_equal(settled.margins(digits.X), before)
    np.testing.assert_array_equal(settled.versions_, versions)


@settings(max_examples=10)
@given(data=st.data())
def test_merged_forks_equal_one_stream(digits: Stream, data: st.DataObject) -> None:
    """However rows are dealt out, new labels included, and however often they are merged."""
    X, y = digits.X, digits.y + 10 * (np.arange(len(digits.y)) > 1300)
    hasher = small().partial_fit(X[:FIRST], y[:FIRST])
    one = hasher_from_bytes(hasher.to_bytes(), "one")
    assert isinstance(one, OnlineHasher)
    parts = data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    dealt = rng.integers(0, parts, len(X) - FIRST)
    forks = []
    for part in range(parts):
        rows = FIRST + rng.permutation(np.flatnonzero(dealt == part))
        fork = hasher.fork()
        assert fork.rows_ == 0
        forks.append(fork.partial_fit(X[rows], y[rows]) if len(rows) else fork)
    cut = data.draw(st.integers(0, parts))
    hasher.merge(*forks[:cut]).merge(*forks[cut:])
    assert_same_classifiers(hasher, one.partial_fit(X[FIRST:], y[FIRST:]).publish())
    assert hasher.rows_ == len(X)


def test_forks_of_forks_and_files_of_forks_merge(settled: OnlineHasher, digits: Stream) -> None:
    fork = settled.fork()
    grandchild = hasher_from_bytes(fork.fork().to_bytes(), "fork")
    assert isinstance(grandchild, OnlineHasher)
    grandchild.partial_fit(digits.X[FIRST:], digits.y[FIRST:])
    one = hasher_from_bytes(settled.to_bytes(), "one").partial_fit(
        digits.X[FIRST:], digits.y[FIRST:]
    )
    assert isinstance(one, OnlineHasher)
    assert_same_classifiers(settled.merge(fork.merge(grandchild)), one.publish())


def test_hashers_that_see_rows_otherwise_do_not_merge(
    settled: OnlineHasher, digits: Stream
) -> None:
    before = settled.to_bytes()
    other = small().partial_fit(digits.X[500:], digits.y[500:])
    for wrong in (other, small(features=0).partial_fit(digits.X, digits.y)):
        with pytest.raises(OptionError, match="see rows alike") as caught:
            settled.merge(wrong)
        assert "fork" in caught.value.hint
    fork = settled.fork()
    for twice in ((settled,), (fork, fork)):
        with pytest.raises(OptionError, match="merged twice"):
            settled.merge(*twice)
    assert settled.to_bytes() == before
    with pytest.raises(OptionError, match="no row was learned"):
        small().begin(64).fork()
    for call in ("fork", "publish", "merge"):
        with pytest.raises(OptionError, match="the sgd learner cannot"):
            getattr(OnlineHasher(learner="sgd").partial_fit(digits.X[:9], digits.y[:9]), call)()


# What rows were taken for


def test_the_record_is_what_a_listener_would_have_noted(digits: Stream) -> None:
    hasher, right, scored = small(), 0, 0
    for row, label in zip(digits.X[:400], digits.y[:400].tolist(), strict=True):
        known = hasattr(hasher, "n_features_in_") and len(hasher.labels_) > 1
        if known and label in hasher.labels_:
            right += hasher.predict(row[None])[0] == label
            scored += 1
        hasher.partial_fit(row[None], [label])
    found = hasher.accuracy_
    assert found is not None
    assert abs(found.rows - scored) <= 1, "the very first label is known before it can be served"
    assert abs((found.accuracy or 0) * found.rows - right) <= 1
    of_labels = learner_of(hasher).record
    assert of_labels.label_rows.rows.sum() == found.rows
    assert of_labels.label_right.rows.sum() == round((found.accuracy or 0) * found.rows)


def test_probabilities_are_calibrated(digits: Stream) -> None:
    hasher = OnlineHasher(features=300).partial_fit(digits.X[:1200], digits.y[:1200])
    shares = hasher.predict_proba(digits.X[1200:])
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    right = hasher.predict(digits.X[1200:]) == digits.y[1200:]
    assert abs(shares.max(axis=1).mean() - right.mean()) < 0.03
    assert hasher.score(digits.X[1200:], digits.y[1200:]) == right.mean()
    best = hasher.predict_best(digits.X[1200:1201], 3)[0]
    assert [share for _, share in best] == sorted(shares[0], reverse=True)[:3]
    assert best[0][0] == hasher.predict(digits.X[1200:1201])[0]


# Bad input


STRANGE: dict[str, tuple[np.ndarray, list[Any]]] = {
    "one row": (np.ones((1, 3)), ["a"]),
    "one label": (np.random.default_rng(0).standard_normal((50, 3)), ["a"] * 50),
    "constant rows": (np.ones((40, 3)), ["a", "b"] * 20),
    "duplicate rows": (np.repeat(np.eye(3), 20, axis=0), ["a", "b"] * 30),
    "one feature": (np.arange(60.0)[:, None], ["a", "b"] * 30),
    "huge and tiny features": (
        np.random.default_rng(0).standard_normal((60, 3)) * [1e30, 1, 1e-30],
        ["a", "b"] * 30,
    ),
    "a constant column": (np.c_[np.ones(60), np.arange(60.0)], list("abc") * 20),
    "one row far out": (np.r_[np.zeros((59, 3)), [[1e30, 0, 0]]], ["a", "b"] * 30),
    "zeros": (np.zeros((30, 2)), ["a", "b", "c"] * 10),
    "every row a label": (np.random.default_rng(0).standard_normal((80, 3)), list(range(80))),
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("many", [False, True])
def test_strange_rows_give_finite_functions_and_no_warning(name: str, many: bool) -> None:
    X, y = STRANGE[name]
    if many:  # beyond what is kept as rows
        X, y = np.concatenate([X] * 40), y * 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hasher = OnlineHasher(bits=8, features=20).partial_fit(X, y)
        hasher.publish()
        assert np.isfinite(hasher.margins(X)).all()
        assert np.isfinite(hasher.predict_proba(X)).all()
        loaded = hasher_from_bytes(hasher.to_bytes(), "again")
        hasher.forget(X[:1], y[:1]).partial_fit(X[:1], y[:1])
    assert np.isfinite(hasher.margins(X)).all()
    assert loaded.labels_ == hasher.labels_


def test_a_label_of_which_all_rows_are_forgotten_is_predicted_no_more(
    settled: OnlineHasher, digits: Stream
) -> None:
    rows = np.flatnonzero(digits.y[:FIRST] == 3)
    settled.forget(digits.X[rows], digits.y[rows])
    assert 3 in settled.labels_
    assert 3 not in settled.predict(digits.X)
    settled.publish()
    assert 3 not in settled.predict(digits.X)
