"""FastHash: cuts that choose the best bits, and boosted trees that learn them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash import load_hasher
from everhash.errors import LimitError, OptionError
from everhash.metrics import mean_average_precision
from everhash.peers.batch import fasthash
from everhash.peers.batch.fasthash import Couplings, FastHash, blocks_of, cut, heaviest, infer
from tests.conftest import Stream

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def energy(likes: np.ndarray, unary: np.ndarray, z: np.ndarray) -> int:
    return int(unary @ z - (z @ likes @ z) // 2)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 12), reach=st.integers(1, 60))
def test_a_cut_is_as_good_as_the_best_of_all_codes(seed: int, m: int, reach: int) -> None:
    rng = np.random.default_rng(seed)
    likes = np.triu(rng.integers(0, 10, (m, m)), 1)
    likes += likes.T
    unary = rng.integers(-reach, reach + 1, m)
    every = 1 - 2 * (np.arange(2**m)[:, None] >> np.arange(m) & 1)
    best = min(every @ unary - ((every @ likes) * every).sum(axis=1) // 2)
    assert energy(likes, unary, cut(likes, unary)) == best


def test_what_a_row_asks_for_may_be_beyond_32_bits() -> None:
    likes = np.array([[0, 3], [3, 0]])
    assert cut(likes, np.array([2**40, 1])).tolist() == [-1, -1]
    assert cut(likes, np.array([-(2**40), 9])).tolist() == [1, -1]


def test_couplings_by_hand() -> None:
    # rows 0, 1 | 2, 3 have one label each; two bits are planned. Before the first,
    # a is -2 for a pair of one label, +2 for others
    couplings = Couplings(np.array([7, 7, 4, 4]), 2)
    every, z = np.arange(4), np.array([1, 1, 1, -1])
    np.testing.assert_array_equal(couplings.times(z, every), [-2, -2, 2 + 4, -2 + 4])
    np.testing.assert_array_equal(couplings.likes(np.array([0, 1])), [[0, 2], [2, 0]])
    # the first bit told row 3 wrong: c_i c_j is added to a
    couplings.add(np.array([1, 1, -1, 1]))
    a = np.array([[0, -1, 1, 3], [-1, 0, 1, 3], [1, 1, 0, -3], [3, 3, -3, 0]])
    np.testing.assert_array_equal(couplings.times(z, every), a @ z)
    np.testing.assert_array_equal(couplings.likes(np.array([2, 3])), [[0, 3], [3, 0]])


def test_first_bits_by_hand() -> None:
    # from +1 everywhere, whichever label comes first asks for the other sign: all of it, as its
    # rows like each other. The other label then asks for +1, and nobody for anything else
    z = infer(Couplings(np.array([7, 7, 4, 4]), 2), np.random.default_rng(0))
    assert sorted([z[:2].tolist(), z[2:].tolist()]) == [[-1, -1], [1, 1]]


def test_blocks_hold_every_row_once_and_one_label_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fasthash, "BLOCK", 7)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 90)
    blocks = blocks_of(labels, rng)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(90))
    assert all(len(set(labels[block])) == 1 and len(block) <= 7 for block in blocks)


def test_every_turn_of_a_block_lowers_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fasthash, "BLOCK", 8)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 60)
    C = np.where(rng.random((60, 5)) < 0.3, rng.choice([-1, 1], (60, 5)), 1)
    couplings = Couplings(labels, 8)
    for code in C.T:
        couplings.add(code)
    y = np.where(labels[:, None] == labels, 1, -1)

    def loss(z: np.ndarray) -> int:
        # the loss of KSH, over all pairs
        return int(((8 * y - C @ C.T - np.outer(z, z)) ** 2).sum())

    z = rng.choice([-1, 1], 60)
    for block in blocks_of(labels, rng) * 2:
        before, likes = loss(z), couplings.likes(block)
        z[block] = cut(likes, couplings.times(z, block) + likes @ z[block])
        assert loss(z) <= before
    assert loss(infer(couplings, rng)) < loss(np.ones(60, np.int64))


def test_trees_are_grown_on_the_fewest_rows_with_most_of_the_weight() -> None:
    # .5 and .3 are .8, with .15 they are .95
    assert heaviest(np.array([0.02, 0.5, 0.15, 0.3, 0.03])).tolist() == [1, 2, 3]
    assert heaviest(np.full(4, 0.25)).tolist() == [0, 1, 2, 3]


def test_one_round_of_boosting_by_hand() -> None:
    # measured from their mean (.2, .6) the rows are (.8, -.6), (-.2, .4), (.4, .2), (-1, 0), at
    # unit length (.8, -.6), (-.45, .89), (.89, .45), (-1, 0). By the first number their labels read
    # b, a, a, b, by the second a, b, b, a: one question always gets one row of four wrong.
    # So its vote weighs half of ln(3/4 : 1/4), times the rate
    hasher = FastHash(bits=1, trees=1, depth=1, rate=0.5).fit(ROWS, ["a", "a", "b", "b"])
    leaves = hasher.numbers_[hasher.rights_ == 0]
    np.testing.assert_allclose(np.sort(leaves), np.array([-1, 1]) * math.log(3) / 4, rtol=1e-6)


def test_boosting_learns_what_one_tree_cannot(digits: Stream) -> None:
    X, odd = digits.X[:400], digits.y[:400] % 2

    def right(trees: int) -> float:
        codes = FastHash(bits=1, trees=trees, depth=2, rate=0.5).fit(X, odd).transform(X)[:, 0]
        agree = float(np.mean((codes > 0) == odd))
        return max(agree, 1 - agree)

    assert right(60) > right(1) + 0.1


@pytest.fixture(scope="module")
def hasher(digits: Stream) -> FastHash:
    return FastHash(bits=8, trees=20).fit(digits.X[:500], digits.y[:500])


def test_unseen_rows_of_one_label_are_found(hasher: FastHash, digits: Stream) -> None:
    codes, y = hasher.transform(digits.X[500:]).astype(np.int64), digits.y[500:]
    assert mean_average_precision(-codes @ codes.T, y[:, None] == y) > 0.6


def test_labels_are_names_and_have_no_codewords(hasher: FastHash) -> None:
    assert not hasher.codewords_.any()


def test_a_file_goes_on_exactly(hasher: FastHash, tmp_path: Path, digits: Stream) -> None:
    hasher.save(tmp_path / "model")
    read = load_hasher(tmp_path / "model")
    assert read.to_bytes() == hasher.to_bytes()
    np.testing.assert_array_equal(read.margins(digits.X), hasher.margins(digits.X))


@pytest.mark.parametrize("rows", [ROWS, np.ones((4, 2), np.float32)], ids=["four", "all alike"])
@pytest.mark.parametrize("labels", [[0, 1, 0, 1], ["a"] * 4], ids=["two labels", "one label"])
def test_little_to_learn_from_breaks_nothing(rows: np.ndarray, labels: list[Any]) -> None:
    margins = FastHash(bits=3, trees=3).fit(rows, labels).margins(ROWS)
    assert np.isfinite(margins).all()
    assert margins.shape == (4, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"trees": 0},
        {"trees": 10**6},
        {"depth": 0},
        {"depth": 100},
        {"features": 0},
        {"features": 0.5},
        {"rate": 0},
        {"rate": -1.0},
        {"bits": 0},
        {"random_state": -1},
    ],
    ids=str,
)
def test_bad_options_are_typed_errors(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        FastHash(**options).fit(ROWS, [0, 1, 0, 1])


def test_more_bits_than_supported_are_a_limit() -> None:
    with pytest.raises(LimitError):
        FastHash(bits=10**9).fit(ROWS, [0, 1, 0, 1])
