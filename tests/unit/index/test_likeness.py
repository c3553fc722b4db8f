"""Likeness codes estimate cosines, within their bound, and never depend on how rows came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.errors import DimensionError
from everhash.index.likeness import Likeness

SEEDS = st.integers(0, 2**32 - 1)


def make_rows(seed: int, n: int, d: int, mean: float = 0.3) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal((n, d)) + mean).astype(np.float32)


def cosines(queries: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    exact = [X.astype(np.float64) for X in (queries, rows)]
    units = [X / np.maximum(np.sqrt((X * X).sum(axis=1, keepdims=True)), 1e-300) for X in exact]
    return np.asarray(units[0] @ units[1].T)


@given(
    seed=SEEDS, d=st.sampled_from([1, 2, 10, 64, 300, 384, 600]), mean=st.sampled_from([0, 0.5, 3])
)
@settings(max_examples=60, deadline=None)
def test_estimates_are_within_their_bound(seed: int, d: int, mean: float) -> None:
    rows, asked = make_rows(seed, 60, d, mean), make_rows(seed + 1, 10, d, mean)
    rows[5], asked[4], rows[6] = 0, 0, asked[3]
    likeness = Likeness.draw(d)
    likeness.meet(rows)
    codes, queries = likeness.encode(rows), likeness.queries(asked)
    errors = np.abs(likeness.estimates(codes, queries) - cosines(asked, rows))
    assert (errors <= likeness.error_bound(codes, queries)).all()


def test_estimates_are_close_and_without_bias() -> None:
    rows, asked = make_rows(0, 500, 384), make_rows(1, 50, 384)
    likeness = Likeness.draw(384)
    likeness.meet(rows)
    errors = likeness.estimates(likeness.encode(rows), likeness.queries(asked)) - cosines(
        asked, rows
    )
    assert np.abs(errors).max() < 0.25
    assert np.sqrt((errors * errors).mean()) < 0.05
    assert abs(errors.mean()) < 0.002


def test_a_row_of_zeros_is_like_nothing() -> None:
    rows = make_rows(0, 20, 8)
    rows[3] = 0
    likeness = Likeness.draw(8)
    likeness.meet(rows)
    estimates = likeness.estimates(likeness.encode(rows), likeness.queries(rows))
    assert not estimates[3].any()
    assert not estimates[:, 3].any()


@given(seed=SEEDS, cuts=st.lists(st.integers(0, 40), max_size=5), d=st.sampled_from([3, 300]))
@settings(max_examples=40, deadline=None)
def test_batch_boundaries_do_not_matter(seed: int, cuts: list[int], d: int) -> None:
    rows = make_rows(seed, 40, d)
    whole, parts = Likeness.draw(d), Likeness.draw(d)
    whole.meet(rows)
    told, met = 0, 0
    for part in np.split(rows, sorted(cuts)):
        if parts.meet(part):
            told += 1
            np.testing.assert_array_equal(parts.first_rows, rows[:met])
        met += len(part)
    assert told == 1
    np.testing.assert_array_equal(parts.direction, whole.direction)
    for mine, wanted in zip(parts.encode(rows), whole.encode(rows), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_the_direction_is_settled_by_the_sixteenth_row_and_never_moves() -> None:
    rows = make_rows(0, 40, 12)
    likeness = Likeness.draw(12)
    told = likeness.meet(rows[:15])
    assert (told, likeness.settled) == (False, False)
    assert not likeness.direction.any()
    np.testing.assert_array_equal(likeness.first, rows[:15])
    told = likeness.meet(rows[15:17])
    assert (told, likeness.settled) == (True, True)
    assert len(likeness.first) == 0
    settled = likeness.direction.copy()
    assert not likeness.meet(rows[17:])
    np.testing.assert_array_equal(likeness.direction, settled)
    mean = (rows[:16] / np.linalg.norm(rows[:16], axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(settled, mean / np.linalg.norm(mean), rtol=1e-5)


@pytest.mark.parametrize(
    "rows", [np.zeros((16, 4)), np.tile([[1.0, 0, 0, 0], [-1, 0, 0, 0]], (8, 1))]
)
def test_rows_without_a_mean_settle_the_direction_too(rows: NDArray[Any]) -> None:
    likeness = Likeness.draw(4)
    assert likeness.meet(rows.astype(np.float32))
    assert likeness.settled


@pytest.mark.parametrize("met", [0, 3, 15, 16, 30])
def test_arrays_are_read_back(met: int) -> None:
    rows = make_rows(0, 40, 20)
    likeness = Likeness.draw(20)
    likeness.meet(rows[:met])
    stored = {name: array.copy() for name, array in likeness.arrays().items()}
    for array in stored.values():
        array.flags.writeable = False
    again = Likeness.read(20, stored)
    assert again.meet(rows[met:]) == likeness.meet(rows[met:])
    for mine, wanted in zip(again.encode(rows), likeness.encode(rows), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def damaged() -> dict[str, tuple[str, NDArray[Any]]]:
    nan, ones = np.float32(np.nan), np.ones
    return {
        "signs of 0": ("signs", np.zeros((3, 256), np.int8)),
        "signs of -128": ("signs", np.full((3, 256), -128, np.int8)),
        "fewer rounds": ("signs", ones((2, 256), np.int8)),
        "fewer coordinates": ("signs", ones((3, 20), np.int8)),
        "signs as floats": ("signs", ones((3, 256), np.float32)),
        "a long direction": ("direction", ones(20, np.float32)),
        "a direction with NaN": ("direction", np.full(20, nan)),
        "a direction of doubles": ("direction", np.zeros(20)),
        "a flat first row": ("first", ones(20, np.float32)),
        "infinite rows": ("first", np.full((2, 20), np.inf, np.float32)),
        "too many rows": ("first", ones((16, 20), np.float32)),
        "rows of other features": ("first", ones((3, 21), np.float32)),
    }


@pytest.mark.parametrize("name", damaged())
def test_damaged_arrays_are_refused(name: str) -> None:
    part, array = damaged()[name]
    with pytest.raises(ValueError, match="likeness codes: expected"):
        Likeness.read(20, Likeness.draw(20).arrays() | {part: array})


def test_rows_that_wait_for_a_settled_direction_are_refused() -> None:
    likeness = Likeness.draw(20)
    likeness.meet(make_rows(0, 16, 20))
    with pytest.raises(ValueError, match="at most 0 rows"):
        Likeness.read(20, likeness.arrays() | {"first": np.ones((1, 20), np.float32)})


def test_a_missing_array_is_named() -> None:
    arrays = Likeness.draw(20).arrays()
    del arrays["first"]
    with pytest.raises(ValueError, match="'first'"):
        Likeness.read(20, arrays)


def test_rows_of_other_features_are_refused() -> None:
    likeness = Likeness.draw(20)
    for call in (likeness.meet, likeness.encode, likeness.queries):
        with pytest.raises(DimensionError):
            call(np.ones((2, 19), np.float32))
