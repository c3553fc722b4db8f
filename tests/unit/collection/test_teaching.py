"""Labels teach: given, corrected, taken back, merged and dropped, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import everhash
from everhash import Collection, OnlineHasher
from everhash.collection import writing
from everhash.errors import EverhashError, LabelError, OptionError, UnknownNameError
from everhash.learn.exact import ExactLearner
from everhash.wire.options import WAYS
from tests.conftest import Stream

FEW, MANY = 300, 1600
"""Rows that are kept as they came, and rows that are summed up."""
SIZES = pytest.mark.parametrize("n", [FEW, MANY])


def new(**options: Any) -> Collection:
    hasher = OnlineHasher(16, 4, features=40)
    return everhash.create(None, 64, hasher=hasher, **options)


def classifiers(col: Collection) -> dict[Any, NDArray[np.float32]]:
    """The classifier of each label, once all functions were solved."""
    hasher = col.hasher
    assert isinstance(hasher, OnlineHasher)
    hasher.publish()
    assert isinstance(hasher._learner, ExactLearner)
    rows = zip(hasher.labels_, hasher._learner.served.classifiers.rows, strict=True)
    return {label: row.copy() for label, row in rows if label is not None and row.any()}


def assert_learned_alike(one: Collection, other: Collection) -> None:
    mine, theirs = classifiers(one), classifiers(other)
    assert mine.keys() == theirs.keys()
    for label, row in mine.items():
        np.testing.assert_array_equal(row, theirs[label])


def chosen(n: int) -> list[int]:
    """Some entries, beyond the rows that settle the centre."""
    return list(range(n - 150, n - 100))


@SIZES
@pytest.mark.parametrize("wrong", [9, "never heard of", {3, "two"}])
def test_a_corrected_label_is_learned_as_if_it_had_been_right(
    digits: Stream, n: int, wrong: Any
) -> None:
    labels: list[Any] = digits.y[:n].tolist()
    with new() as right, new() as corrected:
        right.ingest(digits.X[:n], labels)
        given = [wrong if i in chosen(n) else label for i, label in enumerate(labels)]
        corrected.ingest(digits.X[:n], given)
        report = corrected.label(chosen(n), [labels[i] for i in chosen(n)])
        assert (report.labelled, report.new) == (50, ())
        assert_learned_alike(corrected, right)


@SIZES
def test_a_label_taken_back_is_as_if_it_had_never_been_given(digits: Stream, n: int) -> None:
    labels: list[Any] = digits.y[:n].tolist()
    left = [None if i in chosen(n) else label for i, label in enumerate(labels)]
    with new() as never, new() as taken_back:
        never.ingest(digits.X[:n], left)
        taken_back.ingest(digits.X[:n], labels)
        assert taken_back.unlabel([*chosen(n)]) == 50
        assert taken_back.unlabel(chosen(n)) == 0, "they have none any more"
        assert_learned_alike(taken_back, never)
        assert {entry.labels for entry in taken_back.get(chosen(n))} == {()}


@SIZES
def test_what_replaced_entries_have_taught_is_forgotten(digits: Stream, n: int) -> None:
    labels: list[Any] = digits.y[:n].tolist()
    others, right = digits.X[n : n + 50], digits.y[n : n + 50].tolist()
    X = digits.X[:n].copy()
    X[chosen(n)] = others
    with new() as straight, new() as upserted, new() as updated:
        y = labels.copy()
        y[chosen(n)[0] : chosen(n)[-1] + 1] = right
        straight.ingest(X, y)
        for col in (upserted, updated):
            col.ingest(digits.X[:n], labels)
        assert upserted.upsert(others, chosen(n), right) == chosen(n)
        assert_learned_alike(upserted, straight)
        updated.label(chosen(n), right)
        updated.update(chosen(n), others)
        assert_learned_alike(updated, straight)
        for col in (upserted, updated):
            np.testing.assert_allclose(col.features(chosen(n)), others, atol=1e-2)
            assert [e.labels[0] for e in col.get(chosen(n))] == right


@SIZES
def test_merged_labels_are_as_if_all_rows_had_come_with_one(digits: Stream, n: int) -> None:
    labels: list[Any] = digits.y[:n].tolist()
    with new() as one, new() as merged:
        one.ingest(digits.X[:n], [1 if label == 7 else label for label in labels])
        merged.ingest(
            digits.X[:n],
            [{1, 7} if i % 9 == 0 and label == 7 else label for i, label in enumerate(labels)],
        )
        assert merged.merge_labels(7, into=1) == labels.count(7)
        assert 7 not in merged.hasher.labels_
        assert_learned_alike(merged, one)
        sevens = [i for i in chosen(n) if labels[i] in (1, 7)]
        for col in (one, merged):
            col.unlabel(sevens)
        assert_learned_alike(merged, one)


@SIZES
def test_a_dropped_label_is_as_if_it_had_never_come(digits: Stream, n: int) -> None:
    labels: list[Any] = digits.y[:n].tolist()
    late = chosen(n)
    left = [i for i in range(n) if i not in late[:20]]
    with new() as never, new() as dropped:
        never.ingest(digits.X[left], [labels[i] for i in left], left)
        given = [
            "x" if i in late[:20] else {"x", label} if i in late else label
            for i, label in enumerate(labels)
        ]
        dropped.ingest(digits.X[:n], given)
        assert dropped.drop_label("x") == 50
        assert_learned_alike(dropped, never)
        assert [entry.labels for entry in dropped.get(late[:20])] == [()] * 20
        assert [entry.labels for entry in dropped.get(late[20:])] == [
            (labels[i],) for i in late[20:]
        ]
        for col in (dropped, never):
            col.unlabel(late[20:])
        assert_learned_alike(dropped, never)


def test_without_teaching_the_hasher_stays_as_it_is(digits: Stream) -> None:
    with new() as col:
        col.ingest(digits.X[:FEW], digits.y[:FEW])
        col.add(digits.X[FEW : FEW + 9])
        before = col.hasher.to_bytes()
        col.label([1, 2, FEW], [3, 4, 5], teach=False)
        col.unlabel([3, 4], teach=False)
        col.upsert(digits.X[:2], [5, "new"], [1, 2], teach=False)
        col.update([6, FEW + 1], digits.X[2:4], teach=False)
        col.remove([7])
        assert col.hasher.to_bytes() == before


def test_learners_that_cannot_forget_learn_the_new_label_all_the_same(digits: Stream) -> None:
    hasher = OnlineHasher(16, learner="sgd")
    with everhash.create(None, 64, hasher=hasher) as col:
        col.ingest(digits.X[:100], digits.y[:100])
        lessons = col.hasher.lessons_
        col.label([1, 2], ["new", "new"])
        assert col.hasher.lessons_ == lessons + 2
        assert col.unlabel([1]) == 1
        with pytest.raises(OptionError, match="cannot merge or drop"):
            col.merge_labels(1, 2)
        with pytest.raises(OptionError, match="cannot merge or drop"):
            col.drop_label(1)


@pytest.mark.parametrize("keep", ["unlabelled", "none"])
def test_what_cannot_be_unlearned_is_said_and_nothing_changes(
    tmp_path: Path, digits: Stream, keep: str
) -> None:
    path = tmp_path / "c.ever"
    with everhash.create(path, 64, 16, keep_features=keep) as col:
        col.ingest(digits.X[:60], digits.y[:60])
        col.add(digits.X[60:65])
        before, stats = col.hasher.to_bytes(), col.stats()
        refused: list[tuple[Any, str]] = [
            (lambda: col.label([1], [5]), "cannot be unlearned"),
            (lambda: col.upsert(digits.X[:1], [1], [5]), "cannot be unlearned"),
            (lambda: col.update([1], digits.X[:1]), "cannot be unlearned"),
            (lambda: col.unlabel([1]), "not kept, so it cannot be coded without its label"),
            (lambda: col.drop_label(1), "not kept, so it cannot be coded without its label"),
        ]
        if keep == "none":
            refused.append((lambda: col.label([60], [5]), "cannot teach its label"))
        for call, why in refused:
            with pytest.raises(OptionError, match=why) as caught:
                call()
            assert caught.value.hint
        assert (col.hasher.to_bytes(), col.stats()) == (before, stats)
        col.label([1], [5], teach=False)
        assert col.get([1])[0].labels == (5,)
        assert col.hasher.to_bytes() == before
        if keep == "unlabelled":
            col.label([60], [5])
            assert col.hasher.to_bytes() != before
            with pytest.raises(OptionError, match="entry 60 has taught its label"):
                col.label([60], [6])


BAD: list[tuple[Any, type[EverhashError]]] = [
    (lambda col: col.rename_label(1, 2), LabelError),
    (lambda col: col.rename_label(1, None), LabelError),
    (lambda col: col.rename_label("nobody", "x"), UnknownNameError),
    (lambda col: col.rename_label([1], "x"), UnknownNameError),
    (lambda col: col.merge_labels(1, 1), LabelError),
    (lambda col: col.merge_labels(1, "nobody"), UnknownNameError),
    (lambda col: col.merge_labels({}, 1), UnknownNameError),
    (lambda col: col.drop_label("nobody"), UnknownNameError),
    (lambda col: col.drop_label(None), UnknownNameError),
    (lambda col: col.label([1], [None]), LabelError),
    (lambda col: col.label([1, 1], [2, 3]), LabelError),
    (lambda col: col.unlabel([1, 1]), LabelError),
    (lambda col: col.update([1, 1], np.ones((2, 64))), LabelError),
]


@pytest.mark.parametrize(("call", "error"), BAD)
def test_a_bad_call_is_a_typed_error_and_changes_nothing(
    digits: Stream, call: Any, error: type[EverhashError]
) -> None:
    with new() as col:
        col.ingest(digits.X[:60], digits.y[:60])
        before, stats = col.hasher.to_bytes(), col.stats()
        with pytest.raises(error):
            call(col)
        assert (col.hasher.to_bytes(), col.stats()) == (before, stats)


def test_new_labels_are_announced_with_known_ones_that_look_alike(digits: Stream) -> None:
    with new() as col:
        col.ingest(digits.X[:3], ["balance", "transfer", 404])
        report = col.label([0, 1, 2], ["blaance", "transfer", {"weather", 405}])
        assert report.labelled == 3
        near = {announced.label: announced.near for announced in report.new}
        assert near == {"blaance": ("balance",), "weather": (), 405: ()}
        assert "known ones are near: balance" in str(report.new[0])
        assert col.label([0], ["balance"]).new == (), "it is still known"


def test_a_renamed_label_is_found_and_learned_under_its_new_name(digits: Stream) -> None:
    with new() as col:
        col.ingest(digits.X[:FEW], digits.y[:FEW])
        before = col.search(digits.X[FEW:], 10)
        col.rename_label(3, "three")
        after = col.search(digits.X[FEW:], 10)
        np.testing.assert_array_equal(after.ids, before.ids)
        np.testing.assert_array_equal(after.labels == "three", before.labels == 3)
        assert {e.labels for e in col.get(after.ids[after.labels == "three"])} == {("three",)}
        col.label([0], [3])
        assert col.hasher.labels_[-1] == 3, "the old name is a new label"


def right_among_ten(col: Collection, X: NDArray[np.float32], label: Any) -> float:
    found = col.search(X, 10)
    return float(np.mean(found.labels == label))


def test_entries_labelled_by_hand_are_found_with_no_other_call(
    tmp_path: Path, digits: Stream
) -> None:
    """A hundred entries nobody had labelled get a label nobody had learned."""
    known, unknown = digits.y < 8, np.flatnonzero(digits.y == 8)
    path = tmp_path / "c.ever"
    with everhash.create(path, 64, 32) as col:
        col.ingest(digits.X[known][:900], digits.y[known][:900])
        ids = col.add(digits.X[unknown[:100]])
        queries = digits.X[unknown[100:]]
        assert right_among_ten(col, queries, "eight") == 0
        report = col.label(ids, ["eight"] * 100)
        assert [announced.label for announced in report.new] == ["eight"]
        assert right_among_ten(col, queries, "eight") >= 0.95
        assert (col.predict(queries) == "eight").mean() >= 0.9
    with everhash.open(path, readonly=True) as reader:
        assert right_among_ten(reader, queries, "eight") >= 0.95


@pytest.mark.parametrize("at_once", [4096, 20])
def test_entries_that_came_before_any_label_are_found_after_a_publication(
    monkeypatch: pytest.MonkeyPatch, digits: Stream, at_once: int
) -> None:
    monkeypatch.setattr(writing, "AT_ONCE", at_once)
    with new() as col:
        ids = col.ingest(digits.X[:400])
        queries = digits.X[1200:1300]
        first = col.search(queries, 400)
        assert (first.counts == 400).all(), "likeness alone ranks, and finds all"
        assert {entry.guess for entry in col.get(ids)} == {None}
        col.ingest(digits.X[400:1200], digits.y[400:1200])
        meanwhile = col.search(queries, 1000)
        assert (meanwhile.counts == 1000).all()
        assert col.wait(60)
        assert col.stats()["stale_bits"] == 0
        guesses = np.array([entry.guess for entry in col.get(ids)])
        assert (guesses == digits.y[:400]).mean() > 0.85
        found = col.search(queries, 10, unlabelled=True)
        assert np.mean(found.guesses == digits.y[1200:1300, None]) > 0.85


def test_without_auto_refresh_only_a_refresh_gives_guesses(digits: Stream) -> None:
    with new(auto_refresh=False) as col:
        ids = col.ingest(digits.X[:50])
        col.ingest(digits.X[50:FEW], digits.y[50:FEW])
        assert {entry.guess for entry in col.get(ids)} == {None}
        for by in WAYS:
            assert (col.search(digits.X[:5], FEW, by).counts == FEW).all()
        col.refresh()
        assert None not in {entry.guess for entry in col.get(ids)}


def test_opening_makes_few_publications_again(
    tmp_path: Path, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows without a label are lessons too, and each publication they cause takes time again."""
    path = tmp_path / "c.ever"
    given = [label if i % 30 < 2 else None for i, label in enumerate(digits.y.tolist())]
    with everhash.create(path, 64) as col:
        for start in range(0, 1500, 20):
            col.ingest(digits.X[start : start + 20], given[start : start + 20])
        made = col.hasher.generation_
        proba = col.hasher.predict_proba(digits.X[1500:])  # type: ignore[attr-defined]
    again = list[int]()
    publish = ExactLearner._publish_in_time

    def counted(learner: ExactLearner) -> None:
        again.append(learner.served.publications)
        publish(learner)

    monkeypatch.setattr(ExactLearner, "_publish_in_time", counted)
    with everhash.open(path) as col:
        assert col.hasher.generation_ == made > 10
        np.testing.assert_array_equal(col.hasher.predict_proba(digits.X[1500:]), proba)  # type: ignore[attr-defined]
    assert len(again) <= 4
