"""Searching by entries: by their features if they are kept, else by their codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Index, OnlineHasher, peers
from everhash.errors import InputError, NotFittedError, OptionError, UnknownIdError
from everhash.wire.options import WAYS
from tests.conftest import Stream


def filled(digits: Stream, **options: Any) -> Index:
    """Labelled digits 0 to 299, one with two labels; unlabelled ones 300 to 499; stale bits."""
    hasher = OnlineHasher(bits=12, labels_per_cycle=4, random_state=3, features=100)
    hasher.partial_fit(digits.X[:600], digits.y[:600] % 9)
    index = Index(hasher, **options)
    index.add(digits.X[:300], y=[{3, 8} if i == 7 else int(digits.y[i] % 9) for i in range(300)])
    index.add(digits.X[300:500])
    hasher.partial_fit(digits.X[600:900], digits.y[600:900])  # nine is a new label
    return index


def code_of(index: Index, name: Any) -> Any:
    """An entry's code over all cycles, 0 where it has no bit."""
    hasher, entry = index.hasher, index.get([name])[0]
    code = np.zeros((hasher.n_cycles_, hasher.bits))
    if entry.code is not None and index.coding == "full":
        code.reshape(-1)[: len(entry.code)] = np.where(entry.code, 1, -1)
    elif entry.code is not None:
        code[entry.home] = np.where(entry.code, 1, -1)
    for label in entry.labels:
        number = hasher.labels_.index(label)
        code[hasher.label_cycles_[number]] += hasher.words_[number]
    return code.reshape(-1)


@pytest.mark.parametrize("coding", ["home", "full"])
@pytest.mark.parametrize("by", WAYS)
def test_an_entry_with_features_is_searched_by_them(digits: Stream, coding: str, by: str) -> None:
    index = filled(digits, coding=coding)
    names = [450, 20, 300, 450, 7]
    rows = index.features(names)
    np.testing.assert_allclose(rows, digits.X[names], rtol=1e-3)
    found = index.search_like(names, 40, by, explain=True)
    expected = index.search(rows, 40, by, explain=True)
    assert found.by == expected.by
    for column in ("ids", "scores", "likeness", "labels", "guesses", "novelty"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))
    for mine, theirs in zip(found.explanations[0], expected.explanations[0], strict=True):
        np.testing.assert_array_equal(mine.bits, theirs.bits)


@pytest.mark.parametrize("coding", ["home", "full"])
@pytest.mark.parametrize("keep", ["unlabelled", "none"])
def test_an_entry_without_features_is_searched_by_its_code(
    digits: Stream, coding: str, keep: str
) -> None:
    index = filled(digits, coding=coding, keep_features=keep)
    names = [7, 20, 299] if keep == "unlabelled" else [7, 20, 299, 300, 450]
    found = index.search_like(names, 500, "asymmetric", explain=True)
    codes = {name: code_of(index, name) for name in range(500)}
    for row, asked in enumerate(names):
        far: dict[int, float] = {}
        for name, code in codes.items():
            of_each = [code]
            if name == 7:  # each of its labels finds it
                of_each = [_word(index, label) for label in (3, 8)]
            scale = {"home": 1, "full": 12 if name < 300 else _width(index)}[coding]
            far[name] = min(-(codes[asked] @ each) / scale for each in of_each)
        order = sorted(far, key=lambda name: (round(far[name], 4), name))
        np.testing.assert_allclose(found.scores[row], [far[name] for name in order], atol=1e-4)
        for name, distance in zip(found.ids[row].tolist(), found.scores[row], strict=True):
            assert far[name] == pytest.approx(float(distance), abs=1e-4)
        why = found.explanations[row][0].bits
        shown = codes[asked][: len(why)]
        assert (why[shown == 0] == 0).all(), "where the query has no bit nothing is compared"


def _word(index: Index, label: Any) -> Any:
    hasher = index.hasher
    number = hasher.labels_.index(label)
    word = np.zeros((hasher.n_cycles_, hasher.bits))
    word[hasher.label_cycles_[number]] = hasher.words_[number]
    return word.reshape(-1)


def _width(index: Index) -> int:
    code = index.get([300])[0].code
    assert code is not None
    return len(code)


def test_an_entry_without_features_has_its_own_labels_for_certain(digits: Stream) -> None:
    index = filled(digits, keep_features="none")
    names = [20, 7, 450]
    found = index.search_like(names, 500, "meaning")
    guess = index.get([450])[0].guess
    chances: list[dict[Any, float]] = [{int(digits.y[20] % 9): 1}, {3: 0.5, 8: 0.5}, {guess: 1}]
    trust = OnlineHasher.trust_.__get__(index.hasher)
    for row, chance in enumerate(chances):
        columns = (found.ids[row], found.scores[row], found.labels[row], found.guesses[row])
        for name, score, label, taken_for in zip(*columns, strict=True):
            labels = index.get([name])[0].labels
            if labels:
                assert label in labels
                assert score == max(chance.get(label, 0) for label in labels)
            else:
                share = chance.get(taken_for, 0)
                assert score == 0 if share == 0 else score in share * trust
    assert found.novelty.tolist() == [0, 0, 0]


def test_entries_of_its_label_are_best_for_a_labelled_one(digits: Stream) -> None:
    index = filled(digits)
    found = index.search_like([20], 10, labels=range(9))
    assert set(found.labels[0]) == {int(digits.y[20] % 9)}
    assert found.ids[0, 0] == 20, "nothing is more like it than itself"
    only = index.search_like([20], 3, ids=[1, 2, 3, 4])
    assert set(only.ids[0]) <= {1, 2, 3, 4}


@pytest.mark.parametrize("by", ["relevance", "meaning", "asymmetric"])
@pytest.mark.parametrize("keep", ["all", "unlabelled", "none"])
def test_both_kinds_at_once_are_each_alone(digits: Stream, keep: str, by: str) -> None:
    index = filled(digits, keep_features=keep)
    names = [20, 450, 7, 300]
    together = index.search_like(names, 50, by)
    for row, name in enumerate(names):
        alone = index.search_like([name], 50, by)
        assert together.ids[row].tolist() == alone.ids[0].tolist()
        np.testing.assert_array_equal(together.scores[row], alone.scores[0])


def test_bad_entries_are_refused(digits: Stream) -> None:
    index = filled(digits, keep_features="unlabelled")
    with pytest.raises(UnknownIdError):
        index.search_like([1, 9999])
    with pytest.raises(OptionError, match="entry 20 has no bits"):
        index.search_like([450, 20], by="hamming")
    with pytest.raises(OptionError, match="entry 20 are not kept, so it has no likeness"):
        index.search_like([450, 20], by="likeness")
    with pytest.raises(OptionError, match="unknown"):
        index.search_like([450], by="cosine")
    with pytest.raises(OptionError, match="features of entry 20 are not kept"):
        index.features([450, 20])
    with pytest.raises(InputError, match="0 sample"):
        index.search_like([])
    with pytest.raises(NotFittedError):
        Index(OnlineHasher(8)).search_like([])


def test_codes_with_inactive_bits_cannot_be_queries(digits: Stream) -> None:
    index = filled(digits)
    index.refresh()
    assert isinstance(index.hasher, OnlineHasher)
    words = index.hasher.encode_labels()
    with pytest.raises(InputError, match="all bits"):
        index.search(words, by="hamming")


def test_methods_without_codewords_search_by_features(digits: Stream) -> None:
    hasher = peers.get("mihash", 16, random_state=0).partial_fit(digits.X[:300], digits.y[:300])
    index = Index(hasher)
    index.add(digits.X[:100], y=digits.y[:100].tolist())
    assert index.search_like([5], 3).ids[0, 0] == 5


def test_a_reader_searches_by_the_newest_features(tmp_path: Any, digits: Stream) -> None:
    with everhash.create(tmp_path / "c.ever", 64, 12) as col:
        col.ingest(digits.X[:100], digits.y[:100])
        col.add(digits.X[100:200])
        with everhash.open(tmp_path / "c.ever", readonly=True) as reader:
            col.add(digits.X[200:210], [f"new {i}" for i in range(10)])
            for names in ([3, 150], ["new 4", 99, 100]):
                mine, theirs = (each.search_like(names, 20) for each in (col, reader))
                assert mine.ids.tolist() == theirs.ids.tolist()
                np.testing.assert_array_equal(mine.scores, theirs.scores)
