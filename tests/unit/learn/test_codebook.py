"""Words for labels: distinct while they last, far apart where promised, the same for a seed."""

from __future__ import annotations

import itertools
import time
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.errors import CodebookWarning, OptionError
from everhash.learn.codebook import KINDS, Codebook, as_words
from everhash.learn.hasher import OnlineHasher

Signs = NDArray[np.int8]
OWN = np.array([[1, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]], np.int8)


def draw(book: Codebook, count: int, first: int = 0) -> Signs:
    return np.array([book.draw(number) for number in range(first, first + count)])


def distances(words: Signs) -> list[int]:
    return [int((a != b).sum()) for a, b in itertools.combinations(words, 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", range(1, 7))
def test_a_cycle_uses_every_word_once_and_then_repeats(kind: str, bits: int) -> None:
    for seed in range(3):
        book = Codebook(kind, bits=bits, seed=seed)
        words = []
        for number in range(2**bits):
            assert not book.exhausted
            words.append(book.draw(number))
        assert book.exhausted
        assert len(np.unique(words, axis=0)) == 2**bits
        for number in range(2**bits, 2**bits + 3):
            word = book.draw(number)
            assert word.shape == (bits,)
            assert np.isin(word, (-1, 1)).all()
            assert book.exhausted


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_cycle_starts_with_every_word_free(kind: str) -> None:
    book = Codebook(kind, bits=2, seed=0)
    draw(book, 6)
    book.start_cycle(np.empty((0, 2), np.int8))
    assert not book.exhausted
    assert len(np.unique(draw(book, 4, first=6), axis=0)) == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [3, 8, 20, 64, 100])
def test_the_same_seed_gives_the_same_words_and_another_seed_others(kind: str, bits: int) -> None:
    words = draw(Codebook(kind, bits=bits, seed=5), 8)
    assert words.dtype == np.int8
    assert len(np.unique(words, axis=0)) == 8
    np.testing.assert_array_equal(words, draw(Codebook(kind, bits=bits, seed=5), 8))
    assert any(
        not np.array_equal(words, draw(Codebook(kind, bits=bits, seed=seed), 8))
        for seed in range(4)
    )


@pytest.mark.parametrize("kind", [*KINDS, OWN])
def test_a_cycle_goes_on_from_the_words_already_taken(kind: Any) -> None:
    whole = draw(Codebook(kind, bits=3, seed=1), 12)
    resumed = Codebook(kind, bits=3, seed=1)
    resumed.start_cycle(whole[:5])
    np.testing.assert_array_equal(draw(resumed, 7, first=5), whole[5:])


def test_maxmin_words_lie_farther_apart_than_random_ones() -> None:
    nearest = {
        kind: [min(distances(draw(Codebook(kind, bits=32, seed=seed), 20))) for seed in range(15)]
        for kind in ("maxmin", "random")
    }
    assert np.mean(nearest["maxmin"]) >= np.mean(nearest["random"]) + 2
    assert min(nearest["maxmin"]) >= max(nearest["random"])


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32, 64])
def test_hadamard_words_differ_in_half_their_places_or_in_all(bits: int) -> None:
    words = draw(Codebook("hadamard", bits=bits, seed=3), 2 * bits)
    assert set(distances(words)) <= {bits / 2, bits}
    assert (words.sum(axis=0) == 0).all()


@pytest.mark.parametrize("bits", [3, 5, 7, 12, 33, 48])
def test_hadamard_words_cut_to_any_width_stay_distinct(bits: int) -> None:
    whole = 1 << (bits - 1).bit_length()
    words = draw(Codebook("hadamard", bits=bits, seed=0), 2 * whole)
    assert min(distances(words)) >= whole // 2 - (whole - bits)
    assert len(np.unique(words, axis=0)) == 2 * whole


def test_own_words_are_handed_out_in_order_and_start_again_with_each_cycle() -> None:
    book = Codebook(OWN, bits=3, seed=0)
    for _ in range(2):
        book.start_cycle(np.empty((0, 3), np.int8))
        spent = []
        for word in OWN:
            spent.append(book.exhausted)
            np.testing.assert_array_equal(book.draw(0), word)
        assert [*spent, book.exhausted] == [False, False, False, False, True]
        np.testing.assert_array_equal(draw(book, 5), OWN[[0, 1, 2, 3, 0]])


def test_own_words_do_not_change_with_the_array_they_came_from() -> None:
    mine = OWN.copy()
    book = Codebook(mine, bits=3, seed=0)
    mine[:] = 1
    np.testing.assert_array_equal(draw(book, 4), OWN)


@pytest.mark.parametrize("dtype", ["i1", "i8", "f4", "f8"])
def test_own_words_may_be_any_real_numbers(dtype: str) -> None:
    words = as_words(OWN.astype(dtype), 3)
    assert words.dtype == np.int8
    np.testing.assert_array_equal(words, OWN)
    np.testing.assert_array_equal(as_words(OWN.tolist(), 3), OWN)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([1, -1, 1], "shape"),
        ([[1, -1]], "shape"),
        ([[1, -1, 1, 1]], "shape"),
        (np.empty((0, 3)), "shape"),
        (np.ones((1, 1, 3)), "shape"),
        (None, "shape"),
        (7, "shape"),
        ([[1, -1, 1], [1, -1]], "table of words"),
        ([[1, 0, 1]], "-1 and \\+1 only"),
        ([[1, 2, 1]], "-1 and \\+1 only"),
        ([[1, np.nan, 1]], "-1 and \\+1 only"),
        ([[1, -0.5, 1]], "-1 and \\+1 only"),
        (np.array([[1, 255, 1]], np.uint8), "-1 and \\+1 only"),
        ([["1", "-1", "1"]], "-1 and \\+1 only"),
        ([[1 + 0j, -1, 1]], "-1 and \\+1 only"),
        (np.array([[1, -1, 1]], object), "-1 and \\+1 only"),
        ([[1, -1, 1], [1, 1, 1], [1, -1, 1]], "no word twice"),
    ],
)
def test_a_bad_codebook_is_an_option_error(words: Any, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        as_words(words, 3)
    with pytest.raises(OptionError, match=says):
        OnlineHasher(bits=3, codebook=words).partial_fit(np.eye(2), ["a", "b"])


# Through the hasher


def rows(n: int, d: int = 4) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)


def state(hasher: OnlineHasher) -> tuple[Any, ...]:
    return (
        hasher.labels_,
        hasher.codewords_.tolist(),
        hasher.versions_.tolist(),
        hasher.margins(rows(5)).tolist(),
    )


@pytest.mark.parametrize("codebook", [*KINDS, OWN[:, :2][[0, 1, 2, 3]]])
def test_running_out_of_words_warns_and_names_the_first_label(codebook: Any) -> None:
    hasher = OnlineHasher(bits=2, labels_per_cycle=None, codebook=codebook)
    hasher.partial_fit(rows(4), list("abcd"))
    with pytest.warns(CodebookWarning, match="2 labels, 'e' first"):
        hasher.partial_fit(rows(3), list("eaf"))
    assert hasher.labels_ == list("abcdef")
    assert len(np.unique(hasher.codewords_[:4], axis=0)) == 4
    hasher.partial_fit(rows(2), list("ab"))


def test_a_full_cycle_does_not_warn() -> None:
    hasher = OnlineHasher(bits=2, labels_per_cycle=4).partial_fit(rows(12), list("abcdefghijkl"))
    assert hasher.n_cycles_ == 3
    for cycle in range(3):
        words = hasher.codewords_[4 * cycle : 4 * cycle + 4, 2 * cycle : 2 * cycle + 2]
        assert len(np.unique(words, axis=0)) == 4


def test_own_words_restart_with_each_cycle_of_the_hasher() -> None:
    hasher = OnlineHasher(bits=3, labels_per_cycle=3, codebook=OWN).partial_fit(
        rows(5), [5, 6, 7, 8, 9]
    )
    np.testing.assert_array_equal(hasher.codewords_[:3, :3], OWN[:3])
    np.testing.assert_array_equal(hasher.codewords_[3:, 3:], OWN[:2])


def test_a_warning_turned_into_an_error_leaves_the_batch_fully_learned() -> None:
    quiet, strict = (OnlineHasher(bits=1, labels_per_cycle=None) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodebookWarning)
        quiet.partial_fit(rows(8), list("abcdabcd"))
    with pytest.raises(CodebookWarning):
        strict.partial_fit(rows(8), list("abcdabcd"))
    assert state(strict) == state(quiet)
    for hasher in (quiet, strict):
        hasher.partial_fit(rows(8), list("aabbccdd"))
    assert state(strict) == state(quiet)


def test_a_warning_turned_into_an_error_leaves_fit_undone() -> None:
    hasher = OnlineHasher(bits=1, labels_per_cycle=None).partial_fit(rows(4), list("abab"))
    before = state(hasher)
    with pytest.raises(CodebookWarning):
        hasher.fit(rows(8), list("wxyzwxyz"))
    assert state(hasher) == before
    assert state(hasher.fit(rows(4), list("abab"))) == before


@pytest.mark.parametrize("codebook", KINDS)
def test_300_labels_at_8_bits_in_one_cycle_finish_at_once(codebook: str) -> None:
    hasher = OnlineHasher(bits=8, labels_per_cycle=None, codebook=codebook)
    start = time.thread_time()
    with pytest.warns(CodebookWarning, match="44 labels, 256 first"):
        hasher.partial_fit(rows(300), list(range(300)))
    assert time.thread_time() - start < 2
    assert len(np.unique(hasher.codewords_[:256], axis=0)) == 256
