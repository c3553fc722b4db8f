"""HCOH and HMOH, and the Hadamard codes they share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash.errors import LimitError, OptionError
from everhash.peers.hadamard import hadamard_order, hadamard_row, hadamard_words
from everhash.peers.online.hcoh import HCOH
from everhash.peers.online.hmoh import HMOH

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


@given(power=st.integers(0, 6))
def test_rows_are_orthogonal(power: int) -> None:
    order = 2**power
    matrix = np.stack([hadamard_row(order, row) for row in range(order)]).astype(int)
    np.testing.assert_array_equal(matrix @ matrix.T, order * np.eye(order, dtype=int))


@given(bits=st.integers(4, 70), classes=st.integers(1, 16), seed=st.integers(0, 5))
def test_every_class_has_a_word_of_its_own(bits: int, classes: int, seed: int) -> None:
    words = hadamard_words(seed, bits, classes)
    assert words.shape == (classes, bits)
    assert set(np.unique(words)) <= {-1, 1}
    if hadamard_order(bits, classes) == bits:
        distances = (words[:, None] != words[None]).sum(axis=2)[~np.eye(classes, dtype=bool)]
        assert (distances == bits // 2).all()
        assert classes == bits or not (words == 1).all(axis=1).any(), "the constant row comes last"
    elif bits >= 12:
        assert len(np.unique(words, axis=0)) == classes


@pytest.mark.parametrize("method", [HCOH, HMOH])
def test_one_label_too_many_is_refused_and_says_what_to_do(method: Any) -> None:
    hasher = method(bits=8, classes=3, center=None).partial_fit(ROWS[:3], ["a", "b", "c"])
    before = hasher.to_bytes()
    with pytest.raises(LimitError, match=r"4 labels.*can know 3.*classes="):
        hasher.partial_fit(ROWS, ["a", "b", "d", "a"])
    with pytest.raises(LimitError):
        hasher.assign(["d"])
    assert hasher.to_bytes() == before
    by_bits = method(bits=3, center=None).partial_fit(ROWS, [0, 1, 2, 3])
    with pytest.raises(LimitError, match="can know 4"):
        by_bits.partial_fit(ROWS[:1], [4])


@pytest.mark.parametrize(
    "options", [{"classes": 0}, {"classes": 1.5}, {"classes": 10**6}, {"bits": 5000}]
)
@pytest.mark.parametrize("method", [HCOH, HMOH])
def test_bad_options_are_typed_errors(method: Any, options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        method(**options).partial_fit(ROWS, [0, 1, 2, 3])


def test_hcoh_takes_one_step_by_hand() -> None:
    hasher = HCOH(bits=2, classes=2, step=0.5, center=None).begin(2)
    hasher.functions_[:] = [[1, 0], [0, 1]]
    hasher.assign(["a"])
    c = hasher.words_[0].tolist()
    hasher.partial_fit(ROWS[2:3], ["a"])
    # z = (.6, .8), so f = (tanh .6, tanh .8), and row j of W loses .5 (f_j - c_j)(1 - f_j^2) z
    f = [math.tanh(0.6), math.tanh(0.8)]
    slopes = [0.5 * (f[j] - c[j]) * (1 - f[j] ** 2) for j in range(2)]
    expected = [[1 - slopes[0] * 0.6, -slopes[0] * 0.8], [-slopes[1] * 0.6, 1 - slopes[1] * 0.8]]
    np.testing.assert_allclose(hasher.functions_, expected, rtol=1e-6)


def test_hcoh_descends_the_squared_distance_of_tanh_and_word() -> None:
    hasher = HCOH(bits=4, classes=4, step=1e-2, center=None).begin(2).assign(["a"])
    W, c, z = hasher.functions_.astype(float), hasher.words_[0], ROWS[3].astype(float)

    def loss(W: np.ndarray) -> float:
        return float(((np.tanh(W @ z) - c) ** 2).sum() / 2)

    slope = np.empty_like(W)
    for at in np.ndindex(*W.shape):
        nudge = np.zeros_like(W)
        nudge[at] = 1e-6
        slope[at] = (loss(W + nudge) - loss(W - nudge)) / 2e-6
    hasher.partial_fit(ROWS[3:4], ["a"])
    np.testing.assert_allclose((W - hasher.functions_) / 1e-2, slope, atol=1e-4)


def test_hmoh_takes_four_steps_by_hand() -> None:
    # A margin of 0 is a mistake. With a = +1 and b = -1:
    #   (1, 0): w·z = 0, so w = (1, 0)
    #   (0, 1): w·z = 0, so w = (1, -1)
    #   (.6, .8) is to be +1, is .6 - .8 < 0: w = (1.6, -.2)
    #   (-.8, .6) is to be -1, is -1.28 - .12: nothing
    # Served is the mean of (1, 0), (1, -1), (1.6, -.2). With a = -1 and b = +1 all signs turn.
    expected = np.array([3.6 / 3, -1.2 / 3])
    seen = set()
    for seed in range(8):
        hasher = HMOH(bits=1, classes=2, center=None, random_state=seed).begin(2)
        hasher.assign(["a", "b"]).partial_fit(ROWS, ["a", "b", "a", "b"])
        word = int(hasher.words_[0, 0])
        assert hasher.words_[1, 0] == -word
        np.testing.assert_allclose(hasher.functions_[0], word * expected, atol=1e-6)
        assert hasher.updates_.tolist() == [3]
        seen.add(word)
    assert seen == {-1, 1}


@given(seed=st.integers(0, 50))
def test_hmoh_serves_the_mean_of_iterates_up_to_a_functions_last_mistake(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 4, 40)
    hasher = HMOH(bits=4, classes=4, center=None).partial_fit(X, y)
    words = hasher.words_[hasher.numbers(y.tolist())]
    for bit in range(4):
        w, total, served = np.zeros(3), np.zeros(3), np.zeros(3)
        for number, (z, c) in enumerate(zip(X.astype(float), words[:, bit], strict=True), 1):
            wrong = c * (w @ z) <= 0
            w = w + c * z if wrong else w
            total = total + w
            served = total / number if wrong else served
        np.testing.assert_allclose(hasher.functions_[bit], served, rtol=1e-4, atol=1e-5)
