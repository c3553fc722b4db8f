"""Adaptive Hashing: the functions that err most surely follow the gradient of a pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from everhash.errors import OptionError
from everhash.metrics import mean_average_precision
from everhash.peers.online.adapthash import AdaptHash, slopes
from tests.conftest import Stream

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def taught(
    functions: list[list[float]], rows: list[int], labels: list[str], **options: float
) -> AdaptHash:
    """Learn from two rows as a pair, starting from these functions."""
    options = {"lam": 0.0, **options}
    hasher = AdaptHash(bits=len(functions), center=None, **options).begin(2)  # type: ignore[arg-type]
    hasher.functions_[:] = functions
    return hasher.partial_fit(ROWS[rows], labels)


def unit(*v: float) -> list[float]:
    return [value / math.hypot(*v) for value in v]


def test_unlike_pair_by_hand() -> None:
    # x_j = (1, 0) came first, x_i = (.6, .8) then: they say (1, .8) and (.6, .96), codes (+, +)
    # twice. Half of the bits should differ, so L = 1 and one function learns: that with the largest
    # value, 1 against .96, which is the first.
    u1, u2, v1, v2 = math.tanh(0.3), math.tanh(0.48), math.tanh(0.5), math.tanh(0.4)
    twice_p = 2 * (u1 * v1 + u2 * v2 + 2)  # s b = -2
    by_i, by_j = twice_p * v1 * (1 - u1**2) / 2, twice_p * u1 * (1 - v1**2) / 2
    first = unit(1 - 0.1 * (0.6 * by_i + by_j), -0.1 * 0.8 * by_i)
    hasher = taught([[1, 0], [0.8, 0.6]], [0, 2], ["a", "b"], alpha=0.5, step=0.1)
    np.testing.assert_allclose(hasher.functions_, [first, [0.8, 0.6]], atol=1e-6)
    assert hasher.updates_.tolist() == [1, 1], "both are scaled, and count as changed"

    # with lambda, each function also loses half of its overlap (.8) with the other
    regular = taught([[1, 0], [0.8, 0.6]], [0, 2], ["a", "b"], alpha=0.5, step=0.1, lam=0.5)
    first = unit(1 - 0.1 * (0.6 * by_i + by_j) - 0.4 * 0.8, -0.1 * 0.8 * by_i - 0.4 * 0.6)
    np.testing.assert_allclose(regular.functions_, [first, unit(0.8 - 0.4 * 1, 0.6)], atol=1e-6)


def test_alike_pair_by_hand() -> None:
    # x_j = (0, 1), x_i = (-.8, .6): function 1 says .6 and -.28, function 2 says .8 and .96. They
    # differ in one bit of two, and none may differ: L = 1.
    u1, u2 = math.tanh(-0.14), math.tanh(0.48)
    v1, v2 = math.tanh(0.3), math.tanh(0.4)
    twice_p = 2 * (u1 * v1 + u2 * v2 - 2)  # s b = 2
    by_i, by_j = twice_p * v1 * (1 - u1**2) / 2, twice_p * u1 * (1 - v1**2) / 2
    first = unit(0.8 + 0.5 * 0.8 * by_i, 0.6 - 0.5 * (0.6 * by_i + by_j))
    hasher = taught([[0.8, 0.6], [-0.6, 0.8]], [1, 3], ["a", "a"], alpha=1.0, step=0.5)
    np.testing.assert_allclose(hasher.functions_, [first, [-0.6, 0.8]], atol=1e-6)


def test_a_pair_without_loss_changes_nothing() -> None:
    # the codes of (0, 1) and (-.8, .6) differ in one bit of two, as above
    for labels in (["a", "a"], ["a", "b"]):
        hasher = taught([[0.8, 0.6], [-0.6, 0.8]], [1, 3], labels, alpha=0.5, lam=0.5)
        np.testing.assert_array_equal(
            hasher.functions_, np.array([[0.8, 0.6], [-0.6, 0.8]], np.float32)
        )
        assert hasher.updates_.tolist() == [0, 0]


def pair_loss(W: np.ndarray, x: np.ndarray, z: np.ndarray, s: int) -> float:
    u, v = 2 / (1 + np.exp(-W @ x)) - 1, 2 / (1 + np.exp(-W @ z)) - 1
    return float((u @ v - s * len(W)) ** 2)


def overlap(W: np.ndarray) -> float:
    return float(((W @ W.T - np.eye(len(W))) ** 2).sum() / 4)


def differences(loss: object, W: np.ndarray) -> np.ndarray:
    gradient = np.empty_like(W)
    for place in np.ndindex(*W.shape):
        nudge = np.zeros_like(W)
        nudge[place] = 1e-5
        gradient[place] = (loss(W + nudge) - loss(W - nudge)) / 2e-5  # type: ignore[operator]
    return gradient


@pytest.mark.parametrize("alike", [True, False])
def test_slopes_are_derivatives_by_the_margins(alike: bool) -> None:
    margins = np.random.default_rng(0).standard_normal((2, 5))

    def loss(margins: np.ndarray) -> float:
        codes = 2 / (1 + np.exp(-margins)) - 1
        return float((codes[0] @ codes[1] - (5 if alike else -5)) ** 2)

    exact = slopes(margins, alike)  # type: ignore[arg-type]
    np.testing.assert_allclose(exact, differences(loss, margins), rtol=1e-6)


@pytest.mark.parametrize(("alpha", "d"), [(0.5, 12), (0.7, 12), (1.0, 12), (0.9, 4)])
def test_every_step_is_the_gradient_for_the_functions_that_err_most_surely(
    alpha: float, d: int, digits: Stream
) -> None:
    X, y, b = digits.X[:60, 18 : 18 + d], digits.y[:60] % 2, 6
    hasher = AdaptHash(bits=b, alpha=alpha, lam=0.05, step=0.1, sample=1, center=X.mean(axis=0))
    hasher.partial_fit(X[:1], y[:1])
    sizes = set()
    for row in range(1, 60):
        x = hasher.freeze().measure(X[row : row + 1])[0].astype(np.float64)
        z, W = hasher.kept_[0].astype(np.float64), hasher.functions_.astype(np.float64)
        s = 1 if hasher.labels_[hasher.kept_labels_[0]] == y[row] else -1
        differ = (W @ x > 0) != (W @ z > 0)
        loss = differ.sum() - (1 - alpha) * b if s == 1 else alpha * b - differ.sum()
        n = math.ceil(round(max(0.0, loss), 6))
        wrong = [bit for bit in range(b) if differ[bit] == (s == 1)]
        wrong.sort(key=lambda bit: -max(abs(W[bit] @ x), abs(W[bit] @ z)))
        chosen = np.isin(np.arange(b), wrong[:n])
        gradient = differences(lambda W, x=x, z=z, s=s: pair_loss(W, x, z, s), W)
        moved = W - 0.1 * chosen[:, None] * gradient - 0.05 * differences(overlap, W)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        hasher.partial_fit(X[row : row + 1], y[row : row + 1])
        np.testing.assert_allclose(hasher.functions_, moved if n else W, atol=1e-5)
        sizes.add(n)
    assert len(sizes) > 2, "steps of several sizes were seen"


def test_the_step_is_smaller_the_more_bits_there_are(digits: Stream) -> None:
    for bits, step in ((4, 2.0), (32, 0.25)):
        default, given = AdaptHash(bits=bits), AdaptHash(bits=bits, step=step)
        for hasher in (default, given):
            hasher.partial_fit(digits.X[:50], digits.y[:50])
        np.testing.assert_array_equal(default.functions_, given.functions_)


def test_functions_keep_unit_length_and_the_regulariser_holds_them_apart(digits: Stream) -> None:
    def learned(lam: float) -> AdaptHash:
        return AdaptHash(bits=16, lam=lam).partial_fit(digits.X, digits.y)

    plain, regular = learned(0.0), learned(0.1)
    for hasher in (plain, regular):
        np.testing.assert_allclose(np.linalg.norm(hasher.functions_, axis=1), 1, atol=1e-5)
    assert overlap(regular.functions_) < overlap(plain.functions_) / 2


def test_a_function_that_would_come_to_nothing_stays() -> None:
    # two equal functions, each losing all of its overlap, 1, with the other
    hasher = taught([[1, 0], [1, 0]], [0, 2], ["a", "b"], alpha=0.5, lam=1.0, step=1e-9)
    assert np.isfinite(hasher.functions_).all()
    assert np.linalg.norm(hasher.functions_[1]) == 1
    hasher = AdaptHash(bits=4, step=1e6, center=None)
    with np.errstate(over="ignore"):
        hasher.partial_fit(ROWS, ["a", "b", "a", "b"])
    np.testing.assert_allclose(np.linalg.norm(hasher.functions_, axis=1), 1, atol=1e-5)


def test_it_learns_what_labels_have_in_common(digits: Stream) -> None:
    odd = digits.y % 2

    def score(hasher: AdaptHash) -> float:
        codes = hasher.transform(digits.X[1200:]).astype(np.int64)
        relevant = odd[1200:, None] == odd[1200:]
        return mean_average_precision(-codes @ codes.T, relevant)

    def mean(labels: np.ndarray | None) -> float:
        hashers = (AdaptHash(step=0.1, random_state=seed) for seed in range(3))
        return float(np.mean([score(h.partial_fit(digits.X[:1200], labels)) for h in hashers]))

    assert mean(odd[:1200]) > mean(None) + 0.03


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1.1},
        {"alpha": "half"},
        {"lam": -0.1},
        {"lam": 2},
        {"step": 0},
        {"step": float("inf")},
        {"sample": 0},
        {"sample": 10**6},
        {"bits": 0},
        {"center": "mode"},
    ],
    ids=str,
)
def test_bad_options_are_typed_errors(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        AdaptHash(**options).partial_fit(ROWS, [0, 1, 0, 1])  # type: ignore[arg-type]
