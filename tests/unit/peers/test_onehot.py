"""The one-hot classifier as a hasher."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash import Index, peers
from everhash.errors import OptionError
from everhash.peers.online.onehot import OneHot
from tests.conftest import Stream

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def test_four_steps_by_hand() -> None:
    hasher = OneHot(center=None).partial_fit(ROWS, ["a", "b", "a", "b"])
    # a meets (1, 0): right by 0 < 1, so w_a = (1, 0); b has not come yet
    # b's (0, 1): a, which should say less than -1, says 0: w_a = (1, -1); w_b = (0, 1)
    # a's (.6, .8): a says .6 - .8 = -.2 < 1: w_a = (1.6, -.2); b says .8 > -1: w_b = (-.6, .2)
    # b's (-.8, .6): a says -1.28 - .12 = -1.4 < -1, right; b says .48 + .12 = .6 < 1:
    #   w_b = (-1.4, .8)
    np.testing.assert_allclose(hasher.last_, [[1.6, -0.2], [-1.4, 0.8]], rtol=1e-5)
    # averages start again when b comes. Of a's iterates up to its last change: (1, -1), (1.6, -.2)
    # of b's: (0, 1), (-.6, .2), (-1.4, .8)
    means = np.array([[2.6 / 2, -1.2 / 2], [-2.0 / 3, 2.0 / 3]])
    np.testing.assert_allclose(hasher.mean_, means, rtol=1e-5)
    np.testing.assert_allclose(hasher.functions_, means - means.mean(axis=0), rtol=1e-5)


@given(seed=st.integers(0, 50))
def test_equals_separate_hinge_classifiers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 3, 60).tolist()
    hasher = OneHot(step=0.3, center=None).partial_fit(X, y)
    for number, label in enumerate(hasher.labels_):
        first = y.index(label)
        w, mean = np.zeros(4), np.zeros(4)
        iterates: list[np.ndarray] = []
        for row in range(first, 60):
            z, truth = X[row].astype(float), y[row]
            if truth not in y[:row]:
                iterates = []  # a label joins
            target = 1 if truth == label else -1
            if target * (w @ z) < 1:
                w = w + 0.3 * target * z
                mean = np.mean([*iterates, w], axis=0)
            iterates.append(w)
        np.testing.assert_allclose(hasher.last_[number], w, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(hasher.mean_[number], mean, rtol=1e-3, atol=1e-4)


def test_ranks_labels_by_class_score(digits: Stream) -> None:
    hasher = OneHot().partial_fit(digits.X[:1200], digits.y[:1200])
    margins = hasher.margins(digits.X[1200:])
    assert margins.shape[1] == hasher.width_ == hasher.n_cycles_ == 10
    assert (margins.max(axis=1) > 0).all(), "the best class is always above the mean of all"
    answers = np.array(hasher.labels_)[margins.argmax(axis=1)]
    assert (answers == digits.y[1200:]).mean() > 0.9


def test_an_unlabelled_entry_is_known_by_the_number_of_its_class(digits: Stream) -> None:
    hasher = OneHot().partial_fit(digits.X[:1200], digits.y[:1200])
    index = Index(hasher)
    ids = index.add(digits.X[1200:1300])
    best = hasher.margins(digits.X[1200:1300]).argmax(axis=1)
    for entry, home in zip(index.get(ids), best.tolist(), strict=True):
        assert entry.home == home
        assert entry.code is not None
        assert entry.code.tolist() == [True]
    query = digits.X[1300:1301]
    found = index.search(query, 100, "asymmetric")
    np.testing.assert_allclose(
        found.scores[0], np.sort(-hasher.margins(query)[0, best]), rtol=1e-5, atol=1e-5
    )


def test_a_new_label_joins_at_any_time(digits: Stream) -> None:
    hasher = OneHot().partial_fit(digits.X[:300], digits.y[:300])
    hasher.partial_fit(digits.X[300:900], digits.y[300:900] + 5)
    assert hasher.labels_ == [*dict.fromkeys([*digits.y[:300], *(digits.y[300:900] + 5)])]
    assert hasher.n_cycles_ == 15


def test_it_has_no_choice_of_bits() -> None:
    assert peers.get("onehot", bits=64) is not None
    assert "bits" not in OneHot().get_params()
    with pytest.raises(OptionError, match="step"):
        OneHot(step=-1).partial_fit(ROWS, [0, 1, 2, 3])
