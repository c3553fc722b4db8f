"""BSODH: codes bit by bit, from sums that stand for all old rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import load_hasher
from everhash.errors import ModelFileError, OptionError
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.online.bsodh import BSODH, ridge_fit
from tests.conftest import Stream

Doubles = NDArray[np.float64]
ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)
ALIKE, UNLIKE, SIGMA, RIDGE = 1.2, 0.2, 0.5, 0.6


def signs(values: Doubles) -> Doubles:
    return np.where(values >= 0, 1.0, -1.0)


class Direct:
    """The method as it is written: every code and label is kept, and S is made of all pairs."""

    def __init__(self, W: NDArray[np.float32]) -> None:
        self.W = W.astype(np.float64).T
        self.B: Doubles = np.empty((W.shape[0], 0))
        self.labels: NDArray[np.int64] = np.empty(0, np.int64)

    def learn(self, X: Doubles, labels: NDArray[np.int64]) -> None:
        bits, Bs = self.W.shape[1], signs(self.W.T @ X.T)
        if len(self.labels) > 0:
            for column, label in enumerate(labels):
                same = np.flatnonzero(self.labels == label)
                Bs[:, column] = self.B[:, same[0]] if len(same) else Bs[:, column]
            S = np.where(labels[:, None] == self.labels, ALIKE, -UNLIKE)
            P = bits * self.B @ S.T + SIGMA * self.W.T @ X.T
            for r in range(bits):
                rest = np.arange(bits) != r
                Bs[r] = signs(P[r] - self.B[r] @ self.B[rest].T @ Bs[rest])
            self._check_that_no_flip_of_the_last_bit_helps(X, Bs, S)
            renewed = signs(Bs @ S)
            for label in set(self.labels.tolist()) - set(labels.tolist()):
                own = self.labels == label
                renewed[:, own] = signs(self.B[:, own].sum(axis=1))[:, None]
            self.B = renewed
            A = SIGMA * X.T @ X + RIDGE * np.eye(X.shape[1])
            self.W = SIGMA * np.linalg.inv(A) @ X.T @ Bs.T
        self.B, self.labels = np.hstack([self.B, Bs]), np.append(self.labels, labels)

    def _check_that_no_flip_of_the_last_bit_helps(
        self, X: Doubles, Bs: Doubles, S: Doubles
    ) -> None:
        def cost(Bs: Doubles) -> Doubles:
            apart = ((Bs.T @ self.B - len(Bs) * S) ** 2).sum(axis=1)
            lost: Doubles = apart + SIGMA * ((self.W.T @ X.T - Bs) ** 2).sum(axis=0)
            return lost

        flipped = Bs.copy()
        flipped[-1] *= -1
        assert (cost(Bs) <= cost(flipped) + 1e-9).all()


def test_two_batches_worked_by_hand() -> None:
    hasher = BSODH(bits=2, batch=2, center=None).begin(2)
    hasher.functions_[:] = [[1, 0], [0, 1]]
    hasher.partial_fit(ROWS[:2], ["a", "b"])
    # margins (1, 0) and (0, 1): both codes are (1, 1), and B_e B_e^T = [[2, 2], [2, 2]]
    assert hasher.moment_.tolist() == [[2, 2], [2, 2]]
    assert hasher.updates_.tolist() == [0, 0]

    hasher.partial_fit(ROWS[2:], ["a", "b"])
    # P = 2 (1.2 (1, 1) - .2 (1, 1)) + .5 margins: (2.3, 2.4) for (.6, .8), (1.6, 2.3) for (-.8, .6)
    # row 3: bit 1 is 2.3 - 2 (1) > 0, bit 2 is 2.4 - 2 (1) > 0:   code ( 1, 1)
    # row 4: bit 1 is 1.6 - 2 (1) < 0, bit 2 is 2.3 - 2 (-1) > 0:  code (-1, 1)
    # old a: 1.2 (1, 1) - .2 (-1, 1) = (1.4, 1); old b: 1.2 (-1, 1) - .2 (1, 1) = (-1.4, 1)
    assert hasher.sums_.tolist() == [[2, 2], [-2, 2]]
    assert hasher.moment_.tolist() == [[4, 0], [0, 4]]
    assert hasher.counts_.tolist() == [2, 2]
    # the rows are orthonormal, so W = .5 / (.5 + .6) B_s^T X: rows 3 - 4 and 3 + 4
    np.testing.assert_allclose(
        hasher.functions_, 5 / 11 * np.array([[1.4, 0.2], [-0.2, 1.4]]), rtol=1e-6
    )
    assert hasher.updates_.tolist() == [1, 1]


@pytest.mark.parametrize("missing", [False, True], ids=["all labels", "labels come and go"])
def test_sums_give_what_all_old_rows_give(missing: bool) -> None:
    rng = np.random.default_rng(3)
    hasher = BSODH(bits=6, batch=15, center=None, unlike=UNLIKE, random_state=4).begin(5)
    direct = Direct(hasher.functions_)
    for batch in range(8):
        labels = rng.permutation(np.arange(15) % (3 + batch // 3))
        labels = labels[labels != batch % 3] if missing else labels
        labels = np.resize(labels, 15)
        X = rng.standard_normal((15, 5)).astype(np.float32) + np.eye(5, dtype=np.float32)[labels]
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        hasher.partial_fit(X, labels)
        numbers = np.array(hasher.numbers(labels.tolist()))
        direct.learn(X.astype(np.float64), numbers)
        np.testing.assert_allclose(hasher.functions_, direct.W.T, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(hasher.moment_, direct.B @ direct.B.T)
        for number, total in enumerate(hasher.sums_):
            np.testing.assert_array_equal(total, direct.B[:, direct.labels == number].sum(axis=1))


@pytest.mark.parametrize(("n", "d"), [(3, 5), (5, 3)], ids=["fewer rows", "fewer features"])
def test_functions_stand_where_the_ridge_loss_is_flat(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    Z, B = rng.standard_normal((n, d)).astype(np.float32), signs(rng.standard_normal((n, 2)))
    W = ridge_fit(Z, B, 0.7)

    def loss(W: Doubles) -> float:
        return float(((Z @ W.T - B) ** 2).sum() + 0.7 * (W**2).sum())

    for i, j in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[i, j] = 1e-4
        assert abs(loss(W + step) - loss(W - step)) / 2e-4 < 1e-6
        assert loss(W + step) > loss(W)


def test_memory_does_not_grow_with_the_stream(digits: Stream) -> None:
    hasher = BSODH(bits=8, batch=100).partial_fit(digits.X[:300], digits.y[:300])
    before = len(hasher.to_bytes())
    hasher.partial_fit(digits.X[300:1500], digits.y[300:1500])
    assert abs(len(hasher.to_bytes()) - before) < 100


def test_balance_makes_the_difference(digits: Stream) -> None:
    """With as much weight on unlike pairs, of which there are nine times as many, labels merge."""
    X, y = digits.X[:1500], digits.y[:1500]

    def distinct(unlike: float) -> int:
        hasher = BSODH(bits=16, batch=100, unlike=unlike).partial_fit(X, y)
        return len(np.unique(hasher.starts_, axis=0))

    assert distinct(0.2) == 10
    assert distinct(1.0) < 6


def test_weight_of_unlike_pairs_falls_with_the_labels_there_are() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 6)).astype(np.float32), np.arange(120) % 40
    chosen, given = (BSODH(bits=8, batch=40, unlike=u) for u in (None, 2 / 40))
    for hasher in (chosen, given):
        hasher.partial_fit(X, y)
    np.testing.assert_array_equal(chosen.functions_, given.functions_)
    few, published = (BSODH(bits=8, batch=40, unlike=u) for u in (None, 0.2))
    for hasher in (few, published):
        hasher.partial_fit(X, y % 4)
    np.testing.assert_array_equal(few.functions_, published.functions_)


def test_rows_wait_for_a_full_batch(digits: Stream) -> None:
    hasher = BSODH(bits=8, batch=100, center=None).partial_fit(digits.X[:199], digits.y[:199])
    assert hasher.versions_.tolist() == [0] * 8
    before = hasher.margins(digits.X)
    hasher.partial_fit(digits.X[199:200], digits.y[199:200])
    assert hasher.versions_.tolist() == [1] * 8
    assert not np.array_equal(hasher.margins(digits.X), before)


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = BSODH(bits=16, batch=250).partial_fit(digits.X[:1000], digits.y[:1000])
    asked, stored = hasher.transform(digits.X[1000:]), hasher.transform(digits.X[:1000])
    nearest = np.argmax(asked.astype(int) @ stored.T.astype(int), axis=1)
    assert (digits.y[:1000][nearest] == digits.y[1000:]).mean() > 0.8


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"bits": 5000},
        {"batch": 0},
        {"batch": 10_001},
        {"batch": 2.5},
        {"alike": 0},
        {"unlike": -1},
        {"sigma": float("nan")},
        {"ridge": "much"},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        BSODH(**options).partial_fit(ROWS, [0, 1, 0, 1])  # type: ignore[arg-type]


FORGED = {
    "more rows are waiting": ("waited_", np.array([2], np.int64)),
    "unknown labels": ("waiting_labels_", np.array([7, 0], np.int64)),
    "do not fit 3 labels": ("counts_", np.array([2, 2, 2], np.int64)),
    "exceed the number of rows": ("moment_", np.full((2, 2), 9.0)),
    "other than -1 and": ("starts_", np.zeros((2, 2))),
}


@pytest.mark.parametrize(("problem", "forged"), FORGED.items(), ids=FORGED)
def test_a_forged_file_is_refused(
    problem: str, forged: tuple[str, NDArray[np.generic]], tmp_path: Path
) -> None:
    hasher = BSODH(bits=2, batch=2, center=None).partial_fit(ROWS, [0, 1, 0, 1])
    hasher.partial_fit(ROWS[:1], [0])  # one row waits
    text, arrays = unpack_model(hasher.to_bytes(), "")
    path = tmp_path / "m"
    path.write_bytes(pack_model(json.loads(text), {**arrays, forged[0]: forged[1]}))
    with pytest.raises(ModelFileError, match=problem):
        load_hasher(path)
