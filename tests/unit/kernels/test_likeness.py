"""The compiled likeness kernels give what their reference gives, to the last bit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import kernels
from everhash.kernels.likeness import reference
from everhash.kernels.likeness.reference import Listed

ready = kernels.load_likeness()

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.sampled_from([256, 257, 300, 384, 511, 513])
ENTRIES = st.sampled_from([0, 1, 5, 255, 256, 257, 700])


class Codes(NamedTuple):
    words: NDArray[np.uint64]
    along: NDArray[np.float32]
    scale: NDArray[np.float32]


class Queries(NamedTuple):
    planes: NDArray[np.uint64]
    totals: NDArray[np.int64]
    along: NDArray[np.float32]
    step: NDArray[np.float32]


def estimates(codes: Codes, queries: Queries) -> NDArray[np.float32]:
    planes, totals, along, step = queries
    return reference.estimates(*codes, planes, totals, along, step)


def signs_of(rng: np.random.Generator, size: int) -> NDArray[np.int8]:
    return rng.choice(np.array([-1, 1], np.int8), (3, size))


def unit(row: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(row / np.sqrt((row * row).sum()), np.float32)


def steps_of(planes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """(q, 8, W) bit planes to (q, 64 W) whole numbers."""
    bits = np.unpackbits(planes.astype("<u8").view(np.uint8), axis=2, bitorder="little")
    weights = np.array([1, 2, 4, 8, 16, 32, 64, -128])
    return np.asarray((bits * weights[:, None]).sum(axis=1), np.int64)


def make_rows(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    """Rows of many sizes around a common mean, zeros among them."""
    rows = rng.standard_normal((n, d)) + rng.choice([0, 1])
    rows = rows * np.exp(rng.choice([0, 5]) * rng.standard_normal((n, 1)))
    rows[rng.random(n) < 0.1] = 0
    return np.asarray(rows, np.float32)


def make_codes(rng: np.random.Generator, n: int, size: int) -> tuple[Codes, Queries]:
    """Codes of entries, many equal to others, and of four queries, the last of zeros."""
    signs = signs_of(rng, size)
    direction = unit(rng.standard_normal(size)) * np.float32(rng.choice([0, 1]))
    rows = rng.standard_normal((n, size)).astype(np.float32)
    if n and rng.random() < 0.5:
        rows = rows[rng.integers(0, min(n, 7), n)]
    asked = rng.standard_normal((4, size)).astype(np.float32)
    if n:
        asked[0] = rows[0]
    asked[3] = 0
    codes = Codes(*reference.parts(ready.encode(rows, direction, signs)))
    return codes, Queries(*ready.encode_queries(asked, direction, signs)[:4])


@given(seed=SEEDS, d=st.sampled_from([1, 2, 7, 200, 256, 300, 384, 515]), along=st.booleans())
@settings(max_examples=40, deadline=None)
def test_codes_equal_the_reference_away_from_rounding(seed: int, d: int, along: bool) -> None:
    rng = np.random.default_rng(seed)
    signs, rows = signs_of(rng, max(d, 256)), make_rows(rng, 9, d)
    direction = unit(rng.standard_normal(d)) * np.float32(along)
    words, ahead, scale = reference.parts(ready.encode(rows, direction, signs))
    expected = reference.encode(rows, direction, signs)
    _, across, rest = reference.split(rows, direction)
    turned = reference.turn(across / np.where(rest > 0, rest, 1)[:, None], signs)
    clear = reference.pack((np.abs(turned) * rest[:, None] > 1e-6) | (rest == 0)[:, None])
    np.testing.assert_array_equal(words & clear, expected[0] & clear)
    np.testing.assert_allclose(ahead, expected[1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(scale, expected[2], rtol=1e-5)


@given(seed=SEEDS, d=st.sampled_from([1, 7, 256, 300, 384, 515]), along=st.booleans())
@settings(max_examples=40, deadline=None)
def test_codes_of_queries_equal_the_reference_but_for_rounding(
    seed: int, d: int, along: bool
) -> None:
    rng = np.random.default_rng(seed)
    signs, rows = signs_of(rng, max(d, 256)), make_rows(rng, 5, d)
    direction = unit(rng.standard_normal(d)) * np.float32(along)
    planes, totals, *others = ready.encode_queries(rows, direction, signs)
    expected = reference.encode_queries(rows, direction, signs)
    steps, expected_steps = steps_of(planes), steps_of(expected[0])
    assert np.abs(steps - expected_steps).max() <= 1
    np.testing.assert_array_equal(totals, steps.sum(axis=1))
    assert (steps != expected_steps).mean() < 0.01
    for mine, wanted in zip(others, expected[2:], strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-7)


def _codes_of_entries(*arguments: Any) -> tuple[Any]:
    return (ready.encode(*arguments),)


@given(seed=SEEDS, d=st.sampled_from([3, 256, 300, 384]), n=st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_a_code_depends_on_its_row_only(seed: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    signs, rows = signs_of(rng, max(d, 256)), make_rows(rng, n, d)
    direction, at = unit(rng.standard_normal(d)), int(rng.integers(n))
    for encode in (_codes_of_entries, ready.encode_queries):
        together = encode(rows, direction, signs)
        alone = encode(rows[at : at + 1].copy(), direction, signs)
        for all_rows, one_row in zip(together, alone, strict=True):
            np.testing.assert_array_equal(all_rows[at], one_row[0])


@given(seed=SEEDS, n=ENTRIES, size=SIZES)
@settings(max_examples=30, deadline=None)
def test_estimates_equal_the_reference_to_the_last_bit(seed: int, n: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    codes, queries = make_codes(rng, n, size)
    places = rng.integers(0, n, 2 * n) if n else np.empty(0, np.int64)
    out = np.empty((4, len(places)), np.float32)
    ready.estimates_at(reference.join(*codes), places, *queries, out)
    expected = estimates(codes, queries)[:, places]
    np.testing.assert_array_equal(out.view(np.int32), expected.view(np.int32))


@given(seed=SEEDS, n=ENTRIES, size=SIZES, k=st.sampled_from([1, 3, 10, 300, 1000]))
@settings(max_examples=40, deadline=None)
def test_nearest_by_likeness_equals_sorting_all_estimates(
    seed: int, n: int, size: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    codes, queries = make_codes(rng, n, size)
    alive = (rng.random(n) < rng.choice([0.0, 0.1, 1.0])).astype(np.uint8)
    scores, places = ready.nearest_likeness(reference.join(*codes), alive, *queries, k)
    cosines = estimates(codes, queries)
    expected_scores, expected_places = reference.nearest_likeness(cosines, alive, k)
    np.testing.assert_array_equal(places, expected_places)
    np.testing.assert_array_equal(scores, expected_scores)


def test_nearest_by_likeness_finds_the_best_of_many() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    codes = Codes(
        rng.integers(0, 2**64, (n, 4), dtype=np.uint64),
        rng.normal(0, 0.1, n).astype(np.float32),
        rng.random(n).astype(np.float32) / np.float32(16),
    )
    _, queries = make_codes(rng, 3, 256)
    alive = np.ones(n, np.uint8)
    found = ready.nearest_likeness(reference.join(*codes), alive, *queries, 10)
    cosines = estimates(codes, queries)
    for mine, wanted in zip(found, reference.nearest_likeness(cosines, alive, 10), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@given(seed=SEEDS, n=ENTRIES, size=SIZES, floor=st.floats(-1.5, 1.5, width=32))
@settings(max_examples=30, deadline=None)
def test_above_gives_all_whose_bound_reaches_the_floor(
    seed: int, n: int, size: int, floor: float
) -> None:
    rng = np.random.default_rng(seed)
    codes, queries = make_codes(rng, n, size)
    alive = (rng.random(n) < 0.8).astype(np.uint8)
    rest = rng.random(4).astype(np.float32)
    cosines = estimates(codes, queries)
    bounds = reference.error_bounds(codes.along, codes.scale, queries.step, rest, size)
    for j in range(4):
        one = [field[j] for field in queries]
        found = ready.above_likeness(
            reference.join(*codes), alive, *one, rest[j], size, np.float32(floor)
        )
        wanted = reference.above_likeness(cosines[j], bounds[j], alive, floor)
        np.testing.assert_array_equal(found, wanted)


class Meaning(NamedTuple):
    """A search by meaning, as the kernel takes it."""

    P: NDArray[np.float32]
    trust: NDArray[np.float32]
    distance: NDArray[np.uint16]
    given: Listed
    guessed: Listed
    loose: NDArray[np.int32]
    several: int


def make_lists(
    rng: np.random.Generator, under: list[list[int]], capacity: int, masked: bool
) -> Listed:
    """Lists of places, each in two runs, with removed places among them and slots between."""
    runs, arena = np.zeros((2 * capacity, 3), np.int64), [7, 7]
    counts = np.zeros(capacity, np.int64)
    for label, places in enumerate(under):
        late = rng.random(len(places)) < rng.choice([0.0, 0.3])
        for run, part in enumerate((np.array(places)[~late], np.array(places)[late])):
            listed = [int(p) for p in part]
            for _ in range(int(rng.integers(0, 3))):
                listed.insert(int(rng.integers(0, len(listed) + 1)), ~int(rng.integers(0, 99)))
            runs[2 * label + run] = len(arena), len(listed), len(listed) + 1
            arena += [*listed, 5]
        counts[label] = len(places)
    if masked:
        counts[rng.random(capacity) < 0.5] = 0
    return Listed(runs, np.array(arena, np.int32), counts)


def make_meaning(seed: int, n: int, n_labels: int, ties: str, several: bool) -> Meaning:
    """Entries of all kinds; `ties` is how equal probabilities are."""
    rng = np.random.default_rng(seed)
    under: list[list[int]] = [[] for _ in range(n_labels)]
    guesses: list[list[int]] = [[] for _ in range(n_labels)]
    loose, many = [], 0
    kinds = rng.choice([0, 1, 2, 3], n, p=rng.dirichlet([1, 1, 1, 0.3]))
    for place, kind in enumerate(kinds):
        if kind == 0 and n_labels:
            labels = rng.choice(n_labels, 2 if several and n_labels > 1 else 1, replace=False)
            many += len(labels) > 1
            for label in labels:
                under[label].append(place)
        elif kind == 1 and n_labels:
            guesses[rng.integers(n_labels)].append(place)
        elif kind == 2:
            loose.append(place)
    P = rng.dirichlet(np.full(max(n_labels, 1), 0.2), 4)[:, :n_labels]
    P = {"none": P, "some": np.round(P, 1), "zero": 0 * P, "equal": 0 * P + 0.25}[ties]
    trust = np.sort(rng.random(5))[::-1] if rng.random() < 0.7 else np.ones(3)
    given_lists, guessed_lists = (
        make_lists(rng, each, n_labels + int(rng.integers(0, 3)), bool(rng.random() < 0.3))
        for each in (under, guesses)
    )
    return Meaning(
        np.ascontiguousarray(P, np.float32),
        np.ascontiguousarray(trust, np.float32),
        rng.integers(0, 9, n).astype(np.uint16),
        given_lists,
        guessed_lists,
        np.array(loose, np.int32),
        many,
    )


def search(
    asked: Meaning, codes: Codes, queries: Queries, k: int, *, likeness: bool = True
) -> tuple[Any, ...]:
    lists = (*asked.given, *asked.guessed, asked.loose)
    scored = asked.P, asked.trust, asked.distance
    found: tuple[Any, ...] = ready.search_meaning(
        *scored, *lists, asked.several, reference.join(*codes), *queries, int(likeness), k
    )
    return found


@given(
    seed=SEEDS,
    n=st.sampled_from([0, 1, 7, 60, 300, 900]),
    n_labels=st.sampled_from([0, 1, 2, 5, 30]),
    ties=st.sampled_from(["none", "some", "zero", "equal"]),
    several=st.booleans(),
    likeness=st.booleans(),
    k=st.sampled_from([1, 2, 10, 100, 1000]),
)
@settings(max_examples=150, deadline=None)
def test_search_by_meaning_equals_sorting_all_entries(
    seed: int, n: int, n_labels: int, ties: str, several: bool, likeness: bool, k: int
) -> None:
    codes, queries = make_codes(np.random.default_rng(seed), n, 256)
    asked = make_meaning(seed, n, n_labels, ties, several)
    cosines = estimates(codes, queries) * np.float32(likeness) + np.float32(0)
    found = search(asked, codes, queries, k, likeness=likeness)
    expected: tuple[Any, ...] = reference.search_meaning(*asked[:6], cosines, k)
    for mine, wanted in zip(found, expected, strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("chances", [[0.2, 0.7], [0.7, 0.2], [0.5, 0.5]])
def test_an_entry_with_two_labels_is_found_once_under_the_likelier(chances: list[float]) -> None:
    codes, queries = make_codes(np.random.default_rng(0), 3, 256)
    runs = np.array([[0, 2, 2], [0, 0, 0], [2, 2, 2], [0, 0, 0]])
    lists = Listed(runs, np.array([0, 1, 1, 2], np.int32), np.array([2, 2]))
    none = Listed(np.zeros_like(runs), np.empty(0, np.int32), np.zeros(2, np.int64))
    P, trust = np.array([chances] * 4, np.float32), np.ones(1, np.float32)
    asked = Meaning(P, trust, np.zeros(3, np.uint16), lists, none, np.empty(0, np.int32), 1)
    _, _, places, labels, _ = search(asked, codes, queries, 4)
    likelier = int(np.argmax(chances))
    for row in range(4):
        assert sorted(places[row].tolist()) == [-1, 0, 1, 2]
        assert labels[row, places[row].tolist().index(1)] == likelier


def test_search_without_codes_takes_empty_arrays() -> None:
    asked = make_meaning(3, 50, 4, "none", several=False)
    codes, queries = make_codes(np.random.default_rng(3), 50, 256)
    no_codes = Codes(codes.words[:0], codes.along[:0], codes.scale[:0])
    nothing = queries.along[:0]
    no_queries = Queries(queries.planes[:0], queries.totals[:0], nothing, nothing)
    found = search(asked, no_codes, no_queries, 10, likeness=False)
    for mine, wanted in zip(found, search(asked, codes, queries, 10, likeness=False), strict=True):
        np.testing.assert_array_equal(mine, wanted)
