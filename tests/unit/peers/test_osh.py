"""Online boosted error-correcting codes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from everhash.errors import OptionError
from everhash.kernels.peer_reference import MAX_EXPONENT
from everhash.peers.online.osh import OSH
from tests.conftest import Stream

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def started(bits: int, functions: list[list[float]], step: float = 0.1) -> OSH:
    hasher = OSH(bits=bits, step=step, center=None).begin(2)
    hasher.functions_[:] = functions
    return hasher


def test_one_step_by_hand() -> None:
    hasher = started(2, [[1, 0], [0, 1]]).assign(["a"])
    first, second = hasher.words_[0].tolist()
    hasher.partial_fit(ROWS[2:3], ["a"])
    # z = (.6, .8); bit 1 says .6 where c_1 is wanted, so it moves by .1 exp(-.6 c_1)
    one = 0.1 * math.exp(-0.6 * first)
    # afterwards bit 1 is right by c_1 .6 + one (z has length 1): that much less bit 2 has to mind
    weight = math.exp(min(0.0, -(0.6 * first + one)))
    two = 0.1 * weight * math.exp(-0.8 * second)
    expected = [
        [1 + one * first * 0.6, one * first * 0.8],
        [two * second * 0.6, 1 + two * second * 0.8],
    ]
    np.testing.assert_allclose(hasher.functions_, expected, rtol=1e-6)
    assert hasher.updates_.tolist() == [1, 1]


def test_four_points_equal_the_update_written_out_bit_after_bit() -> None:
    hasher = started(3, [[1, 0], [0, 1], [-1, 1]], step=0.5).assign(["a", "b"])
    words = hasher.words_.astype(float)
    W = hasher.functions_.astype(float)
    for z, label in zip(ROWS.astype(float), [0, 1, 1, 0], strict=True):
        c = words[label]
        for j in range(3):
            before = sum(c[i] * (W[i] @ z) for i in range(j))  # with what they have become
            loss = math.exp(min(MAX_EXPONENT, -c[j] * (W[j] @ z)))
            W[j] += 0.5 * min(1.0, math.exp(-before)) * loss * c[j] * z
    hasher.partial_fit(ROWS, ["a", "b", "b", "a"])
    np.testing.assert_allclose(hasher.functions_, W, rtol=1e-5)


def test_a_step_descends_the_boosted_loss() -> None:
    """Of bit j: g exp(-c w·z), whose slope at w is -g exp(-c w·z) c z."""
    hasher = started(1, [[0.3, -0.2]], step=1e-3).assign(["a"])
    c, z, w = float(hasher.words_[0, 0]), ROWS[2].astype(float), np.array([0.3, -0.2])

    def loss(w: np.ndarray) -> float:
        return math.exp(-c * (w @ z))

    slope = [(loss(w + e) - loss(w - e)) / 2e-5 for e in 1e-5 * np.eye(2)]
    hasher.partial_fit(ROWS[2:3], ["a"])
    np.testing.assert_allclose((hasher.functions_[0] - w) / -1e-3, slope, rtol=1e-3)


def test_rows_that_all_bits_get_wrong_cannot_overflow() -> None:
    hasher = started(64, [[1e4, 1e4]] * 64, step=10.0)
    for label in range(200):
        hasher.partial_fit(ROWS, [label] * 4)
    assert np.isfinite(hasher.functions_).all()
    assert np.abs(hasher.functions_).max() < 2e4


def test_labels_keep_their_words_in_a_stream(digits: Stream) -> None:
    """The public release forgets them, and its codes are hardly better than random ones."""
    hasher = OSH(bits=32)
    for row in range(300):
        hasher.partial_fit(digits.X[row : row + 1], digits.y[row : row + 1])
    assert len(hasher.labels_) == 10
    assert len(np.unique(hasher.words_, axis=0)) == 10
    scores = hasher.margins(digits.X[300:800]) @ hasher.words_.T
    answers = np.array(hasher.labels_)[scores.argmax(axis=1)]
    assert (answers == digits.y[300:800]).mean() > 0.8


@pytest.mark.parametrize("options", [{"step": 0}, {"step": "x"}, {"bits": 0}, {"center": "mode"}])
def test_bad_options_are_typed_errors(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        OSH(**options).partial_fit(ROWS, [0, 1, 2, 3])  # type: ignore[arg-type]
