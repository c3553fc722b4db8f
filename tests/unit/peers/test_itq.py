"""Iterative Quantization: the nearest corners of a cube, after PCA and after CCA."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.errors import LimitError, OptionError
from everhash.peers.batch.itq import CCAITQ, ITQ, explained, rotate
from everhash.peers.batch.lsh import LSH
from tests.conftest import Stream
from tests.unit.peers.scoring import mapped_score

Doubles = NDArray[np.float64]


def loss(V: Doubles, R: Doubles) -> float:
    """Return |B - V R|^2 for the codes that V has under R."""
    turned = V @ R
    return float(((np.where(turned > 0, 1, -1) - turned) ** 2).sum())


def test_one_round_by_hand() -> None:
    # rows (3, 1) and (1, -1) unrotated have codes (+, +) and (+, -), so
    # V^T B = [3 1; 1 -1]^T [1 1; 1 -1] = [4 2; 0 2]. For a 2 x 2 matrix M the orthogonal factor
    # with determinant +1 is the rotation by atan2(m21 - m12, m11 + m22) = atan2(-2, 6)
    V = np.array([[3.0, 1.0], [1.0, -1.0]])
    angle = math.atan2(-2, 6)
    wanted = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    np.testing.assert_allclose(rotate(V, np.eye(2)), wanted, atol=1e-12)


def test_axes_end_half_way_between_rows_by_hand() -> None:
    # a rotation keeps lengths, so the objective is least where the sum of all |v·r| is largest. A
    # row at x degrees from an axis adds |cos x| + |sin x|, which is largest at 45. Rows at 0 and
    # 53.13 degrees come nearest to that together with an axis half way, at 26.57: 2.68, where one
    # at 71.57 gives 2.53
    X = np.array([[1, 0], [0.6, 0.8], [-1, 0], [-0.6, -0.8]], np.float32)
    hasher = ITQ(bits=2).fit(X)
    angles = np.degrees(np.arctan2(hasher.functions_[:, 1], hasher.functions_[:, 0])) % 180
    np.testing.assert_allclose(np.sort(angles), [26.565, 116.565], atol=1e-3)
    assert hasher.mean_.tolist() == [0, 0]


@pytest.mark.parametrize("k", [12, 5])
def test_the_quantisation_objective_never_rises(k: int) -> None:
    rng = np.random.default_rng(k)
    V = rng.standard_normal((300, k)) * np.linspace(3, 0.1, k)
    R = np.linalg.qr(rng.standard_normal((12, k)))[0].T
    losses = [loss(V, R)]
    for _ in range(30):
        R = rotate(V, R)
        np.testing.assert_allclose(R @ R.T, np.eye(k), atol=1e-10)
        losses.append(loss(V, R))
    assert (np.diff(losses) <= 1e-9).all()
    assert losses[-1] < 0.97 * losses[0]


def test_more_rounds_lower_the_loss_of_the_functions_themselves(digits: Stream) -> None:
    def lost(rounds: int) -> float:
        hasher = ITQ(bits=16, rounds=rounds).fit(digits.X)
        margins = hasher.margins(digits.X)
        return float(((np.where(margins > 0, 1, -1) - margins) ** 2).sum())

    assert lost(1) > lost(10) > lost(50)


def test_functions_span_the_strongest_directions(digits: Stream) -> None:
    hasher = ITQ(bits=16).fit(digits.X)
    W = hasher.functions_.astype(np.float64)
    np.testing.assert_allclose(W @ W.T, np.eye(16), atol=1e-5)
    Z = hasher.freeze().measure(digits.X).astype(np.float64)
    strongest = np.linalg.svd(Z, compute_uv=False)[:16]
    np.testing.assert_allclose(((Z @ W.T) ** 2).sum(), (strongest**2).sum(), rtol=1e-5)


def test_explained_moment_is_that_of_the_centred_one_hot_matrix() -> None:
    rng = np.random.default_rng(0)
    X, which = rng.standard_normal((40, 5)), rng.integers(0, 4, 40)
    Y = np.eye(4)[which]
    Y -= Y.mean(axis=0)
    shares = np.bincount(which) / 40
    Cxy, Cyy = X.T @ Y / 40, Y.T @ Y / 40 + 0.3 * np.eye(4)
    expected = Cxy @ np.linalg.inv(Cyy) @ Cxy.T
    np.testing.assert_allclose(explained(X, which, shares, 0.3), expected, atol=1e-12)


def test_directions_are_canonical_and_as_long_as_their_correlations(digits: Stream) -> None:
    # an independent oracle: whitened singular values of the cross moment
    hasher = CCAITQ(bits=9, ridge=1e-2).fit(digits.X, digits.y)
    Z = hasher.freeze().measure(digits.X).astype(np.float64)
    Y = np.eye(10)[digits.y] - np.eye(10)[digits.y].mean(axis=0)
    n = len(Z)
    Cxx = Z.T @ Z / n + 1e-2 * np.eye(Z.shape[1])
    Cyy = Y.T @ Y / n + 1e-2 * np.eye(10)
    lx, ly = np.linalg.inv(np.linalg.cholesky(Cxx)), np.linalg.inv(np.linalg.cholesky(Cyy))
    correlations = np.linalg.svd(lx @ (Z.T @ Y / n) @ ly.T, compute_uv=False)[:9]
    W = hasher.functions_.astype(np.float64)
    lengths = np.linalg.eigvalsh(W @ Cxx @ W.T)[::-1]  # rotations leave them
    np.testing.assert_allclose(np.sqrt(lengths), correlations, rtol=1e-4)


def test_more_bits_than_labels_have_directions_are_combinations_of_those(digits: Stream) -> None:
    hasher = CCAITQ(bits=24).fit(digits.X, digits.y)
    assert np.linalg.matrix_rank(hasher.functions_, tol=1e-3) == 9


def test_labels_help(digits: Stream) -> None:
    X, y = digits.X[:1200], digits.y[:1200]
    random, blind = mapped_score(LSH(16).fit(X), digits), mapped_score(ITQ(16).fit(X), digits)
    assert random + 0.05 < blind
    assert blind + 0.1 < mapped_score(CCAITQ(16).fit(X, y), digits)


def test_one_label_says_nothing_and_breaks_nothing(digits: Stream) -> None:
    hasher = CCAITQ(bits=4).fit(digits.X, [0] * len(digits.X))
    assert np.isfinite(hasher.margins(digits.X)).all()


@pytest.mark.parametrize("cls", [ITQ, CCAITQ])
@pytest.mark.parametrize(
    "options",
    [{"rounds": 0}, {"rounds": 10**6}, {"rounds": 1.5}, {"bits": 0}, {"bits": 65}, {"bits": 2.5}],
    ids=str,
)
def test_bad_options_are_typed_errors(
    cls: type[ITQ], options: dict[str, float], digits: Stream
) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        cls(**options).fit(digits.X, digits.y)  # type: ignore[arg-type]


def test_bad_ridge_and_too_many_bits_are_typed_errors(digits: Stream) -> None:
    with pytest.raises(OptionError, match="ridge"):
        CCAITQ(ridge=0).fit(digits.X, digits.y)
    with pytest.raises(LimitError):
        ITQ(bits=10**9).fit(digits.X)
