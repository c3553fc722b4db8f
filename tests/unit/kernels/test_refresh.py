"""A bit computed alone equals the bit computed among others, and certificates never lie."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everhash import kernels as base
from everhash.index.encoding import QUANTUM
from everhash.kernels import reference, refresh

kernels = base.load_refresh()


@numba.njit
def function_margins(Z: Any, rows: Any, w: Any, out: Any) -> None:
    """Call a part of a kernel, as `recompute` does: Python cannot."""
    refresh.function_margins(Z, rows, w, out)


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    d=st.integers(1, 300),
    m=st.integers(1, 30),
)
def test_margins_of_one_function_equal_those_of_all_to_the_bit(
    seed: int, n: int, d: int, m: int
) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d)).astype(np.float32)
    functions = rng.standard_normal((2, 5, d)).astype(np.float32)
    everything = np.empty((n, 10), np.float32)
    base.load().margins_into(Z, functions, everything)
    rows = rng.integers(0, n, m)
    for function in range(10):
        alone = np.empty(m, np.float32)
        function_margins(Z, rows, functions.reshape(10, d)[function], alone)
        np.testing.assert_array_equal(alone, everything[rows, function])


@given(seed=st.integers(0, 2**32), n=st.integers(1, 60), k=st.integers(1, 70))
def test_stale_entries_are_those_with_an_expiry_not_above_its_limit(
    seed: int, n: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    homes = rng.integers(0, 3, n)
    expiries = rng.integers(0, 256, (n, k)).astype(np.uint8)
    limits = rng.integers(-1, 30, (3, k))
    marked = np.empty(n, np.bool_)
    kernels.find_stale(homes, expiries, limits, marked)
    np.testing.assert_array_equal(marked, (expiries <= limits[homes]).any(axis=1))


@given(seed=st.integers(0, 2**32), n=st.integers(1, 40), d=st.integers(2, 40), k=st.integers(1, 70))
def test_a_certified_bit_survives_any_turn_up_to_its_expiry(
    seed: int, n: int, d: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d)).astype(np.float32)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    W = rng.standard_normal((1, k, d)).astype(np.float32)
    homes, turned = np.zeros(n, np.int64), np.full((1, k), 0.01)
    words, expiries = np.zeros((n, 2), np.uint64), np.zeros((n, k), np.uint8)
    lengths = np.linalg.norm(W.astype(np.float64), axis=2)
    everything = np.full((1, k), 255, np.int64)
    computed, _ = kernels.recompute(
        Z, homes, words, expiries, everything, W, lengths, turned, 1e-4, QUANTUM
    )
    assert computed == n * k
    bits = (
        words[:, np.arange(k) >> 6] >> (np.arange(k, dtype=np.uint64) & np.uint64(63))
    ) & np.uint64(1)
    np.testing.assert_array_equal(bits == 1, Z @ W[0].T > 0)
    angle = rng.uniform(0, 0.1)
    U = W[0] / np.linalg.norm(W[0], axis=1, keepdims=True)
    side = rng.standard_normal((k, d))
    side -= (side * U).sum(axis=1, keepdims=True) * U
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
    turned_functions = np.cos(angle) * U + np.sin(angle) * side
    certified = expiries > (0.01 + angle) / QUANTUM
    after = Z.astype(np.float64) @ turned_functions.T > 0
    np.testing.assert_array_equal((bits == 1)[certified], after[certified])


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 20),
    d=st.integers(1, 80),
    spread=st.sampled_from([0.1, 4.0, 20.0, 36.0]),
)
def test_halving_rounds_as_numpy_does(seed: int, n: int, d: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-spread, min(spread, 36), (n, d))
    X = (sizes * rng.choice([-1, 0, 1], (n, d))).astype(np.float32)
    wanted, scales = reference.halve(X)
    halves, found = np.empty((n, d), np.float16), np.empty(n, np.float32)
    kernels.halve(X, halves.view(np.uint16), found)
    np.testing.assert_array_equal(found, scales)
    np.testing.assert_array_equal(halves, wanted)
    rows = np.empty((n, d), np.float32)
    kernels.unhalve(halves.view(np.uint16), scales, rows)
    np.testing.assert_array_equal(rows, reference.unhalve(wanted, scales))


def test_every_half_comes_back() -> None:
    every = np.arange(0x3C01, dtype=np.uint16).view(np.float16)
    both = np.concatenate([every, -every])[None]
    rows = np.empty(both.shape, np.float32)
    kernels.unhalve(both.view(np.uint16), np.ones(1, np.float32), rows)
    np.testing.assert_array_equal(rows, both.astype(np.float32))
    halves, scales = np.empty(both.shape, np.float16), np.empty(1, np.float32)
    kernels.halve(rows, halves.view(np.uint16), scales)
    np.testing.assert_array_equal(halves, both)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), k=st.integers(1, 70))
def test_bits_settled_together_equal_those_computed_one_by_one(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 20)).astype(np.float32)
    W = rng.standard_normal((1, k, 20)).astype(np.float32)
    lengths, turned = np.linalg.norm(W.astype(np.float64), axis=2), rng.uniform(0, 0.1, (1, k))
    words = np.zeros((2, n, 2), np.uint64)
    expiries = np.zeros((2, n, k), np.uint8)
    everything = np.full((1, k), 255, np.int64)
    homes = np.zeros(n, np.int64)
    kernels.recompute(
        Z, homes, words[0], expiries[0], everything, W, lengths, turned, 1e-4, QUANTUM
    )
    margins = np.empty((n, k), np.float32)
    base.load().margins_into(Z, W, margins)
    kernels.settle(
        margins, np.arange(n), lengths[0], turned[0], 1e-4, QUANTUM, words[1], expiries[1]
    )
    np.testing.assert_array_equal(words[0], words[1])
    np.testing.assert_array_equal(expiries[0], expiries[1])
