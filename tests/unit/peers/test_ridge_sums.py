"""Ridge fits from sums, and the balanced codes that they are fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.peers.ridge_sums import balanced, factor_of, label_means, solved, unless_faint

Doubles = NDArray[np.float64]


def repeated(values: Doubles, times: NDArray[np.int64]) -> Doubles:
    return np.repeat(values, times, axis=0)


def test_balanced_rows_sum_to_zero_and_their_columns_are_uncorrelated() -> None:
    rng = np.random.default_rng(0)
    Z, times = rng.standard_normal((12, 4)), rng.integers(1, 6, 12)
    V = repeated(balanced(Z, times.astype(np.float64)), times)
    np.testing.assert_allclose(V.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(V.T @ V, len(V) * np.eye(4), atol=1e-9)


def test_no_other_balanced_rows_are_nearer() -> None:
    """Any rotation of V is balanced as well, and has less in common with Z."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((20, 5))
    V = balanced(Z, np.ones(20))
    for _ in range(50):
        turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        assert np.sum(V * Z) >= np.sum((V @ turn) * Z) - 1e-9


def test_weights_stand_for_equal_rows() -> None:
    rng = np.random.default_rng(2)
    Z, times = rng.standard_normal((9, 3)), rng.integers(1, 6, 9)
    together = balanced(Z, times.astype(np.float64))
    one_by_one = balanced(repeated(Z, times), np.ones(times.sum()))
    np.testing.assert_allclose(repeated(together, times), one_by_one, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e12])
def test_directions_in_which_nothing_varies_stay_zero(scale: float) -> None:
    rng = np.random.default_rng(3)
    Z = scale * (rng.standard_normal((3, 8)) + 5)
    V = balanced(Z, np.array([7.0, 1.0, 4.0]))
    assert np.linalg.matrix_rank(V) == 2
    assert np.abs(V).max() < np.sqrt(12)
    np.testing.assert_array_equal(balanced(Z[:1], np.array([9.0])), np.zeros((1, 8)))
    np.testing.assert_array_equal(balanced(np.zeros((2, 8)), np.ones(2)), np.zeros((2, 8)))


def test_factor_solves_a_ridge_and_never_a_singular_system() -> None:
    rng = np.random.default_rng(4)
    X, right = rng.standard_normal((30, 6)), rng.standard_normal((6, 2))
    expected = np.linalg.solve(X.T @ X + 0.5 * np.eye(6), right)
    np.testing.assert_allclose(solved(factor_of(X.T @ X, 0.5, 30), right), expected)
    same = np.ones((1000, 6))
    assert np.isfinite(solved(factor_of(same.T @ same, 1e-300, 1000), right)).all()


def test_means_of_labels_and_values_next_to_nothing() -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    means = label_means(values, np.array([1, 0, 1]), np.array([1.0, 2.0]))
    assert means.tolist() == [[3, 4], [3, 1]]
    assert unless_faint(np.zeros(2), np.array([1.0, -1.0])).tolist() == [1, -1]
