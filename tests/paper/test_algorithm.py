"""What the paper says of Algorithm 1, with its errata resolved, and an outside oracle."""

from __future__ import annotations

import numpy as np
import pytest

from everhash import OnlineHasher
from everhash.codes import hamming
from tests.conftest import Stream


def hasher_with(labels: int, rho: int | None, bits: int = 8) -> OnlineHasher:
    X = np.random.default_rng(0).standard_normal((labels, 5))
    return OnlineHasher(bits=bits, labels_per_cycle=rho).partial_fit(X, list(range(labels)))


@pytest.mark.parametrize(("labels", "rho"), [(1, 4), (4, 4), (5, 4), (8, 4), (9, 4), (23, 5)])
def test_every_cycle_holds_exactly_rho_labels_on_its_own_bits(labels: int, rho: int) -> None:
    hasher = hasher_with(labels, rho)
    active = (hasher.codewords_ != 0).reshape(labels, hasher.n_cycles_, 8)
    assert hasher.n_cycles_ == -(-labels // rho)
    assert hasher.width_ == 8 * hasher.n_cycles_
    for number in range(labels):
        expected = np.zeros((hasher.n_cycles_, 8), bool)
        expected[number // rho] = True
        np.testing.assert_array_equal(active[number], expected)


def test_one_cycle_never_grows() -> None:
    hasher = hasher_with(40, None)
    assert hasher.n_cycles_ == 1
    assert (hasher.codewords_ != 0).all()


def test_auto_is_four_log_k() -> None:
    assert hasher_with(41, None, bits=32).set_params(labels_per_cycle="auto").bits == 32
    X = np.random.default_rng(0).standard_normal((41, 5))
    hasher = OnlineHasher(bits=32, labels_per_cycle="auto").partial_fit(X, list(range(41)))
    assert hasher.n_cycles_ == 3
    sgd = OnlineHasher(bits=8, learner="sgd").partial_fit(X, list(range(41)))
    assert sgd.n_cycles_ == 4, "12 labels a cycle"
    exact = OnlineHasher(bits=8).partial_fit(X, list(range(41)))
    assert exact.n_cycles_ == 6, "8 labels a cycle: as many as there are orthogonal words"


def test_words_are_unique_within_a_cycle() -> None:
    words = hasher_with(200, 100, bits=8).codewords_
    for cycle in (words[:100, :8], words[100:, 8:]):
        assert len(np.unique(cycle, axis=0)) == 100


def test_only_the_labels_own_functions_are_updated(digits: Stream) -> None:
    hasher = OnlineHasher.paper(8, labels_per_cycle=2).partial_fit(digits.X[:1200], digits.y[:1200])
    for row in range(1200, 1300):
        before, label = hasher.versions_, int(digits.y[row])
        hasher.partial_fit(digits.X[row : row + 1], [label])
        active = hasher.codewords_[hasher.labels_.index(label)] != 0
        assert (hasher.versions_ == before)[~active].all()


def test_masked_hamming_counts_active_bits_only(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8, labels_per_cycle=3).partial_fit(digits.X, digits.y)
    distances = hamming(hasher.encode(digits.X[:20]), hasher.encode_labels())
    bits, words = hasher.transform(digits.X[:20]), hasher.codewords_
    expected = [[int(((b != w) & (w != 0)).sum()) for w in words] for b in bits]
    np.testing.assert_array_equal(distances, expected)


def test_sign_of_zero_is_minus_one() -> None:
    hasher = OnlineHasher(bits=4, learner="sgd", center=None).partial_fit(np.eye(2), [0, 1])
    assert (hasher.transform(np.zeros((1, 2))) == -1).all()


def test_one_step_by_hand() -> None:
    """eta = 1, hinge: a bit whose margin is below 1 moves by its target times the unit row."""
    word = np.array([[1, -1]], np.int8)
    hasher = OnlineHasher(
        bits=2, learner="sgd", codebook=word, center=None, average=False, replay=0
    )
    axes = np.eye(2, dtype=np.float32)
    hasher.partial_fit(np.array([[3.0, 4.0]]))  # unlabelled: weights are still the initial ones
    w = hasher.margins(axes).T
    x = np.array([0.6, 0.8], np.float32)  # the row at unit length
    hasher.partial_fit(np.array([[3.0, 4.0]]), ["owl"])
    assert (word[0] * (w @ x) < 1).all()
    np.testing.assert_allclose(hasher.margins(axes).T, w + word.T * x, rtol=1e-6)
    np.testing.assert_array_equal(hasher.versions_, [1, 1])


@pytest.mark.parametrize(
    ("loss", "sklearn_loss", "scale"),
    [
        ("hinge", "hinge", 1.0),
        ("squared_hinge", "squared_hinge", 1.0),
        ("logistic", "log_loss", 1 / np.log(2)),
    ],
)
def test_update_equals_scikit_learns_sgd(
    digits: Stream, loss: str, sklearn_loss: str, scale: float
) -> None:
    """One classifier a bit, constant step, no penalty, started from our initial weights."""
    from sklearn.linear_model import SGDClassifier

    step, bits = 0.3, 6
    X, y = digits.X[:600], digits.y[:600]
    center = X.mean(axis=0)
    hasher = OnlineHasher(
        bits,
        None,
        learner="sgd",
        step=step,
        loss=loss,
        average=False,
        replay=0,
        center=center,
        random_state=3,
    )
    probe = center + np.eye(64, dtype=np.float32)
    start = hasher.partial_fit(X[:1]).margins(probe).T
    hasher.partial_fit(X, y)
    Z = X - center
    Z = (Z / np.linalg.norm(Z, axis=1, keepdims=True)).astype(np.float64)
    word_of = dict(zip(hasher.labels_, hasher.codewords_, strict=True))
    targets = np.array([word_of[label] for label in y.tolist()])
    for bit in range(bits):
        oracle = SGDClassifier(
            loss=sklearn_loss,
            alpha=0.0,
            penalty=None,
            learning_rate="constant",
            eta0=step * scale,
            fit_intercept=False,
            shuffle=False,
            max_iter=1,
            tol=None,
        )
        oracle.fit(Z, targets[:, bit], coef_init=start[bit].astype(np.float64)[None])
        np.testing.assert_allclose(hasher.margins(probe).T[bit], oracle.coef_[0], atol=2e-3)


def test_paper_setting_is_the_seed_and_nothing_else() -> None:
    hasher = OnlineHasher.paper(16, labels_per_cycle=5, step=0.5)
    assert hasher.get_params() == {
        "bits": 16,
        "labels_per_cycle": 5,
        "learner": "sgd",
        "features": 1000,
        "publish": 1.2,
        "learn_unlabelled": "auto",
        "step": 0.5,
        "loss": "hinge",
        "average": False,
        "codebook": "random",
        "replay": 0,
        "center": "warmup",
        "random_state": 0,
        "schedule": "constant",
    }
