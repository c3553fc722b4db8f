"""Kernel methods: the first rows are anchors, and rows are seen by their likeness to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.errors import ModelFileError
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.anchored import AnchoredMethod, anchor_count
from everhash.peers.method import Counts, Floats
from everhash.peers.model_file import hasher_from_bytes
from everhash.peers.online.okh import OKH
from everhash.peers.options import option
from tests.conftest import Stream


@dataclass(eq=False, repr=False)
class Recorder(AnchoredMethod):
    """Has constant functions once it has anchors, and records the lessons it gets."""

    assigns_codewords: ClassVar[bool] = False
    bits: int = 3
    anchors: int = option(20, anchor_count)
    lessons: list[tuple[bytes, int]] = field(init=False, default_factory=list)

    def _settle(self) -> None:
        self.functions_[:] = self._random_functions()
        self.updates_ += 1

    def _learn(self, Z: Floats, labels: Counts) -> None:
        self.lessons += [(z.tobytes(), label) for z, label in zip(Z, labels.tolist(), strict=True)]


def expected_lessons(
    hasher: Recorder, X: NDArray[Any], labels: list[Any]
) -> list[tuple[bytes, int]]:
    seen = hasher.freeze().measure(X)
    numbers = {label: number for number, label in enumerate(hasher.labels_)}
    return [
        (z.tobytes(), numbers[label])
        for z, label in zip(seen, labels, strict=True)
        if label is not None
    ]


def test_all_bits_are_minus_one_until_the_anchors_have_come(digits: Stream) -> None:
    hasher = OKH(bits=8, anchors=20)
    for row in range(19):
        hasher.partial_fit(digits.X[row : row + 1], digits.y[row : row + 1])
        assert (hasher.transform(digits.X[:100]) == -1).all()
        assert not hasher.versions_.any()
    hasher.partial_fit(digits.X[19:20], digits.y[19:20])
    assert (hasher.transform(digits.X[:100]) == 1).any(axis=0).all()
    assert (hasher.versions_ > 0).all()


@pytest.mark.parametrize("batch", [1, 7, 19, 20, 21, 60])
def test_then_anchors_are_learned_in_order_and_so_is_every_row_after(
    batch: int, digits: Stream
) -> None:
    X, labels = digits.X[:60], [None if row % 4 == 1 else int(digits.y[row]) for row in range(60)]
    hasher = Recorder()
    for start in range(0, 60, batch):
        hasher.partial_fit(X[start : start + batch], labels[start : start + batch])
        if start + batch < 20:
            assert hasher.lessons == []
    assert hasher.lessons == expected_lessons(hasher, X, labels)
    assert hasher.lessons_ == 60


def test_rows_without_labels_are_anchors_and_no_lessons(digits: Stream) -> None:
    hasher = Recorder().partial_fit(digits.X[:25])
    assert hasher.lessons == []
    assert (hasher.versions_ == 1).all()
    np.testing.assert_array_equal(hasher.anchor_rows_, digits.X[:20])


def test_likeness_is_the_centred_kernel_at_unit_length(digits: Stream) -> None:
    hasher = Recorder().partial_fit(digits.X[:20], digits.y[:20])
    anchors, others = digits.X[:20].astype(float), digits.X[100:130].astype(float)

    def at_unit_length(X: NDArray[Any]) -> NDArray[Any]:
        rows: NDArray[Any] = X / np.linalg.norm(X, axis=1, keepdims=True)
        return rows

    middle = anchors.mean(axis=0)
    anchors, others = at_unit_length(anchors - middle), at_unit_length(others - middle)

    def kernel(X: NDArray[Any]) -> NDArray[Any]:
        likeness: NDArray[Any] = np.exp(-((X[:, None] - anchors) ** 2).sum(axis=2) / (2 * 2))
        return likeness

    expected = at_unit_length(kernel(others) - kernel(anchors).mean(axis=0))
    np.testing.assert_allclose(hasher.freeze().measure(digits.X[100:130]), expected, atol=1e-5)


def test_how_a_row_is_seen_does_not_depend_on_its_neighbours(digits: Stream) -> None:
    mapping = Recorder().partial_fit(digits.X[:20]).freeze()
    whole = mapping.measure(digits.X[:200])
    for row in (0, 1, 57, 199):
        np.testing.assert_array_equal(mapping.measure(digits.X[row : row + 1])[0], whole[row])
    np.testing.assert_array_equal(mapping.measure(digits.X[199::-1].copy()), whole[::-1])
    np.testing.assert_array_equal(mapping.measure(digits.X[33:90]), whole[33:90])


def test_a_hasher_saved_among_its_anchors_goes_on(digits: Stream) -> None:
    hasher = OKH(bits=8, anchors=20).partial_fit(digits.X[:12], digits.y[:12])
    loaded = hasher_from_bytes(hasher.to_bytes(), "model")
    for one in (hasher, loaded):
        one.partial_fit(digits.X[12:100], digits.y[12:100])
    np.testing.assert_array_equal(loaded.margins(digits.X), hasher.margins(digits.X))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("anchor_labels_", 40, "unknown labels"),
        ("arrived_", 21, "more anchors"),
        ("anchor_rows_", 3e38, "out of range"),
    ],
)
def test_a_file_with_impossible_anchors_is_refused(
    name: str, value: float, message: str, digits: Stream
) -> None:
    hasher = OKH(bits=4, anchors=20).partial_fit(digits.X[:30], digits.y[:30])
    text, arrays = unpack_model(hasher.to_bytes(), "model")
    forged = arrays[name].copy()
    forged.flat[0] = value
    with pytest.raises(ModelFileError, match=message):
        hasher_from_bytes(pack_model(json.loads(text), {**arrays, name: forged}), "model")
