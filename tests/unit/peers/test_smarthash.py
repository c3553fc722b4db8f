"""SmartHash: few functions are learned again, those that are missed least."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import load_hasher
from everhash.errors import ModelFileError, OptionError
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.online.smarthash import SmartHash
from tests.conftest import Stream

ROWS = np.array([[1, 0], [-1, 0], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def taught(digits: Stream, n: int, **options: int) -> SmartHash:
    hasher = SmartHash(**{"bits": 8, "batch": 50, "anchors": 30, **options})
    return hasher.partial_fit(digits.X[:n], digits.y[:n])


def test_four_points_worked_by_hand() -> None:
    hasher = SmartHash(bits=1, batch=2, anchors=2).partial_fit(ROWS[:2], ["a", "b"])
    # The anchors (1, 0) and (-1, 0) have their centre at 0; a row (x, y) of unit length is seen as
    # (exp((x - 1) / 2), exp((-x - 1) / 2)) less the mean of (1, exp(-1)) and (exp(-1), 1), .684.
    #   row 1: (.316, -.316)    row 2: (-.316, .316)
    # S says that they differ, so the function goes along (1, -1) or the other way.
    assert (hasher.functions_[0, 0] > 0) == (hasher.functions_[0, 1] < 0)
    np.testing.assert_allclose(
        abs(hasher.functions_[0, 0]), abs(hasher.functions_[0, 1]), rtol=1e-4
    )
    assert hasher.versions_.tolist() == [2]  # at random when there were anchors, and learned
    #   row 3: (exp(-.2), exp(-.8)) - .684 = (.135, -.235)     on row 1's side
    #   row 4: (exp(-.9), exp(-.1)) - .684 = (-.277, .221)     on row 2's side
    bits = hasher.transform(ROWS)[:, 0]
    assert bits.tolist() == [bits[0], -bits[0], bits[0], -bits[0]]
    hasher.partial_fit(ROWS[2:], ["a", "b"])
    bits = hasher.transform(ROWS)[:, 0]
    assert bits.tolist() == [bits[0], -bits[0], bits[0], -bits[0]]
    assert hasher.versions_.tolist() == [3]


def test_functions_missed_least_are_learned_again(digits: Stream) -> None:
    hasher = taught(digits, 100)
    for n in range(150, 401, 50):
        X, y = digits.X[:n], digits.y[:n]
        H = hasher.transform(X).astype(np.float64)
        S = np.where(y[:, None] == y, 1.0, -1.0)
        without = (np.delete(H, k, axis=1) for k in range(8))
        left = [((8 * S - other @ other.T) ** 2).sum() for other in without]
        versions, functions = hasher.versions_, hasher.functions_.copy()
        hasher.partial_fit(X[-50:], y[-50:])
        moved = np.flatnonzero(hasher.versions_ != versions)
        assert moved.tolist() == sorted(np.argsort(left)[:3].tolist())
        still = np.setdiff1d(np.arange(8), moved)
        np.testing.assert_array_equal(hasher.functions_[still], functions[still])


def test_learning_again_explains_more(digits: Stream) -> None:
    """Of r S for all rows so far, in nearly every batch: each function is found greedily."""

    def unexplained(hasher: SmartHash, n: int) -> float:
        y, H = digits.y[:n], hasher.transform(digits.X[:n]).astype(np.float64)
        S = np.where(y[:, None] == y, 1.0, -1.0)
        return float(((8 * S - H @ H.T) ** 2).mean())

    hasher, gains = taught(digits, 100), []
    for n in range(150, 601, 50):
        before = unexplained(hasher, n)
        hasher.partial_fit(digits.X[n - 50 : n], digits.y[n - 50 : n])
        gains.append(before - unexplained(hasher, n))
    assert np.mean(np.array(gains) > 0) > 0.7
    assert sum(gains) > 0


@pytest.mark.parametrize(
    ("options", "relearned"),
    [
        ({"bits": 1}, 1),
        ({"bits": 2}, 1),
        ({"bits": 8}, 3),
        ({"bits": 9}, 4),
        ({"bits": 8, "relearned": 2}, 2),
        ({"bits": 8, "relearned": 100}, 8),
    ],
    ids=str,
)
def test_so_many_functions_move_with_a_batch(
    digits: Stream, options: dict[str, int], relearned: int
) -> None:
    hasher = taught(digits, 50, **options)
    versions = hasher.versions_
    hasher.partial_fit(digits.X[50:99], digits.y[50:99])
    np.testing.assert_array_equal(hasher.versions_, versions)
    hasher.partial_fit(digits.X[99:100], digits.y[99:100])
    assert sorted((hasher.versions_ - versions).tolist())[-relearned:] == [1] * relearned
    assert (hasher.versions_ - versions).sum() == relearned


def test_nothing_is_served_before_the_anchors_and_something_random_until_the_first_batch(
    digits: Stream,
) -> None:
    hasher = SmartHash(bits=8, batch=50, anchors=30).partial_fit(digits.X[:29], digits.y[:29])
    assert (hasher.transform(digits.X) == -1).all()
    hasher.partial_fit(digits.X[29:30], digits.y[29:30])
    assert hasher.versions_.tolist() == [1] * 8
    assert (hasher.transform(digits.X) == 1).any()
    hasher.partial_fit(digits.X[30:50], digits.y[30:50])
    assert hasher.versions_.tolist() == [2] * 8


def test_only_labelled_rows_are_kept(digits: Stream) -> None:
    hasher = SmartHash(bits=4, batch=20, anchors=30).partial_fit(digits.X[:90])
    assert len(hasher.rows_) == 0
    hasher.partial_fit(digits.X[90:150], digits.y[90:150])
    assert len(hasher.rows_) == 60
    assert [hasher.labels_[number] for number in hasher.row_labels_] == digits.y[90:150].tolist()


def test_the_seed_turns_functions_and_changes_nothing_else(digits: Stream) -> None:
    one, other = (taught(digits, 300, random_state=seed) for seed in (0, 1))
    turned = np.sign(one.functions_[:, :1] * other.functions_[:, :1])
    assert {-1, 1} == set(turned.ravel().tolist())
    np.testing.assert_allclose(one.functions_, turned * other.functions_, rtol=1e-4, atol=1e-5)


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = taught(digits, 600, bits=16, anchors=60, batch=100)
    asked, stored = hasher.transform(digits.X[600:]), hasher.transform(digits.X[:600])
    nearest = np.argmax(asked.astype(int) @ stored.T.astype(int), axis=1)
    assert (digits.y[:600][nearest] == digits.y[600:]).mean() > 0.85


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"batch": 0},
        {"batch": 10_001},
        {"relearned": 0},
        {"relearned": 1.5},
        {"anchors": 1},
        {"anchors": 10_001},
    ],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        SmartHash(**options).partial_fit(ROWS, [0, 1, 0, 1])  # type: ignore[arg-type]


FORGED = {
    "a whole number of batches": ("rows_", np.zeros((3, 2), np.float32)),
    "rows have unknown labels": ("row_labels_", np.array([0, 1, 0, 9], np.int64)),
    "unit length": ("rows_", np.full((4, 2), 3, np.float32)),
}


@pytest.mark.parametrize(("problem", "forged"), FORGED.items(), ids=FORGED)
def test_a_forged_file_is_refused(
    problem: str, forged: tuple[str, NDArray[np.generic]], tmp_path: Path
) -> None:
    hasher = SmartHash(bits=2, batch=2, anchors=2).partial_fit(ROWS, [0, 1, 0, 1])
    text, arrays = unpack_model(hasher.to_bytes(), "")
    path = tmp_path / "m"
    path.write_bytes(pack_model(json.loads(text), {**arrays, forged[0]: forged[1]}))
    with pytest.raises(ModelFileError, match=problem):
        load_hasher(path)
