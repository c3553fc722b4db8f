"""OASIS: codes alike as labels' vectors are, from sums of one size for any number of labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import load_hasher
from everhash.errors import ModelFileError, OptionError
from everhash.peers.online.oasis import OASIS, ROUNDS
from everhash.peers.ridge_sums import balanced
from everhash.peers.words import random_word
from tests.conftest import Stream
from tests.unit.peers.scoring import LEARNED, mapped_score
from tests.unit.peers.sums_of_codes import (
    BATCH,
    FEATURES,
    SEED,
    batches_of_rows,
    drawn_codes,
    ridge_fit,
    write_forged,
)

Doubles = NDArray[np.float64]
ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)
ALPHA, BETA, GAMMA, THETA, DELTA = 10.0, 1.0, 1.0, 1.0, 1.0
VECTOR = 20


class Direct:
    """The method as it is written: all rows are kept, and S is made of all pairs of them."""

    def __init__(self, bits: int) -> None:
        self.X: Doubles = np.empty((0, FEATURES))
        self.G: Doubles = np.empty((0, VECTOR))
        self.B: Doubles = np.empty((0, bits))
        self.V: Doubles = np.empty((0, bits))

    def learn(self, X: Doubles, labels: NDArray[np.int64], B: Doubles) -> None:
        bits = B.shape[1]
        words = [random_word(SEED, number, VECTOR) for number in labels.tolist()]
        G = np.array(words) / np.sqrt(VECTOR)
        all_X, all_G = np.vstack([self.X, X]), np.vstack([self.G, G])
        S = G @ all_G.T
        same = labels[:, None] == labels
        V = np.zeros_like(B)
        for _ in range(ROUNDS):
            all_V = np.vstack([self.V, V])
            U = np.linalg.solve(all_V.T @ all_V + THETA * np.eye(bits), all_V.T @ all_G).T
            means = same @ B / same.sum(axis=1, keepdims=True)
            wanted = ALPHA * bits * S @ np.vstack([self.B, B]) + BETA * G @ U + means
            V = balanced(wanted, np.ones(len(X)))
            W = ridge_fit(all_X, np.vstack([self.B, B]), DELTA)
            B = np.sign(ALPHA * bits * S @ np.vstack([self.V, V]) + V + GAMMA * X @ W.T)
        self.X, self.G = all_X, all_G
        self.B, self.V = np.vstack([self.B, B]), np.vstack([self.V, V])


def test_sums_give_what_all_old_rows_give() -> None:
    hasher = OASIS(bits=6, batch=BATCH, vector=VECTOR, center=None, random_state=SEED)
    hasher.begin(FEATURES)
    direct = Direct(6)
    for batch, (X, labels) in enumerate(batches_of_rows(8)):
        hasher.partial_fit(X, labels)
        numbers = np.array(hasher.numbers(labels.tolist()))
        direct.learn(X.astype(np.float64), numbers, drawn_codes(batch, 6))
        np.testing.assert_allclose(hasher.codes_, direct.G.T @ direct.B, atol=1e-9)
        np.testing.assert_allclose(hasher.latents_, direct.G.T @ direct.V, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(hasher.moment_, direct.V.T @ direct.V, rtol=1e-6, atol=1e-6)
        W = ridge_fit(direct.X, direct.B, DELTA)
        np.testing.assert_allclose(hasher.functions_, W, rtol=1e-4, atol=1e-6)
    assert len(hasher.labels_) == 6


def label_codes(hasher: OASIS, n_labels: int) -> Doubles:
    """Return the codes that the sums hold for each label's vector."""
    vector, seed = hasher.get_params()["vector"], hasher.get_params()["random_state"]
    words = [random_word(seed, number, vector) for number in range(n_labels)]
    return np.sign(np.array(words) @ hasher.codes_)


def test_rows_of_one_label_agree_where_labels_can_be_told_apart() -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(400) % 8)
    X = np.eye(20)[y] + 0.02 * rng.standard_normal((400, 20))
    hasher = OASIS(bits=24, batch=100).partial_fit(X[:300], y[:300])
    codes = label_codes(hasher, 8)
    assert len(np.unique(codes, axis=0)) == 8
    own = codes[hasher.numbers(y[300:].tolist())]
    assert (hasher.transform(X[300:]) == own).mean() > 0.95


def test_new_labels_leave_old_ones_their_codes(digits: Stream) -> None:
    old, new = digits.y < 6, digits.y >= 6
    hasher = OASIS(bits=32, batch=100).partial_fit(digits.X[old][:600], digits.y[old][:600])
    before = label_codes(hasher, 6)
    hasher.partial_fit(digits.X[new][:400], digits.y[new][:400])
    assert (label_codes(hasher, 6) == before).mean() > 0.95
    assert len(np.unique(label_codes(hasher, 10), axis=0)) == 10


def test_neither_rows_nor_labels_widen_the_sums(digits: Stream) -> None:
    X = digits.X[:1000]
    few, many = (OASIS(bits=8, batch=100, vector=50).partial_fit(X, y) for y in labels_of(1000))
    assert few.codes_.shape == many.codes_.shape == (50, 8)
    a_label = (len(many.to_bytes()) - len(few.to_bytes())) / 296
    assert a_label < 8 + 20  # its word, and its name


def labels_of(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(n) % 4, np.arange(n) % 300


def test_a_batch_of_one_label_gives_it_one_code(digits: Stream) -> None:
    ones = digits.X[digits.y == 1][:100]
    hasher = OASIS(bits=16, batch=100).partial_fit(ones, ["one"] * 100)
    np.testing.assert_allclose(np.abs(hasher.codes_), 100 / np.sqrt(300))


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = OASIS(bits=32, batch=200).partial_fit(digits.X[:LEARNED], digits.y[:LEARNED])
    assert mapped_score(hasher, digits) > 0.7


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"batch": 10_001},
        {"vector": 0},
        {"vector": 5000},
        {"alike": 0},
        {"embedding": -1},
        {"mapping": "no"},
        {"damping": float("nan")},
        {"ridge": float("inf")},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        OASIS(**options).partial_fit(ROWS, [0, 1, 0, 1])


FORGED = {
    "more rows are waiting": ("waited_", np.array([2], np.int64)),
    "differ in their batches": ("updates_", np.array([2, 3], np.int64)),
    "codes_ is larger": ("codes_", np.full((3, 2), 9.0)),
    "latents_ is larger": ("latents_", np.full((3, 2), 9.0)),
    "gram_ is larger": ("gram_", 9 * np.eye(2)),
    "aims_ is larger": ("aims_", np.full((2, 2), -9.0)),
    "not one of rows": ("gram_", -3 * np.eye(2)),
    "is not one of rows": ("moment_", -2 * np.ones((2, 2))),
}


@pytest.mark.parametrize(("problem", "forged"), FORGED.items(), ids=FORGED)
def test_a_forged_file_is_refused(problem: str, forged: tuple[str, Any], tmp_path: Path) -> None:
    hasher = OASIS(bits=2, batch=2, vector=3, center=None).partial_fit(ROWS, [0, 1, 0, 1])
    hasher.partial_fit(ROWS[:1], [0])  # one row waits
    write_forged(tmp_path / "m", hasher, *forged)
    with pytest.raises(ModelFileError, match=problem):
        load_hasher(tmp_path / "m")
