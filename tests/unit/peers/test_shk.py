"""SHK: anchors by the seed, and functions each learned on what those before it leave over."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import load_hasher
from everhash.errors import ModelFileError, OptionError
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.batch.shk import SHK
from tests.conftest import Stream

ROWS = np.array([[1, 0], [-1, 0], [0.8, 0.6], [-0.8, -0.6]], np.float32)  # their mean is 0
LABELS = ["a", "b", "a", "b"]


def taught(digits: Stream, n: int = 400, **options: int) -> SHK:
    return SHK(**{"bits": 8, "anchors": 40, **options}).fit(digits.X[:n], digits.y[:n])


def test_four_points_worked_by_hand() -> None:
    hasher = SHK(bits=2, anchors=4).fit(ROWS, LABELS)
    # All four rows are anchors. The likeness of rows with product p is exp((p - 1) / 2):
    #   p     1      .8        -.8        -1
    #         1      exp(-.1)  exp(-.9)   exp(-1)
    # and each anchor's mean over the four is the same, .6698.
    mean = (1 + np.exp(-0.1) + np.exp(-0.9) + np.exp(-1)) / 4
    np.testing.assert_allclose(hasher.offset_, [mean] * 4, rtol=1e-6)
    # The two labels lie on two sides of 0 in every feature, so the first function tells a from b.
    # Then h h^T = S, and R = 2 S - h h^T = S: the second function has to say the same again.
    bits = hasher.transform(ROWS)
    for bit in bits.T:
        assert bit.tolist() == [bit[0], -bit[0], bit[0], -bit[0]]
    H = bits.astype(np.float64)
    S = np.array([[1, -1, 1, -1], [-1, 1, -1, 1]] * 2)
    np.testing.assert_array_equal(H @ H.T, 2 * S)
    # (0, 1) has the products 0, 0, .6, -.6 with the rows, so it is most like one of label a
    assert hasher.transform([[0, 1]]).tolist() == bits[:1].tolist()


def test_each_function_takes_off_what_it_explains(digits: Stream) -> None:
    """|R - h h^T|^2 = |R|^2 + n^2 - 2 h^T R h, and the residual falls with every function."""
    y, H = digits.y[:400], taught(digits).transform(digits.X[:400]).astype(np.float64)
    R = 8 * np.where(y[:, None] == y, 1.0, -1.0)
    for h in H.T:
        before, explained = (R**2).sum(), h @ R @ h
        R -= np.outer(h, h)
        assert (R**2).sum() == pytest.approx(before + len(y) ** 2 - 2 * explained)
        assert (R**2).sum() < before
    np.testing.assert_allclose(R, 8 * np.where(y[:, None] == y, 1, -1) - H @ H.T)


def test_no_random_function_explains_more_than_a_learned_one(digits: Stream) -> None:
    hasher, y = taught(digits), digits.y[:400]
    K = hasher._view.of(digits.X[:400])
    R = 8 * np.where(y[:, None] == y, 1.0, -1.0)
    rng = np.random.default_rng(0)
    for learned in hasher.functions_:
        functions = np.vstack([learned, rng.standard_normal((200, K.shape[1]))])
        codes = np.where(K @ functions.T > 0, 1.0, -1.0)
        explained = ((R @ codes) * codes).sum(axis=0)
        assert explained.argmax() == 0
        R -= np.outer(codes[:, 0], codes[:, 0])


def test_anchors_are_training_rows_and_the_seed_draws_them(digits: Stream) -> None:
    one, other = (taught(digits, random_state=seed) for seed in (0, 1))
    centred = digits.X[:400] - digits.X[:400].mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    drawn = [np.argmax(hasher.anchors_ @ unit.T, axis=1) for hasher in (one, other)]
    for hasher, rows in zip((one, other), drawn, strict=True):
        np.testing.assert_allclose(hasher.anchors_, unit[rows], atol=1e-5)
        assert len(set(rows.tolist())) == 40
    assert set(drawn[0].tolist()) != set(drawn[1].tolist())


def test_fewer_rows_than_anchors_are_enough(digits: Stream) -> None:
    hasher = taught(digits, 25)
    assert len(np.unique(hasher.anchors_, axis=0)) == 25
    bits = hasher.transform(digits.X[:25]).astype(int)
    nearest = np.argsort(-(bits @ bits.T), axis=1, kind="stable")[:, 1]
    assert (digits.y[:25][nearest] == digits.y[:25]).mean() > 0.5


def test_progress_counts_functions(digits: Stream) -> None:
    shares: list[float] = []
    SHK(bits=4, anchors=20).fit(digits.X[:100], digits.y[:100], progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_codes_are_worth_having(digits: Stream) -> None:
    hasher = taught(digits, 600, bits=16, anchors=60)
    asked, stored = hasher.transform(digits.X[600:]), hasher.transform(digits.X[:600])
    nearest = np.argmax(asked.astype(int) @ stored.T.astype(int), axis=1)
    assert (digits.y[:600][nearest] == digits.y[600:]).mean() > 0.85


@pytest.mark.parametrize(
    "options",
    [{"bits": 0}, {"anchors": 1}, {"anchors": 2.5}, {"anchors": 10_001}],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        SHK(**options).fit(ROWS, LABELS)  # type: ignore[arg-type]


FORGED = {
    "the mean is out of range": ("mean_", np.full(2, 3e38, np.float32)),
    "longer than 1": ("anchors_", np.full((2, 2), 3, np.float32)),
    "above 1": ("offset_", np.array([0.5, 2], np.float32)),
}


@pytest.mark.parametrize(("problem", "forged"), FORGED.items(), ids=FORGED)
def test_a_forged_file_is_refused(
    problem: str, forged: tuple[str, NDArray[np.generic]], tmp_path: Path
) -> None:
    text, arrays = unpack_model(SHK(bits=2, anchors=2).fit(ROWS, LABELS).to_bytes(), "")
    path = tmp_path / "m"
    path.write_bytes(pack_model(json.loads(text), {**arrays, forged[0]: forged[1]}))
    with pytest.raises(ModelFileError, match=problem):
        load_hasher(path)
