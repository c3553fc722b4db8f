"""Any history of calls ends the same, here and on a cluster that restarts and grows meanwhile."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.contracts.test_local_and_remote_histories import Histories
from tests.contracts.twins import ALL, CLUSTER, PROBES, TRUTH

MOST_SHARDS = 7


class ClusterHistories(Histories):
    """Calls in any order, also to a cluster that starts anew from its files, and that grows."""

    moving = None

    @initialize(seed=st.integers(0, 99), many=st.booleans())
    def start(self, seed: int, many: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.begin(CLUSTER, seed, folder=Path(self.folder.name))
        if many:
            self.ingest_many(600)

    def teardown(self) -> None:
        super().teardown()
        if self.twins is not None:
            self.folder.cleanup()

    @rule(n=st.sampled_from([300, 600]))
    def ingest_many(self, n: int) -> None:
        """The learner sums rows up from 1,000 on."""
        rows = self.rows(n)
        self.added(self.call("ingest", ALL[rows], TRUTH[rows]))

    @precondition(lambda self: self.learned)
    @rule(n=st.integers(1, 30))
    def forget(self, n: int) -> None:
        """Strangers that were forgotten may have taken the place of rows that were learned."""
        rows, labels = zip(*self.learned[:n], strict=True)
        if self.call("forget", ALL[list(rows)], list(labels)) is None:
            self.learned = self.learned[n:]

    @rule(n=st.sampled_from([1, 20]), label=st.sampled_from([3, "stranger"]))
    def forget_strangers(self, n: int, label: Any) -> None:
        """Sums of many rows may be those of strangers too."""
        self.call("forget", self.rng.normal(size=(n, 64)).astype(np.float32), [label] * n)

    @rule()
    def refresh(self) -> None:
        """How much of it could be skipped is another thing after a restart, and after a move."""
        assert self.twins is not None
        mine, theirs = (each.refresh() for each in (self.twins.here, self.twins.remote))
        for name in ("entries", "bits_flipped", "homes_moved"):
            assert getattr(mine, name) == getattr(theirs, name), name

    @rule()
    def restart(self) -> None:
        assert self.twins is not None
        assert self.twins.cluster is not None
        self.twins.cluster.restart()

    @precondition(lambda self: self.moving is None)
    @rule(more=st.integers(1, 2))
    def grow(self, more: int) -> None:
        assert self.twins is not None
        shards = self.twins.remote.stats()["shards"] + more
        if shards <= MOST_SHARDS:
            self.moving = self.twins.remote.grow(shards)

    @precondition(lambda self: self.moving is not None)
    @rule(steps=st.integers(1, 4), step=st.sampled_from([1, 20, 300]))
    def move(self, steps: int, step: int) -> None:
        assert self.twins is not None
        self.moving = self.twins.remote.rebalance(step)
        for _ in range(steps):
            if next(self.moving, None) is None:
                self.moving = None
                return

    @invariant()
    def finds_the_same(self) -> None:
        if self.twins is not None:
            self.call("search", PROBES[:3], 5)
            self.call("__len__")


@pytest.mark.parametrize("seed", [0, 1])
def test_stats_are_the_same_where_a_dropped_label_leaves_the_first_unlabelled_entries(
    seed: int,
) -> None:
    """Here they are coded by the functions before, then refreshed; there, once by those after."""
    history = ClusterHistories()
    history.start(seed=seed, many=True)
    try:
        history.drop(label=1)
        history.look()
        history.finds_the_same()
    finally:
        history.teardown()


TestHistories = ClusterHistories.TestCase
TestHistories.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)


class LongHistories(ClusterHistories):
    """The same, longer."""


TestLongHistories = pytest.mark.slow(LongHistories.TestCase)
TestLongHistories.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
