"""What tables are held against: scores by counts equal scores by distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash.bench.baselines import (
    Classifier,
    class_groups,
    of_classes,
    score_classifier,
    score_features,
)
from everhash.bench.counts import ScoreRange
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split, paper_split
from everhash.learn.centering import unit_rows
from everhash.metrics import mean_average_precision, precision_at_k
from tests.conftest import Stream

EXACT = 1e-9


@pytest.fixture(scope="module")
def data(digits: Stream) -> Dataset:
    return Dataset("digits", digits.X, digits.y, np.zeros(len(digits.y), np.bool_))


@pytest.fixture(scope="module")
def split(data: Dataset) -> Split:
    return paper_split(data.y, 5, 20, seed=0)


def same_scores(score: ScoreRange, distances: np.ndarray, relevant: np.ndarray) -> None:
    expected = [mean_average_precision(distances, relevant)]
    expected += [precision_at_k(distances, relevant, k) for k in (1, 10)]
    found = (score.average, score.first, score.ten)
    np.testing.assert_allclose(found, np.array(expected, np.float64), atol=EXACT)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 30))
def test_groups_of_classes_rank_as_distances_do(seed: int, classes: int, entries: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(classes, dtype=np.float64), (4, 1)), axis=1)
    stored, truth = rng.integers(0, classes, entries), rng.integers(0, 3, entries)
    wanted = truth[rng.integers(0, entries, 4)]
    found = ScoreRange.of(class_groups(scores, stored, truth, wanted))
    same_scores(found, -scores[:, stored], wanted[:, None] == truth)


def test_a_query_of_a_label_that_no_entry_has_is_left_out() -> None:
    groups = class_groups(np.array([[0.0, 1.0]]), np.array([1, 0]), np.array([5, 7]), np.array([6]))
    assert groups[2].sum() == 0


def test_neighbours_by_cosine_are_scored_as_by_their_distances(data: Dataset, split: Split) -> None:
    center = data.X[split.stream].mean(axis=0)
    queries, entries = (unit_rows(data.X[rows], center) for rows in (split.queries, split.entries))
    relevant = data.y[split.queries, None] == data.y[split.entries]
    same_scores(score_features(data, split), -(queries @ entries.T), relevant)


def test_a_classifier_finds_what_it_predicts(data: Dataset, split: Split) -> None:
    figures = of_classes(data, split, data.y[split.stream])
    model = Classifier.fitted(data.X[split.stream], data.y[split.stream], "digits")
    right = model.predict(data.X[split.queries]) == data.y[split.queries]
    assert figures["codeword"]["asymmetric"].first == pytest.approx(right.mean())
    assert (
        0.8 < figures["mapping"]["asymmetric"].average <= figures["codeword"]["asymmetric"].average
    )
    assert figures["bytes"] == {"mapping": 0.5, "codeword": 0.5}


def test_one_label_leaves_nothing_to_tell_apart(data: Dataset) -> None:
    rows = np.flatnonzero(data.y == 3)[:20]
    model = Classifier.fitted(data.X[rows], data.y[rows], "digits")
    assert (model.predict(data.X[:5]) == 3).all()
    same = Split(rows, rows, rows)
    assert score_classifier(model, data, same, data.y[rows]).average == 1
