"""Self-Taught Hashing: codes that neighbours share, and SVMs that predict them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array

from everhash.errors import LimitError, OptionError
from everhash.peers.batch.lsh import LSH
from everhash.peers.batch.sth import (
    DENSE,
    STH,
    flat_vectors,
    label_graph,
    linear_svm,
    smooth_vectors,
    upper_half,
)
from tests.conftest import Stream
from tests.unit.peers.scoring import mapped_score

ROWS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8], [0, -1]], np.float32)


def test_a_graph_by_hand() -> None:
    # label 0 has rows 1 to 4. Their cosines: 1-2 .8, 1-3 0, 1-4 -.6, 2-3 .6, 2-4 0, 3-4 .8.
    # The nearest of 1 is 2, of 2 it is 1, of 3 it is 4, of 4 it is 3. Row 5 is alone in its label.
    labels = np.array([0, 0, 0, 0, 1])
    W = label_graph(ROWS, labels, 1).toarray()
    expected = np.zeros((5, 5))
    expected[[0, 1, 2, 3], [1, 0, 3, 2]] = 0.8
    np.testing.assert_allclose(W, expected, atol=1e-6)
    # with two neighbours 2 and 3 are joined; 1-3, 2-4 and 1-4 are not above 0
    expected[[1, 2], [2, 1]] = 0.6
    np.testing.assert_allclose(label_graph(ROWS, labels, 2).toarray(), expected, atol=1e-6)


def test_smooth_vectors_of_a_path_by_hand() -> None:
    # a path of 3 rows with equal weights has degrees 1, 2, 1, and D^-1 W = [0 1 0; .5 0 .5; 0 1 0]
    # has eigenvectors (1, 1, 1), (1, 0, -1) and (1, -1, 1) for 1, 0 and -1; v is 1 less that
    W = csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    Y = smooth_vectors(W, 2, np.random.default_rng(0))
    Y = Y / Y[0]
    np.testing.assert_allclose(Y, [[1, 1], [0, -1], [-1, 1]], atol=1e-9)


def test_smooth_vectors_are_the_smallest_solutions_orthogonal_to_the_constant(
    digits: Stream,
) -> None:
    order = digits.y[:200].argsort(kind="stable")
    W = label_graph(digits.X[order] / np.float32(60), digits.y[order], 5)
    Y = smooth_vectors(W, 30, np.random.default_rng(0))
    dense = W.toarray()
    D = np.diag(dense.sum(axis=1))
    values = eigh(D - dense, D, eigvals_only=True)[1:31]  # the first is that of the constant
    gram = Y.T @ D @ Y
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-8)
    np.testing.assert_allclose(D.diagonal() @ Y, 0, atol=1e-8)
    found = np.einsum("ij,ij->j", Y, (D - dense) @ Y) / np.diag(gram)
    np.testing.assert_allclose(found, values, atol=1e-8)
    np.testing.assert_allclose((D - dense) @ Y, D @ Y * found, atol=1e-8)


def test_large_parts_are_solved_like_small_ones(digits: Stream) -> None:
    assert len(digits.X) > DENSE
    Z = digits.X / np.linalg.norm(digits.X, axis=1, keepdims=True)
    W = label_graph(Z, np.zeros(len(Z), np.int64), 25)
    Y = smooth_vectors(W, 4, np.random.default_rng(0))
    dense = W.toarray()
    weights = dense.sum(axis=1)[:, None]
    root = np.sqrt(weights * weights.T)
    values = 1 - eigh(dense / root, eigvals_only=True, subset_by_index=[len(Z) - 5, len(Z) - 2])
    found = (Y * (weights * Y - dense @ Y)).sum(axis=0) / (weights * Y * Y).sum(axis=0)
    np.testing.assert_allclose(found, values[::-1], atol=1e-8)
    again = smooth_vectors(W, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(again, Y)


def test_flat_vectors_are_orthonormal_by_volume() -> None:
    volumes = np.array([1.0, 2.0, 5.0, 0.5])
    Y = flat_vectors(volumes, np.random.default_rng(0))
    np.testing.assert_allclose(Y.T @ np.diag(volumes) @ Y, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(volumes @ Y, 0, atol=1e-12)


def test_an_svm_is_where_its_objective_has_no_slope() -> None:
    # |w|^2 / 2 + b^2 / 2 + C sum max(0, 1 - t (w·z + b))^2, by central differences
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((40, 3)).astype(np.float32)
    wanted = Z[:, 0] + 0.5 * rng.standard_normal(40) > 0
    found = linear_svm(Z, wanted, 0.3)

    def height(f: np.ndarray) -> float:
        missing = np.maximum(0, 1 - np.where(wanted, 1, -1) * (Z @ f[:-1] + f[-1]))
        return float(f @ f / 2 + 0.3 * (missing**2).sum())

    slope = [(height(found + e) - height(found - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(slope, 0, atol=0.02)
    assert height(found) < height(np.zeros(4)) / 2


def test_bits_of_the_rows_at_hand_are_balanced_and_shared_by_labels(digits: Stream) -> None:
    order = digits.y[:500].argsort(kind="stable")
    labels = digits.y[order]
    W = label_graph(digits.X[order] / np.float32(60), labels, 25)
    Y = smooth_vectors(W, 9, np.random.default_rng(0))
    bits = np.stack([upper_half(y) for y in Y.T], axis=1)
    for label in range(10):
        assert len(np.unique(bits[labels == label], axis=0)) == 1
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.15).all()


def test_labels_help(digits: Stream) -> None:
    X, y = digits.X[:1200], digits.y[:1200]
    assert mapped_score(STH(9).fit(X, y), digits) > mapped_score(LSH(9).fit(X), digits) + 0.3


def test_one_label_and_one_row_a_label_break_nothing(digits: Stream) -> None:
    for y in ([0] * 40, list(range(40)), [0] * 39 + [1]):
        hasher = STH(bits=5).fit(digits.X[:40], y)
        assert np.isfinite(hasher.margins(digits.X)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"neighbours": 0},
        {"neighbours": 10**6},
        {"C": 0},
        {"C": float("inf")},
        {"bits": 0},
        {"bits": 60},
    ],
    ids=str,
)
def test_bad_options_are_typed_errors(options: dict[str, float], digits: Stream) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        STH(**options).fit(digits.X[:60], digits.y[:60])  # type: ignore[arg-type]


def test_more_bits_than_supported_are_a_limit(digits: Stream) -> None:
    with pytest.raises(LimitError):
        STH(bits=10**9).fit(digits.X, digits.y)
