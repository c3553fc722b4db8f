"""Online Kernel Hashing: the cheapest codes without loss, and the smallest step towards them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from everhash.errors import LimitError, OptionError
from everhash.metrics import mean_average_precision
from everhash.peers.online.okh import OKH
from tests.conftest import Stream

ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], np.float32)


def seen(cosine: float) -> np.ndarray:
    """What ROWS[:2] as anchors make of a row whose direction from their mean has this cosine.

    Seen from (.5, .5) the anchors are (1, -1) / sqrt 2 and its opposite. A likeness is
    exp((cosine - 1) / 2); that of an anchor to both is 1 and 1/e, so their mean is taken away.
    """
    mean = (1 + math.exp(-1)) / 2
    first, second = math.exp((cosine - 1) / 2) - mean, math.exp((-cosine - 1) / 2) - mean
    length = math.hypot(first, second)
    return np.array([first / length, second / length])


# from the mean (.6, .8) is (.1, .3), of squared length .1, and (-.8, .6) is (-1.3, .1), of 1.7
THIRD, FOURTH = seen(-0.2 / math.sqrt(2 * 0.1)), seen(-1.4 / math.sqrt(2 * 1.7))


def taught(functions: list[list[float]], labels: list[str], **options: float) -> OKH:
    """Learn from the last two rows as a pair, starting from these functions."""
    hasher = OKH(bits=len(functions), anchors=2, **options)  # type: ignore[arg-type]
    hasher.partial_fit(ROWS[:2])  # without labels they are anchors and nothing else
    hasher.functions_[:] = functions
    return hasher.partial_fit(ROWS[2:], labels)


def test_rows_are_seen_as_worked_out_by_hand() -> None:
    hasher = OKH(bits=2, anchors=2).partial_fit(ROWS[:2])
    hasher.functions_[:] = np.eye(2)
    np.testing.assert_allclose(hasher.margins(ROWS[2:]), [THIRD, FOURTH], atol=1e-6)
    np.testing.assert_allclose(THIRD, [-0.9361, 0.3517], atol=1e-3)
    np.testing.assert_allclose(FOURTH, [-0.7987, 0.6017], atol=1e-3)


def test_unlike_pair_by_hand() -> None:
    # both rows have codes (-, +): D = 0, and half of 2 bits should differ, so R = 1.
    # Bit 1 costs min(.94, .80), bit 2 costs min(.35, .60): bit 2 turns, for the third row.
    # h - g = 2 there, l = 2 (.3517) + sqrt 1 and |V|^2 = 2^2
    tau = (2 * THIRD[1] + 1) / 4
    hasher = taught([[1, 0], [0, 1]], ["a", "b"], beta=0.5, C=10.0)
    np.testing.assert_allclose(
        hasher.functions_, np.array([[1, 0], [0, 1] - 2 * tau * THIRD]), atol=1e-6
    )
    assert hasher.updates_.tolist() == [1, 2], "one change each when the anchors had come"
    assert hasher.transform(ROWS[2:3]).tolist() == [[-1, -1]]

    cut = taught([[1, 0], [0, 1]], ["a", "b"], beta=0.5, C=0.1)
    np.testing.assert_allclose(cut.functions_[1], [0, 1] - 0.2 * THIRD, atol=1e-6)


def test_alike_pair_by_hand() -> None:
    # bit 1 says -.9361 + 1.5 (.3517) = -.41 of one row and -.7987 + 1.5 (.6017) = .10 of the other
    weaker = float(FOURTH @ [1, 1.5])
    tau = (2 * weaker + 1) / 4
    hasher = taught([[1, 1.5], [0, 1]], ["a", "a"], alpha=0.0, C=10.0)
    np.testing.assert_allclose(
        hasher.functions_, np.array([[1, 1.5] - 2 * tau * FOURTH, [0, 1]]), atol=1e-6
    )
    # where one bit of two may differ there is no loss
    same = taught([[1, 1.5], [0, 1]], ["a", "a"], alpha=0.5, C=10.0)
    np.testing.assert_array_equal(same.functions_, np.array([[1, 1.5], [0, 1]], np.float32))
    assert same.updates_.tolist() == [1, 1]


def slow_step(
    W: np.ndarray, X: np.ndarray, alike: bool, near: float, far: float, C: float
) -> np.ndarray:
    """Return W after the paper's update, with the codes g found by trying all there are."""
    b = len(W)
    H = np.where(X @ W.T > 0, 1, -1)

    def loss(codes: np.ndarray) -> float:
        distance = int((codes[0] != codes[1]).sum())
        return max(0.0, distance - near if alike else far - distance)

    def violation(G: np.ndarray, V: np.ndarray) -> float:
        return float(((H - G) * (X @ V.T)).sum()) + math.sqrt(loss(H))

    if loss(H) == 0:
        return W
    tried = (np.array(bits).reshape(2, b) for bits in itertools.product((-1, 1), repeat=2 * b))
    G = min((codes for codes in tried if loss(codes) == 0), key=lambda codes: violation(codes, W))
    # l is linear in W, so differences give its slope exactly
    slope = np.empty_like(W)
    for place in np.ndindex(*W.shape):
        nudge = np.zeros_like(W)
        nudge[place] = 0.5
        slope[place] = violation(G, W + nudge) - violation(G, W - nudge)
    tau = min(C, violation(G, W) / float((slope**2).sum()))
    moved: np.ndarray = W - tau * slope
    return moved


@pytest.mark.parametrize(
    ("alpha", "beta", "C"), [(0.0, 1.0, 10.0), (0.25, 0.5, 10.0), (0.1, 0.6, 0.05), (0.0, 0.5, 0.1)]
)
def test_every_step_goes_down_the_violation_of_the_cheapest_codes_without_loss(
    alpha: float, beta: float, C: float, digits: Stream
) -> None:
    X, y = digits.X[:100], digits.y[:100] % 2
    hasher = OKH(bits=4, anchors=20, alpha=alpha, beta=beta, C=C, sample=1)
    hasher.partial_fit(X[:20], y[:20])
    moved = 0
    for row in range(20, 100):
        pair = np.stack([hasher.freeze().measure(X[row : row + 1])[0], hasher.kept_[0]])
        alike = bool(hasher.labels_[hasher.kept_labels_[0]] == y[row])
        before, updates = hasher.functions_.astype(np.float64), hasher.updates_.copy()
        expected = slow_step(before, pair.astype(np.float64), alike, alpha * 4, beta * 4, C)
        hasher.partial_fit(X[row : row + 1], y[row : row + 1])
        np.testing.assert_allclose(hasher.functions_, expected, atol=1e-5)
        np.testing.assert_array_equal(
            hasher.updates_ - updates, (hasher.functions_ != before).any(axis=1)
        )
        moved += not np.array_equal(expected, before)
    assert moved > 20


def test_it_learns_what_labels_have_in_common(digits: Stream) -> None:
    odd = digits.y % 2

    def score(hasher: OKH) -> float:
        codes = hasher.transform(digits.X[1200:]).astype(np.int64)
        return mean_average_precision(-codes @ codes.T, odd[1200:, None] == odd[1200:])

    untrained = OKH(anchors=100).partial_fit(digits.X[:1200])
    trained = OKH(anchors=100).partial_fit(digits.X[:1200], odd[:1200])
    assert score(trained) > score(untrained) + 0.08


def test_labels_are_names_and_have_no_codewords(digits: Stream) -> None:
    hasher = OKH(bits=8, anchors=20).partial_fit(digits.X[:50], digits.y[:50])
    assert not hasher.codewords_.any()
    assert hasher.codewords_.shape == (len(hasher.labels_), 8)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 0},
        {"C": -1.0},
        {"alpha": -0.1},
        {"alpha": True},
        {"beta": 1.5},
        {"beta": float("nan")},
        {"anchors": 1},
        {"anchors": 10**6},
        {"sample": 0},
        {"sample": 10**6},
        {"sample": 2.5},
        {"bits": 0},
        {"random_state": -1},
    ],
    ids=str,
)
def test_bad_options_are_typed_errors(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        OKH(**options).partial_fit(ROWS, [0, 1, 0, 1])  # type: ignore[arg-type]


def test_more_bits_than_supported_are_a_limit() -> None:
    with pytest.raises(LimitError):
        OKH(bits=10**9).partial_fit(ROWS)
