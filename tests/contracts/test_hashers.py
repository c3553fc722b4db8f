"""Every hasher of a stream keeps the promises of `everhash.checks`. A new one is a line here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash import OnlineHasher, checks, peers
from everhash.checks.judging import require_same
from everhash.checks.online import learns_unlabelled, mixed_labels
from everhash.learn.stream_hasher import StreamHasher
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
    "lemon": lambda: peers.get("lemon", 16, batch=40),
    "oasis": lambda: peers.get("oasis", 16, batch=40, vector=60),
    "smarthash": lambda: peers.get("smarthash", 16, anchors=40, batch=80),
    "onehot": lambda: peers.get("onehot"),
}
HASHERS = OURS | PEERS
NEVER_STILL = {"logistic", "osh", "hcoh", "onehot"}
"""Where every row that is learned moves every function."""
ROW_BY_ROW = {"check_one_row_at_a_time", "check_versions"}
"""Checks that call a hasher hundreds of times."""
ONE_OF_A_KIND = {"default", "sgd", "paper", "okh", "sketchhash", "hcoh", "bsodh", "onehot"}
"""Hashers that go through these checks quickly: each learner, each way to wait for rows."""


@pytest.fixture(params=list(HASHERS.values()), ids=list(HASHERS))
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_every_method_is_held_to_the_contract() -> None:
    online = {name for name in peers.names() if peers.describe(name).online}
    assert {*PEERS, "everhash", "everhash-sgd", "paper"} == online


def every_promise() -> list[object]:
    """Return each hasher with each check; the long ones quickly of one hasher of a kind only."""
    return [
        pytest.param(made, check, id=f"{name}-{check}", marks=[pytest.mark.slow] if slow else [])
        for name, made in HASHERS.items()
        for check in (*checks.names("every"), *checks.names("online"))
        for slow in [check in ROW_BY_ROW and name not in ONE_OF_A_KIND]
    ]


@pytest.mark.parametrize(("made", "check"), every_promise())
def test_keeps_its_promises(made: Make, check: str, digits: Stream) -> None:
    checks.get(check)(made, checks.Stream(*digits))


def test_batch_boundaries_do_not_matter(make: Make, digits: Stream, thorough: bool) -> None:
    stream = checks.Stream(digits.X[:1500], digits.y[:1500])
    X, y = stream.X, mixed_labels(stream)
    whole = make().partial_fit(X, y)

    @settings(max_examples=8 if thorough else 2)
    @given(cuts=st.lists(st.integers(1, 1499), min_size=1, max_size=6))
    def cut(cuts: list[int]) -> None:
        parts = make()
        for start, end in pairwise([0, *sorted(set(cuts)), 1500]):
            parts.partial_fit(X[start:end], y[start:end])
        require_same(whole, parts, X, f"batches cut at {cuts} learn what one batch does")

    cut()


@pytest.mark.parametrize("name", HASHERS)
def test_another_seed_gives_other_functions_where_a_method_draws_any(
    name: str, digits: Stream
) -> None:
    one = HASHERS[name]().partial_fit(*digits)
    another = HASHERS[name]().set_params(random_state=1).partial_fit(*digits)
    draws = not isinstance(one, OneHot)
    assert draws != np.array_equal(one.margins(digits.X), another.margins(digits.X))


@pytest.mark.parametrize("name", HASHERS)
def test_some_functions_stand_still_unless_every_row_moves_them_all(
    name: str, digits: Stream
) -> None:
    hasher, still = HASHERS[name]().partial_fit(digits.X[:1200], digits.y[:1200]), False
    for start in range(1200, len(digits.X), 2):
        before = hasher.versions_
        hasher.partial_fit(digits.X[start : start + 2], digits.y[start : start + 2])
        still |= bool((hasher.versions_[: len(before)] == before).any())
    assert still == (name not in NEVER_STILL)


def test_unlabelled_rows_teach_those_that_say_so(make: Make, digits: Stream) -> None:
    if not learns_unlabelled(make()):
        return
    hasher = make().partial_fit(digits.X[:1100], digits.y[:1100])
    before, versions = hasher.margins(digits.X), hasher.versions_
    hasher.partial_fit(digits.X[1100:1400])
    hasher.partial_fit(digits.X[1100:1400], [None] * 300)
    if isinstance(hasher, SketchHash):  # which needs no labels, and ignores them
        blind = make().partial_fit(digits.X[:1100])
        np.testing.assert_array_equal(blind.margins(digits.X), before)
        assert (hasher.versions_ > versions).all()
    else:
        assert isinstance(hasher, OnlineHasher)
        assert hasher.rows_ == 1700


def test_an_assigned_label_moves_no_function_but_those_of_the_classifier(
    make: Make, digits: Stream
) -> None:
    hasher = make().partial_fit(digits.X[:1100], digits.y[:1100])
    versions = hasher.versions_
    hasher.assign(["owl", 3, np.int64(3), "owl", "lark"])
    assert hasher.labels_[-2:] == ["owl", "lark"]
    still = hasher.versions_[: len(versions)] == versions
    assert still.all() != isinstance(hasher, OneHot)
