"""ShECC: weights that turn to what earlier bits confuse, and colours that become codewords."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash import load_hasher
from everhash.errors import LabelError, LimitError, OptionError
from everhash.metrics import mean_average_precision
from everhash.peers.batch.shecc import ShECC, TreeShECC, first_weights, reweigh, row_weights
from tests.conftest import Stream

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)
LABELS = np.array([0, 1, 2, 0])
COLOURS = np.array([1, 1, -1], np.int8)
"""Labels 0 and 1 are to get +1, label 2 is to get -1."""


def test_weights_by_hand() -> None:
    # four rows, three labels: each row is to be told from two others, 1/8 each
    D = first_weights(LABELS, 3)
    eighths = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(D * 8, eighths)
    # rows 0, 1 and 3 are to differ from label 2 only, row 2 from labels 0 and 1: 1 + 1 + 2 + 1
    np.testing.assert_allclose(row_weights(D, COLOURS, LABELS), [0.2, 0.2, 0.4, 0.2])


def test_one_update_by_hand() -> None:
    D = first_weights(LABELS, 3)
    # +1 is right for row 0; row 1 should not be -1; row 2 should not be +1; row 3 is right again
    reweigh(D, COLOURS, LABELS, np.array([1, -1, 1, 1], np.int8), alpha=0.5)
    # e^(1/2) for each of: the row is wrong; the label is of the colour that was said
    h, e = math.exp(0.5), math.exp(1)
    expected = np.array(
        [
            [0, h, 1],  # right: label 1 is of the colour said
            [h, 0, e],  # wrong: h for all, and h again for label 2
            [e, e, 0],  # wrong, and labels 0 and 1 are of the colour said
            [0, h, 1],
        ]
    )
    np.testing.assert_allclose(D, expected / expected.sum())
    assert D.sum() == pytest.approx(1)


def test_weights_keep_a_closed_form_over_many_bits() -> None:
    # every factor is e^alpha a wrong or a confused bit, so D knows nothing but counts of them
    rng = np.random.default_rng(0)
    labels, M = rng.integers(0, 5, 30), rng.choice(np.array([-1, 1], np.int8), (5, 12))
    said = rng.choice(np.array([-1, 1], np.int8), (30, 12))
    D = first_weights(labels, 5)
    for bit in range(12):
        reweigh(D, M[:, bit], labels, said[:, bit], alpha=0.1)
        assert D.sum() == pytest.approx(1)
        assert row_weights(D, np.array([1, -1, 1, -1, 1], np.int8), labels).sum() == pytest.approx(
            1
        )
    wrong = (said != M[labels]).sum(axis=1)[:, None]
    confused = (said[:, None] == M).sum(axis=2)
    expected = np.exp(0.1 * (wrong + confused)) * (labels[:, None] != np.arange(5))
    np.testing.assert_allclose(D, expected / expected.sum())


class Contrary(ShECC):
    """Machines that learn the opposite."""

    def _train(self, bit: int, *args: Any) -> np.ndarray:
        said = super()._train(bit, *args)
        self.functions_[bit] *= -1
        opposite: np.ndarray = -said
        return opposite


class ContraryTrees(TreeShECC):
    """Trees that learn the opposite."""

    def _train(self, bit: int, *args: Any) -> np.ndarray:
        said = super()._train(bit, *args)
        tree = self._trees[bit]
        tree.numbers[tree.rights == 0] *= -1
        opposite: np.ndarray = -said
        return opposite


@pytest.mark.parametrize(("contrary", "plain"), [(Contrary, ShECC), (ContraryTrees, TreeShECC)])
def test_what_is_wrong_more_often_than_not_is_turned_round(
    contrary: type[ShECC], plain: type[ShECC], digits: Stream
) -> None:
    X, y = digits.X[:200], digits.y[:200]
    one, other = contrary(bits=6).fit(X, y), plain(bits=6).fit(X, y)
    np.testing.assert_array_equal(one.margins(X), other.margins(X))


@pytest.fixture(scope="module", params=[ShECC, TreeShECC])
def hasher(request: pytest.FixtureRequest, digits: Stream) -> ShECC:
    made: ShECC = request.param(bits=16)
    return made.fit(digits.X[:600], digits.y[:600])


def test_colours_of_labels_are_their_codewords_and_no_bit_has_one_colour(
    hasher: ShECC, digits: Stream
) -> None:
    words = hasher.codewords_
    assert set(np.unique(words)) == {-1, 1}
    assert (np.abs(words.sum(axis=0)) < len(words)).all()
    right = hasher.transform(digits.X[:600]) == words[hasher.numbers(digits.y[:600].tolist())]
    assert right.mean() > 0.9, "and functions follow them"


def test_two_labels_always_get_two_colours() -> None:
    hasher = ShECC(bits=12).fit(ROWS, [0, 1, 0, 1])
    np.testing.assert_array_equal(hasher.codewords_[0], -hasher.codewords_[1])


def test_unseen_rows_are_found_by_codeword(hasher: ShECC, digits: Stream) -> None:
    words, own = hasher.codewords_.astype(np.int64), hasher.numbers(digits.y[600:].tolist())
    codes = hasher.transform(digits.X[600:]).astype(np.int64)
    score = mean_average_precision(-codes @ words.T, own[:, None] == np.arange(len(words)))
    assert score > 0.85


def test_a_label_without_a_row_is_refused_and_changes_nothing(digits: Stream) -> None:
    # no function was learned for its colours
    hasher = ShECC(bits=16).fit(digits.X[:200], digits.y[:200])
    before = hasher.to_bytes()
    with pytest.raises(LimitError, match="call fit again"):
        hasher.assign(["new"])
    assert hasher.to_bytes() == before


def test_a_file_goes_on_exactly_and_keeps_learned_words(
    hasher: ShECC, tmp_path: Path, digits: Stream
) -> None:
    hasher.save(tmp_path / "model")
    read = load_hasher(tmp_path / "model")
    assert read.to_bytes() == hasher.to_bytes()
    np.testing.assert_array_equal(read.codewords_, hasher.codewords_)
    np.testing.assert_array_equal(read.margins(digits.X), hasher.margins(digits.X))


def test_rows_all_alike_teach_nothing_but_break_nothing() -> None:
    for cls in (ShECC, TreeShECC):
        margins = cls(bits=4).fit(np.ones((6, 2), np.float32), [0, 1, 0, 1, 2, 2]).margins(ROWS)
        assert np.isfinite(margins).all()


def test_a_single_label_is_refused() -> None:
    with pytest.raises(LabelError, match="one class"):
        ShECC(bits=4).fit(ROWS, ["a"] * 4)


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0}, {"alpha": "much"}, {"C": 0}, {"C": math.inf}, {"bits": 0}, {"random_state": -1}],
    ids=str,
)
def test_bad_options_are_typed_errors(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        ShECC(**options).fit(ROWS, LABELS)


def test_more_bits_than_supported_are_a_limit() -> None:
    with pytest.raises(LimitError):
        ShECC(bits=10**9).fit(ROWS, LABELS)
