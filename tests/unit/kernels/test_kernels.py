"""Compiled kernels equal the NumPy reference."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import kernels
from everhash.kernels import compiled as parts
from everhash.kernels import peer_reference, reference

compiled = kernels.load()


@numba.njit
def slope(loss: Any, margin: Any) -> Any:
    """Call a part of a kernel, as `learn` does: Python cannot."""
    return parts.slope(loss, margin)


LOSSES = (reference.HINGE, reference.SQUARED_HINGE, reference.LOGISTIC)


def random_problem(
    seed: int, n: int, d: int, k: int, labels: int, rho: int, average: bool, *, whole: bool
) -> dict[str, Any]:
    """Arguments of `learn`; with `whole`, numbers whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    cycles = -(-labels // rho)

    def numbers(*shape: int) -> NDArray[np.float32]:
        values = rng.integers(-3, 4, shape) if whole else rng.standard_normal(shape)
        return values.astype(np.float32)

    Z = numbers(n, d)
    Z[rng.random(n) < 0.1] = 0
    last = numbers(cycles, k, d)
    return {
        "Z": Z,
        "labels": rng.integers(0, labels, n),
        "joins": rng.random(n) < 0.2,
        "codewords": rng.choice(np.array([-1, 1], np.int8), (labels, k)),
        "labels_per_cycle": rho,
        "last": last,
        "mean": last.copy() if average else np.empty((0, k, d), np.float32),
        "updates": np.zeros((cycles, k), np.int64),
        "averaged": np.zeros((cycles, k), np.int64),
        "rounds": np.zeros(cycles, np.int64),
        "restarts": np.zeros(cycles, np.int64),
    }


def run_both(problem: dict[str, Any], *options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    results = []
    for learn in (reference.learn, compiled.learn):
        copies = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in problem.items()
        }
        learn(*copies.values(), *options)  # type: ignore[arg-type]
        results.append(copies)
    return results[0], results[1]


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 12),
    d=st.integers(1, 70),
    k=st.integers(1, 9),
    labels=st.integers(1, 7),
    rho=st.integers(1, 7),
    average=st.booleans(),
)
def test_learn_compiled_equals_reference_to_the_bit_where_sums_are_exact(
    seed: int, n: int, d: int, k: int, labels: int, rho: int, average: bool
) -> None:
    problem = random_problem(seed, n, d, k, labels, rho, average, whole=True)
    expected, got = run_both(problem, 1.0, False, reference.HINGE)
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("decays", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_learn_compiled_equals_reference_to_rounding(
    loss: int, decays: bool, average: bool
) -> None:
    problem = random_problem(7, 200, 130, 11, 9, 4, average, whole=False)
    problem["Z"] /= np.maximum(np.linalg.norm(problem["Z"], axis=1, keepdims=True), 1e-9)
    expected, got = run_both(problem, 0.5, decays, loss)
    assert np.abs(expected["last"] - problem["last"]).max() > 0.1
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-4, err_msg=name)


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 9),
    d=st.integers(1, 100),
    k=st.integers(1, 13),
    cycles=st.integers(1, 4),
)
def test_margins_compiled_equals_reference(seed: int, n: int, d: int, k: int, cycles: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.integers(-9, 10, (n, d)).astype(np.float32)
    functions = rng.integers(-9, 10, (cycles, k, d)).astype(np.float32)
    out = np.empty((n, cycles * k), np.float32)
    compiled.margins_into(Z, functions, out)
    np.testing.assert_array_equal(out, reference.margins(Z, functions))


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    d=st.integers(1, 300),
    k=st.integers(1, 13),
    cycles=st.integers(1, 4),
)
def test_margins_depend_on_their_own_row_and_function_only(
    seed: int, n: int, d: int, k: int, cycles: int
) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d)).astype(np.float32)
    functions = rng.standard_normal((cycles, k, d)).astype(np.float32)
    full = np.empty((n, cycles * k), np.float32)
    compiled.margins_into(Z, functions, full)
    rows = rng.permutation(n)[: rng.integers(1, n + 1)]
    fewer = rng.integers(1, cycles + 1)
    part = np.empty((len(rows), fewer * k), np.float32)
    compiled.margins_into(Z[rows], functions[:fewer], part)
    np.testing.assert_array_equal(part, full[rows, : fewer * k])


@given(
    labels=st.lists(st.integers(0, 5), min_size=1, max_size=60),
    rho=st.integers(1, 6),
    keep=st.integers(0, 3),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    seed=st.integers(0, 2**32),
)
def test_plan_replay_compiled_equals_reference_and_memory_is_true(
    labels: list[int], rho: int, keep: int, cuts: list[int], seed: int
) -> None:
    """Both kernels lay out the same schedule, block after block, from the same memory."""
    stream = np.array(sorted(labels), np.int64)  # label by label, so that labels go quiet
    chances = np.random.default_rng(seed).random((len(stream), reference.CHANCES))
    states = [
        [np.zeros(6, np.int64) for _ in range(3)] + [np.zeros((6, keep), np.int64)]
        for _ in range(2)
    ]
    content: list[int] = []
    known, stored = 0, 0
    for block in np.split(np.arange(len(stream)), sorted(set(cuts))):
        if len(block) == 0:
            continue
        outcomes = [
            plan(stream[block], rho, known, chances[block], *state, stored)
            for plan, state in zip(
                (reference.plan_replay, compiled.plan_replay), states, strict=True
            )
        ]
        for expected, got in zip(*outcomes, strict=True):
            np.testing.assert_array_equal(got, expected)
        for expected, got in zip(*states, strict=True):
            np.testing.assert_array_equal(got, expected)
        sources, times, learned, _, written, stored = outcomes[0]
        for source, time, label in zip(sources, times, learned, strict=True):
            row = int(block[source]) if source >= 0 else content[~source]
            assert stream[row] == label
            assert row <= block[time]
            assert label // rho == stream[block[time]] // rho
        content += [-1] * (stored - len(content))
        for slot in np.flatnonzero(written >= 0):
            content[slot] = int(block[written[slot]])
        known = max(known, int(stream[block].max()) + 1)
        assert stored <= keep * 6


@pytest.mark.parametrize("loss", LOSSES)
def test_slope_is_minus_the_derivative_of_the_loss(loss: int) -> None:
    def value(m: NDArray[np.float64]) -> NDArray[np.float64]:
        if loss == reference.LOGISTIC:
            return np.asarray(np.log2(1 + np.exp(-m)))
        hinge = np.maximum(0, 1 - m)
        return hinge if loss == reference.HINGE else hinge**2

    m = np.linspace(-3, 3, 24)  # no point on the kink at 1
    numeric = -(value(m + 1e-6) - value(m - 1e-6)) / 2e-6
    slopes = reference.slope(loss, m.astype(np.float32))
    np.testing.assert_allclose(slopes, numeric, atol=1e-4)
    assert (value(np.array([-1e-9, -2.0])) >= 1).all(), "the loss must bound a wrong bit"
    one_by_one = [slope(loss, margin) for margin in m.astype(np.float32)]
    np.testing.assert_allclose(one_by_one, slopes, rtol=1e-6)


def test_module_reports_every_kernel() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "everhash.kernels"], capture_output=True, text=True, check=True
    )
    for name in ("learn", "margins_into", "plan_replay"):
        assert name in run.stdout
    assert "ready in" in run.stdout


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 20),
    d=st.integers(1, 70),
    size=st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_unit_rows_are_measured_from_their_centres(seed: int, n: int, d: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    X, centers = ((size * rng.standard_normal((m, d))).astype(np.float32) for m in (n, 3))
    which = rng.integers(0, 3, n)
    X[rng.random(n) < 0.2] = centers[which[0]]
    Z = np.empty_like(X)
    compiled.unit_rows(X, centers, which, Z)
    np.testing.assert_allclose(Z, reference.unit_rows(X, centers, which), atol=2e-6)
    alone = np.empty_like(X[:1])
    compiled.unit_rows(X[-1:], centers, which[-1:], alone)
    np.testing.assert_array_equal(alone, Z[-1:], "a row does not depend on its neighbours")


@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 20),
    d=st.integers(1, 200),
    features=st.integers(0, 300),
)
def test_lift_compiled_equals_reference(seed: int, n: int, d: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    p = max(d, int(rng.integers(1, 130)))
    U = rng.standard_normal((n, d)).astype(np.float32)
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    U[rng.random(n) < 0.1] = 0
    signs = 2 * rng.integers(0, 2, (1 + -(-features // p), 3, p), dtype=np.int8) - 1
    if features:  # a row whose features are all rounding errors may come out either way
        filled = np.zeros((n, p), np.float32)
        filled[:, :d] = U
        turned = np.hstack([reference.rotate(filled, each) for each in signs[1:]])[:, :features]
        largest = turned.max(axis=1)
        assume(((largest > 1e-3) | (largest < -1e-6) | (U == 0).all(axis=1)).all())
    out = np.full((n, p + features + 1), np.nan, np.float32)
    compiled.lift_into(U, signs.astype(np.int8), features, out)
    np.testing.assert_allclose(out, reference.lift(U, signs, features), atol=1e-5)
    alone = np.empty((1, p + features + 1), np.float32)
    compiled.lift_into(U[-1:], signs.astype(np.int8), features, alone)
    np.testing.assert_array_equal(alone[0], out[-1], "a row does not depend on its neighbours")


@given(seed=st.integers(0, 2**16), p=st.integers(1, 300))
def test_rotations_turn_and_nothing_else(seed: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    signs = 2 * rng.integers(0, 2, (3, p), dtype=np.int8) - 1
    turned = reference.rotate(np.eye(p, dtype=np.float32), signs)
    np.testing.assert_allclose(turned @ turned.T, np.eye(p), atol=1e-5)


@pytest.mark.parametrize("name", ["follow_words", "follow_words_boosted"])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), k=st.integers(1, 9))
def test_peer_rules_compiled_equal_reference(name: str, seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 20))
    Z = rng.standard_normal((n, d)).astype(np.float32)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    labels = rng.integers(0, 4, n)
    words = rng.choice(np.array([-1, 1], np.int8), (4, k))
    one = rng.standard_normal((k, d)).astype(np.float32)
    two = one.copy()
    getattr(kernels.load_peers(), name)(Z, labels, words, one, 0.3)
    getattr(peer_reference, name)(Z, labels, words, two, 0.3)
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
