"""MIHash: the gradient is exact, and what is served changes only when the trigger says so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from everhash.errors import OptionError
from everhash.index.triggers import mutual_information
from everhash.peers.online.mihash import MIHash, information, mean_information
from tests.conftest import Stream


def slow_information(distances: np.ndarray, same: np.ndarray, reach: int, bins: int) -> float:
    """H(D) - sum of p(C) H(D|C) in bits, by triangular pulses at every centre."""
    delta = reach / bins
    centres = np.linspace(0, reach, bins + 1)
    pulses = np.maximum(0, 1 - np.abs(distances[:, None] - centres) / delta)

    def entropy(rows: np.ndarray) -> float:
        shares = pulses[rows].mean(axis=0).tolist()
        return -math.fsum(p * math.log2(p) for p in shares if p > 0)

    parts = [float(kind.mean()) * entropy(kind) for kind in (same, ~same) if kind.any()]
    return entropy(np.full(len(same), True)) - math.fsum(parts)


def slow_objective(W: np.ndarray, x: np.ndarray, codes: np.ndarray, same: np.ndarray) -> float:
    """I(D; C) of a row under functions W, the other rows' codes in [0, 1] held still."""
    code = 1 / (1 + np.exp(-10 * W @ x))
    distances = ((1 - codes) @ code) + codes @ (1 - code)  # expected bits that differ
    return slow_information(distances, same, len(W), 4)


def gradient_by_differences(
    W: np.ndarray, x: np.ndarray, codes: np.ndarray, same: np.ndarray
) -> np.ndarray:
    gradient, h = np.empty_like(W), 1e-6
    for place in np.ndindex(*W.shape):
        up, down = W.copy(), W.copy()
        up[place] += h
        down[place] -= h
        rise = slow_objective(up, x, codes, same) - slow_objective(down, x, codes, same)
        gradient[place] = rise / (2 * h)
    return gradient


def test_one_step_worked_by_hand() -> None:
    hasher = MIHash(bits=1, bins=1, scale=2.0, step=10.0, center=None).begin(2)
    hasher.learning_[:] = [[0.5, 0.25]]
    X = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]])
    # only the last row has both an "a" and a "b" to compare with
    hasher.partial_fit(X, ["a", "a", "b", "a"])

    # scale 2 makes 2 phi - 1 = tanh(w·x); w·x is 0.5, 0.25, 0.5 and -0.25
    r1, r2, r3, x = 0.4621172, 0.2449187, 0.4621172, -0.2449187
    # d = (1 - x r) / 2: 0.5565902, 0.5299926, 0.5565902; centres at 0 and 1
    far_a, near_a = (0.5565902 + 0.5299926) / 3, (0.4434098 + 0.4700074) / 3
    far_b, near_b = 0.5565902 / 3, 0.4434098 / 3
    far, near = far_a + far_b, near_a + near_b
    slope_a = (math.log2(far_a / (2 / 3 * far)) - math.log2(near_a / (2 / 3 * near))) / 3
    slope_b = (math.log2(far_b / (1 / 3 * far)) - math.log2(near_b / (1 / 3 * near))) / 3
    by_code = -(slope_a * (r1 + r2) + slope_b * r3)
    by_margin = by_code * 2 * (1 - x * x) / 4
    expected = np.array([0.5, 0.25]) + 10 * by_margin * np.array([-0.8, 0.6])

    np.testing.assert_allclose(hasher.learning_[0], expected, atol=1e-5)
    assert abs(10 * by_margin) > 1e-3, "the step is larger than the tolerance"


def test_a_step_is_the_gradient_of_mutual_information() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((41, 5))
    y = rng.integers(3, size=41).tolist()
    hasher = MIHash(bits=6, bins=4, step=1.0, center=None).partial_fit(X[:40], y[:40])
    before = hasher.learning_.astype(np.float64)
    hasher.partial_fit(X[40:], y[40:])

    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    codes = 1 / (1 + np.exp(-10 * unit[:40] @ before.T))
    gradient = gradient_by_differences(before, unit[40], codes, np.array(y[:40]) == y[40])
    assert np.abs(gradient).max() > 0.01
    np.testing.assert_allclose(hasher.learning_ - before, gradient, atol=1e-4)


def test_information_and_its_slope_agree_with_pulses_and_differences() -> None:
    rng = np.random.default_rng(1)
    distances, same = rng.uniform(0, 12, 60), rng.random(60) < 0.3
    value, slope = information(distances, same, 12, 5)
    assert value == pytest.approx(slow_information(distances, same, 12, 5))
    for row, h in enumerate(np.eye(60) * 1e-6):
        rise = slow_information(distances + h, same, 12, 5)
        fall = slow_information(distances - h, same, 12, 5)
        assert slope[row] == pytest.approx((rise - fall) / 2e-6, abs=1e-6)


def test_distances_at_both_ends_have_a_place() -> None:
    value, slope = information(np.array([0.0, 49.0, 49.0]), np.array([True, False, False]), 49, 16)
    assert value == pytest.approx(math.log2(3) - 2 / 3)
    assert np.isfinite(slope).all()


def test_the_trigger_measures_what_the_index_measures() -> None:
    rng = np.random.default_rng(2)
    margins = rng.standard_normal((50, 7)).astype(np.float32)
    labels = rng.integers(4, size=50)
    ours = mean_information(margins > 0, labels)
    assert ours == pytest.approx(mutual_information(margins, labels[:, None] == labels))


def test_functions_are_served_every_so_many_rows(digits: Stream) -> None:
    hasher = MIHash(bits=8, update_every=40, trigger="always", center=None)
    hasher.partial_fit(digits.X[:39], digits.y[:39])
    first, learning = hasher.functions_.copy(), hasher.learning_.copy()
    assert not np.array_equal(first, learning)
    assert (hasher.versions_ == 0).all()
    hasher.partial_fit(digits.X[39:40], digits.y[39:40])
    served = hasher.functions_.copy()
    np.testing.assert_array_equal(served, hasher.learning_)
    assert (hasher.versions_ == 1).all()
    hasher.partial_fit(digits.X[40:79], digits.y[40:79])
    np.testing.assert_array_equal(hasher.functions_, served)
    assert (hasher.versions_ == 1).all()


def test_a_function_that_stood_still_keeps_its_version() -> None:
    hasher = MIHash(bits=2, update_every=4, trigger="always", center=None).begin(2)
    for functions in (hasher.learning_, hasher.functions_):
        functions[:] = np.array([[100, 100], [0.1, 0.2]])  # one is saturated
    hasher.partial_fit(np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]]), ["a", "a", "b", "a"])
    assert hasher.versions_.tolist() == [0, 1]


def test_functions_that_gain_nothing_are_not_served(digits: Stream) -> None:
    strict = MIHash(bits=8, update_every=50, gain=10.0, center=None)
    always = MIHash(bits=8, update_every=50, trigger="always", center=None)
    for hasher in (strict, always):
        hasher.partial_fit(digits.X[:500], digits.y[:500])
    assert (strict.versions_ == 0).all()
    assert (always.versions_ == 10).all()
    np.testing.assert_array_equal(strict.learning_, always.learning_)


def test_what_is_served_only_ever_gains_information(digits: Stream) -> None:
    hasher = MIHash(bits=8, update_every=20, center=digits.X.mean(axis=0)).begin(64)
    gains = []
    for start in range(0, 600, 20):
        before, versions = hasher.functions_.copy(), hasher.versions_
        hasher.partial_fit(digits.X[start : start + 20], digits.y[start : start + 20])
        kept, labels = hasher.kept_[: start + 20], hasher.kept_labels_[: start + 20]
        old, new = (mean_information(kept @ W.T > 0, labels) for W in (before, hasher.learning_))
        assert (new > old) == (hasher.versions_ > versions).any()
        gains.append(new - old)
    assert min(gains) < 0 < max(gains), "some updates were worth it, and some were not"


def test_one_label_alone_teaches_nothing(digits: Stream) -> None:
    hasher = MIHash(bits=8, center=None).begin(64)
    first = hasher.learning_.copy()
    hasher.partial_fit(digits.X[:150], ["one"] * 150)
    np.testing.assert_array_equal(hasher.learning_, first)
    assert (hasher.versions_ == 0).all()
    hasher.partial_fit(digits.X[150:151], ["another"])
    np.testing.assert_array_equal(hasher.learning_, first)
    hasher.partial_fit(digits.X[151:152], ["another"])
    assert not np.array_equal(hasher.learning_, first)


def test_rows_are_compared_with_a_sample_of_the_past(digits: Stream) -> None:
    hasher = MIHash(bits=8, sample=30, center=None).partial_fit(digits.X[:400], digits.y[:400])
    unit = digits.X[:400] / np.linalg.norm(digits.X[:400], axis=1, keepdims=True)
    nearest = np.argmax(hasher.kept_ @ unit.T, axis=1)
    assert len(set(nearest.tolist())) == 30
    np.testing.assert_allclose(hasher.kept_, unit[nearest], atol=1e-5)
    labels = [hasher.labels_[number] for number in hasher.kept_labels_]
    assert labels == digits.y[nearest].tolist()


def test_codes_tell_labels_apart_after_learning(digits: Stream) -> None:
    hasher = MIHash(bits=16).partial_fit(digits.X[:1400], digits.y[:1400])
    told = mean_information(hasher.transform(digits.X[1400:]) > 0, digits.y[1400:])
    untaught = MIHash(bits=16).partial_fit(digits.X[:1400])
    guessed = mean_information(untaught.transform(digits.X[1400:]) > 0, digits.y[1400:])
    assert told > 2 * guessed


@pytest.mark.parametrize(
    "options",
    [
        {"step": 0},
        {"sample": 1},
        {"sample": 10**6},
        {"bins": 0},
        {"bins": 10**6},
        {"scale": -1.0},
        {"update_every": 0},
        {"trigger": "never"},
        {"gain": -0.1},
        {"gain": float("nan")},
        {"gain": "much"},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        MIHash(**options).partial_fit(np.eye(2), [0, 1])
