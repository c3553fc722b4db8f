"""An index takes any object that keeps the `Hasher` protocol."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from everhash import Hasher, Index, OnlineHasher
from everhash.learn.mapping import FrozenMapping
from everhash.learn.views import Centred
from everhash.stream import as_rows
from tests.conftest import Stream


class Hyperplanes:
    """Random hyperplanes of our own: nothing here is inherited from everhash."""

    n_cycles_ = 1

    def __init__(self, n_features: int, bits: int, *, assigns_codewords: bool) -> None:
        rng = np.random.default_rng(0)
        self.n_features_in_, self.bits, self.width_ = n_features, bits, bits
        self.assigns_codewords = assigns_codewords
        self.labels_: list[Hashable] = []
        self.versions_ = np.zeros(bits, np.int64)
        self._planes = rng.standard_normal((1, bits, n_features), np.float32)

    def turn(self, bit: int) -> None:
        """Replace one hash function."""
        self._planes[0, bit] *= -1
        self.versions_[bit] += 1

    @property
    def version_(self) -> int:
        return int(self.versions_.sum())

    @property
    def words_(self) -> NDArray[np.int8]:
        words = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (100, self.bits))
        return words[: len(self.labels_)] * np.int8(self.assigns_codewords)

    @property
    def label_cycles_(self) -> NDArray[np.int64]:
        return np.zeros(len(self.labels_), np.int64)

    def numbers(self, labels: Iterable[Hashable]) -> NDArray[np.int64]:
        return np.array([self.labels_.index(label) for label in labels], np.int64)

    def check_room(self, labels: list[Hashable]) -> None:
        """There is room for any number of them."""

    def assign(self, labels: Iterable[Any]) -> None:
        self.labels_ += [label for label in labels if label not in self.labels_]

    def margins(self, X: ArrayLike) -> NDArray[np.float32]:
        frozen = self.freeze()
        return frozen.margins(frozen.measure(as_rows(X, self.n_features_in_)))

    def freeze(self) -> FrozenMapping:
        return FrozenMapping(
            functions=self._planes.copy(),
            view=Centred(np.zeros(self.n_features_in_, np.float32)),
            words=self.words_,
            labels_per_cycle=100,
            versions=self.versions_.copy(),
            version=self.version_,
        )


@pytest.mark.parametrize("codewords", [True, False])
def test_an_index_takes_a_hasher_that_is_not_ours(digits: Stream, codewords: bool) -> None:
    hasher: Hasher = Hyperplanes(64, 16, assigns_codewords=codewords)
    assert isinstance(hasher, Hasher)
    index = Index(hasher)
    labels = [None if i % 2 else int(label) for i, label in enumerate(digits.y[:100])]
    index.add(digits.X[:100], y=labels)
    found = index.search(digits.X[1:100:10], 1, explain=True)
    bits = hasher.margins(digits.X[:100]) > 0
    unlabelled = index.get([1])[0]
    np.testing.assert_array_equal(unlabelled.code, bits[1])
    assert found.counts.tolist() == [1] * 10
    assert index.stats()["coded"] == (50 if codewords else 100)
    assert index.get([0])[0].labels == (labels[0],)


@pytest.mark.parametrize("coding", ["home", "full"])
def test_it_is_refreshed_where_its_functions_have_changed(digits: Stream, coding: str) -> None:
    hasher = Hyperplanes(64, 16, assigns_codewords=False)
    index = Index(hasher, coding=coding)
    index.add(digits.X[:50])
    before = [entry.code for entry in index.get(range(50))]
    hasher.turn(3)
    assert index.stale_bits() == 50
    report = index.refresh()
    assert (report.bits_recomputed, report.bits_flipped) == (50, 50)
    changed = np.array(before) != np.array([entry.code for entry in index.get(range(50))])
    assert changed.any(axis=0).tolist() == [bit == 3 for bit in range(16)]
    assert index.verify() == 0


def test_our_hashers_keep_the_protocol_and_other_objects_do_not() -> None:
    hasher: Hasher = OnlineHasher(bits=4).partial_fit([[1.0, 2.0], [2.0, 1.0]], ["a", "b"])
    assert isinstance(hasher, Hasher)
    assert not isinstance(object(), Hasher)
