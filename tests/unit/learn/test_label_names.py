"""Labels that are renamed, merged into others, or dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash import OnlineHasher, peers
from everhash.errors import LabelError, NotFittedError, OptionError, UnknownNameError
from everhash.learn.exact import ExactLearner
from everhash.peers.model_file import hasher_from_bytes
from tests.conftest import Stream

FEW, MANY = 300, 1600
"""Rows that are kept as they came, and rows that are summed up."""


def small(**options: Any) -> OnlineHasher:
    return OnlineHasher(**{"bits": 16, "labels_per_cycle": 4, "features": 80, **options})


def learned(digits: Stream, rows: int, **options: Any) -> OnlineHasher:
    return small(**options).partial_fit(digits.X[:rows], digits.y[:rows])


def again(hasher: OnlineHasher) -> OnlineHasher:
    loaded = hasher_from_bytes(hasher.to_bytes(), "again")
    assert isinstance(loaded, OnlineHasher)
    return loaded


def classifiers(hasher: OnlineHasher) -> dict[Any, np.ndarray]:
    assert isinstance(hasher._learner, ExactLearner)
    rows = zip(hasher.labels_, hasher._learner.served.classifiers.rows, strict=True)
    return {label: row for label, row in rows if label is not None}


def assert_same_classifiers(one: OnlineHasher, other: OnlineHasher) -> None:
    mine, theirs = classifiers(one), classifiers(other)
    assert mine.keys() == theirs.keys()
    for label, row in mine.items():
        scale = np.abs(row).max()
        np.testing.assert_allclose(row, theirs[label], atol=1e-5 * scale)


# Names


@pytest.mark.parametrize("name", ["everhash", "everhash-sgd", "mihash", "hcoh", "onehot"])
def test_a_renamed_label_is_the_same_label(digits: Stream, name: str) -> None:
    hasher = peers.get(name).partial_fit(digits.X[:200], digits.y[:200])
    labels, margins = hasher.labels_, hasher.margins(digits.X)
    renamed = labels[3]
    hasher.rename_label(np.array(digits.y)[digits.y == renamed][0], "three")
    assert hasher.labels_ == [*labels[:3], "three", *labels[4:]]
    assert hasher.numbers(["three"]).tolist() == [3]
    assert hasher.unknown([renamed, "three"]) == [renamed]
    np.testing.assert_array_equal(hasher.margins(digits.X), margins)
    loaded = hasher_from_bytes(hasher.to_bytes(), "renamed")
    assert loaded.labels_ == hasher.labels_
    hasher.rename_label("three", renamed)
    assert hasher.labels_ == labels
    y = ["three" if label == renamed else int(label) for label in digits.y[200:300]]
    one = loaded.partial_fit(digits.X[200:300], y).rename_label("three", renamed)
    hasher.partial_fit(digits.X[200:300], digits.y[200:300])
    assert one.to_bytes() == hasher.to_bytes()


def test_names_that_cannot_be_are_refused_and_nothing_changes(digits: Stream) -> None:
    for rows in (FEW, MANY):
        hasher = learned(digits, rows)
        before = hasher.to_bytes()
        with pytest.raises(LabelError, match="there is a label 4") as caught:
            hasher.rename_label(3, 4)
        assert "merge_labels() makes them one" in str(caught.value)
        for call, names in (
            (hasher.rename_label, ("owl", "cat")),
            (hasher.merge_labels, ("owl", 3)),
            (hasher.merge_labels, (3, "owl")),
            (hasher.drop_label, ("owl",)),
        ):
            with pytest.raises(UnknownNameError, match="'owl' has not been seen"):
                call(*names)
        with pytest.raises(LabelError, match="into itself"):
            hasher.merge_labels(3, 3)
        for bad in (None, float("nan"), [1]):
            with pytest.raises(LabelError):
                hasher.rename_label(3, bad)
            with pytest.raises(LabelError):
                hasher.drop_label(bad)
        assert hasher.to_bytes() == before


@pytest.mark.parametrize("name", ["everhash-sgd", "mihash", "hcoh"])
def test_other_methods_can_only_rename(digits: Stream, name: str) -> None:
    hasher = peers.get(name).partial_fit(digits.X[:100], digits.y[:100])
    before = hasher.to_bytes()
    for call, names in ((hasher.merge_labels, (1, 2)), (hasher.drop_label, (1,))):
        with pytest.raises(OptionError, match="cannot") as caught:
            call(*names)
        assert caught.value.hint
    assert hasher.to_bytes() == before


def test_labels_need_a_hasher_that_has_begun() -> None:
    hasher = small()
    for call, names in (
        (hasher.rename_label, (1, 2)),
        (hasher.merge_labels, (1, 2)),
        (hasher.drop_label, (1,)),
    ):
        with pytest.raises(NotFittedError):
            call(*names)


# Merging


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("one", [0, 7])
def test_merged_labels_are_as_if_learned_as_one(digits: Stream, rows: int, one: int) -> None:
    hasher = learned(digits, rows).merge_labels(one, into=3)
    y = np.where(digits.y[:rows] == one, 3, digits.y[:rows])
    never = small().partial_fit(digits.X[:rows], y).publish()
    assert_same_classifiers(hasher, never)
    assert one not in hasher.labels_
    assert hasher.labels_.count(None) == 1
    assert hasher.label_counts_ is not None
    assert never.label_counts_ is not None
    assert hasher.label_counts_.sum() == never.label_counts_.sum() == rows
    assert_same_classifiers(again(hasher), hasher)
    later = slice(rows, rows + 50)
    y = np.where(digits.y == one, 3, digits.y)[later]
    never.partial_fit(digits.X[later], y).publish()
    for each in (again(hasher), hasher):
        assert_same_classifiers(each.partial_fit(digits.X[later], y).publish(), never)


def test_a_kept_row_with_both_labels_has_one_of_them(digits: Stream) -> None:
    y: list[Any] = [{int(label), "all", "every"} for label in digits.y[:FEW]]
    hasher = small().partial_fit(digits.X[:FEW], y).merge_labels("every", into="all")
    never = small().partial_fit(digits.X[:FEW], [mine - {"every"} for mine in y]).publish()
    assert_same_classifiers(hasher, never)
    assert hasher.label_counts_ is not None
    assert hasher.label_counts_.max() == FEW
    assert_same_classifiers(again(hasher), hasher)
    hasher.forget(digits.X[:1], [{int(digits.y[0]), "all"}])
    assert hasher.rows_ == FEW - 1


def test_summed_rows_that_all_have_both_labels_are_refused(digits: Stream) -> None:
    y: list[Any] = [{int(label), "all", "every"} for label in digits.y[:MANY]]
    hasher = small().partial_fit(digits.X[:MANY], y)
    before = hasher.to_bytes()
    with pytest.raises(LabelError, match="some have both") as caught:
        hasher.merge_labels("every", into="all")
    assert "drop_label" in caught.value.hint
    assert hasher.to_bytes() == before


def test_what_was_recorded_of_a_label_is_recorded_of_the_other(digits: Stream) -> None:
    hasher = learned(digits, MANY)
    assert isinstance(hasher._learner, ExactLearner)
    record, numbers = hasher._learner.record, hasher.numbers([1, 2])
    rows, right = (c.rows[numbers].sum() for c in (record.label_rows, record.label_right))
    hasher.merge_labels(1, into=2)
    assert hasher.label_accuracies_ is not None
    assert hasher.label_accuracies_[numbers[0]] is None
    assert hasher.label_accuracies_[numbers[1]] == right / rows


# Dropping


@pytest.mark.parametrize("rows", [1, 20, FEW, MANY])
@pytest.mark.parametrize("unlabelled", [False, True])
def test_a_dropped_label_is_never_predicted(digits: Stream, rows: int, unlabelled: bool) -> None:
    hasher = learned(digits, rows, learn_unlabelled=unlabelled)
    label = int(digits.y[0])
    number = int(hasher.numbers([label])[0])
    hasher.drop_label(label)
    assert hasher.labels_[number] is None
    for each in (hasher, again(hasher)):
        assert not each.posterior(digits.X).probabilities[:, number].any()
        if rows > 1:
            assert label not in each.predict(digits.X).tolist()
            assert None not in each.predict(digits.X).tolist()
            assert label not in each.classes_.tolist()
            assert each.predict_proba(digits.X).shape == (len(digits.X), len(each.classes_))
            named = {name for name, _ in each.predict_best(digits.X[:1], 99)[0]}
            assert named == {name for name in each.labels_ if name is not None}
        else:
            with pytest.raises(LabelError, match="no label"):
                each.predict(digits.X)
    if rows == MANY or unlabelled:
        assert hasher.rows_ == rows


def test_kept_rows_of_a_dropped_label_were_never_there(digits: Stream) -> None:
    hasher = learned(digits, FEW).drop_label(3)
    others = digits.y[:FEW] != 3
    never = small().partial_fit(digits.X[:FEW][others], digits.y[:FEW][others]).publish()
    assert_same_classifiers(hasher, never)
    assert hasher.rows_ == others.sum()


def test_summed_rows_of_a_dropped_label_are_rows_without_one(digits: Stream) -> None:
    hasher = learned(digits, MANY).drop_label(3)
    never = learned(digits, 1000, learn_unlabelled=True)
    y = [None if label == 3 else int(label) for label in digits.y[1000:MANY]]
    never.partial_fit(digits.X[1000:MANY], y)
    rows = np.flatnonzero(digits.y[:1000] == 3)
    never.forget(digits.X[rows], digits.y[rows]).partial_fit(digits.X[rows], [None] * len(rows))
    never.publish()
    mine, theirs = classifiers(hasher), classifiers(never)
    for label in set(range(10)) - {3}:
        np.testing.assert_allclose(mine[label], theirs[label], atol=1e-5)


def test_a_name_that_is_gone_may_come_again_as_a_new_label(digits: Stream) -> None:
    for rows in (FEW, MANY):
        hasher = learned(digits, rows)
        words, number = hasher.words_.copy(), int(hasher.numbers([3])[0])
        hasher.drop_label(3)
        np.testing.assert_array_equal(hasher.words_, words)
        assert len(hasher.encode_labels()) == 10
        mine = digits.y == 3
        hasher.partial_fit(digits.X[mine], digits.y[mine]).publish()
        assert hasher.numbers([3]).tolist() == [10]
        assert hasher.labels_[number] is None
        assert len(hasher.labels_) == len(hasher.words_) == 11
        assert hasher.score(digits.X[mine], digits.y[mine]) > 0.9
        np.testing.assert_array_equal(hasher.words_[:10], words)
        assert again(hasher).labels_ == hasher.labels_


def test_forks_keep_gaps_and_merge_by_name(digits: Stream) -> None:
    hasher = learned(digits, 1000).drop_label(3).merge_labels(5, into=6)
    fork, other = hasher.fork(), hasher.fork()
    assert fork.labels_ == hasher.labels_
    np.testing.assert_array_equal(fork.words_, hasher.words_)
    one = again(hasher)
    y = np.where(digits.y == 5, 6, digits.y)
    fork.partial_fit(digits.X[1000:1300], y[1000:1300]).drop_label(8)
    other.partial_fit(digits.X[1300:], y[1300:])
    hasher.merge(fork, other)
    kept = np.r_[1000 + np.flatnonzero(y[1000:1300] != 8), np.arange(1300, len(y))]
    one.partial_fit(digits.X[kept], y[kept]).publish()
    assert classifiers(hasher).keys() == classifiers(one).keys()
    assert hasher.label_counts_ is not None
    assert one.label_counts_ is not None
    for label, number in zip(one.labels_, one.label_counts_, strict=True):
        if label is not None:
            assert hasher.label_counts_[hasher.numbers([label])[0]] == number


@settings(max_examples=15)
@given(data=st.data())
def test_any_changes_of_labels_leave_a_hasher_that_files_and_learns(
    digits: Stream, data: st.DataObject
) -> None:
    """Names, numbers and counts agree after any of them, and after a file as well."""
    rows = data.draw(st.sampled_from([40, FEW, 1100]))
    hasher = learned(digits, rows)
    n_numbers = len(hasher.labels_)
    for step in range(data.draw(st.integers(1, 6))):
        living = [label for label in hasher.labels_ if label is not None]
        call = data.draw(st.sampled_from(["rename", "merge", "drop", "learn", "file"]))
        if call == "rename" and living:
            old = data.draw(st.sampled_from(living))
            hasher.rename_label(old, f"{old} of {step}")
        elif call == "merge" and len(living) > 1:
            one, other = data.draw(st.permutations(living))[:2]
            hasher.merge_labels(one, into=other)
        elif call == "drop" and living:
            hasher.drop_label(data.draw(st.sampled_from(living)))
        elif call == "learn":
            hasher.partial_fit(digits.X[rows : rows + 30], digits.y[rows : rows + 30])
        else:
            hasher = again(hasher)
        labels = hasher.labels_
        assert len(labels) >= n_numbers
        n_numbers = len(labels)
        living = [label for label in labels if label is not None]
        assert [labels[number] for number in hasher.numbers(living)] == living
        found = hasher.posterior(digits.X[:20])
        gone = [number for number, label in enumerate(labels) if label is None]
        assert not found.probabilities[:, gone].any()
        assert hasher.label_counts_ is not None
        assert not hasher.label_counts_[gone].any()
    assert again(hasher).to_bytes() == hasher.to_bytes()
