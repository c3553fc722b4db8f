"""What every hasher promises. A new one is one more line in HASHERS."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash import Codes, Hasher, OnlineHasher, load_hasher, peers
from everhash.errors import (
    DimensionError,
    InputError,
    LabelError,
    LimitError,
    NotFiniteError,
    NotFittedError,
    OptionError,
)
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.method import Method
from everhash.peers.online.hcoh import HCOH
from everhash.peers.online.hmoh import HMOH
from everhash.peers.online.onehot import OneHot
from everhash.peers.online.sketchhash import SketchHash
from tests.conftest import Stream

Make = Callable[[], StreamHasher]
OURS: dict[str, Make] = {
    "default": lambda: OnlineHasher(bits=16, labels_per_cycle=3, features=100),
    "one cycle, linear": lambda: OnlineHasher(16, None, features=0, codebook="maxmin"),
    "often": lambda: OnlineHasher(bits=16, features=40, publish=1.1, learn_unlabelled=True),
    "sgd": lambda: OnlineHasher(bits=16, labels_per_cycle=3, learner="sgd"),
    "paper": lambda: OnlineHasher.paper(16),
    "paper in cycles": lambda: OnlineHasher.paper(16, labels_per_cycle=4),
    "squared hinge": lambda: OnlineHasher(bits=16, learner="sgd", loss="squared_hinge", step=0.1),
    "logistic": lambda: OnlineHasher(bits=16, learner="sgd", loss="logistic", schedule="sqrt"),
    "hadamard": lambda: OnlineHasher(
        bits=16, labels_per_cycle=4, learner="sgd", codebook="hadamard", replay=2
    ),
    "no centre": lambda: OnlineHasher(bits=16, learner="sgd", center=None, average=False),
}
PEERS: dict[str, Make] = {
    "okh": lambda: peers.get("okh", 16, anchors=40),
    "osh": lambda: peers.get("osh", 16),
    "adapthash": lambda: peers.get("adapthash", 16, sample=50),
    "sketchhash": lambda: peers.get("sketchhash", 16, batch=30, sketch=60),
    "mihash": lambda: peers.get("mihash", 16, sample=30, update_every=20),
    "hcoh": lambda: peers.get("hcoh", 16, classes=20),
    "hmoh": lambda: peers.get("hmoh", 16, classes=12),
    "bsodh": lambda: peers.get("bsodh", 16, batch=40),
    "smarthash": lambda: peers.get("smarthash", 16, anchors=40, batch=80),
    "onehot": lambda: peers.get("onehot"),
}
HASHERS = OURS | PEERS
NEVER_STILL = {"logistic", "osh", "hcoh", "onehot"}
"""Where every row that is learned moves every function."""


@pytest.fixture(params=list(HASHERS.values()), ids=list(HASHERS))
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_every_method_is_held_to_the_contract() -> None:
    online = {name for name in peers.names() if peers.describe(name).online}
    assert {*PEERS, "everhash", "everhash-sgd", "paper"} == online


def assert_same(one: StreamHasher, other: StreamHasher, X: np.ndarray) -> None:
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


@settings(max_examples=8)
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
    assert one.to_bytes() == other.to_bytes()
    another = make().set_params(random_state=1).partial_fit(digits.X, digits.y)
    draws = not isinstance(one, OneHot)
    assert draws != np.array_equal(one.margins(digits.X), another.margins(digits.X))


@pytest.mark.parametrize("name", HASHERS)
def test_unchanged_version_means_unchanged_bit(name: str, digits: Stream) -> None:
    hasher = HASHERS[name]().partial_fit(digits.X[:1200], digits.y[:1200])
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
    assert seen_still == (name not in NEVER_STILL)


def test_unlabelled_rows_teach_nothing_where_a_method_needs_labels(
    make: Make, digits: Stream
) -> None:
    hasher = make().partial_fit(digits.X[:1100], digits.y[:1100])
    before, versions = hasher.margins(digits.X), hasher.versions_
    hasher.partial_fit(digits.X[1100:1400])
    hasher.partial_fit(digits.X[1100:1400], [None] * 300)
    if isinstance(hasher, SketchHash):  # which needs no labels, and minds none
        blind = make().partial_fit(digits.X[:1100])
        np.testing.assert_array_equal(blind.margins(digits.X), before)
        assert (hasher.versions_ > versions).all()
        return
    if isinstance(hasher, OnlineHasher) and hasher.learn_unlabelled:
        assert hasher.rows_ == 1700
        return
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


def test_asking_before_learning_is_a_typed_error(make: Make) -> None:
    hasher = make()
    for ask in (lambda: hasher.margins(np.eye(3)), lambda: hasher.labels_, lambda: hasher.width_):
        with pytest.raises(NotFittedError):
            ask()


def test_new_labels_are_welcome_in_mid_stream_unless_a_method_must_know_their_number(
    make: Make, digits: Stream
) -> None:
    hasher, twin = (make().partial_fit(digits.X[:300], digits.y[:300]) for _ in range(2))
    new = [("new", row % 30) for row in range(300)]
    needs_count = isinstance(hasher, HCOH | HMOH)
    assert needs_count == (not isinstance(hasher, OnlineHasher) and counts_classes(hasher))
    if needs_count:
        with pytest.raises(LimitError, match="classes"):
            hasher.partial_fit(digits.X[300:600], new)
        assert_same(hasher, twin, digits.X)
    else:
        hasher.partial_fit(digits.X[300:600], new)
        assert len(hasher.labels_) == 40


def counts_classes(hasher: StreamHasher) -> bool:
    assert isinstance(hasher, Method)
    return hasher.about.needs_class_count


def test_rows_of_a_batch_and_alone_get_the_same_bits(make: Make, digits: Stream) -> None:
    hasher = make().partial_fit(digits.X[:500], digits.y[:500])
    margins = hasher.margins(digits.X[:60])
    for row in range(60):
        np.testing.assert_array_equal(hasher.margins(digits.X[row : row + 1])[0], margins[row])
    np.testing.assert_array_equal(hasher.margins(digits.X[7:60]), margins[7:])


def test_options_cannot_change_in_mid_stream(make: Make, digits: Stream) -> None:
    hasher = make().partial_fit(digits.X[:50], digits.y[:50])
    if "bits" in hasher.get_params():
        with pytest.raises(OptionError, match="once learning has begun"):
            hasher.set_params(bits=8).partial_fit(digits.X[50:60], digits.y[50:60])


def test_assigned_labels_have_codewords_before_any_row(
    make: Make, digits: Stream, tmp_path: Path
) -> None:
    hasher = make().partial_fit(digits.X[:1100], digits.y[:1100])
    known, versions, bits = len(hasher.labels_), hasher.versions_, hasher.transform(digits.X)
    hasher.assign(["owl", 3, np.int64(3), "owl", "lark"])
    assert hasher.labels_[known:] == ["owl", "lark"]
    active = hasher.bits if hasher.assigns_codewords else 0
    assert ((hasher.codewords_[known:] != 0).sum(axis=1) == active).all()
    still = hasher.versions_[: len(versions)] == versions
    after = hasher.transform(digits.X)[:, : len(versions)]
    np.testing.assert_array_equal(after[:, still], bits[:, still])
    assert still.all() != isinstance(hasher, OneHot), "only there a label moves all others"
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
