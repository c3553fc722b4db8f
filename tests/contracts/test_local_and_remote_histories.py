"""Any history of calls ends the same, here and behind a service."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from everhash.errors import EverhashError, UnknownNameError
from everhash.wire.options import WAYS
from tests.contracts.twins import (
    ALL,
    FORGETTING,
    KINDS,
    TRUTH,
    Twins,
)

# Any history


NAMES: list[Any] = [1, 3, "new", "news", ("a", 1), "other"]


class Histories(RuleBasedStateMachine):
    """Calls in any order, on both sides."""

    twins: Twins | None = None

    @initialize(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 99))
    def start(self, kind: str, seed: int) -> None:
        self.begin(kind, seed)

    def begin(self, kind: str, seed: int, **more: Any) -> None:
        self.twins = Twins(**KINDS[kind], seed=seed, **more)
        self.rng = np.random.default_rng(seed)
        self.forgets = kind in FORGETTING
        self.ids: list[Any] = []
        self.free: list[Any] = []
        self.learned: list[tuple[int, int]] = []
        self.named = 0

    def teardown(self) -> None:
        if self.twins is not None:
            self.twins.close()

    def rows(self, n: int) -> Any:
        return self.rng.integers(0, len(ALL), n)

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        assert self.twins is not None
        return self.twins.both(name, *arguments, **options)

    @rule(n=st.integers(1, 30), named=st.booleans(), learn=st.booleans(), share=st.floats(0, 1))
    def add(self, n: int, named: bool, learn: bool, share: float) -> None:
        rows, known = self.rows(n), self.rng.random(n) < share
        labels = [
            int(TRUTH[row]) if there else None for row, there in zip(rows, known, strict=True)
        ]
        ids = self.new_ids(n) if named else None
        if learn:
            self.added(self.call("ingest", ALL[rows], labels, ids))
        else:
            self.added(self.call("add", ALL[rows], ids, labels))

    def new_ids(self, n: int) -> list[Any]:
        """Return ids that no entry has; some of them had been removed."""
        again, self.free = self.free[:n], self.free[n:]
        fresh = [f"{self.named + i}" for i in range(n - len(again))]
        self.named += n
        return [*again, *fresh]

    def added(self, ids: Any) -> None:
        self.ids += [one for one in ids if one not in self.ids]

    @rule(n=st.integers(1, 30))
    def learn(self, n: int) -> None:
        rows = self.rows(n)
        self.call("learn", ALL[rows], TRUTH[rows])
        self.learned += [(int(row), int(TRUTH[row])) for row in rows]

    @precondition(lambda self: self.learned)
    @rule(n=st.integers(1, 30))
    def forget(self, n: int) -> None:
        gone = self.learned[:n]
        rows, labels = zip(*gone, strict=True)
        error = self.call("forget", ALL[list(rows)], list(labels))
        if not isinstance(error, UnknownNameError):  # a label was renamed or dropped since
            assert (error is None) == self.forgets
        if error is None:
            self.learned = self.learned[n:]

    @rule(n=st.sampled_from([1, 20]), label=st.sampled_from([3, "stranger"]))
    def forget_strangers(self, n: int, label: Any) -> None:
        rows = self.rng.normal(size=(n, 64)).astype(np.float32)
        assert isinstance(self.call("forget", rows, [label] * n), EverhashError)

    @precondition(lambda self: self.ids)
    @rule(
        n=st.integers(1, 5),
        label=st.sampled_from(["new", ("a", 1), {2, "b"}, "news"]),
        teach=st.booleans(),
    )
    def label(self, n: int, label: Any, teach: bool) -> None:
        some = self.some(n)
        self.call("label", some, [label] * len(some), teach=teach)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 5), teach=st.booleans())
    def unlabel(self, n: int, teach: bool) -> None:
        self.call("unlabel", self.some(n), teach=teach)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 12), named=st.integers(0, 4), teach=st.booleans())
    def upsert(self, n: int, named: int, teach: bool) -> None:
        ids = [*self.some(n), *self.new_ids(named)]
        rows = self.rows(len(ids))
        labels = [int(label) if label % 2 else None for label in TRUTH[rows]]
        done = self.call("upsert", ALL[rows], ids, labels, teach=teach)
        if isinstance(done, EverhashError):
            self.free += ids[len(ids) - named :]
        else:
            self.added(done)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 12), teach=st.booleans())
    def update(self, n: int, teach: bool) -> None:
        some = self.some(n)
        self.call("update", some, ALL[self.rows(len(some))], teach=teach)

    @rule(label=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def change_labels(self, label: Any, other: Any) -> None:
        self.call("rename_label", label, other)

    @rule(label=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def merge(self, label: Any, other: Any) -> None:
        self.call("merge_labels", label, other)

    @rule(label=st.sampled_from(NAMES))
    def drop(self, label: Any) -> None:
        self.call("drop_label", label)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 5))
    def remove(self, n: int) -> None:
        gone, self.ids = self.ids[:n], self.ids[n:]
        self.call("remove", gone)
        self.free += gone

    def some(self, n: int) -> list[Any]:
        """Return ids of some entries, each once."""
        order = self.rng.permutation(len(self.ids))[:n]
        return [self.ids[i] for i in order]

    @rule()
    def refresh(self) -> None:
        self.call("refresh")

    @rule(n=st.sampled_from([1, 3, 20]), k=st.integers(1, 50), r=st.floats(-50, 50))
    def search(self, n: int, k: int, r: float) -> None:
        rows = ALL[self.rows(n)]
        for by in WAYS:
            self.call("search", rows, k, by)
        self.call("search_radius", rows, r, "asymmetric")
        self.call("predict", rows)

    @rule()
    def look(self) -> None:
        for name in ("stats", "entries", "labels"):
            self.call(name)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=6, stateful_step_count=8, deadline=None)
