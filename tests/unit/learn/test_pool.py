"""How likely labels are: class means beside ridge, and rows without a label that help."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash import OnlineHasher
from everhash.learn import publication
from everhash.learn import unlabelled as unlabelled_rows
from everhash.learn.exact import ExactLearner
from everhash.learn.left_out import right_without
from everhash.learn.mixture import memberships
from everhash.learn.pool import Hints, make_pool
from everhash.learn.ridge import FewRows, ManyRows
from everhash.learn.unlabelled import Unlabelled, hashes_of
from tests.conftest import Stream

FEW = 2
BESIDE = 30


def learner_of(hasher: OnlineHasher) -> ExactLearner:
    learner = hasher._learner
    assert isinstance(learner, ExactLearner)
    return learner


def starting(y: np.ndarray, seed: int, labelled: int = FEW) -> tuple[np.ndarray, list[Any]]:
    """Return rows in random order, of each label so many with it and thirty without."""
    rng = np.random.default_rng(seed)
    rows: list[int] = []
    labels: list[Any] = []
    for label in np.unique(y).tolist():
        mine = rng.permutation(np.flatnonzero(y == label))[: labelled + BESIDE].tolist()
        rows += mine
        labels += [label if i < labelled else None for i in range(len(mine))]
    order = rng.permutation(len(rows))
    return np.array(rows)[order], [labels[i] for i in order.tolist()]


def taught(digits: Stream, rows: Iterable[int], labels: list[Any], **options: Any) -> OnlineHasher:
    hasher = OnlineHasher(bits=16, features=60, **options)
    return hasher.partial_fit(digits.X[list(rows)], labels)


# Class means


@pytest.mark.parametrize("n", [40, 400])
def test_scores_are_those_of_the_formula_from_rows_and_from_sums(n: int) -> None:
    rng = np.random.default_rng(n)
    Z = rng.standard_normal((n, 60)) + 3 * np.repeat(np.eye(60)[:4], n // 4, axis=0)
    labels = np.repeat(np.arange(4), n // 4)
    few = FewRows(Z, np.arange(n), labels, 4)
    centred = Z - Z.mean(axis=0)
    counts = np.bincount(labels)
    many = ManyRows(np.asfortranarray(centred.T @ centred), few.sums, few.mean, counts, n)
    solution = few.ridge(12, search=True)
    assert solution is not None
    weights = solution.weights
    pools = [make_pool(rows, weights, 12, counts, np.arange(4), None) for rows in (few, many)]
    level = max(np.geomspace(1e-4, 30, 24)[12], (10 / (n / 4)) ** 2) * (centred**2).sum() / 60
    means = few.sums / counts
    spread = centred - means.T[labels]
    inverse = np.linalg.inv(spread.T @ spread + level * np.eye(60))
    constants = -np.einsum("dy,de,ey->y", means, inverse, means) / 2
    by_means = centred @ (inverse @ means) + constants - constants.mean()
    own = by_means[np.arange(n), labels].mean()
    ridge = (centred @ weights)[np.arange(n), labels].mean()
    share = min(0.5, n / 4 / 40)
    expected = share * (centred @ weights) / ridge + (1 - share) * by_means / own
    for pool in pools:
        directions, added = pool.scores(weights, few.sums, counts, np.arange(4))
        np.testing.assert_allclose(centred @ directions + added, expected, rtol=1e-3, atol=1e-3)


def test_usual_rows_score_about_one_whatever_the_set(digits: Stream) -> None:
    hasher = OnlineHasher().partial_fit(digits.X[:1200], digits.y[:1200]).publish()
    learner = learner_of(hasher)
    scores = learner.served.pooled_scores(learner.view.of(digits.X[:1200]))
    named = [hasher.labels_.index(label) for label in digits.y[:1200].tolist()]
    assert scores[np.arange(1200), named].mean() == pytest.approx(1, abs=0.15)


# Rows without a label


def test_rows_without_a_label_help_where_few_have_one(digits: Stream) -> None:
    """As `everhash bench run found` measures it, on one set."""
    gains = []
    for seed in range(4):
        rows, labels = starting(digits.y, seed)
        asked = np.setdiff1d(np.arange(len(digits.y)), rows)
        with_them, without = (
            taught(digits, rows, labels, learn_unlabelled=way).publish() for way in ("auto", False)
        )
        right = [
            np.mean(hasher.predict(digits.X[asked]) == digits.y[asked])
            for hasher in (with_them, without)
        ]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0.04
    assert min(gains) > -0.01


def test_they_help_only_while_few_have_one(digits: Stream) -> None:
    X, y = digits.X[:1200], digits.y[:1200]
    alone = OnlineHasher(features=60).partial_fit(X, y).publish()
    beside = OnlineHasher(features=60).partial_fit(X, y)
    beside.partial_fit(digits.X[1200:], [None] * (len(digits.X) - 1200)).publish()
    np.testing.assert_array_equal(alone.predict_proba(X), beside.predict_proba(X))
    assert beside.helping_rows_ == len(digits.X) - 1200


@settings(max_examples=20)
@given(seed=st.integers(0, 9), cuts=st.sets(st.integers(1, 319), max_size=8))
def test_batches_change_no_bit(digits: Stream, seed: int, cuts: set[int]) -> None:
    rows, labels = starting(digits.y, seed)
    whole = taught(digits, rows, labels)
    pieces = OnlineHasher(bits=16, features=60)
    edges = [0, *sorted(cuts), len(rows)]
    for start, stop in itertools.pairwise(edges):
        pieces.partial_fit(digits.X[rows[start:stop]], labels[start:stop])
    assert whole.to_bytes() == pieces.to_bytes()


@settings(max_examples=10)
@given(seed=st.integers(0, 9))
def test_the_order_of_rows_without_a_label_changes_no_bit(digits: Stream, seed: int) -> None:
    rows, labels = starting(digits.y, seed)
    named = [label is not None for label in labels]
    order = np.arange(len(rows))
    order[~np.array(named)] = np.random.default_rng(seed).permutation(order[~np.array(named)])
    one, other = (
        taught(digits, rows[mine], [labels[i] for i in mine.tolist()]).publish()
        for mine in (np.arange(len(rows)), order)
    )
    np.testing.assert_array_equal(
        learner_of(one).served.pooled.rows, learner_of(other).served.pooled.rows
    )


def test_rows_forgotten_help_no_more(digits: Stream) -> None:
    rows, labels = starting(digits.y, 0)
    bare = [i for i, label in enumerate(labels) if label is None][:40]
    left = np.setdiff1d(np.arange(len(rows)), bare)
    hasher = taught(digits, rows, labels)
    hasher.forget(digits.X[rows[bare]], [None] * len(bare))
    never = taught(digits, rows[left], [labels[i] for i in left.tolist()])
    assert hasher.helping_rows_ == never.helping_rows_ == len(rows) - len(bare) - FEW * 10
    np.testing.assert_array_equal(
        learner_of(hasher.publish()).served.pooled.rows,
        learner_of(never.publish()).served.pooled.rows,
    )


# Which rows are kept


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "remove", "merge"]), st.lists(st.integers(0, 30))),
        max_size=12,
    )
)
def test_rows_kept_are_those_with_the_least_hashes(
    steps: list[tuple[str, list[int]]],
) -> None:
    """While nothing was ever left out, removing is exact too."""
    table = np.random.default_rng(0).standard_normal((31, 3)).astype(np.float32)
    kept, held = Unlabelled(3), list[int]()
    for action, numbers in steps:
        X = table[numbers]
        if action == "add":
            kept.add(X)
            held += numbers
        elif action == "merge":
            other = Unlabelled(3)
            other.add(X)
            kept.merge(other)
            held += numbers
        else:
            kept.remove(X)
            for number in numbers:
                if number in held:
                    held.remove(number)
    assert kept.met == len(held)
    hashes = hashes_of(table)
    expected = table[sorted(held, key=lambda number: hashes[number])].reshape(-1, 3)
    np.testing.assert_array_equal(kept.rows, expected)


def test_of_many_rows_a_sample_is_kept_that_no_order_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unlabelled_rows, "MOST", 50)
    rng = np.random.default_rng(0)
    table = rng.standard_normal((400, 4)).astype(np.float32)
    found = []
    for _ in range(3):
        rows = Unlabelled(4)
        for part in np.array_split(rng.permutation(400), 7):
            rows.add(table[part])
        assert rows.met == 400
        found.append(rows.rows.tobytes())
    assert len({*found}) == 1
    assert found[0] == table[np.argsort(hashes_of(table))[:50]].tobytes()


def test_rows_that_are_like_no_label_belong_to_none() -> None:
    rows = np.eye(4, dtype=np.float32)
    likely = memberships(rows, 3 * np.eye(4, dtype=np.float32)[:2])
    np.testing.assert_allclose(likely[:2], np.eye(2), atol=1e-2)
    assert (likely[2:].sum(axis=1) < 0.1).all()
    assert (likely.sum(axis=1) < 1).all()


# Left out


@pytest.mark.parametrize(("n", "width"), [(40, 90), (120, 30)])
@pytest.mark.parametrize("helped", [False, True])
def test_rows_left_out_are_told_as_if_the_others_alone_had_been_solved(
    n: int, width: int, helped: bool
) -> None:
    """All but what the row has decided for all others: the mean, the penalty, the units."""
    rng = np.random.default_rng(n)
    labels = np.arange(n) % 4
    Z = rng.standard_normal((n, width)) + 1.5 * np.eye(width)[labels]
    counts = np.bincount(labels)
    rows = FewRows(Z, np.arange(n), labels, 4)
    solution = rows.solve(14)
    assert solution is not None
    hints = None
    if helped:
        hints = Hints(2.0, rng.standard_normal((4, width)), np.array([1.0, 0.5, 3.0, 0.0]))
    pool = make_pool(rows, solution.weights, 14, counts, np.arange(4), hints)
    level = np.geomspace(1e-4, 30, 24)[14] * (rows.centred**2).sum() / width
    means_level = max(np.geomspace(1e-4, 30, 24)[14], (10 / (n / 4)) ** 2)
    means_level *= (rows.centred**2).sum() / width
    right = 0
    for row in range(n):
        others = np.arange(n) != row
        left, mine = rows.centred[others], labels[others]
        without = np.bincount(mine, minlength=4)
        centre = left.mean(axis=0)
        gram = (left - centre).T @ (left - centre) + level * np.eye(width)
        sought = np.eye(4)[mine]
        weights = np.linalg.solve(gram, (left - centre).T @ sought)
        by_ridge = (rows.centred[row] - centre) @ weights + sought.mean(axis=0)
        sums = left.T @ sought
        spread = left - (sums / without).T[mine]
        inverse = np.linalg.inv(spread.T @ spread + means_level * np.eye(width))
        means, _ = pool.means(sums, without, np.arange(4))
        by_means = rows.centred[row] @ inverse @ means
        by_means -= np.einsum("dy,de,ey->y", means, inverse, means) / 2
        score = by_ridge * pool.share / pool.ridge_unit
        score += (by_means - pool.offset) * (1 - pool.share) / pool.means_unit
        right += score.argmax() == labels[row]
    found = right_without(rows, solution, pool, counts, np.arange(4), np.arange(n))
    assert abs(found - right) <= 1, "one row may be told by a hair"
    assert 0.2 * n < found < n


@pytest.mark.parametrize(("labelled", "seeds"), [(5, 6), (12, 3)])
def test_accuracy_of_now_is_about_that_on_new_rows(
    digits: Stream, labelled: int, seeds: int
) -> None:
    said, true = [], []
    for seed in range(seeds):
        rows, labels = starting(digits.y, seed, labelled)
        asked = np.setdiff1d(np.arange(len(digits.y)), rows)
        hasher = taught(digits, rows, labels).publish()
        accuracy: Any = hasher.accuracy_
        said.append(accuracy.latest)
        true.append(np.mean(hasher.predict(digits.X[asked]) == digits.y[asked]))
    assert np.mean(said) == pytest.approx(np.mean(true), abs=0.04)


def test_with_many_labels_all_are_solved_when_each_has_two_more_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Solving ten thousand labels at every fifth of the rows took most of the time of learning."""
    monkeypatch.setattr(publication, "MANY", 40)
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(200), 10))
    X = (rng.standard_normal((200, 6))[y] + rng.standard_normal((2000, 6))).astype(np.float32)
    published = set()
    hasher = OnlineHasher(features=0)
    for row in range(2000):
        hasher.partial_fit(X[row : row + 1], y[row : row + 1])
        published.add(hasher.published_rows_)
    assert {rows for rows in published if rows and rows >= 1000} == {1000, 1400, 1800}
    whole = OnlineHasher(features=0).partial_fit(X, y)
    assert whole.to_bytes() == hasher.to_bytes()
