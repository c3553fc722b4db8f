"""Postings against a dictionary: the labels of each place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.postings import Postings
from everhash.kernels.search import reference

kernels.load_search()

LABELS = 9


def some_distances(seed: int, n_queries: int, n_labels: int, floats: bool) -> NDArray[Any]:
    """Few different values, so that many labels are equally far; floats of both signs."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (n_queries, n_labels))
    return values.astype(np.float32) / np.float32(3) if floats else values + 3


def expected_row(
    postings: dict[int, set[int]], row: NDArray[Any], k: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    distances, places, labels = (part[:k] for part in reference.nearest_label(postings, row))
    missing = k - len(places)
    absent = np.inf if row.dtype.kind == "f" else -1
    return (
        np.concatenate([distances, np.full(missing, absent, row.dtype)]),
        np.concatenate([places, np.full(missing, -1)]),
        np.concatenate([labels, np.full(missing, -1)]),
    )


def check(lists: Postings, model: dict[int, set[int]], distances: NDArray[Any], k: int) -> None:
    got = lists.nearest(distances, k)
    for j, row in enumerate(distances):
        for part, expected in zip(got, expected_row(model, row, k), strict=True):
            assert part.dtype == expected.dtype
            np.testing.assert_array_equal(part[j], expected)


class History(RuleBasedStateMachine):
    """Any order of appends, removals, relabelling and searches."""

    @initialize()
    def start(self) -> None:
        self.lists = Postings()
        self.model: dict[int, set[int]] = {}
        self.next_place = 0

    @rule(labels=st.lists(st.integers(0, LABELS - 1), max_size=120))
    def append(self, labels: list[int]) -> None:
        places = self.next_place + np.arange(len(labels))
        self.next_place += len(labels)
        self.lists.append(np.array(labels, np.int64), places)
        self.model |= {int(p): {label} for p, label in zip(places, labels, strict=True)}

    @rule(seed=st.integers(0, 2**32), label=st.integers(0, LABELS - 1), many=st.integers(1, 100))
    def label_old_entries(self, seed: int, label: int, many: int) -> None:
        """In any order, entries gone or with other labels included."""
        rng = np.random.default_rng(seed)
        places = [
            int(p)
            for p in rng.permutation(self.next_place)[:many]
            if label not in self.model.get(int(p), set())
        ]
        self.lists.append(np.full(len(places), label), np.array(places, np.int64))
        for place in places:
            self.model.setdefault(place, set()).add(label)

    @rule(seed=st.integers(0, 2**32), share=st.sampled_from([0.1, 0.9]))
    def remove(self, seed: int, share: float) -> None:
        rng = np.random.default_rng(seed)
        pairs = [(label, place) for place, own in self.model.items() for label in own]
        for label, place in pairs:
            if rng.random() < share:
                assert self.lists.remove(label, place)
                assert not self.lists.remove(label, place)
                self.model[place].discard(label)
        self.model = {place: own for place, own in self.model.items() if own}

    @rule(seed=st.integers(0, 2**32), floats=st.booleans(), k=st.sampled_from([1, 10, 300]))
    def search(self, seed: int, floats: bool, k: int) -> None:
        check(self.lists, self.model, some_distances(seed, 3, LABELS, floats), k)

    @rule(seed=st.integers(0, 2**32), floats=st.booleans(), radius=st.floats(-1, 6))
    def search_within(self, seed: int, floats: bool, radius: float) -> None:
        distances = some_distances(seed, 3, LABELS, floats)
        found = self.lists.within(distances, radius)
        for j, row in enumerate(distances):
            part = slice(found.offsets[j], found.offsets[j + 1])
            far, places, labels = reference.nearest_label(self.model, row)
            keep = far.astype(np.float64) <= radius
            np.testing.assert_array_equal(found.distances[part], far[keep])
            np.testing.assert_array_equal(found.places[part], places[keep])
            np.testing.assert_array_equal(found.labels[part], labels[keep])

    @rule(seed=st.integers(0, 2**32), only=st.sets(st.integers(0, LABELS + 3)))
    def search_under_some_labels(self, seed: int, only: set[int]) -> None:
        distances = some_distances(seed, 2, LABELS, False)
        left = {place: own & only for place, own in self.model.items() if own & only}
        got = self.lists.nearest(distances, 20, only=np.array(sorted(only), np.int64))
        for j, row in enumerate(distances):
            for part, expected in zip(got, expected_row(left, row, 20), strict=True):
                np.testing.assert_array_equal(part[j], expected)

    @invariant()
    def counts(self) -> None:
        assert len(self.lists) == len(self.model)
        for label in range(LABELS + 1):
            count = sum(label in own for own in self.model.values())
            assert self.lists.count(label) == count


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=60, stateful_step_count=25)


@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(0, 3000), st.booleans())
@settings(max_examples=60)
def test_many_short_lists(seed: int, n_labels: int, n: int, floats: bool) -> None:
    """More levels than are looked for one by one."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, n)
    lists = Postings()
    lists.append(labels, np.arange(n))
    distances = (100 * rng.standard_normal((4, n_labels))).astype(
        np.float32 if floats else np.int64
    )
    model = {place: {int(label)} for place, label in enumerate(labels)}
    check(lists, model, distances, int(rng.choice([1, 100, 4000])))


@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 16, 64, 65, 128, 200]),
    st.integers(1, 4),
    st.sampled_from([1, 30, 500]),
    st.booleans(),
)
@settings(max_examples=60)
def test_fused_search_equals_nearest(
    seed: int, bits: int, n_cycles: int, k: int, several: bool
) -> None:
    rng = np.random.default_rng(seed)
    n_labels, n, words = int(rng.integers(1, 60)), int(rng.integers(0, 2000)), -(-bits // 64)
    mask = np.full(words, 2**64 - 1, np.uint64)
    mask[-1] >>= np.uint64(64 * words - bits)
    codewords = rng.integers(0, 2**64, (n_labels, words), dtype=np.uint64) & mask
    queries = rng.integers(0, 2**64, (5, n_cycles, words), dtype=np.uint64) & mask
    cycles = rng.integers(0, n_cycles, n_labels)
    lists = Postings()
    lists.append(rng.integers(0, n_labels, n) // (2 if several else 1), np.arange(n))
    if several and n_labels > 1:
        lists.append(np.full(len(range(0, n, 3)), n_labels - 1), np.arange(0, n, 3))
    distances = reference.hamming(codewords, cycles, queries)
    got = lists.nearest_hamming(codewords, cycles, queries, bits, k)
    for a, b in zip(got, lists.nearest(distances, k), strict=True):
        np.testing.assert_array_equal(a, b)


def test_unknown_labels_and_places_are_not_there() -> None:
    lists = Postings()
    assert not lists.remove(3, 0)
    assert lists.count(3) == len(lists) == 0
    lists.append(np.array([1]), np.array([7]))
    assert not lists.remove(1, 6)
    assert lists.remove(1, 7)
    assert len(lists) == 0


@pytest.mark.parametrize("floats", [False, True])
def test_nothing_is_found_in_nothing(floats: bool) -> None:
    distances = some_distances(0, 2, 3, floats)
    got = Postings().nearest(distances, 4)
    assert (got.places == -1).all()
    assert Postings().within(distances, 10).offsets.tolist() == [0, 0, 0]


def test_an_entry_may_have_more_labels_than_two_bytes_count() -> None:
    n = 2**16 + 1
    postings = Postings()
    postings.append(np.arange(n), np.zeros(n, np.int64))
    postings.append(np.arange(2), np.ones(2, np.int64))
    assert len(postings) == 2
    assert postings.remove(n - 1, 0)
    assert len(postings) == 2, "the first has 65,536 labels left"
    found = postings.nearest(np.arange(n)[None], 2)
    assert found.places.tolist() == [[0, 1]]
