"""What is special about `OnlineHasher`; what it shares with all hashers is in tests/contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everhash import OnlineHasher
from everhash.errors import InputError, LimitError, NotFittedError, OptionError
from tests.conftest import Stream


def test_row_on_the_centre_teaches_nothing_and_encodes_to_minus_one(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8, learner="sgd", center=digits.X[0])
    hasher.partial_fit(digits.X[1:50], digits.y[1:50])
    versions = hasher.versions_
    hasher.partial_fit(digits.X[:1], ["new label"])
    assert hasher.labels_[-1] == "new label"
    np.testing.assert_array_equal(hasher.versions_, versions)
    assert (hasher.transform(digits.X[:1]) == -1).all()


def test_centre_freezes_after_a_thousand_rows_and_moves_every_version_until_then(
    digits: Stream,
) -> None:
    hasher = OnlineHasher(bits=8, learner="sgd").partial_fit(digits.X[:999])
    assert (hasher.versions_ == 999).all()
    before = hasher.margins(digits.X)
    hasher.partial_fit(digits.X[999:1000])
    assert (hasher.versions_ == 1000).all()
    assert not np.array_equal(hasher.margins(digits.X), before)
    before = hasher.margins(digits.X)
    hasher.partial_fit(digits.X[1000:])
    assert (hasher.versions_ == 1000).all()
    np.testing.assert_array_equal(hasher.margins(digits.X), before)
    given = OnlineHasher(bits=8, learner="sgd", center=digits.X[:1000].mean(axis=0))
    given.partial_fit(digits.X[:1])
    np.testing.assert_allclose(given.margins(digits.X), before, atol=1e-5)


def test_replay_keeps_a_stream_sorted_by_label_from_forgetting(digits: Stream) -> None:
    from everhash.codes import asymmetric
    from everhash.metrics import mean_average_precision

    learned, asked = np.arange(1400), np.arange(1400, len(digits.X))
    learned = learned[np.argsort(digits.y[learned], kind="stable")]

    def score(hasher: OnlineHasher) -> float:
        hasher.partial_fit(digits.X[learned], digits.y[learned])
        distances = asymmetric(hasher.margins(digits.X[asked]), hasher.encode_labels())
        return mean_average_precision(distances, digits.y[asked, None] == np.arange(10))

    def mean(**options: Any) -> float:
        hashers = (OnlineHasher(learner="sgd", random_state=seed, **options) for seed in range(3))
        return float(np.mean([score(hasher) for hasher in hashers]))

    plain, replayed = mean(replay=0), mean()
    assert replayed > 0.85
    assert replayed > plain + 0.1


def test_served_weights_are_the_mean_of_the_iterates(digits: Stream) -> None:
    """Of those of every round since a label joined, up to the function's last update."""
    X, y = digits.X[:300], digits.y[:300].tolist()
    averaged = OnlineHasher(4, None, learner="sgd", center=None, replay=0)
    plain = OnlineHasher(**averaged.get_params()).set_params(average=False)
    probe = np.eye(64, dtype=np.float32)  # unit rows, so margins read the weights off
    iterates: list[np.ndarray] = []
    counted = np.zeros(4, int)
    for row in range(300):
        labels, versions = len(plain.labels_) if row else 0, plain.versions_ if row else -1
        for hasher in (plain, averaged):
            hasher.partial_fit(X[row : row + 1], y[row : row + 1])
        if len(plain.labels_) > labels:
            iterates = []
        iterates.append(plain.margins(probe))
        counted[plain.versions_ > versions] = len(iterates)
    expected = [np.mean([w[:, bit] for w in iterates[:n]], axis=0) for bit, n in enumerate(counted)]
    assert counted.min() < counted.max(), "some function stood still in the last round"
    np.testing.assert_allclose(averaged.margins(probe).T, expected, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"bits": 2.5},
        {"bits": True},
        {"labels_per_cycle": 0},
        {"labels_per_cycle": "many"},
        {"learner": "perceptron"},
        {"features": -1},
        {"features": 20_000},
        {"publish": 1.0},
        {"publish": float("inf")},
        {"learn_unlabelled": 1},
        {"step": 0, "learner": "sgd"},
        {"step": float("nan"), "learner": "sgd"},
        {"loss": "absolute", "learner": "sgd"},
        {"average": 1, "learner": "sgd"},
        {"codebook": "gray"},
        {"codebook": np.ones((3, 7))},
        {"replay": -1, "learner": "sgd"},
        {"center": "median", "learner": "sgd"},
        {"center": np.ones((2, 2)), "learner": "sgd"},
        {"random_state": -1},
        {"random_state": "x"},
        {"schedule": "linear", "learner": "sgd"},
    ],
    ids=str,
)
def test_unknown_option_is_a_typed_error(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as caught:
        OnlineHasher(**options).partial_fit(np.eye(2), [0, 1])
    assert next(iter(options)) in str(caught.value)


def test_options_that_shape_the_code_cannot_change_in_mid_stream(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8).partial_fit(digits.X[:50], digits.y[:50])
    with pytest.raises(OptionError, match="once learning has begun"):
        hasher.set_params(bits=16).partial_fit(digits.X[50:60], digits.y[50:60])
    hasher.set_params(bits=8, publish=1.2).partial_fit(digits.X[50:60], digits.y[50:60])
    sgd = OnlineHasher(bits=8, learner="sgd").partial_fit(digits.X[:50], digits.y[:50])
    sgd.set_params(step=0.1).partial_fit(digits.X[50:60], digits.y[50:60])


@pytest.mark.parametrize(
    "options",
    [
        {"step": 0.5},
        {"loss": "logistic"},
        {"average": False},
        {"replay": 0},
        {"center": None},
        {"center": np.ones(2)},
        {"schedule": "sqrt"},
        {"learner": "sgd", "features": 0},
        {"learner": "sgd", "publish": 2.0},
        {"learner": "sgd", "learn_unlabelled": True},
    ],
    ids=str,
)
def test_options_of_the_other_learner_are_refused_with_a_hint(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="an option of the") as caught:
        OnlineHasher(**options).partial_fit(np.eye(2), [0, 1])
    assert "learner=" in caught.value.hint


def test_functions_far_larger_than_what_is_learned_are_refused_before_they_are_made() -> None:
    with pytest.raises(LimitError, match="numbers, at most 67108864 are supported"):
        OnlineHasher(bits=500_000).begin(3)
    hasher = OnlineHasher(bits=1000, labels_per_cycle=1, features=8).begin(3)
    with pytest.raises(LimitError, match="let more labels share a cycle"):
        hasher.assign(range(2000))
    assert hasher.labels_ == []


def test_too_many_labels_are_refused_before_any_is_taken() -> None:
    hasher = OnlineHasher(bits=1_000_000, labels_per_cycle=1, learner="sgd")
    with pytest.raises(InputError, match="2000000 bits are supported"):
        hasher.partial_fit(np.ones((3, 1)), ["a", "b", "c"])
    with pytest.raises(NotFittedError):
        hasher.labels_  # noqa: B018
