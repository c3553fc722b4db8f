"""KSH's solver: the residual by its factors, and one function from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.peers.ksh import (
    Residual,
    codes_of,
    gradient,
    learn_function,
    refine,
    smooth,
    spectral_start,
)

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)
BITS = 8


def some_rows(n: int = 40, m: int = 7, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
    """Rows of three labels that overlap; label numbers leave gaps, as those of a stream may."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, n)
    K = rng.standard_normal((n, m)) + 1.5 * np.eye(3, m)[which]
    return K.astype(np.float32), np.array([2, 5, 9])[which]


def some_codes(k: int, n: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.float32), (k, n))


def dense(labels: NDArray[np.int64], codes: Floats, bits: int = BITS) -> Doubles:
    """R, made of all pairs."""
    S = np.where(labels[:, None] == labels, 1.0, -1.0)
    R: Doubles = bits * S - codes.astype(np.float64).T @ codes
    return R


def test_products_equal_those_with_the_matrix_of_all_pairs() -> None:
    K, labels = some_rows()
    codes = some_codes(3, len(K))
    R = dense(labels, codes)
    residual = Residual(K, labels, BITS)
    residual.hold(codes[:2])
    residual.add(codes[2])
    x = np.random.default_rng(2).standard_normal(len(K)).astype(np.float32)
    np.testing.assert_allclose(residual.times(x), R @ x, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(residual.form(x), x @ R @ x, rtol=1e-4)
    np.testing.assert_allclose(residual.in_features(), K.T @ R @ K, rtol=1e-4, atol=1e-2)
    residual.hold(codes[1:])
    np.testing.assert_allclose(
        residual.times(x), dense(labels, codes[1:]) @ x, rtol=1e-4, atol=1e-3
    )


def test_four_points_worked_by_hand() -> None:
    residual = Residual(ROWS, np.array([0, 1, 0, 1]), 1)
    # R = S = u u^T with u = (1, -1, 1, -1), and K^T u = (1 + .6 + .8, -1 + .8 - .6) = (2.4, -.8)
    np.testing.assert_allclose(residual.in_features(), [[5.76, -1.92], [-1.92, 0.64]], atol=1e-5)
    # two orthonormal bases: K^T K = 2 I, and a tenth of its diagonal more
    np.testing.assert_allclose(residual.gram, [[2.2, 0], [0, 2.2]], atol=1e-6)
    # so the top eigenvector is along (3, -1), with 2.2 |a|^2 = 4
    start = spectral_start(residual)
    np.testing.assert_allclose(start, math.sqrt(4 / 2.2 / 10) * np.array([3, -1]), rtol=1e-5)
    # K a is along (3, -1, 1, -3), whose signs are u: all of S is explained, 1 for each of 16 pairs
    code = codes_of(learn_function(residual)[None], ROWS)[0]
    assert code.tolist() == [1, -1, 1, -1]
    assert residual.form(code) == 16
    residual.add(code)
    assert residual.form(code) == 0
    np.testing.assert_allclose(residual.times(ROWS[:, 0]), np.zeros(4), atol=1e-6)


def test_a_code_takes_off_what_its_form_says() -> None:
    """|R - h h^T|^2 = |R|^2 + n^2 - 2 h^T R h, for one code after the other."""
    K, labels = some_rows()
    residual, n = Residual(K, labels, BITS), len(K)
    left = float((dense(labels, residual.codes) ** 2).sum())
    for _ in range(BITS):
        code = codes_of(learn_function(residual)[None], K)[0]
        left += n**2 - 2 * residual.form(code)
        residual.add(code)
        assert left == pytest.approx((dense(labels, residual.codes) ** 2).sum())
    assert left < 0.5 * (dense(labels, residual.codes[:0]) ** 2).sum()


def test_spectral_start_is_the_best_direction_without_the_sign() -> None:
    K, labels = some_rows()
    residual = Residual(K, labels, BITS)
    residual.hold(some_codes(2, len(K)))
    A, B = residual.in_features(), residual.gram

    def quotient(a: Doubles) -> float:
        return float((a @ A @ a) / (a @ B @ a))

    start = spectral_start(residual)
    assert start @ B @ start == pytest.approx(len(K))
    assert start[np.argmax(np.abs(start))] > 0
    others = np.random.default_rng(0).standard_normal((500, K.shape[1]))
    assert all(quotient(other) < quotient(start) for other in others)
    near = [start + 1e-3 * step for step in np.eye(K.shape[1])]
    assert all(quotient(other) <= quotient(start) for other in near)


def test_gradient_is_the_slope_of_the_smooth_cost() -> None:
    K, labels = some_rows()
    residual = Residual(K, labels, BITS)
    residual.hold(some_codes(2, len(K)))
    R = dense(labels, residual.codes)
    v = np.random.default_rng(0).standard_normal((K.shape[1],))

    def cost(v: Doubles) -> float:
        f = 2 / (1 + np.exp(-(K.astype(np.float64) @ v))) - 1
        return float(-f @ R @ f)

    value, slope = gradient(residual, K @ v.astype(np.float32))
    steps = 1e-5 * np.eye(len(v))
    expected = [(cost(v + step) - cost(v - step)) / 2e-5 for step in steps]
    assert value == pytest.approx(cost(v), rel=1e-4)
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-2)


def test_refining_lowers_the_smooth_cost_and_the_better_function_is_kept() -> None:
    better = 0
    for seed in range(6):
        K, labels = some_rows(seed=seed)
        residual = Residual(K, labels, BITS)
        residual.hold(some_codes(2, len(K), seed))
        start = spectral_start(residual)
        refined = refine(residual, start)

        def explained(a: Doubles, K: Floats = K, residual: Residual = residual) -> float:
            return residual.form(smooth(K @ a.astype(np.float32)))

        assert explained(refined) > explained(start)
        pair = np.stack([start, refined]).astype(np.float32)
        before, after = (residual.form(code) for code in codes_of(pair, K))
        kept = residual.form(codes_of(learn_function(residual)[None], K)[0])
        assert kept == max(before, after)
        better += after > before
    assert better > 0


@pytest.mark.parametrize("n", [1, 3], ids=["one row", "fewer rows than features"])
def test_few_rows_are_enough_to_learn_from(n: int) -> None:
    K, labels = some_rows(n)
    assert np.isfinite(learn_function(Residual(K, labels, BITS))).all()


def test_rows_of_zeros_teach_nothing_and_break_nothing() -> None:
    residual = Residual(np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1]), BITS)
    learned = learn_function(residual)
    assert np.isfinite(learned).all()
    assert codes_of(learned[None], residual.K).tolist() == [[-1, -1, -1, -1]]
