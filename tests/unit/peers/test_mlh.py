"""MLH: the loss of a distance, the exact worst codes, and steps against the bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.learn import seeds
from everhash.peers.batch.mlh import BATCH, MLH, descent, draw_pairs, losses, worst_codes
from tests.conftest import Stream

Doubles = NDArray[np.float64]
ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def taught(digits: Stream, n: int = 600, **options: float) -> MLH:
    chosen: dict[str, float] = {"bits": 16, "steps": 600, **options}
    return MLH(**chosen).fit(digits.X[:n], digits.y[:n])  # type: ignore[arg-type]


def test_losses_are_the_papers_hinge_of_the_distance() -> None:
    # b = 4, rho = 2: alike pairs are free up to 1 bit, others from 3 on, both lose 1 at their worst
    other, alike = losses(4, 2)
    np.testing.assert_allclose(alike, [0, 0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(other, [1, 2 / 3, 1 / 3, 0, 0])


ALL_CODES = np.array(list(product([-1, 1], repeat=8)), np.float64)
DISTANCES = (8 - ALL_CODES @ ALL_CODES.T).astype(int) // 2


def best_score(a: Doubles, b: Doubles, loss: Doubles) -> float:
    """Return the maximum over all pairs of codes of as many bits."""
    codes = np.unique(ALL_CODES[:, : len(a)], axis=0)
    distances = (codes[:, None] != codes).sum(axis=2)
    return float((loss[distances] + (codes @ a)[:, None] + codes @ b).max())


@given(
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.01, 0.1, 1.0]),
    rho=st.integers(0, 8),
    alike=st.integers(0, 1),
)
def test_worst_codes_equal_brute_force_over_all_codes(
    seed: int, scale: float, rho: int, alike: int
) -> None:
    a, b = (scale * np.random.default_rng(seed).standard_normal((2, 8))).astype(np.float32)
    loss = losses(8, rho)[alike]
    (g_a,), (g_b,) = worst_codes(a[None], b[None], loss[None])
    assert set(np.abs(g_a)) == set(np.abs(g_b)) == {1}
    scores = loss[DISTANCES] + (ALL_CODES @ a)[:, None] + ALL_CODES @ b
    score = loss[int((g_a != g_b).sum())] + float(g_a @ a + g_b @ b)
    assert score == pytest.approx(scores.max(), abs=1e-5)


def test_two_pairs_of_four_points_worked_by_hand() -> None:
    W = np.array([[0.1, 0.2, 0]], np.float32)
    X = np.column_stack([ROWS, np.ones(4)]).astype(np.float32)
    other, alike = losses(1, 0)  # (1, 0) and (1/2, 1) for 0 and 1 bits
    # Rows 1 and 2 are alike, with margins .1 and .2. Worst codes
    #   agree   1/2 + |.1 + .2| = .8        differ   1 + |.1 - .2| = 1.1: (-1, +1)
    # while the functions say (+1, +1): W goes along 2 x_1.
    down = descent(W, X[:1], X[1:2], alike[None])
    np.testing.assert_allclose(down, [[2, 0, 2]])
    # Rows 3 and 4 are not, with margins .22 and .04. Worst codes
    #   agree   1 + .26                     differ   0 + .18
    # are those that the functions say, and nothing pulls.
    np.testing.assert_allclose(descent(W, X[2:3], X[3:], other[None]), [[0, 0, 0]])
    # Were they alike: 1/2 + .26 to 1 + .18, worst codes (+1, -1), and W goes along 2 x_4.
    np.testing.assert_allclose(descent(W, X[2:3], X[3:], alike[None]), [[-1.6, 1.2, 2]])
    # A batch is the sum of its pairs.
    both = descent(W, X[[0, 2]], X[[1, 3]], np.stack([alike, alike]))
    np.testing.assert_allclose(both, [[0.4, 1.2, 4]], rtol=1e-6)


def test_descent_is_the_slope_of_the_bound() -> None:
    rng = np.random.default_rng(0)
    X_a, X_b = rng.standard_normal((2, 6, 4))
    W = 0.3 * rng.standard_normal((5, 4))
    loss = losses(5, 2)[rng.integers(0, 2, 6)]

    def bound(W: Doubles) -> float:
        """The loss of the worst codes, and how far they stand above what the functions say."""
        said = np.abs(X_a @ W.T).sum() + np.abs(X_b @ W.T).sum()
        pairs = zip(X_a, X_b, loss, strict=True)
        return sum(best_score(W @ x_a, W @ x_b, own) for x_a, x_b, own in pairs) - float(said)

    steps = 1e-6 * np.eye(W.size).reshape(-1, *W.shape)
    slope = [(bound(W + step) - bound(W - step)) / 2e-6 for step in steps]
    single = [array.astype(np.float32) for array in (W, X_a, X_b)]
    down = descent(single[0], single[1], single[2], loss)
    np.testing.assert_allclose(down.ravel(), -np.array(slope), atol=1e-4)
    assert np.abs(down).max() > 1


def test_the_bound_is_above_the_loss() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        a, b = 0.2 * rng.standard_normal((2, 6))
        loss = losses(6, 2)[rng.integers(0, 2)]
        bound = best_score(a, b, loss) - np.abs(a).sum() - np.abs(b).sum()
        assert bound >= loss[int(((a > 0) != (b > 0)).sum())] - 1e-9


def test_half_of_all_pairs_are_alike_and_every_row_meets_every_other() -> None:
    labels = np.array([3, 1, 1, 3, 7, 3, 1])
    met = np.zeros((7, 7), int)
    for one, other in draw_pairs(labels, 60, np.random.default_rng(0)):
        assert np.count_nonzero(labels[one] == labels[other]) == BATCH // 2
        np.add.at(met, (one, other), 1)
    assert (met > 0).all()
    assert met.sum(axis=1).min() > 700  # of 6000 / 7 = 857 expected


def test_with_one_label_all_pairs_are_alike(digits: Stream) -> None:
    for one, other in draw_pairs(np.zeros(5, np.int64), 3, np.random.default_rng(0)):
        assert max(one.max(), other.max()) < 5
    hasher = MLH(bits=4, steps=20).fit(digits.X[:50], ["a"] * 50)
    assert np.isfinite(hasher.functions_).all()


def test_one_step_moves_weights_along_the_mean_of_its_pairs_and_lets_them_decay() -> None:
    X = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)  # the mean is 0
    start = MLH(bits=3, step=0.0, steps=1).fit(X, [0, 1, 0, 1])
    one = MLH(bits=3, step=0.5, steps=1, decay=0.2, rho=0.34).fit(X, [0, 1, 0, 1])
    ((a, b),) = draw_pairs(np.array([0, 1, 0, 1]), 1, seeds.generator(0, seeds.PAIRS))
    Xs = np.column_stack([X, np.ones(4)]).astype(np.float32)
    W = start.functions_
    loss = losses(3, 1)[((a % 2) == (b % 2)).astype(int)]
    down = descent(W, Xs[a], Xs[b], loss) / 100
    decayed = 0.2 * W * [1, 1, 0]
    np.testing.assert_allclose(one.functions_, W + 0.5 * (down - decayed), rtol=1e-5, atol=1e-6)


def test_first_functions_cut_the_rows_in_half(digits: Stream) -> None:
    hasher = taught(digits, 600, step=0.0, steps=1)
    assert (np.abs(hasher.transform(digits.X[:600]).mean(axis=0)) < 0.01).all()


def test_learning_lowers_the_loss(digits: Stream) -> None:
    y, loss = digits.y[:600], losses(16, 6)

    def lost(hasher: MLH) -> float:
        H = hasher.transform(digits.X[:600]).astype(int)
        alike = (y[:, None] == y).astype(int)
        each = loss[alike, (16 - H @ H.T) // 2]
        return float(each[alike == 1].mean() + each[alike == 0].mean())

    start = lost(taught(digits, step=0.0))
    assert lost(taught(digits)) < 0.7 * start


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = taught(digits)
    asked, stored = hasher.transform(digits.X[600:]), hasher.transform(digits.X[:600])
    nearest = np.argmax(asked.astype(int) @ stored.T.astype(int), axis=1)
    assert (digits.y[:600][nearest] == digits.y[600:]).mean() > 0.8


def test_progress_ends_at_one(digits: Stream) -> None:
    shares: list[float] = []
    hasher = MLH(bits=4, steps=250)
    hasher.fit(digits.X[:100], digits.y[:100], progress=shares.append)
    assert shares == [0.4, 0.8, 1.0]


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"rho": -0.1},
        {"rho": 1.1},
        {"step": 2},
        {"step": float("nan")},
        {"decay": -1},
        {"decay": True},
        {"steps": 0},
        {"steps": 10_000_001},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        MLH(**options).fit(ROWS, [0, 1, 0, 1])  # type: ignore[arg-type]
