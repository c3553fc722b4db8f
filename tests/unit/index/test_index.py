"""What an index refuses, how it ranks and refreshes entries, and how it pages through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everhash import Index, OnlineHasher, peers
from everhash.codes import asymmetric
from everhash.errors import (
    DimensionError,
    DuplicateIdError,
    IdError,
    LabelError,
    LimitError,
    NotFittedError,
    OptionError,
    StaleCodesError,
    UnknownIdError,
    UnknownNameError,
)
from everhash.index import index as searching
from everhash.index import labels
from everhash.index.ways import prepare
from everhash.index.ways.query import Query
from everhash.index.ways.way import Way
from everhash.wire.options import RECALL, WAYS
from tests.conftest import Stream


@pytest.fixture(scope="module")
def learned(digits: Stream) -> OnlineHasher:
    return OnlineHasher(bits=16, labels_per_cycle=4).partial_fit(digits.X[:1200], digits.y[:1200])


@pytest.fixture
def hasher(learned: OnlineHasher) -> OnlineHasher:
    from copy import deepcopy

    return deepcopy(learned)


@pytest.fixture
def index(hasher: OnlineHasher, digits: Stream) -> Index:
    index = Index(hasher)
    labels = [None if i % 2 else int(label) for i, label in enumerate(digits.y[:100])]
    index.add(digits.X[:100], [f"e{i}" for i in range(100)], labels)
    return index


def test_every_way_of_searching_is_told_the_recall(
    index: Index, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []

    def listen(by: str, query: Query) -> Way:
        told.append(query.recall)
        return prepare(by, query)

    monkeypatch.setattr(searching, "prepare", listen)
    for by in WAYS:
        index.search(digits.X[:2], 3, by)
        index.search(digits.X[:2], 3, by, recall=0.5)
        index.search_like(["e1", "e3"], 3, by)
        index.search_like(["e1", "e3"], 3, by, recall=1)
        index.search_radius(digits.X[:2], 0.5, by)
        assert told == [RECALL, 0.5, RECALL, 1, 1]
        told.clear()


def fingerprint(index: Index, X: np.ndarray) -> tuple[Any, ...]:
    found = [index.search(X[:5], 20, by) for by in WAYS]
    seen = [(each.ids.tolist(), each.scores.tolist()) for each in found]
    return index.stats(), seen


BAD_CALLS: dict[str, tuple[Any, type[Exception]]] = {
    "duplicate id": (lambda i, X: i.add(X[:2], ["new", "e3"]), DuplicateIdError),
    "an id twice in a batch": (lambda i, X: i.add(X[:2], ["a", "a"]), DuplicateIdError),
    "too few ids": (lambda i, X: i.add(X[:2], ["a"]), IdError),
    "an id that is a float": (lambda i, X: i.add(X[:1], [1.5]), IdError),
    "an id that is too long": (lambda i, X: i.add(X[:1], ["x" * 65]), IdError),
    "an id that is empty": (lambda i, X: i.add(X[:1], [""]), IdError),
    "an id beyond int64": (lambda i, X: i.add(X[:1], [2**63]), IdError),
    "wrong dimension": (lambda i, X: i.add(X[:2, :5]), DimensionError),
    "labels of another length": (lambda i, X: i.add(X[:2], y=[1]), LabelError),
    "unhashable label": (lambda i, X: i.add(X[:2], y=[1, [2]]), LabelError),
    "remove unknown id": (lambda i, X: i.remove(["e1", "nobody"]), UnknownIdError),
    "get unknown id": (lambda i, X: i.get(["nobody"]), UnknownIdError),
    "label unknown id": (lambda i, X: i.label(["e1", "nobody"], [1, 2]), UnknownIdError),
    "label with nothing": (lambda i, X: i.label(["e1"], [None]), LabelError),
    "label an id twice": (lambda i, X: i.label(["e1", "e1"], [1, 2]), LabelError),
    "k of 0": (lambda i, X: i.search(X[:1], 0), OptionError),
    "k above the limit": (lambda i, X: i.search(X[:1], 1001), LimitError),
    "k of a half": (lambda i, X: i.search(X[:1], 0.5), OptionError),
    "recall of nothing": (lambda i, X: i.search(X[:1], recall=0), OptionError),
    "recall above all": (lambda i, X: i.search(X[:1], by="likeness", recall=1.5), OptionError),
    "recall of entries": (lambda i, X: i.search_like(["e1"], recall=True), OptionError),
    "query of another width": (lambda i, X: i.search(X[:1, :3]), DimensionError),
    "unlabel unknown id": (lambda i, X: i.unlabel(["e0", "nobody"]), UnknownIdError),
    "unlabel an id twice": (lambda i, X: i.unlabel(["e0", "e0"]), LabelError),
    "replace an id twice": (
        lambda i, X: i.add(X[:2], ["e0", "e0"], replace=True),
        DuplicateIdError,
    ),
    "unknown way of searching": (lambda i, X: i.search(X[:1], 1, "cosine"), OptionError),
    "unknown label in a filter": (lambda i, X: i.search(X[:1], labels=["owl"]), UnknownNameError),
    "unknown id in a filter": (lambda i, X: i.search(X[:1], ids=["nobody"]), UnknownIdError),
    "radius that is no number": (lambda i, X: i.search_radius(X[:1], float("nan")), OptionError),
    "margins of codes": (
        lambda i, X: i.search(i.hasher.encode(X[:1]), 1, "asymmetric"),
        OptionError,
    ),
    "meaning of codes": (lambda i, X: i.search(i.hasher.encode(X[:1]), 1), OptionError),
    "likeness of codes": (
        lambda i, X: i.search(i.hasher.encode(X[:1]), 1, "likeness"),
        OptionError,
    ),
    "relevance for codes": (lambda i, X: i.search(i.hasher.encode(X[:1]), 1), OptionError),
}


@pytest.mark.parametrize(("call", "error"), BAD_CALLS.values(), ids=BAD_CALLS.keys())
def test_a_bad_call_is_a_typed_error_and_changes_nothing(
    index: Index, digits: Stream, call: Any, error: type[Exception]
) -> None:
    before = fingerprint(index, digits.X)
    with pytest.raises(error):
        call(index, digits.X)
    assert fingerprint(index, digits.X) == before


def test_codes_of_another_mapping_version_are_refused(
    hasher: OnlineHasher, index: Index, digits: Stream
) -> None:
    codes = hasher.encode(digits.X[:2])
    by_codes = index.search(codes, 5, "hamming")
    by_rows = index.search(digits.X[:2], 5, "hamming")
    assert by_codes.ids.tolist() == by_rows.ids.tolist()
    assert np.isnan(by_codes.novelty).all()
    hasher.partial_fit(digits.X[1200:1300], digits.y[1200:1300]).publish()
    with pytest.raises(StaleCodesError):
        index.search(codes, 5, "hamming")
    with pytest.raises(StaleCodesError, match="entries of version"):
        index.search(hasher.encode(digits.X[:2]), 5, "hamming")
    index.refresh()
    index.search(hasher.encode(digits.X[:2]), 5, "hamming")


def test_unlabelled_entries_need_a_hasher_that_has_seen_rows(digits: Stream) -> None:
    with pytest.raises(NotFittedError):
        Index(OnlineHasher()).add(digits.X[:3])
    for by in WAYS:
        with pytest.raises(NotFittedError):
            Index(OnlineHasher()).search(digits.X[:3], 1, by)


def test_a_removed_id_is_free_again(index: Index, digits: Stream) -> None:
    index.remove(["e5"])
    assert index.has(["e5", "e6"]).tolist() == [False, True]
    with pytest.raises(UnknownIdError):
        index.get(["e5"])
    index.add(digits.X[:1], ["e5"], ["again"])
    assert index.get(["e5"])[0].labels == ("again",)
    assert index.search(digits.X[:1], 1, labels=["again"]).ids.tolist() == [["e5"]]


def test_a_replaced_entry_keeps_nothing_of_what_it_was(index: Index, digits: Stream) -> None:
    assert index.add(digits.X[200:202], ["e0", "new"], [None, 3], replace=True) == ["e0", "new"]
    assert len(index) == 101
    assert [entry.labels for entry in index.get(["e0", "new"])] == [(), (3,)]
    np.testing.assert_allclose(index.features(["e0"]), digits.X[200:201], atol=1e-2)
    assert index.search(digits.X[200:201], 1, "likeness").ids[0, 0] == "e0"


def test_ids_given_by_default_avoid_those_given_by_users(
    hasher: OnlineHasher, digits: Stream
) -> None:
    index = Index(hasher)
    assert index.add(digits.X[:2]) == [0, 1]
    assert index.add(digits.X[:2], iter([7, "seven"])) == [7, "seven"]
    assert index.add(digits.X[:2]) == [8, 9]
    assert sorted(index.search(digits.X[:1], 6).ids[0].tolist(), key=str) == [
        0,
        1,
        7,
        8,
        9,
        "seven",
    ]


def test_a_label_first_seen_on_an_entry_gets_its_codeword_there(
    index: Index, digits: Stream
) -> None:
    index.add(digits.X[:1], ["owl"], ["an owl"])
    assert index.hasher.labels_[-1] == "an owl"
    assert index.get(["owl"])[0].labels == ("an owl",)
    assert index.search(digits.X[:1], 1, labels=["an owl"]).ids.tolist() == [["owl"]]


def test_labelled_entries_rank_by_the_newest_mapping(hasher: OnlineHasher, digits: Stream) -> None:
    index = Index(hasher)
    index.add(digits.X[:300], y=digits.y[:300])
    hasher.partial_fit(digits.X[1200:], digits.y[1200:])
    far = asymmetric(hasher.margins(digits.X[:50]), hasher.encode_labels())
    nearest = np.array(hasher.labels_)[far.argmin(axis=1)]
    by_code = index.search(digits.X[:50], 1, "asymmetric")
    np.testing.assert_array_equal(by_code.labels[:, 0].astype(int), nearest)
    found = index.search(digits.X[:50], 1, "meaning")
    np.testing.assert_array_equal(found.labels[:, 0].astype(int), hasher.predict(digits.X[:50]))
    chances, novelty = hasher.posterior(digits.X[:50])
    np.testing.assert_array_equal(found.scores[:, 0], chances.max(axis=1))
    np.testing.assert_array_equal(found.novelty, novelty)
    assert index.stats()["stale_bits"] == 0


def test_an_entry_with_several_labels_appears_once(hasher: OnlineHasher, digits: Stream) -> None:
    index = Index(hasher)
    index.add(digits.X[:3], ["a", "b", "c"], [{1, 2}, 1, {2, 3}])
    found = index.search(digits.X[:5], 10)
    assert found.counts.tolist() == [3] * 5
    assert all(set(row[:3]) == {"a", "b", "c"} for row in found.ids.tolist())


def test_an_explanation_adds_up_to_the_distance(index: Index, digits: Stream) -> None:
    found = index.search(digits.X[:6], 8, "hamming", explain=True)
    for row in range(6):
        assert len(found.explanations[row]) == 8
        for hit, why in enumerate(found.explanations[row]):
            assert (why.bits == -1).sum() == found.scores[row, hit]
            assert (why.bits != 0).sum() == 16
            assert why.label == found.labels[row, hit]
            assert (why.bits.reshape(-1, 16)[why.cycle] != 0).all()


def test_read_only_codes_keep_their_mapping_and_say_so(
    hasher: OnlineHasher, digits: Stream
) -> None:
    index = Index(hasher, keep_features="none")
    index.add(digits.X[:50])
    before = index.search(digits.X[:5], 10, "asymmetric")
    guesses = [entry.guess for entry in index.get(range(50))]
    hasher.partial_fit(digits.X[1200:], digits.y[1200:])
    assert index.refresh().entries == 0
    after = index.search(digits.X[:5], 10, "asymmetric")
    np.testing.assert_array_equal(after.ids, before.ids)
    np.testing.assert_array_equal(after.scores, before.scores)
    assert [entry.guess for entry in index.get(range(50))] == guesses
    assert index.stats()["unrefreshable"] == 50
    assert index.stats()["stale_bits"] > 0


def test_dry_run_says_what_a_refresh_would_do_and_does_nothing(
    hasher: OnlineHasher, index: Index, digits: Stream
) -> None:
    hasher.partial_fit(digits.X[1200:], digits.y[1200:])
    before = fingerprint(index, digits.X)
    dry = index.refresh(dry_run=True)
    assert dry.dry_run
    assert dry.bits_recomputed > 0
    assert fingerprint(index, digits.X) == before
    report = index.refresh()
    assert report.bits_recomputed == dry.bits_recomputed
    assert index.stats()["stale_bits"] == 0
    assert index.verify() == 0


def test_certificates_skip_bits_and_change_nothing(digits: Stream) -> None:
    hasher = OnlineHasher(16, 4, learner="sgd").partial_fit(digits.X[:1200], digits.y[:1200])
    certified, plain = Index(hasher), Index(hasher, certify=False)
    for index in (certified, plain):
        index.add(digits.X[:400])
    skipped = 0
    for start in range(1200, 1290, 2):
        hasher.partial_fit(digits.X[start : start + 2], digits.y[start : start + 2])
        skipped += certified.refresh().bits_certified
        assert plain.refresh().bits_certified == 0
        found, expected = (index.search(digits.X[:20], 50) for index in (certified, plain))
        assert found.ids.tolist() == expected.ids.tolist()
    assert skipped > 0
    assert certified.verify() == plain.verify() == 0


def test_entries_added_during_a_refresh_are_refreshed_too(
    hasher: OnlineHasher, digits: Stream
) -> None:
    index = Index(hasher)
    index.add(np.repeat(digits.X[:500], 10, axis=0))
    hasher.partial_fit(digits.X[1200:1500], digits.y[1200:1500])
    steps = index.refresh_steps()
    next(steps)
    with pytest.raises(OptionError, match="under way"):
        index.refresh()
    index.add(digits.X[500:600])
    index.remove([0, 1, 2])
    for _ in steps:
        pass
    assert index.stats()["stale_bits"] == 0
    assert index.verify() == 0
    assert len(index) == 5097


def test_arrays_that_may_not_be_written_to_are_taken() -> None:
    X = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    X.flags.writeable = False
    hasher = OnlineHasher(bits=8).partial_fit(X, np.arange(50) % 3)
    index = Index(hasher)
    index.add(X)
    assert index.search(X, 1).counts.tolist() == [1] * 50


def test_what_is_padded_has_neither_id_nor_label_though_entries_have_several(
    digits: Stream,
) -> None:
    index = Index(OnlineHasher(16).partial_fit(digits.X[:200], digits.y[:200]))
    several = [{int(y), (int(y) + 1) % 10} for y in digits.y[:20]]
    index.add(digits.X[:20], y=several, ids=[f"e{i}" for i in range(20)])
    found = index.search(digits.X[300:303], k=10, ids=["e1", "e5", "e7"])
    assert found.counts.tolist() == [3, 3, 3]
    assert (found.labels[:, :3] != None).all()  # noqa: E711 - cell by cell
    assert (found.labels[:, 3:] == None).all()  # noqa: E711
    assert (found.ids[:, 3:] == None).all()  # noqa: E711


def test_ids_of_nothing_are_numbers_whatever_ids_there_are(digits: Stream) -> None:
    hasher = OnlineHasher(16).partial_fit(digits.X[:200], digits.y[:200])
    for ids in (None, ["a", "b"]):
        index = Index(hasher)
        index.add(digits.X[:2], ids=ids)
        found = index.search_radius(-digits.X[:1], 0)
        assert found.ids.shape == (1, 0)
        assert found.ids.dtype == np.int64


@pytest.mark.parametrize("unlabelled", [False, True])
@pytest.mark.parametrize("limit", [1, 7, 64, 1000])
def test_pages_are_the_entries_in_order_of_arrival(
    index: Index, digits: Stream, monkeypatch: pytest.MonkeyPatch, unlabelled: bool, limit: int
) -> None:
    monkeypatch.setattr(labels, "SCAN_ROWS", 13)
    names = [f"n{i}" for i in range(100)]
    index.add(digits.X[:100], names, y=[None if i % 3 else int(digits.y[i]) for i in range(100)])
    index.remove(names[10:40] + names[90:])
    expected = [
        name
        for i, name in enumerate(names)
        if not (10 <= i < 40 or i >= 90) and (i % 3 or not unlabelled)
    ]
    first = index.arrived - 100
    for start, stop in ((0, 100), (5, 95), (15, 35), (50, 50), (60, 20), (89, 100), (100, 200)):
        found: list[str] = []
        place: int | None = first + start
        while place is not None:
            page = index.page(place, limit, first + stop, unlabelled=unlabelled)
            assert len(page.entries) == limit or page.next is None
            found += [str(entry.id) for entry in page.entries]
            place = page.next
        assert found == [name for name in expected if start <= int(name[1:]) < stop]


@pytest.mark.parametrize("bad", [-1, "x", 1.0, True, b"1"])
@pytest.mark.parametrize("name", ["start", "limit", "stop"])
def test_pages_that_cannot_be_are_refused(index: Index, name: str, bad: Any) -> None:
    with pytest.raises(OptionError, match=f"{name} must be a whole number of at least"):
        index.page(**{name: bad})
    with pytest.raises(OptionError, match="limit must be"):
        index.page(0, 0)


@pytest.mark.parametrize("by", ["asymmetric", "hamming"])
@pytest.mark.parametrize("method", ["mihash", "everhash"])
def test_distances_are_right_after_many_entries_were_replaced(
    digits: Stream, method: str, by: str
) -> None:
    hasher = peers.get(method, bits=8).partial_fit(digits.X[:300], digits.y[:300])
    index, X = Index(hasher), digits.X
    index.add(X[:100])
    index.search(X[:1], 5, by)  # builds what searches need
    index.add(X[100:190], range(90), replace=True)
    some = [*range(0, 90, 7), 95]
    found = index.search(X[500:503], len(some), by, ids=some)
    fresh = Index(hasher)
    fresh.add(np.concatenate([X[100:190], X[90:100]])[some], some)
    expected = fresh.search(X[500:503], len(some), by)
    for row in range(3):
        mine = dict(zip(found.ids[row].tolist(), found.scores[row].tolist(), strict=True))
        theirs = dict(zip(expected.ids[row].tolist(), expected.scores[row].tolist(), strict=True))
        assert mine == theirs
    within = index.search_radius(X[500:503], 1e6, by, ids=some)
    np.testing.assert_array_equal(np.sort(within.scores), np.sort(expected.scores))
