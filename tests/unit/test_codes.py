"""Packed codes against the plain arrays they stand for."""

from __future__ import annotations

import random

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.codes import Codes, asymmetric, hamming
from everhash.errors import DimensionError

Signs = NDArray[np.int8]


@st.composite
def tables(draw: st.DrawFn, count: int = 1) -> tuple[Signs, ...]:
    """Draw tables of codes that share a width. Bytes shrink as well as signs and draw faster."""
    width, drawn = draw(st.integers(1, 200)), []
    for rows in draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)):
        raw = draw(st.binary(min_size=rows * width, max_size=rows * width))
        table = np.frombuffer(raw, np.uint8).reshape(rows, width) % 3
        drawn.append(table.astype(np.int8) - np.int8(1))
    return tuple(drawn)


@given(tables())
def test_unpacking_gives_back_what_was_packed(drawn: tuple[Signs]) -> None:
    (table,) = drawn
    codes = Codes.pack(table, version=3)
    np.testing.assert_array_equal(codes.unpack(), table)
    assert (len(codes), codes.width, codes.version) == (*table.shape, 3)
    assert codes.unpack().dtype == np.int8


@pytest.mark.parametrize("value", [-1, 0, 1])
def test_every_width_up_to_200_keeps_constant_codes(value: int) -> None:
    for width in range(1, 201):
        table = np.full((2, width), value, np.int8)
        codes = Codes.pack(table, version=0)
        assert codes.words.shape == codes.mask.shape == (2, -(-width // 64))
        assert codes.words.dtype == codes.mask.dtype == np.uint64
        np.testing.assert_array_equal(codes.unpack(), table)


def test_bit_t_of_word_j_is_hash_function_64_j_plus_t() -> None:
    for function in range(200):
        word, bit = divmod(function, 64)
        on = np.zeros(4, np.uint64)
        on[word] = np.uint64(1) << np.uint64(bit)
        for value in (1, -1):
            table = np.zeros((1, 200), np.int8)
            table[0, function] = value
            codes = Codes.pack(table, version=0)
            np.testing.assert_array_equal(codes.mask[0], on)
            np.testing.assert_array_equal(codes.words[0], on if value == 1 else 0 * on)


@given(tables(2))
def test_hamming_counts_the_active_places_that_differ(pair: tuple[Signs, Signs]) -> None:
    queries, entries = pair
    distances = hamming(Codes.pack(queries, 0), Codes.pack(entries, 0))
    q, e = queries[:, None], entries[None]
    counted = ((q != e) & (q != 0) & (e != 0)).sum(axis=2)
    assert distances.shape == (len(queries), len(entries))
    assert distances.dtype == np.int64
    np.testing.assert_array_equal(distances, counted)


@given(tables())
def test_a_code_lies_at_distance_zero_from_itself(drawn: tuple[Signs]) -> None:
    (table,) = drawn
    codes = Codes.pack(table, version=0)
    assert (np.diagonal(hamming(codes, codes)) == 0).all()
    np.testing.assert_array_equal(hamming(codes, codes), hamming(codes, codes).T)


@given(tables(2), st.randoms())
def test_asymmetric_is_minus_the_sum_over_active_bits(
    pair: tuple[Signs, Signs], chance: random.Random
) -> None:
    shape, entries = pair[0].shape, pair[1]
    # eighths, so that every order of summation gives the same float
    eighths = [chance.randint(-40, 40) for _ in range(pair[0].size)]
    margins = np.reshape(np.array(eighths, np.float32) / 8, shape).astype(np.float32)
    expected = [
        [-sum(float(m) * int(c) for m, c in zip(row, code, strict=True)) for code in entries]
        for row in margins
    ]
    distances = asymmetric(margins, Codes.pack(entries, 0))
    assert distances.dtype == np.float32
    np.testing.assert_array_equal(distances, np.reshape(expected, (len(margins), len(entries))))


@given(tables(2))
def test_asymmetric_of_signs_ranks_fully_active_codes_as_hamming_does(
    pair: tuple[Signs, Signs],
) -> None:
    queries, entries = (np.where(table > 0, 1, -1).astype(np.int8) for table in pair)
    width = queries.shape[1]
    scores = asymmetric(queries.astype(np.float32), Codes.pack(entries, 0))
    counts = hamming(Codes.pack(queries, 0), Codes.pack(entries, 0))
    np.testing.assert_array_equal(scores, 2 * counts - width)


def test_codes_of_another_width_are_refused_even_within_one_word() -> None:
    narrow = Codes.pack(np.ones((1, 5), np.int8), 0)
    wide = Codes.pack(np.ones((1, 6), np.int8), 0)
    for queries, entries in ((narrow, wide), (wide, narrow)):
        with pytest.raises(DimensionError, match="bits") as caught:
            hamming(queries, entries)
        assert (caught.value.expected, caught.value.got) == (entries.width, queries.width)
    with pytest.raises(DimensionError, match="bits"):
        asymmetric(np.ones((1, 5), np.float32), wide)


@given(tables())
def test_bytes_hold_function_8j_plus_t_in_bit_t_of_byte_j(drawn: tuple[Signs]) -> None:
    (table,) = drawn
    taken = Codes.pack(table, 0).to_bytes()
    assert taken.shape == (len(table), -(-table.shape[1] // 8))
    assert taken.dtype == np.uint8
    assert taken.flags.c_contiguous
    bits = np.unpackbits(taken, axis=1, bitorder="little")
    np.testing.assert_array_equal(bits[:, : table.shape[1]], table > 0)
    assert not bits[:, table.shape[1] :].any()


@given(tables(2))
def test_faiss_finds_the_same_distances_between_bytes(pair: tuple[Signs, Signs]) -> None:
    queries, entries = (Codes.pack(np.where(table > 0, 1, -1).astype(np.int8), 0) for table in pair)
    if not len(queries) or not len(entries):
        return
    index = faiss.IndexBinaryFlat(8 * entries.to_bytes().shape[1])
    index.add(entries.to_bytes())
    distances, ids = index.search(queries.to_bytes(), len(entries))
    ours = hamming(queries, entries)
    np.testing.assert_array_equal(distances, np.take_along_axis(ours, ids, axis=1))
