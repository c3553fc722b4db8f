"""Shards that sum up their own rows and serve what one lead solves equal one hasher."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.learn.exact import ExactLearner
from everhash.learn.following import (
    FollowingLearner,
    Publisher,
    follow,
    follower_of,
    learner_of,
)
from everhash.learn.following_file import read_solved, solved_to_arrays
from everhash.learn.hasher import OnlineHasher
from everhash.learn.split_sums import SplitSums
from everhash.peers.model_file import hasher_from_bytes
from everhash.stream import as_labels
from tests.conftest import Stream

Floats = NDArray[np.float32]


class Shards:
    """A lead and followers that learn one stream together, as a cluster lets them."""

    def __init__(self, n: int, **options: Any) -> None:
        self.lead = OnlineHasher(**options).begin(64)
        self.learner.memory.new_sums = SplitSums
        self.shards = [follower_of(self.lead) for _ in range(n)]
        self.publisher = Publisher(self.lead)
        self.writes = 0

    @property
    def learner(self) -> ExactLearner:
        return learner_of(self.lead)

    def gather(self) -> None:
        sums = self.learner.memory.sums
        if isinstance(sums, SplitSums):
            sums.elsewhere = np.sum([products(shard) for shard in self.shards], axis=0)

    def call(self, name: str, X: Floats, y: Any) -> None:
        """Learn or forget rows: the lead decides, one shard sums up each row."""
        labels, summing = as_labels(y, len(X)), self.learner.memory.sums is not None
        self.gather()
        getattr(self.lead, name)(X, labels)
        self.finish()
        if summing:
            for i, shard in enumerate(self.shards):
                mine = np.arange(len(X)) % len(self.shards) == i
                labelled = as_labels(y[i :: len(self.shards)], int(mine.sum()))
                getattr(shard, name)(X[mine], labelled)

    def change(self, name: str, *arguments: Any) -> None:
        self.gather()
        getattr(self.lead, name)(*arguments)
        self.finish()

    def finish(self) -> None:
        sums = self.learner.memory.sums
        if isinstance(sums, SplitSums):
            if self.writes == 0:
                sums.keep_products()
                self.writes = 1
            sums.decided()
        solved = self.publisher.take()
        arrays, about = solved_to_arrays(solved)
        for shard in self.shards:
            follow(shard, read_solved(arrays, about, shard))


def products(shard: OnlineHasher) -> NDArray[np.float64]:
    learner = shard._learner
    assert isinstance(learner, FollowingLearner)
    assert learner.memory.own is not None
    return learner.memory.own.gram


def assert_serves_the_same(one: OnlineHasher, other: OnlineHasher, X: Floats) -> None:
    assert one.labels_ == other.labels_
    np.testing.assert_array_equal(one.versions_, other.versions_)
    np.testing.assert_array_equal(one.words_, other.words_)
    for mine, theirs in zip(one.posterior(X), other.posterior(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(one.margins(X), other.margins(X))
    np.testing.assert_array_equal(one.trust_, other.trust_)
    assert one.accuracy_ == other.accuracy_
    assert one.label_accuracies_ == other.label_accuracies_
    assert (one.rows_, one.published_rows_) == (other.rows_, other.published_rows_)
    assert one.generation_ == other.generation_
    np.testing.assert_array_equal(one.label_counts_, other.label_counts_)


@settings(max_examples=8)
@given(data=st.data())
def test_shards_that_learn_in_parallel_serve_what_one_hasher_does(
    digits: Stream, data: st.DataObject
) -> None:
    options: dict[str, Any] = {"bits": 16, "labels_per_cycle": 4, "features": 60, "random_state": 3}
    one, shards = OnlineHasher(**options).begin(64), Shards(3, **options)
    at = data.draw(st.sampled_from([0, 900]))
    if at:
        one.learn_rows(digits.X[:at], as_labels(digits.y[:at], at))
        shards.call("learn_rows", digits.X[:at], digits.y[:at].tolist())
    learned: list[tuple[int, int]] = []
    for step in range(data.draw(st.integers(1, 6))):
        known = [label for label in one.labels_ if label is not None]
        call = data.draw(st.sampled_from(["learn", "learn", "forget", "rename", "merge", "drop"]))
        if call == "learn":
            n = data.draw(st.sampled_from([1, 40, 400]))
            X, y = digits.X[at : at + n], [f"{label}" for label in digits.y[at : at + n]]
            one.learn_rows(X, as_labels(y, len(X)))
            shards.call("learn_rows", X, y)
            learned, at = [(at, at + n)], at + n
        elif call == "forget" and learned:
            start, stop = learned.pop()
            X, y = digits.X[start:stop], [f"{label}" for label in digits.y[start:stop]]
            if one.unknown(y):
                continue
            one.forget_rows(X, as_labels(y, len(X)))
            shards.call("forget_rows", X, y)
        elif call == "rename" and known:
            one.rename_label(known[0], f"name {step}")
            shards.change("rename_label", known[0], f"name {step}")
            learned = []
        elif call in ("merge", "drop") and len(known) > 2:
            arguments = (known[0], known[1]) if call == "merge" else (known[0],)
            name = "merge_labels" if call == "merge" else "drop_label"
            getattr(one, name)(*arguments)
            shards.change(name, *arguments)
            learned = []
        for shard in (shards.lead, *shards.shards):
            assert_serves_the_same(one, shard, digits.X[-50:])
    shards.change("publish")
    one.publish()
    for shard in shards.shards:
        assert_serves_the_same(one, shard, digits.X[-50:])
        again = hasher_from_bytes(shard.to_bytes(), "shard")
        assert isinstance(again, OnlineHasher)
        assert_serves_the_same(one, again, digits.X[-50:])
        assert again.to_bytes() == shard.to_bytes()


def test_sums_of_shards_add_up_to_those_of_one(digits: Stream) -> None:
    options: dict[str, Any] = {"bits": 16, "features": 60}
    one, shards = OnlineHasher(**options).begin(64), Shards(4, **options)
    for start in range(0, 1700, 170):
        X, y = digits.X[start : start + 170], digits.y[start : start + 170].tolist()
        one.learn_rows(X, as_labels(y, len(X)))
        shards.call("learn_rows", X, y)
    mine, theirs = learner_of(one).memory.sums, shards.learner.memory.sums
    assert mine is not None
    assert isinstance(theirs, SplitSums)
    merged = theirs.own_products + sum(products(shard) for shard in shards.shards)
    np.testing.assert_array_equal(np.tril(merged), np.tril(mine.gram))
    np.testing.assert_array_equal(theirs.squares, mine.gram.diagonal())
    np.testing.assert_array_equal(theirs.total, mine.total)
    np.testing.assert_array_equal(theirs.labels.rows, mine.labels.rows)
    assert all(products(shard).any() for shard in shards.shards)


def test_a_follower_solves_nothing_by_itself(digits: Stream) -> None:
    hasher = OnlineHasher(bits=16, features=60).partial_fit(digits.X[:50], digits.y[:50])
    with pytest.raises(OptionError, match="solves nothing by itself"):
        follower_of(hasher).publish()
