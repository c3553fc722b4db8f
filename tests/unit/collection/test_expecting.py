"""Labels are changed only while entries have those that the caller expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection
from everhash.errors import LabelConflictError, LabelError, UnknownNameError

X = np.eye(6, dtype=np.float32)


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    """Entries a (boots), b (no label), c (boots and red)."""
    with everhash.create(tmp_path / "shop.ever", 6, 8) as made:
        made.ingest(X[:3], ["boots", None, {"boots", "red"}], ["a", "b", "c"])
        yield made


def labels(shop: Collection) -> list[Any]:
    return [set(entry.labels) for entry in shop.get(["a", "b", "c"])]


EXPECTED: list[tuple[list[str], Any]] = [
    (["a"], "boots"),
    (["a"], {"boots"}),
    (["a"], ["boots"]),
    (["b"], set()),
    (["b"], [None]),
    (["b"], [set()]),
    (["c", "b", "a"], [{"red", "boots"}, None, "boots"]),
    (["c"], {"red", "boots"}),
    (["c"], frozenset({"red", "boots"})),
    (["b"], [float("nan")]),
    (["a", "b"], None),
    ([], "boots"),
]


@pytest.mark.parametrize(("ids", "expect"), EXPECTED)
def test_what_is_expected_rightly_is_changed(shop: Collection, ids: list[str], expect: Any) -> None:
    assert shop.label(ids, ["red"] * len(ids), expect=expect).labelled == len(ids)
    assert shop.unlabel(ids, expect="red") == len(ids)


OTHERWISE: list[tuple[list[str], Any, str]] = [
    (["a"], "red", "entry 'a' has 'boots', expected 'red'"),
    (["a"], set(), "entry 'a' has 'boots', expected no label"),
    (["a"], {"boots", "red"}, "entry 'a' has 'boots', expected 'boots' and 'red'"),
    (["a"], "never seen", "entry 'a' has 'boots', expected 'never seen'"),
    (["b"], "boots", "entry 'b' has no label, expected 'boots'"),
    (["c"], "boots", "entry 'c' has 'boots' and 'red', expected 'boots'"),
    (["b", "a", "c"], [None, "boots", "red"], "entry 'c' has 'boots' and 'red', expected 'red'"),
    (["a", "c", "b"], set(), "entry 'a' has 'boots', expected no label"),
    (["a"], [""], "entry 'a' has 'boots', expected ''"),
]


@pytest.mark.parametrize(("ids", "expect", "said"), OTHERWISE)
def test_what_is_expected_wrongly_changes_nothing(
    shop: Collection, ids: list[str], expect: Any, said: str
) -> None:
    before, stats = labels(shop), shop.stats()
    for change in (
        lambda: shop.label(ids, ["blue"] * len(ids), expect=expect),
        lambda: shop.unlabel(ids, expect=expect),
    ):
        with pytest.raises(LabelConflictError) as caught:
            change()
        assert caught.value.message == said
        assert repr(caught.value.id) == said.split()[1]
    assert (labels(shop), shop.stats()) == (before, stats)


@pytest.mark.parametrize(
    "expect", [["boots", "boots"], [["boots"]], [float("inf")], 1j, [object()]]
)
def test_what_cannot_be_expected_is_refused(shop: Collection, expect: Any) -> None:
    for change in (
        lambda: shop.label(["a"], "red", expect=expect),
        lambda: shop.unlabel(["a"], expect=expect),
    ):
        with pytest.raises(everhash.errors.InputError) as caught:
            change()
        assert not isinstance(caught.value, LabelConflictError)
    assert labels(shop)[0] == {"boots"}


def test_labels_are_expected_as_they_are_compared() -> None:
    with everhash.create(None, 6, 8) as numbers:
        numbers.ingest(X[:2], [7, 2.5], [0, 1])
        for expect in (7, 7.0, np.int8(7), np.array([7]), [{np.float32(7)}]):
            numbers.label([0], [7], expect=expect)
        with pytest.raises(LabelConflictError, match=r"entry 0 has 7, expected '7'"):
            numbers.label([0], [7], expect="7")


def test_a_new_label_is_refused_on_demand(shop: Collection) -> None:
    before = labels(shop), shop.stats()
    with pytest.raises(UnknownNameError) as caught:
        shop.label(["b"], ["boost"], new=False)
    assert str(caught.value) == (
        "\"label 'boost' has not been seen\" (known ones are near: boots; new=True makes a new "
        "label; nothing was changed)"
    ).replace('"', "")
    assert (labels(shop), shop.stats()) == before
    assert shop.label(["b"], ["boots"], new=False).new == ()
    assert [one.label for one in shop.label(["b"], ["boost"]).new] == ["boost"]


def test_a_label_in_use_is_not_dropped_as_unused(shop: Collection) -> None:
    shop.label(["b"], "slip")
    with pytest.raises(LabelError, match="'slip' is in use: entries 1, rows learned 1"):
        shop.drop_label("slip", unused=True)
    shop.unlabel(["b"])
    shop.learn(X[3:4], ["slip"])
    with pytest.raises(LabelError, match="'slip' is in use: entries 0, rows learned 1"):
        shop.drop_label("slip", unused=True)
    shop.forget(X[3:4], ["slip"])
    assert shop.drop_label("slip", unused=True) == 0
