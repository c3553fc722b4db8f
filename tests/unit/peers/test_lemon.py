"""LEMON: codes of labels from sums that stand for all old rows, and a ridge fit to all codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import load_hasher
from everhash.errors import ModelFileError, OptionError
from everhash.peers.online.lemon import LEMON, ROUNDS, rotation
from everhash.peers.ridge_sums import balanced
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
ALPHA, BETA, GAMMA, XI = 10_000.0, 10_000.0, 0.1, 1.0
N_LABELS = 7


class Direct:
    """The method as it is written: all rows are kept, and S is made of all pairs of them."""

    def __init__(self, bits: int) -> None:
        self.X: Doubles = np.empty((0, FEATURES))
        self.Y: Doubles = np.empty((0, N_LABELS))
        self.B: Doubles = np.empty((0, bits))
        self.V: Doubles = np.empty((0, bits))

    def learn(self, X: Doubles, labels: NDArray[np.int64], drawn: Doubles) -> None:
        bits, Y = drawn.shape[1], np.eye(N_LABELS)[labels]
        all_Y = np.vstack([self.Y, Y])
        S = 2 * Y @ all_Y.T - 1
        B = np.linalg.pinv(Y) @ drawn  # rows of a label start with the mean of its draws
        B, V, R = Y @ B, np.zeros_like(drawn), rotation(self.B.T @ self.V)
        for _ in range(ROUNDS):
            all_V = np.vstack([self.V, V])
            P = np.linalg.solve(all_V.T @ all_V + GAMMA * np.eye(bits), all_V.T @ all_Y)
            wanted = B @ R.T + BETA * Y @ P.T + ALPHA * bits * S @ np.vstack([self.B, B])
            V = balanced(wanted, np.ones(len(X)))
            R = rotation(self.B.T @ self.V + B.T @ V)
            B = np.sign(ALPHA * bits * S @ np.vstack([self.V, V]) + V @ R)
        self.X, self.Y = np.vstack([self.X, X]), all_Y
        self.B, self.V = np.vstack([self.B, B]), np.vstack([self.V, V])


def test_sums_give_what_all_old_rows_give() -> None:
    hasher = LEMON(bits=6, batch=BATCH, center=None, random_state=SEED).begin(FEATURES)
    direct = Direct(6)
    for batch, (X, labels) in enumerate(batches_of_rows(8)):
        hasher.partial_fit(X, labels)
        numbers = np.array(hasher.numbers(labels.tolist()))
        direct.learn(X.astype(np.float64), numbers, drawn_codes(batch, 6))
        known = direct.Y[:, : len(hasher.counts_)]
        np.testing.assert_array_equal(hasher.codes_, known.T @ direct.B)
        np.testing.assert_allclose(hasher.latents_, known.T @ direct.V, atol=1e-6)
        np.testing.assert_allclose(hasher.moment_, direct.V.T @ direct.V, atol=1e-6)
        np.testing.assert_allclose(hasher.cross_, direct.B.T @ direct.V, atol=1e-6)
        W = ridge_fit(direct.X, direct.B, XI)
        np.testing.assert_allclose(hasher.functions_, W, rtol=1e-4, atol=1e-6)
    assert len(hasher.labels_) == 6


def test_labels_of_a_first_batch_get_codes_apart(digits: Stream) -> None:
    hasher = LEMON(bits=16, batch=200).partial_fit(digits.X[:200], digits.y[:200])
    codes = np.sign(hasher.codes_)
    np.testing.assert_array_equal(hasher.codes_, codes * hasher.counts_[:, None])
    apart = (codes[:, None] != codes).sum(axis=2)[np.triu_indices(10, 1)]
    assert apart.min() >= 3
    assert 6.5 < apart.mean() < 10


def test_rows_of_one_label_agree_where_labels_can_be_told_apart() -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(400) % 8)
    X = np.eye(20)[y] + 0.02 * rng.standard_normal((400, 20))
    hasher = LEMON(bits=24, batch=100).partial_fit(X[:300], y[:300])
    bits = hasher.transform(X[300:])
    own = np.sign(hasher.codes_[hasher.numbers(y[300:].tolist())])
    assert (bits == own).mean() > 0.97


def test_a_label_keeps_its_code_when_others_come(digits: Stream) -> None:
    old, new = digits.y < 6, digits.y >= 6
    hasher = LEMON(bits=32, batch=100).partial_fit(digits.X[old][:600], digits.y[old][:600])
    before, counts = np.sign(hasher.codes_), hasher.counts_.copy()
    hasher.partial_fit(digits.X[new][:400], digits.y[new][:400])
    np.testing.assert_array_equal(np.sign(hasher.codes_[:6]), before)
    np.testing.assert_array_equal(hasher.counts_[:6], counts)
    hasher.partial_fit(digits.X[:600], digits.y[:600])
    assert (np.sign(hasher.codes_[:6]) == before).mean() > 0.95
    assert len(hasher.labels_) == len(hasher.counts_) == 10


def test_a_batch_of_one_label_gives_it_one_code(digits: Stream) -> None:
    ones, twos = (digits.X[digits.y == label][:100] for label in (1, 2))
    hasher = LEMON(bits=16, batch=100).partial_fit(ones, ["one"] * 100)
    assert (np.abs(hasher.codes_) == 100).all()
    hasher.partial_fit(twos, ["two"] * 100)
    assert (np.abs(hasher.codes_) == 100).all()
    assert (hasher.codes_[0] != hasher.codes_[1]).any()


def test_how_much_the_embedding_counts_hardly_matters(digits: Stream) -> None:
    """Its term is one of n x bits beside that of the pairs; see the file's beginning."""
    least, most = (LEMON(bits=16, batch=200, embedding=e) for e in (1e-6, 1e5))
    for hasher in (least, most):
        hasher.partial_fit(digits.X[:1000], digits.y[:1000])
    np.testing.assert_array_equal(np.sign(least.codes_), np.sign(most.codes_))


def test_memory_does_not_grow_with_the_stream(digits: Stream) -> None:
    hasher = LEMON(bits=8, batch=100).partial_fit(digits.X[:300], digits.y[:300])
    before = len(hasher.to_bytes())
    hasher.partial_fit(digits.X[300:1500], digits.y[300:1500])
    assert abs(len(hasher.to_bytes()) - before) < 100


def test_rows_wait_for_a_full_batch(digits: Stream) -> None:
    hasher = LEMON(bits=8, batch=100, center=None).partial_fit(digits.X[:99], digits.y[:99])
    assert hasher.versions_.tolist() == [0] * 8
    hasher.partial_fit(digits.X[99:100], digits.y[99:100])
    assert hasher.versions_.tolist() == [1] * 8


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = LEMON(bits=32, batch=200).partial_fit(digits.X[:LEARNED], digits.y[:LEARNED])
    assert mapped_score(hasher, digits) > 0.7


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"bits": 5000},
        {"batch": 0},
        {"alike": 0},
        {"embedding": -1},
        {"damping": float("nan")},
        {"ridge": "much"},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        LEMON(**options).partial_fit(ROWS, [0, 1, 0, 1])


FORGED = {
    "more rows are waiting": ("waited_", np.array([2], np.int64)),
    "unknown labels": ("waiting_labels_", np.array([7, 0], np.int64)),
    "do not fit 3 labels": ("counts_", np.array([2, 1, 1], np.int64)),
    "differ in their rows": ("counts_", np.array([2, 3], np.int64)),
    "differ in their batches": ("updates_", np.array([2, 3], np.int64)),
    "codes_ is larger": ("codes_", np.full((2, 2), 3.0)),
    "latents_ is larger": ("latents_", np.full((2, 2), 9.0)),
    "cross_ is larger": ("cross_", np.full((2, 2), 9.0)),
    "gram_ is larger": ("gram_", 9 * np.eye(2)),
    "aims_ is larger": ("aims_", np.full((2, 2), -9.0)),
    "not one of rows": ("gram_", -3 * np.eye(2)),
    "is not one of rows": ("moment_", -np.ones((2, 2))),
}


@pytest.mark.parametrize(("problem", "forged"), FORGED.items(), ids=FORGED)
def test_a_forged_file_is_refused(problem: str, forged: tuple[str, Any], tmp_path: Path) -> None:
    hasher = LEMON(bits=2, batch=2, center=None).partial_fit(ROWS, [0, 1, 0, 1])
    hasher.partial_fit(ROWS[:1], [0])  # one row waits
    write_forged(tmp_path / "m", hasher, *forged)
    with pytest.raises(ModelFileError, match=problem):
        load_hasher(tmp_path / "m")
