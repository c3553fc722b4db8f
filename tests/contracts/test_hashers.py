"""What every hasher promises. A new one is one more line in HASHERS."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash import Codes, Hasher, OnlineHasher, load_hasher
from everhash.errors import (
    DimensionError,
    InputError,
    LabelError,
    NotFiniteError,
    NotFittedError,
    OptionError,
)
from tests.conftest import Stream

Make = Callable[[], OnlineHasher]
HASHERS: dict[str, Make] = {
    "default": lambda: OnlineHasher(bits=16, labels_per_cycle=3),
    "one cycle": lambda: OnlineHasher(bits=16, labels_per_cycle=None),
    "paper": lambda: OnlineHasher.paper(16),
    "paper in cycles": lambda: OnlineHasher.paper(16, labels_per_cycle=4),
    "squared hinge": lambda: OnlineHasher(bits=16, loss="squared_hinge", step=0.1),
    "logistic": lambda: OnlineHasher(bits=16, loss="logistic", schedule="sqrt"),
    "hadamard": lambda: OnlineHasher(bits=16, labels_per_cycle=4, codebook="hadamard", replay=2),
    "no centre": lambda: OnlineHasher(bits=16, center=None, average=False),
}


@pytest.fixture(params=list(HASHERS.values()), ids=list(HASHERS))
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def assert_same(one: OnlineHasher, other: OnlineHasher, X: np.ndarray) -> None:
    assert one.labels_ == other.labels_
    np.testing.assert_array_equal(one.codewords_, other.codewords_)
    np.testing.assert_array_equal(one.versions_, other.versions_)
    np.testing.assert_array_equal(one.margins(X), other.margins(X))


def some_labels(stream: Stream) -> list[int | set[int] | None]:
    """A mix of single labels, unlabelled rows and rows with two labels."""
    return [
        None if row % 7 == 0 else {int(label), (int(label) + 1) % 10} if row % 11 == 0 else label
        for row, label in enumerate(stream.y.tolist())
    ]


def test_keeps_the_protocol(make: Make, digits: Stream) -> None:
    hasher = make().partial_fit(digits.X[:100], digits.y[:100])
    assert isinstance(hasher, Hasher)
    codes = hasher.encode(digits.X[:5])
    assert isinstance(codes, Codes)
    assert codes.width == hasher.width_ == len(hasher.versions_)
    np.testing.assert_array_equal(codes.unpack(), hasher.transform(digits.X[:5]))


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(1, 1499), max_size=6))
def test_batch_boundaries_do_not_matter(make: Make, digits: Stream, cuts: list[int]) -> None:
    X, y = digits.X[:1500], some_labels(Stream(digits.X[:1500], digits.y[:1500]))
    whole = make().partial_fit(X, y)
    parts = make()
    edges = [0, *sorted(set(cuts)), 1500]
    for start, end in pairwise(edges):
        parts.partial_fit(X[start:end], y[start:end])
    assert_same(whole, parts, X)


def test_one_row_at_a_time_equals_one_batch(make: Make, digits: Stream) -> None:
    whole = make().partial_fit(digits.X, digits.y)
    rows = make()
    for row in range(len(digits.X)):
        rows.partial_fit(digits.X[row : row + 1], digits.y[row : row + 1])
    assert_same(whole, rows, digits.X)


def test_same_seed_same_bytes_and_another_seed_others(make: Make, digits: Stream) -> None:
    one, other = (make().partial_fit(digits.X, digits.y) for _ in range(2))
    assert_same(one, other, digits.X)
    another = make().set_params(random_state=1).partial_fit(digits.X, digits.y)
    assert not np.array_equal(one.margins(digits.X), another.margins(digits.X))


def test_unchanged_version_means_unchanged_bit(make: Make, digits: Stream) -> None:
    hasher = make().partial_fit(digits.X[:1200], digits.y[:1200])
    bits, versions, stamp = hasher.transform(digits.X), hasher.versions_, hasher.version_
    seen_still = seen_moved = False
    for start in range(1200, len(digits.X), 2):
        hasher.partial_fit(digits.X[start : start + 2], digits.y[start : start + 2])
        still = hasher.versions_[: len(versions)] == versions
        after = hasher.transform(digits.X)[:, : len(versions)]
        np.testing.assert_array_equal(bits[:, still], after[:, still])
        assert (hasher.version_ == stamp) == (hasher.width_ == len(versions) and still.all())
        seen_still |= bool(still.any())
        seen_moved |= not still.all()
        bits, versions, stamp = hasher.transform(digits.X), hasher.versions_, hasher.version_
    assert seen_moved
    assert seen_still or hasher.loss == "logistic"


def test_unlabelled_rows_teach_nothing(make: Make, digits: Stream) -> None:
    hasher = make().partial_fit(digits.X[:1100], digits.y[:1100])
    before, versions = hasher.margins(digits.X), hasher.versions_
    hasher.partial_fit(digits.X[1100:1400])
    hasher.partial_fit(digits.X[1100:1400], [None] * 300)
    np.testing.assert_array_equal(hasher.margins(digits.X), before)
    np.testing.assert_array_equal(hasher.versions_, versions)


def test_codeword_is_never_reassigned(make: Make, digits: Stream) -> None:
    hasher = make()
    order = np.argsort(digits.y, kind="stable")
    words: dict[object, np.ndarray] = {}
    for rows in np.array_split(order, 12):
        hasher.partial_fit(digits.X[rows], digits.y[rows])
        for label, word in zip(hasher.labels_, hasher.codewords_, strict=True):
            known = words.setdefault(label, word)
            np.testing.assert_array_equal(word[: len(known)], known)
            assert not word[len(known) :].any(), "widening adds only inactive bits"


def test_save_and_load_go_on_exactly(make: Make, digits: Stream, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    hasher = make().partial_fit(digits.X[:900], digits.y[:900])
    hasher.save(path)
    loaded = load_hasher(path)
    assert_same(hasher, loaded, digits.X)
    for one in (hasher, loaded):
        one.partial_fit(digits.X[900:], digits.y[900:])
    assert_same(hasher, loaded, digits.X)


def test_row_on_the_centre_teaches_nothing_and_encodes_to_minus_one(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8, center=digits.X[0]).partial_fit(digits.X[1:50], digits.y[1:50])
    versions = hasher.versions_
    hasher.partial_fit(digits.X[:1], ["new label"])
    assert hasher.labels_[-1] == "new label"
    np.testing.assert_array_equal(hasher.versions_, versions)
    assert (hasher.transform(digits.X[:1]) == -1).all()


def test_centre_freezes_after_a_thousand_rows_and_moves_every_version_until_then(
    digits: Stream,
) -> None:
    hasher = OnlineHasher(bits=8).partial_fit(digits.X[:999])
    assert (hasher.versions_ == 999).all()
    before = hasher.margins(digits.X)
    hasher.partial_fit(digits.X[999:1000])
    assert (hasher.versions_ == 1000).all()
    assert not np.array_equal(hasher.margins(digits.X), before)
    before = hasher.margins(digits.X)
    hasher.partial_fit(digits.X[1000:])
    assert (hasher.versions_ == 1000).all()
    np.testing.assert_array_equal(hasher.margins(digits.X), before)
    given = OnlineHasher(bits=8, center=digits.X[:1000].mean(axis=0)).partial_fit(digits.X[:1])
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

    plain = np.mean([score(OnlineHasher(replay=0, random_state=seed)) for seed in range(3)])
    replayed = np.mean([score(OnlineHasher(random_state=seed)) for seed in range(3)])
    assert replayed > 0.85
    assert replayed > plain + 0.1


def test_served_weights_are_the_mean_of_the_iterates(digits: Stream) -> None:
    """Of those of every round since a label joined, up to the function's last update."""
    X, y = digits.X[:300], digits.y[:300].tolist()
    averaged = OnlineHasher(bits=4, labels_per_cycle=None, center=None, replay=0)
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


BAD_BATCHES = {
    "wrong width": (np.ones((2, 3)), [1, 2], DimensionError),
    "empty batch": (np.ones((0, 64)), [], InputError),
    "1-d X": (np.ones(64), [1], InputError),
    "y of another length": (np.ones((2, 64)), [1], LabelError),
    "NaN": (np.array([[1.0] * 64, [np.nan] * 64]), [1, 2], NotFiniteError),
    "infinity": (np.array([[1.0] * 64, [np.inf] * 64]), [1, 2], NotFiniteError),
    "unhashable label": (np.ones((2, 64)), [1, [2]], LabelError),
    "NaN label": (np.ones((2, 64)), [1, float("nan")], LabelError),
}


@pytest.mark.parametrize(("X", "y", "error"), BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_bad_batch_leaves_the_hasher_unchanged(
    make: Make, digits: Stream, X: np.ndarray, y: list[object], error: type[Exception]
) -> None:
    hasher, twin = (make().partial_fit(digits.X[:200], digits.y[:200]) for _ in range(2))
    with pytest.raises(error) as caught:
        hasher.partial_fit(X, y)
    assert isinstance(caught.value, ValueError)
    assert_same(hasher, twin, digits.X)
    with pytest.raises(error):
        make().partial_fit(X, y) if error is not DimensionError else hasher.margins(X)


def test_nan_is_refused_with_the_rows_number(make: Make) -> None:
    X = np.ones((9, 4))
    X[6, 2] = np.nan
    with pytest.raises(NotFiniteError, match="row 6") as caught:
        make().partial_fit(X, list(range(9)))
    assert caught.value.row == 6


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"bits": 2.5},
        {"bits": True},
        {"labels_per_cycle": 0},
        {"labels_per_cycle": "many"},
        {"step": 0},
        {"step": float("nan")},
        {"loss": "absolute"},
        {"average": 1},
        {"codebook": "gray"},
        {"codebook": np.ones((3, 7))},
        {"replay": -1},
        {"center": "median"},
        {"center": np.ones((2, 2))},
        {"random_state": -1},
        {"random_state": "x"},
        {"schedule": "linear"},
    ],
    ids=str,
)
def test_unknown_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(OptionError) as caught:
        OnlineHasher(**options).partial_fit(np.eye(2), [0, 1])  # type: ignore[arg-type]
    assert next(iter(options)) in str(caught.value)


def test_options_that_shape_the_code_cannot_change_in_mid_stream(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8).partial_fit(digits.X[:50], digits.y[:50])
    with pytest.raises(OptionError, match="once learning has begun"):
        hasher.set_params(bits=16).partial_fit(digits.X[50:60], digits.y[50:60])
    hasher.set_params(bits=8, step=0.1).partial_fit(digits.X[50:60], digits.y[50:60])


def test_asking_before_learning_is_a_typed_error(make: Make) -> None:
    hasher = make()
    for ask in (lambda: hasher.margins(np.eye(3)), lambda: hasher.labels_, lambda: hasher.width_):
        with pytest.raises(NotFittedError):
            ask()


def test_too_many_labels_are_refused_before_any_is_taken() -> None:
    hasher = OnlineHasher(bits=1_000_000, labels_per_cycle=1)
    with pytest.raises(InputError, match="2000000 bits are supported"):
        hasher.partial_fit(np.ones((3, 1)), ["a", "b", "c"])
    with pytest.raises(NotFittedError):
        hasher.labels_  # noqa: B018


def test_assigned_labels_have_codewords_before_any_row(
    make: Make, digits: Stream, tmp_path: Path
) -> None:
    hasher = make().partial_fit(digits.X[:1100], digits.y[:1100])
    known, versions = len(hasher.labels_), hasher.versions_
    hasher.assign(["owl", 3, np.int64(3), "owl", "lark"])
    assert hasher.labels_[known:] == ["owl", "lark"]
    assert (hasher.codewords_[known:] != 0).sum() == 2 * 16
    np.testing.assert_array_equal(hasher.versions_[: len(versions)], versions)
    hasher.save(tmp_path / "m")
    loaded = load_hasher(tmp_path / "m")
    for one in (hasher, loaded):
        one.partial_fit(digits.X[1100:1200], ["lark"] * 100)
    assert_same(hasher, loaded, digits.X)


def test_a_frozen_mapping_does_not_move(make: Make, digits: Stream) -> None:
    hasher = make().partial_fit(digits.X[:300], digits.y[:300])
    frozen, before = hasher.freeze(), hasher.margins(digits.X)
    np.testing.assert_array_equal(frozen.margins(frozen.measure(digits.X)), before)
    hasher.partial_fit(digits.X[300:600], digits.y[300:600])
    np.testing.assert_array_equal(frozen.margins(frozen.measure(digits.X)), before)
    assert frozen.version != hasher.version_
    scores = before @ hasher.codewords_[: len(frozen.words), : before.shape[1]].T
    np.testing.assert_allclose(frozen.scores(frozen.measure(digits.X)), scores, atol=1e-3)
