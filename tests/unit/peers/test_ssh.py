"""Semi-Supervised Hashing: sums over pairs without the pairs, and functions one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.errors import LimitError, OptionError
from everhash.peers.batch.lsh import LSH
from everhash.peers.batch.ssh import SSH, Pairs
from tests.conftest import Stream
from tests.unit.peers.scoring import mapped_score

Doubles = NDArray[np.float64]
ROWS = np.array([[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]], np.float32)


def test_functions_by_hand() -> None:
    # labels by the second feature: s_a = (0, 1.2), s_b = -s_a, X S X^T = 2 (2) 1.44 = 5.76 there,
    # a sixteenth of which is .36. The spread is diag(.64, .36).
    # eta 1: diag(.64, .72) gives w = (0, 1). It gets no pair wrong: p = .6 for one label, -.6 for
    # the other. So S stays, X loses its second feature, and diag(.64, .36) gives (1, 0).
    hasher = SSH(bits=2, eta=1.0).fit(ROWS, ["a", "b", "a", "b"])
    np.testing.assert_allclose(hasher.functions_, [[0, 1], [1, 0]], atol=1e-6)
    # eta .1: diag(.064, .396) and then diag(.064, .36), as nothing else is known to labels
    hasher = SSH(bits=2, eta=0.1).fit(ROWS, ["a", "b", "a", "b"])
    np.testing.assert_allclose(hasher.functions_, [[0, 1], [0, 1]], atol=1e-6)


def test_what_was_wrong_counts_more_by_hand() -> None:
    # eta 10 lets variance decide: w = (1, 0), with p = .8, .8, -.8, -.8, wrong about all pairs but
    # (1, 4) and (2, 3). Within labels (1, 3) and (2, 4): p p' = -.64. Between them (1, 2) and
    # (3, 4): .64. X T X^T adds each pair up twice:
    #   first feature    2 (-.64)(-.64) 2 + 2 (.64)(.64) 2 = 3.2768
    #   second feature   2 (-.64)(.36) 2 + 2 (.64)(-.36) 2 = -1.8432
    # and products cancel. A sixteenth is .2048 and -.1152
    wrong = Pairs(ROWS.astype(np.float64), np.array([0, 1, 0, 1])).wrong(np.array([1.0, 0.0]))
    np.testing.assert_allclose(wrong, [[0.2048, 0], [0, -0.1152]], atol=1e-6)
    hasher = SSH(bits=2, eta=10.0).fit(ROWS, ["a", "b", "a", "b"])
    np.testing.assert_allclose(hasher.functions_, [[1, 0], [0, 1]], atol=1e-6)


def slow_functions(
    X: Doubles, labelled: Doubles, y: NDArray[np.int64], bits: int, eta: float, alpha: float
) -> Doubles:
    """Return the functions of the papers, with all pairs in a matrix."""
    S = np.where(y[:, None] == y, 1.0, -1.0)
    functions = []
    for _ in range(bits):
        M = labelled.T @ S @ labelled / len(labelled) ** 2 + eta * X.T @ X / len(X)
        w = np.linalg.eigh(M)[1][:, -1]
        said = np.outer(labelled @ w, labelled @ w)
        S = S - alpha * np.where(said * S < 0, said, 0)
        X = X - np.outer(X @ w, w)
        functions.append(w * np.sign(w[np.abs(w).argmax()]))
    return np.array(functions)


@pytest.mark.parametrize(("eta", "alpha"), [(0.1, 3.0), (1.0, 30.0), (0.01, 1.0)])
def test_functions_are_those_of_the_matrix_of_all_pairs(
    eta: float, alpha: float, digits: Stream
) -> None:
    X, y = digits.X[:300], digits.y[:300]
    told = [int(label) if row % 3 else None for row, label in enumerate(y)]
    hasher = SSH(bits=12, eta=eta, alpha=alpha).fit(X, told)
    Z = hasher.freeze().measure(X).astype(np.float64)
    known = np.array([label is not None for label in told])
    expected = slow_functions(Z, Z[known], y[known], 12, eta, alpha)
    np.testing.assert_allclose(hasher.functions_, expected, atol=1e-4)


def test_rows_without_labels_are_learned_from(digits: Stream) -> None:
    X, y = digits.X[:400], digits.y[:400]
    alone = SSH(bits=8).fit(X[:100], y[:100])
    more = SSH(bits=8).fit(X, [*y[:100].tolist(), *[None] * 300])
    assert not np.allclose(alone.functions_, more.functions_, atol=1e-3)
    np.testing.assert_allclose(more.mean_, X.mean(axis=0), atol=1e-4)


def test_a_row_with_two_labels_is_a_row_of_each(digits: Stream) -> None:
    y = digits.y[:100].tolist()
    both = SSH(bits=4).fit(digits.X[:100], [{0, 1}, *y[1:]])
    one = SSH(bits=4).fit(digits.X[:100], [0, *y[1:]])
    assert not np.array_equal(both.functions_, one.functions_)


def test_labels_help(digits: Stream) -> None:
    X, y = digits.X[:1200], digits.y[:1200]
    assert mapped_score(SSH(16).fit(X, y), digits) > mapped_score(LSH(16).fit(X), digits) + 0.1


@pytest.mark.parametrize(
    "options", [{"eta": 0}, {"alpha": -1.0}, {"bits": 0}, {"bits": 65}, {"bits": True}], ids=str
)
def test_bad_options_are_typed_errors(options: dict[str, float], digits: Stream) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        SSH(**options).fit(digits.X, digits.y)  # type: ignore[arg-type]


def test_more_bits_than_supported_are_a_limit(digits: Stream) -> None:
    with pytest.raises(LimitError):
        SSH(bits=10**9).fit(digits.X, digits.y)
