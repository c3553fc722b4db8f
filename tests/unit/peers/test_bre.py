"""BRE: the exact search of a weight, and sweeps that rebuild the distances of labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.peers.batch.bre import BRE, best_change, cuts, signs, unexplained
from tests.conftest import Stream

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def taught(digits: Stream, n: int = 400, **options: int) -> BRE:
    return BRE(**{"bits": 16, **options}).fit(digits.X[:n], digits.y[:n])


def cost(H: Doubles, labels: Counts) -> float:
    """The paper's sum over all pairs of (d - d~)^2, pair by pair."""
    differ = (labels[:, None] != labels).astype(float)
    hamming = (H[:, None] != H).sum(axis=2) / H.shape[1]
    return float(((differ - hamming) ** 2).sum())


def some_case(
    seed: int, n: int = 12, bits: int = 4
) -> tuple[Doubles, Doubles, Doubles, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    K, margins = rng.standard_normal((2, n))
    return K, margins, signs(rng.standard_normal((n, bits - 1))), rng.integers(0, 3, n)


@given(seed=st.integers(0, 10_000), zeros=st.integers(0, 3), bits=st.integers(1, 5))
def test_search_of_a_weight_equals_brute_force_over_all_thresholds(
    seed: int, zeros: int, bits: int
) -> None:
    K, margins, others, labels = some_case(seed, bits=bits)
    K[:zeros] = 0  # rows that no weight turns
    K[-1], margins[-1] = K[-2], margins[-2]  # and two that turn together

    def after(delta: float) -> float:
        return cost(np.column_stack([others, signs(margins + delta * K)]), labels)

    at = np.sort(-margins[K != 0] / K[K != 0])
    everything = [at[0] - 1, *(at[1:] + at[:-1]) / 2, at[-1] + 1]
    found = after(best_change(K, margins, others, labels))
    assert found == pytest.approx(min(after(delta) for delta in everything))
    assert found <= after(0) + 1e-9


def test_four_points_worked_by_hand() -> None:
    # One bit, w = (0, 1), labels a b a b; the weight of row 1, (1, 0), changes by delta.
    #   margins (0, 1, .8, .6)      K (1, 0, .6, -.8)
    # Row 2 never turns. The others turn at -margin / K: row 1 at 0, row 3 at -4/3, row 4 at 3/4.
    # From delta = -inf on the bits are
    #   rows           1  2  3  4
    #   below -4/3     -  +  -  +     a and b apart: all distances rebuilt
    #   up to 0        -  +  +  +
    #   up to 3/4      +  +  +  +
    #   above          +  +  +  -
    K, margins = np.array([1, 0, 0.6, -0.8]), np.array([0, 1, 0.8, 0.6])
    labels = np.array([0, 1, 0, 1])
    delta = best_change(K, margins, np.empty((4, 0)), labels)
    assert delta == pytest.approx(-4 / 3, abs=1e-3)
    assert delta < -4 / 3
    bits = signs(margins + delta * K)
    assert bits.tolist() == [-1, 1, -1, 1]
    assert unexplained(bits[:, None], labels) == 0
    # With a bit there already that says the same, R = 2 S - h h^T = S, and nothing else is asked;
    # R_ij is +1 in a label and -1 between them. From h = (-, +, -, +), with h_i h_j R_ij = 1 for
    # all pairs, turning row 3, then 1, then 4 cuts 1 x 3, 2 x 2 and 3 x 1 of them.
    h, turning = np.array([-1.0, 1, -1, 1]), np.array([2, 0, 3])
    assert cuts(h, turning, bits[:, None], labels).tolist() == [0, 3, 4, 3]


@given(seed=st.integers(0, 10_000))
def test_cuts_say_how_the_explained_part_falls(seed: int) -> None:
    """h^T R h falls by 4 times the cut, for the matrix R of all pairs."""
    _, margins, others, labels = some_case(seed)
    h = signs(margins)
    R = 4 * np.where(labels[:, None] == labels, 1.0, -1.0) - others @ others.T
    turning = np.random.default_rng(seed).permutation(12)[:9]
    turned = h.copy()
    expected = [0.0]
    for row in turning:
        turned[row] *= -1
        expected.append(float(h @ R @ h - turned @ R @ turned) / 4)
    assert cuts(h, turning, others, labels).tolist() == expected


def test_unexplained_is_the_mean_cost_of_a_pair() -> None:
    rng = np.random.default_rng(0)
    H, labels = signs(rng.standard_normal((30, 7))), rng.integers(0, 4, 30)
    assert unexplained(H, labels) == pytest.approx(cost(H, labels) / 30**2)


def test_sweeps_never_raise_the_cost(digits: Stream) -> None:
    X, y = digits.X[:400], digits.y[:400]
    costs = [
        cost(taught(digits, sweeps=sweeps).transform(X).astype(np.float64), y) / 400**2
        for sweeps in (1, 2, 4, 8, 30)
    ]
    # the functions that are served are rounded, so a row or two may turn back
    assert all(later < earlier + 1e-4 for earlier, later in pairwise(costs))
    assert costs[-1] < costs[0] - 0.01


def test_a_function_is_made_of_so_many_training_rows(digits: Stream) -> None:
    hasher = taught(digits, anchors=1, sweeps=3)
    centred = digits.X[:400] - digits.X[:400].mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    likeness = np.abs(hasher.functions_ @ unit.T).max(axis=1)
    np.testing.assert_allclose(likeness, 1, atol=1e-5)
    two = taught(digits, anchors=2).functions_
    assert np.abs(two @ unit.T).max(axis=1).min() < 0.99


def test_functions_have_unit_length(digits: Stream) -> None:
    lengths = np.linalg.norm(taught(digits).functions_, axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)


def test_few_rows_or_rows_that_are_all_alike_are_enough() -> None:
    few = BRE(bits=4).fit(ROWS, [0, 1, 0, 1])
    assert np.isfinite(few.functions_).all()
    alike = BRE(bits=4).fit(np.ones((3, 2)), ["a", "b", "a"])  # all on their centre
    assert not alike.functions_.any()
    assert (alike.transform(np.ones((1, 2))) == -1).all()


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = taught(digits, 600)
    asked, stored = hasher.transform(digits.X[600:]), hasher.transform(digits.X[:600])
    nearest = np.argmax(asked.astype(int) @ stored.T.astype(int), axis=1)
    assert (digits.y[:600][nearest] == digits.y[600:]).mean() > 0.7


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"anchors": 0},
        {"anchors": 10_001},
        {"anchors": 1.5},
        {"sweeps": 0},
        {"sweeps": 1_000_001},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        BRE(**options).fit(ROWS, [0, 1, 0, 1])  # type: ignore[arg-type]
