"""Segments answer exactly as the reference does, whatever path the search takes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import kernels
from everhash.index.segment import Segment
from everhash.kernels.search import reference
from tests.conftest import slowly

ready = kernels.load_search()

WIDTHS = st.one_of(
    st.sampled_from([1, 2, 8, 63, 64, 65, 127, 128, 129, 192, 1000]), st.integers(1, 300)
)
SIZES = st.sampled_from([0, 1, 5, 63, 64, 65, 300, 2048, 3000])


class Problem(NamedTuple):
    words: NDArray[np.uint64]
    cycles: NDArray[np.int64]
    queries: NDArray[np.uint64]
    margins: NDArray[np.float32]
    segment: Segment


def pack(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(..., bits) to (..., W)."""
    bits = flags.shape[-1]
    padded = np.zeros((*flags.shape[:-1], -(-bits // 64) * 64), np.bool_)
    padded[..., :bits] = flags
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


def sized(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> NDArray[Any]:
    """Sizes of margins: spread, heavy with ties, over many orders of magnitude, equal, zero."""
    if kind == "normal":
        return np.abs(rng.standard_normal(shape))
    if kind == "whole":
        return rng.integers(0, 3, shape)
    if kind == "wild":
        return np.exp(4 * rng.standard_normal(shape))
    return np.full(shape, 0.1 if kind == "equal" else 0.0)


def make_problem(
    seed: int,
    bits: int,
    n: int,
    *,
    n_queries: int = 7,
    n_cycles: int = 1,
    n_codewords: int = 5,
    noise: float = 0.1,
    kinds: int = 0,
    sizes: str = "normal",
) -> Problem:
    """Words around codewords; `kinds` > 0 draws them from so many, so that many are equal."""
    rng = np.random.default_rng(seed)
    centres = rng.random((n_cycles, max(n_codewords, 1), bits)) < 0.5
    cycles = rng.integers(0, n_cycles, n)
    flags = centres[cycles, rng.integers(0, centres.shape[1], n)] ^ (rng.random((n, bits)) < noise)
    if kinds and n:
        pick = rng.integers(0, min(kinds, n), n)
        flags, cycles = flags[pick], cycles[pick]
    asked = centres[np.arange(n_cycles), rng.integers(0, centres.shape[1], (n_queries, n_cycles))]
    asked = asked ^ (rng.random(asked.shape) < rng.choice([0.05, 0.5]))
    margins = np.where(asked, 1, -1) * sized(rng, asked.shape, sizes)
    known = rng.integers(0, n_cycles, n_codewords)
    codewords = pack(centres[known, np.arange(n_codewords)])
    words = pack(flags)
    segment = Segment.build(words, cycles, codewords, known, n_cycles, bits)
    return Problem(words, cycles, pack(asked), margins.astype(np.float32), segment)


PROBLEMS = st.builds(
    make_problem,
    st.integers(0, 2**32),
    WIDTHS,
    SIZES,
    n_cycles=st.integers(1, 4),
    n_codewords=st.integers(0, 12),
    noise=st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.5]),
    kinds=st.sampled_from([0, 0, 1, 20, 1000]),
    sizes=st.sampled_from(["normal", "whole", "wild", "equal", "zero"]),
)
WANTED = st.sampled_from([1, 7, 100, 900, 5000])


def assert_same(got: Any, expected: Any) -> None:
    """Equal to the bit."""
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        if a.dtype == np.float32:
            assert not np.signbit(a[a == 0]).any()


@given(PROBLEMS, WANTED)
def test_hamming_search_equals_the_reference(p: Problem, k: int) -> None:
    expected = reference.nearest(reference.hamming(p.words, p.cycles, p.queries), k)
    assert_same(p.segment.nearest_hamming(p.queries, k), expected)


@given(PROBLEMS, WANTED)
def test_margin_search_equals_the_reference_pruned_or_not(p: Problem, k: int) -> None:
    expected = reference.nearest(reference.asymmetric(p.words, p.cycles, p.margins), k)
    assert_same(p.segment.nearest_margins(p.margins, k), expected)
    if len(p.segment):
        s = p.segment
        arrays = (s.columns, s.lead, s.starts, s.posts, s.word_of, s.centres, s.groups, s.edges)
        distances, places, looked = ready.search_scores(*arrays, p.margins, k, False)
        assert_same((distances, places), expected)
        assert looked == len(p.margins) * s.n_words


@given(PROBLEMS, WANTED)
def test_tiles_equal_shells(p: Problem, k: int) -> None:
    s = p.segment
    if len(s):
        arrays = (s.columns, s.lead, s.starts, s.posts, s.word_of, s.cycle_starts)
        got = ready.search_planes(*arrays, p.queries, k, s.bits)
        assert_same(got, s.nearest_hamming(p.queries, k))


@given(PROBLEMS, st.floats(0, 1.1), st.booleans())
def test_radius_equals_the_reference(p: Problem, share: float, on_an_entry: bool) -> None:
    far = reference.hamming(p.words, p.cycles, p.queries)
    found = p.segment.within_hamming(p.queries, radius := int(share * p.segment.bits))
    for j, row in enumerate(far):
        part = slice(found.offsets[j], found.offsets[j + 1])
        assert_same((found.distances[part], found.places[part]), reference.within(row, radius))
    wide = reference.asymmetric(p.words, p.cycles, p.margins)
    edge = float(wide.flat[int(share * (wide.size - 1) / 1.1)]) if wide.size else 0.0
    reach = edge if on_an_entry else (share - 0.6) * float(np.abs(p.margins).sum(axis=2).max())
    found = p.segment.within_margins(p.margins, reach)
    for j, row in enumerate(wide):
        part = slice(found.offsets[j], found.offsets[j + 1])
        assert_same((found.distances[part], found.places[part]), reference.within(row, reach))


@given(PROBLEMS, st.integers(0, 50))
def test_distances_of_places_are_those_of_the_search(p: Problem, m: int) -> None:
    n = len(p.words)
    places = np.random.default_rng(m).integers(0, n, m) if n else np.empty(0, np.int64)
    far = reference.hamming(p.words, p.cycles, p.queries)[:, places]
    assert_same([p.segment.hamming_of(p.queries, places)], [far])
    wide = reference.asymmetric(p.words, p.cycles, p.margins)[:, places]
    assert_same([p.segment.margins_of(p.margins, places)], [wide])


@pytest.mark.parametrize("n_queries", [1, 63, 64, *slowly(200)])
@pytest.mark.parametrize("noise", [0.05, 0.5])
@pytest.mark.parametrize("bits", [64, 100, 200])
@pytest.mark.parametrize("n_cycles", [1, 3])
def test_path_does_not_matter(n_queries: int, noise: float, bits: int, n_cycles: int) -> None:
    p = make_problem(0, bits, 12_000, n_queries=n_queries, n_cycles=n_cycles, noise=noise)
    assert p.segment.n_words >= 4 * ready.TILE
    expected = reference.nearest(reference.hamming(p.words, p.cycles, p.queries), 50)
    for _ in range(2):  # the second time the share is known
        assert_same(p.segment.nearest_hamming(p.queries, 50), expected)
    assert 0 < p.segment.share_scanned <= 2


@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 0.3]), st.sampled_from([0, 3000]))
@settings(max_examples=10)
def test_large_groups_are_pruned_without_loss(seed: int, noise: float, kinds: int) -> None:
    """Large enough for T to be guessed from a sample, and for the guess to fail."""
    p = make_problem(seed, 64, 30_000, n_codewords=3, noise=noise, kinds=kinds)
    for k in (1, 100, 2500):
        far = reference.nearest(reference.hamming(p.words, p.cycles, p.queries), k)
        assert_same(p.segment.nearest_hamming(p.queries, k), far)
        wide = reference.nearest(reference.asymmetric(p.words, p.cycles, p.margins), k)
        assert_same(p.segment.nearest_margins(p.margins, k), wide)


def test_widest_codes() -> None:
    p = make_problem(1, 4096, 400, n_queries=3, n_cycles=2, noise=0.2)
    expected = reference.nearest(reference.hamming(p.words, p.cycles, p.queries), 20)
    assert_same(p.segment.nearest_hamming(p.queries, 20), expected)
    wide = reference.nearest(reference.asymmetric(p.words, p.cycles, p.margins), 20)
    assert_same(p.segment.nearest_margins(p.margins, 20), wide)


def test_clustered_words_are_mostly_skipped() -> None:
    p = make_problem(2, 64, 30_000, n_codewords=40, noise=0.05)
    p.segment.nearest_hamming(p.queries, 10)
    assert p.segment.share_scanned < 0.2


def test_read_only_queries_are_welcome() -> None:
    p = make_problem(3, 64, 100)
    expected = p.segment.nearest_hamming(p.queries, 5)
    p.queries.setflags(write=False)
    assert_same(p.segment.nearest_hamming(p.queries, 5), expected)


def test_importing_the_index_compiles_nothing() -> None:
    code = "import sys, everhash.index.segment, everhash.index.postings; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numba" not in run.stdout.split()
