"""LDAHash: directions by pairs, and the threshold that judges fewest pairs wrongly."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.errors import LabelError, LimitError, OptionError
from everhash.peers.batch.ldahash import LDAHash, best_threshold, pair_moments
from everhash.peers.batch.lsh import LSH
from tests.conftest import Stream
from tests.unit.peers.scoring import mapped_score

ROWS = np.array([[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]], np.float32)


def test_pairs_by_hand() -> None:
    # alike: (0, 1.2) twice. Unlike: (1.6, 0) twice and (1.6, +-1.2), in which products cancel
    alike, unlike = pair_moments(ROWS.astype(np.float64), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(alike, [[0.0, 0.0], [0.0, 1.44]], atol=1e-6)
    np.testing.assert_allclose(unlike, [[2.56, 0.0], [0.0, 0.72]], atol=1e-6)


def test_functions_by_hand() -> None:
    # with the moments above and a ridge of 1/2, that is .36, ratios are 2.56 / .36 and .72 / 1.8
    hasher = LDAHash(bits=2, ridge=0.5).fit(ROWS, [0, 0, 1, 1])
    np.testing.assert_allclose(hasher.functions_, [[1, 0, 0], [0, 1, 0]], atol=1e-6)
    assert hasher.transform(ROWS).tolist() == [[1, 1], [1, -1], [-1, 1], [-1, -1]]


def test_a_threshold_by_hand() -> None:
    # values -1, 0, 1, 2, 3 with labels a a b a b: 4 alike pairs and 6 unlike ones.
    #   t          alike apart   unlike apart   FN + FP
    #   -.5        2             2              2/4 + 4/6
    #   .5         2             4              2/4 + 2/6   <-
    #   1.5        3             3              3/4 + 3/6
    #   2.5        1             3              1/4 + 3/6   <- least
    values = np.array([-1, 0, 1, 2, 3], np.float32)
    assert best_threshold(values, np.array([0, 0, 1, 0, 1])) == 2.5


@settings(max_examples=60)
@given(
    values=st.lists(st.integers(-5, 5), min_size=1, max_size=14),
    labels=st.lists(st.integers(0, 3), min_size=14, max_size=14),
)
def test_no_other_threshold_judges_fewer_pairs_wrongly(
    values: list[int], labels: list[int]
) -> None:
    which = np.unique(labels[: len(values)], return_inverse=True)[1]

    def wrong(t: float) -> float:
        apart: dict[bool, list[bool]] = {True: [], False: []}
        for i, j in combinations(range(len(values)), 2):
            apart[bool(which[i] == which[j])].append((values[i] > t) != (values[j] > t))
        misses, hits = apart[True], apart[False]
        return sum(misses) / max(1, len(misses)) - sum(hits) / max(1, len(hits))

    found = best_threshold(np.array(values, np.float32), which)
    steps = sorted(set(values))
    tried = [(low + high) / 2 for low, high in pairwise(steps)] or [found]
    assert wrong(found) == pytest.approx(min(wrong(t) for t in tried))


def test_moments_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    X, which = rng.standard_normal((30, 4)), rng.integers(0, 3, 30)
    outer: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for i, j in combinations(range(30), 2):
        outer[bool(which[i] == which[j])].append(np.outer(X[i] - X[j], X[i] - X[j]))
    alike, unlike = pair_moments(X, which)
    np.testing.assert_allclose(alike, np.mean(outer[True], axis=0), atol=1e-12)
    np.testing.assert_allclose(unlike, np.mean(outer[False], axis=0), atol=1e-12)


def test_no_direction_has_a_larger_ratio_than_the_first(digits: Stream) -> None:
    hasher = LDAHash(bits=3, ridge=0.1).fit(digits.X, digits.y)
    Z = hasher.freeze().measure(digits.X)[:, :-1].astype(np.float64) * np.sqrt(2)
    alike, unlike = pair_moments(Z, digits.y)
    alike += 0.1 * np.trace(alike) / len(alike) * np.eye(len(alike))
    others = np.random.default_rng(0).standard_normal((500, 64))
    W = np.vstack([hasher.functions_[:, :-1], hasher.functions_[0, :-1] + 0.02 * others, others])
    ratios = ((W @ unlike) * W).sum(axis=1) / ((W @ alike) * W).sum(axis=1)
    assert (ratios[0] >= ratios[1:]).all()
    assert ratios[0] >= ratios[1] >= ratios[2]


def test_labels_help(digits: Stream) -> None:
    blind = LSH(9).fit(digits.X[:1200])
    assert (
        mapped_score(LDAHash(9).fit(digits.X[:1200], digits.y[:1200]), digits)
        > mapped_score(blind, digits) + 0.2
    )


def test_one_label_or_one_row_a_label_break_nothing(digits: Stream) -> None:
    for y in ([0] * 50, range(50)):
        hasher = LDAHash(bits=4).fit(digits.X[:50], list(y))
        assert np.isfinite(hasher.margins(digits.X)).all()


def test_labels_are_needed(digits: Stream) -> None:
    with pytest.raises(LabelError):
        LDAHash().fit(digits.X)


@pytest.mark.parametrize(
    "options", [{"ridge": 0}, {"ridge": -1.0}, {"bits": 0}, {"bits": 65}, {"bits": 2.5}], ids=str
)
def test_bad_options_are_typed_errors(options: dict[str, float], digits: Stream) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        LDAHash(**options).fit(digits.X, digits.y)  # type: ignore[arg-type]


def test_more_bits_than_supported_are_a_limit(digits: Stream) -> None:
    with pytest.raises(LimitError):
        LDAHash(bits=10**9).fit(digits.X, digits.y)
