"""How likely labels are, how novel a row is, how far a word is trusted: counted before learning."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.isotonic import IsotonicRegression

from everhash import OnlineHasher, kernels, peers
from everhash.index.encoding import choose_homes
from everhash.kernels import reference
from everhash.learn.exact import ExactLearner
from everhash.learn.novelty import BestScores
from everhash.learn.record import Record
from everhash.learn.stream_hasher import StreamHasher
from everhash.learn.trust import PRIOR_ROWS, ROW, Trust, prior_trust
from everhash.peers.model_file import hasher_from_bytes
from tests.conftest import Stream


def small(**options: Any) -> OnlineHasher:
    return OnlineHasher(**{"bits": 16, "labels_per_cycle": 4, "features": 80, **options})


def record_of(hasher: OnlineHasher) -> Record:
    assert isinstance(hasher._learner, ExactLearner)
    return hasher._learner.record


def fields_of(record: Record) -> tuple[list[int], ...]:
    counts = (record.trust.rows, record.trust.right, record.best_scores.rows)
    return tuple(array.tolist() for array in counts)


# Counting


@pytest.mark.parametrize("codebook", ["auto", "random"])
def test_trust_counts_equal_a_recount_by_hand(digits: Stream, codebook: str) -> None:
    """Row by row, with homes and words as an index would have them; between two publications."""
    start, stop = 834, 1000  # all rows are scored, none is published
    hasher = small(codebook=codebook).partial_fit(digits.X[:start], digits.y[:start])
    hasher.publish()
    before = record_of(hasher).trust
    rows, right = before.rows.copy(), before.right.copy()
    frozen, generation = hasher.freeze(), hasher.generation_
    hasher.partial_fit(digits.X[start : stop - 1], digits.y[start : stop - 1])
    assert hasher.generation_ == generation
    Z = frozen.measure(digits.X[start : stop - 1])
    homes, _, _ = choose_homes(frozen, "home", Z)
    margins = frozen.margins(Z).reshape(len(Z), -1, 16)
    for home, by_cycle, label in zip(homes, margins, digits.y[start:].tolist(), strict=False):
        words = frozen.words[4 * home : 4 * home + 4]
        distances = (words != np.where(by_cycle[home] > 0, 1, -1)).sum(axis=1)
        nearest = hasher.labels_[4 * home + int(distances.argmin())]
        rows[distances.min()] += ROW
        right[distances.min()] += ROW * (nearest == label)
    found = record_of(hasher).trust
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.right, right)


@settings(max_examples=10)
@given(cuts=st.lists(st.integers(1, 1796), max_size=8))
def test_batches_change_no_count(digits: Stream, cuts: list[int]) -> None:
    y = digits.y + 10 * (np.arange(len(digits.y)) > 1500)  # labels that come late
    whole, parts = small(codebook="random"), small(codebook="random")
    whole.partial_fit(digits.X, y)
    for start, stop in pairwise([0, *sorted(set(cuts)), len(digits.X)]):
        parts.partial_fit(digits.X[start:stop], y[start:stop])
    assert fields_of(record_of(whole)) == fields_of(record_of(parts))
    np.testing.assert_array_equal(whole.trust_, parts.trust_)
    one, other = whole.posterior(digits.X), parts.posterior(digits.X)
    np.testing.assert_array_equal(one.novelty, other.novelty)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_merged_hashers_add_up_what_they_counted(digits: Stream) -> None:
    hasher = small().partial_fit(digits.X[:200], digits.y[:200])
    forks = [hasher.fork().partial_fit(digits.X[a:], digits.y[a:]) for a in (700, 1200)]
    records = [record_of(one) for one in (hasher, *forks)]
    total = [np.sum(counts, axis=0) for counts in zip(*map(fields_of, records), strict=True)]
    hasher.merge(*forks)
    for found, expected in zip(fields_of(record_of(hasher)), total, strict=True):
        np.testing.assert_array_equal(found, expected // 2)  # published, and older by that


def test_publishing_again_and_again_leaves_what_was_counted(digits: Stream) -> None:
    hasher = small().partial_fit(digits.X, digits.y)
    for _ in range(20):
        hasher.publish()
    assert 100 < record_of(hasher).trust.rows.sum() / ROW < 256
    assert hasher.trust_[0] > 0.95
    assert hasher.posterior(digits.X).novelty.mean() < 0.7


def test_counts_survive_files_and_pickles(digits: Stream) -> None:
    hasher = small().partial_fit(digits.X, digits.y)
    for again in (
        hasher_from_bytes(hasher.to_bytes(), "again"),
        pickle.loads(pickle.dumps(hasher)),  # noqa: S301 - our own
    ):
        np.testing.assert_array_equal(again.trust_, hasher.trust_)
        for one, other in zip(again.posterior(digits.X), hasher.posterior(digits.X), strict=True):
            np.testing.assert_array_equal(one, other)
        assert again.generation_ == hasher.generation_


# The tables that follow

counts = st.integers(1, 64).flatmap(
    lambda bits: arrays.arrays(np.int64, (2, bits + 1), elements=st.integers(0, 10**9))
)


@given(counts=counts)
def test_trust_never_rises_and_is_the_nearest_such_table(counts: np.ndarray) -> None:
    trust = Trust(counts.shape[1] - 1)
    rows, right = counts.max(axis=0), counts.min(axis=0)
    trust.replace(rows, right)
    table = trust.table
    assert (np.diff(table) <= 0).all()
    assert ((table > 0) & (table <= 1)).all()
    weights = rows / ROW + PRIOR_ROWS
    shares = (right / ROW + PRIOR_ROWS * prior_trust(len(rows) - 1)) / weights
    oracle = IsotonicRegression(increasing=False).fit_transform(
        np.arange(len(rows)), shares, sample_weight=weights
    )
    np.testing.assert_allclose(table, oracle, atol=1e-6)


def test_trust_starts_as_a_falling_guess_and_moves_to_what_was_counted() -> None:
    trust = Trust(32)
    np.testing.assert_array_equal(trust.table, prior_trust(32))
    assert trust.table[0] == np.float32(0.9)
    assert (trust.table[16:] == np.float32(0.05)).all()
    distances = np.repeat([0, 3, 20], 1000)
    trust.take(distances, np.arange(3000) % 1000 < np.repeat([990, 700, 100], 1000))
    np.testing.assert_allclose(trust.table[[0, 3, 20]], [0.99, 0.7, 0.1], atol=0.005)
    with pytest.raises(ValueError, match="read-only"):
        trust.table[0] = 1


@given(best=st.lists(st.floats(-0.5, 1.5, width=32), min_size=1, max_size=300))
def test_novelty_is_the_share_of_higher_scores_and_falls(best: list[float]) -> None:
    scores = BestScores()
    asked = np.linspace(-0.4, 1.4, 500, dtype=np.float32)
    assert (scores.novelty(asked) == 1).all()
    taken = np.array(best, np.float32)
    scores.take(taken)
    found = scores.novelty(asked)
    assert ((found >= 0) & (found <= 1)).all()
    inside = (asked >= -0.25) & (asked <= 1.25)
    assert (np.diff(found[inside]) < 0).all()
    width = 1.5 / 128
    clipped = np.clip(taken, -0.25, 1.25)
    least = (clipped[None] > asked[:, None] + 1.01 * width).mean(axis=1)
    most = (clipped[None] >= asked[:, None] - 1.01 * width).mean(axis=1)
    assert (found >= least - 1 / 256 - 1e-6).all()
    assert (found <= most + 1 / 256 + 1e-6).all()


def test_rows_unlike_all_that_was_learned_are_novel(digits: Stream) -> None:
    known = digits.y < 7
    hasher = OnlineHasher(features=300).partial_fit(digits.X[known][:800], digits.y[known][:800])
    old = hasher.posterior(digits.X[known][800:]).novelty
    new = hasher.posterior(digits.X[~known]).novelty
    assert 0.35 < old.mean() < 0.6
    assert new.mean() > 0.75


def test_trust_is_what_it_says_on_rows_to_come(digits: Stream) -> None:
    hasher = OnlineHasher(features=300).partial_fit(digits.X[:1200], digits.y[:1200])
    bits, words = hasher.transform(digits.X[1200:]), hasher.words_
    distances = (hasher.bits - bits @ words.T.astype(np.int64)) // 2
    nearest = np.array(hasher.labels_)[distances.argmin(axis=1)]
    expected = hasher.trust_[distances.min(axis=1)].mean()
    assert abs((nearest == digits.y[1200:]).mean() - expected) < 0.05


# Posterior


@pytest.mark.parametrize("options", [{}, {"learner": "sgd", "features": 1000}])
def test_posterior_is_what_is_predicted(digits: Stream, options: dict[str, Any]) -> None:
    hasher = small(**options).partial_fit(digits.X[:900], digits.y[:900])
    found = hasher.posterior(digits.X)
    columns = hasher.numbers(hasher.classes_.tolist())
    np.testing.assert_array_equal(found.probabilities[:, columns], hasher.predict_proba(digits.X))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)
    best = np.array(hasher.labels_)[found.probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(best, hasher.predict(digits.X))
    assert (best == digits.y).mean() > 0.8
    assert found.probabilities.dtype == found.novelty.dtype == hasher.trust_.dtype == np.float32
    alone = hasher.posterior(digits.X[:1])
    np.testing.assert_array_equal(alone.probabilities, found.probabilities[:1])
    assert hasher.posterior(digits.X[:0]).probabilities.shape == (0, 10)


def test_labels_that_were_not_learned_are_not_likely(digits: Stream) -> None:
    hasher = small().begin(64)
    for n_labels in (0, 2):
        found = hasher.posterior(digits.X[:5])
        assert found.probabilities.shape == (5, n_labels)
        assert not found.probabilities.any()
        assert (found.novelty == 1).all()
        hasher.assign(["early", "later"])
    hasher.partial_fit(digits.X[:300], digits.y[:300])
    found = hasher.posterior(digits.X)
    assert not found.probabilities[:, :2].any()
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)


def test_a_generation_is_a_publication(digits: Stream) -> None:
    hasher = small(publish=1.5).partial_fit(digits.X[:1000], digits.y[:1000])
    before = hasher.generation_
    hasher.partial_fit(digits.X[1000:1400], digits.y[1000:1400])
    assert hasher.generation_ == before
    assert hasher.publish().generation_ == before + 1


@pytest.mark.parametrize("name", ["everhash-sgd", "mihash", "hcoh", "onehot", "osh"])
def test_every_method_answers(digits: Stream, name: str) -> None:
    hasher = peers.get(name)
    assert isinstance(hasher, StreamHasher)
    generations = []
    for start in range(0, 600, 100):
        hasher.partial_fit(digits.X[start : start + 100], digits.y[start : start + 100])
        generations.append(hasher.generation_)
    assert generations == sorted(generations)
    assert generations[-1] <= 17
    found = hasher.posterior(digits.X)
    assert found.probabilities.shape == (len(digits.X), len(hasher.labels_))
    np.testing.assert_array_equal(hasher.trust_, prior_trust(hasher.words_.shape[1]))
    if not hasher.assigns_codewords:
        assert not found.probabilities.any()
        assert (found.novelty == 1).all()
        return
    frozen = hasher.freeze()
    scores = frozen.scores(frozen.measure(digits.X)) * (10 / hasher.words_.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.probabilities, expected, atol=2e-5)
    np.testing.assert_array_equal(found.novelty, 1 - found.probabilities.max(axis=1))


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 5),
    labels=st.integers(1, 40),
    k=st.integers(1, 20),
    rho=st.integers(1, 50),
)
def test_words_compiled_equal_reference(seed: int, n: int, labels: int, k: int, rho: int) -> None:
    rng, cycles = np.random.default_rng(seed), -(-labels // rho)
    words = rng.choice(np.array([-1, 1], np.int8), (labels, k))
    scores = rng.integers(-50, 50, (n, labels)).astype(np.float32)
    margins = np.empty((n, cycles * k), np.float32)
    kernels.load().word_margins_into(scores, words, rho, margins)
    np.testing.assert_array_equal(margins, reference.word_margins(scores, words, rho, cycles))
    found = np.empty((n, labels), np.float32)
    kernels.load().word_scores_into(margins, words, rho, found)
    np.testing.assert_array_equal(found, reference.word_scores(margins, words, rho))
