"""Segments are built by kernels exactly as NumPy would build them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import kernels
from everhash.codes import pack_bits
from everhash.index.segment import PADDING, Segment
from everhash.kernels.search import reference

ready = kernels.load_search()

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


class Entries(NamedTuple):
    """The arguments of `Segment.build`."""

    words: Words
    cycles: Counts
    codewords: Words
    codeword_cycles: Counts
    n_cycles: int
    bits: int


def make_entries(
    seed: int,
    n: int,
    bits: int,
    *,
    n_cycles: int = 1,
    n_codewords: int = 5,
    noise: float = 0.1,
    kinds: int = 0,
) -> Entries:
    """Words around codewords; `kinds` > 0 draws them from so many, so that many are equal."""
    rng = np.random.default_rng(seed)
    flags = rng.random((n_codewords + 1, bits)) < 0.5
    codeword_cycles = rng.integers(0, n_cycles, n_codewords)
    pick = rng.integers(0, n_codewords + 1, n)  # the last codeword nobody knows
    words = flags[pick] ^ (rng.random((n, bits)) < noise)
    cycles = np.append(codeword_cycles, 0)[pick] if seed % 2 else rng.integers(0, n_cycles, n)
    if kinds and n:
        again = rng.integers(0, min(kinds, n), n)
        words, cycles = words[again], cycles[again]
    return Entries(pack_bits(words), cycles, pack_bits(flags[:-1]), codeword_cycles, n_cycles, bits)


def by_numpy(e: Entries) -> dict[str, Any]:
    """Every array of the segment, by sorting entries, then words, then searching for the edges."""
    bare = np.setdiff1d(np.arange(e.n_cycles), e.codeword_cycles)
    centres = np.concatenate([e.codewords, np.zeros((len(bare), e.words.shape[1]), np.uint64)])
    centre_cycles = np.concatenate([e.codeword_cycles, bare])
    by = np.argsort(centre_cycles, kind="stable")
    centres, centre_cycles = centres[by], centre_cycles[by]
    keys = reference.shell_keys(e.words, e.cycles, centres, centre_cycles, e.bits)
    posts, new = reference.sort_columns(np.vstack([e.words.T, keys.astype(np.uint64)]))
    lead, starts, word_of = reference.lay_out(posts, new)
    columns = np.zeros((e.words.shape[1], len(lead) + PADDING), np.uint64)
    columns[:, : len(lead)] = e.words[posts[starts[:-1]]].T
    keys = keys[posts[starts[:-1]]]
    groups: list[list[int]] = []
    edges: list[int] = []
    for number in (used := np.unique(keys // (e.bits + 1))):
        own = keys[keys // (e.bits + 1) == number] % (e.bits + 1)
        groups.append([centre_cycles[number], own[0], own[-1], len(edges) - own[0]])
        shells = np.arange(own[0], own[-1] + 2) + number * (e.bits + 1)
        edges.extend(np.searchsorted(keys, shells))
    return {
        "bits": e.bits,
        "columns": columns,
        "lead": lead,
        "starts": starts,
        "posts": posts,
        "word_of": word_of,
        "cycle_starts": np.searchsorted(
            centre_cycles[keys // (e.bits + 1)], np.arange(e.n_cycles + 1)
        ),
        "centres": centres[used].T,
        "groups": np.reshape(groups, (-1, 4)),
        "edges": edges,
    }


ENTRIES = st.builds(
    make_entries,
    st.integers(0, 2**32),
    st.sampled_from([0, 1, 2, 50, 97, 300, 3000]),
    st.one_of(st.sampled_from([1, 8, 63, 64, 65, 128, 129, 1000]), st.integers(1, 300)),
    n_cycles=st.integers(1, 5),
    n_codewords=st.integers(0, 12),
    noise=st.sampled_from([0.0, 0.02, 0.1, 0.5]),
    kinds=st.sampled_from([0, 0, 1, 20, 1000]),
)
TABLES = st.builds(
    lambda seed, rows, n, kinds, shift: (
        np.random.default_rng(seed).integers(0, kinds, (rows, n), np.uint64) << np.uint64(shift)
    ),
    st.integers(0, 2**32),
    st.integers(1, 4),
    st.sampled_from([0, 1, 2, 96, 97, 500, 5000]),
    st.sampled_from([1, 2, 17, 1000, 2**32, 2**64 - 1]),
    st.sampled_from([0, 7, 31]),
)


@given(ENTRIES)
@example(make_entries(0, 40_000, 64, n_cycles=3, noise=0.05))
@example(make_entries(1, 40_000, 100, n_cycles=3, noise=0.02))
@example(make_entries(2, 40_000, 64, n_codewords=0, noise=0.5))
@example(make_entries(3, 40_000, 70, n_codewords=2, kinds=9))
def test_segment_equals_the_one_numpy_builds(e: Entries) -> None:
    segment, expected = Segment.build(*e), by_numpy(e)
    for field in fields(Segment):
        if field.name != "share_scanned":
            got = getattr(segment, field.name)
            np.testing.assert_array_equal(got, expected[field.name], field.name)
    assert segment.posts.dtype == segment.word_of.dtype == np.uint32
    whole = (segment.lead, segment.starts, segment.cycle_starts, segment.groups, segment.edges)
    assert {array.dtype for array in whole} == {np.dtype(np.int64)}


def assert_sorted_as_lexsort_does(table: Words) -> None:
    n = table.shape[1]
    expected, different = reference.sort_columns(table)
    got, order, new = table.copy(), np.empty(n, np.uint32), np.empty(n, np.bool_)
    assert ready.sort_columns(got, order, new) == different.sum()
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(new, different)
    np.testing.assert_array_equal(got, table[:, expected])


@given(TABLES)
def test_columns_are_sorted_as_lexsort_does(table: Words) -> None:
    assert_sorted_as_lexsort_does(table)


@pytest.mark.parametrize("unit", [1, 2**8, 2**51])
@pytest.mark.parametrize(
    "run", [np.arange(5000), np.arange(5000)[::-1], np.arange(5000) % 2, np.zeros(5000)]
)
def test_order_of_arrival_does_not_matter(run: Counts, unit: int) -> None:
    assert_sorted_as_lexsort_does(run.astype(np.uint64)[None] * np.uint64(unit))


def test_read_only_and_strided_entries_are_accepted() -> None:
    e = make_entries(4, 500, 100, n_cycles=2)
    expected = Segment.build(*e)
    names = ("words", "cycles", "codewords", "codeword_cycles")
    awkward = {n: np.asfortranarray(np.repeat(getattr(e, n), 2, axis=0))[::2] for n in names}
    for array in awkward.values():
        array.setflags(write=False)
    segment = Segment.build(**awkward, n_cycles=e.n_cycles, bits=e.bits)
    np.testing.assert_array_equal(segment.columns, expected.columns)
    np.testing.assert_array_equal(segment.posts, expected.posts)
