"""The index equals a dictionary, and a refresh equals a rebuild."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from everhash import Index, OnlineHasher, peers
from everhash.index.features import StoredFeatures
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher

ALL, TRUTH = load_digits(return_X_y=True)
ALL = ALL.astype(np.float32)
BITS = 12
METHODS: dict[str, dict[str, Any]] = {
    # what sets the methods apart for an index: cycles, codewords, and how rows are seen
    "onehot": {},
    "hcoh": {"classes": 20},
    "mihash": {"sample": 20, "update_every": 10},
    "okh": {"anchors": 20},
    "sketchhash": {"batch": 20, "sketch": 40},
}


class Model:
    """What the index should hold, in plain Python: id -> labels, and the row as it is stored."""

    def __init__(self, hasher: StreamHasher, coding: str) -> None:
        self.hasher, self.coding = hasher, coding
        self.bits = hasher.bits
        self.order: list[Any] = []
        self.labels: dict[Any, tuple[Any, ...]] = {}
        self.rows: dict[Any, NDArray[np.float32]] = {}
        self.mapping: FrozenMapping | None = None

    def add(self, name: Any, row: NDArray[np.float32], labels: tuple[Any, ...]) -> None:
        self.order.append(name)
        if labels:
            self.labels[name] = labels
        if not labels or not self.hasher.assigns_codewords:
            if not self.rows:
                self.mapping = self.hasher.freeze()
            self.rows[name] = StoredFeatures.of(row[None]).rows[0]

    def drop(self, name: Any) -> None:
        self.order.remove(name)
        self.labels.pop(name, None)
        self.rows.pop(name, None)

    def relabel(self, name: Any, labels: tuple[Any, ...]) -> None:
        if self.hasher.assigns_codewords:
            self.rows.pop(name, None)
        self.labels[name] = labels

    def code(self, name: Any) -> tuple[int, NDArray[np.bool_]]:
        """Home and bits of an entry that keeps its own, from scratch."""
        assert self.mapping is not None
        z = self.mapping.measure(self.rows[name][None])
        margins = self.mapping.margins(z)[0]
        if self.coding == "full":
            return 0, margins > 0
        several = len(self.mapping.words) and len(self.mapping.functions) > 1
        scores = self.mapping.scores(z)[0] if several else np.zeros(1)
        home = int(self.mapping.label_cycles[scores.argmax()]) if several else 0
        return home, margins.reshape(-1, self.bits)[home] > 0

    def distance(self, name: Any, x: NDArray[np.float32], kind: str) -> float:
        full = self.coding == "full"
        if name not in self.rows:
            margins = self.hasher.margins(x[None])[0]
            words = self.hasher.codewords_[self.hasher.numbers(self.labels[name])]
            far = min(compare(margins, word, kind) for word in words)
            return far / self.bits if full else far
        assert self.mapping is not None
        margins = self.mapping.margins(self.mapping.measure(x[None]))[0]
        home, bits = self.code(name)
        part = margins if full else margins.reshape(-1, self.bits)[home]
        far = compare(part, np.where(bits, 1, -1), kind)
        return far / len(part) if full else far


def compare(margins: NDArray[np.float32], word: NDArray[Any], kind: str) -> float:
    if kind == "hamming":
        return float((((margins > 0) != (word > 0)) & (word != 0)).sum())
    return -float(margins.astype(np.float64) @ word)


class IndexMachine(RuleBasedStateMachine):
    """Any history of calls, compared with the model after each."""

    @initialize(
        seed=st.integers(0, 1000),
        coding=st.sampled_from(["home", "full"]),
        certify=st.booleans(),
        rho=st.sampled_from([2, 3, None]),
        still=st.booleans(),
        method=st.sampled_from(["everhash", "everhash", "everhash-sgd", *METHODS]),
    )
    def start(
        self, seed: int, coding: str, certify: bool, rho: int | None, still: bool, method: str
    ) -> None:
        self.rng = np.random.default_rng(seed)
        # while the centre moves nothing can be certified, so half of the runs have a still one
        center: Any = ALL.mean(axis=0) if still else "warmup"
        self.hasher: StreamHasher = OnlineHasher(BITS, rho, random_state=seed, features=30)
        if method == "everhash-sgd":
            options = {"center": center, "step": 0.3}
            self.hasher = OnlineHasher(BITS, rho, random_state=seed, learner="sgd", **options)
        elif method != "everhash":
            self.hasher = peers.get(method, BITS, random_state=seed, **METHODS[method])
            if still and "center" in self.hasher.get_params():
                self.hasher.set_params(center=center)
        rows = self.rng.integers(0, len(ALL), 30)
        self.hasher.partial_fit(ALL[rows], TRUTH[rows] % 3)
        self.index = Index(self.hasher, coding=coding, certify=certify)
        self.model = Model(self.hasher, coding)
        self.names = 0

    def some(self, n: int) -> list[Any]:
        chosen = self.rng.permutation(len(self.model.order))[:n]
        return [self.model.order[i] for i in chosen]

    @rule(n=st.integers(1, 20), labels=st.integers(1, 10))
    def learn(self, n: int, labels: int) -> None:
        rows = self.rng.integers(0, len(ALL), n)
        self.hasher.partial_fit(ALL[rows], TRUTH[rows] % labels)

    @rule(n=st.integers(1, 400))
    def warm_up(self, n: int) -> None:
        self.hasher.partial_fit(ALL[self.rng.integers(0, len(ALL), n)])

    @rule(n=st.integers(1, 25), named=st.booleans(), unlabelled=st.sampled_from([0.0, 0.6, 1.0]))
    def add(self, n: int, named: bool, unlabelled: float) -> None:
        rows = self.rng.integers(0, len(ALL), n)
        labels: list[Any] = []
        for truth in TRUTH[rows].tolist():
            several = {truth, (truth + 1) % 10} if self.rng.random() < 0.2 else truth
            labels.append(None if self.rng.random() < unlabelled else several)
        ids = [f"e{self.names + i}" for i in range(n)] if named else None
        self.names += n
        for name, row, label in zip(
            self.index.add(ALL[rows], ids, labels), rows, labels, strict=True
        ):
            given = label if isinstance(label, set) else () if label is None else (label,)
            self.model.add(name, ALL[row], tuple(sorted(given)))

    @rule(n=st.integers(1, 5), label=st.sampled_from(["new", "newer", 3, 8]))
    def relabel(self, n: int, label: Any) -> None:
        names = self.some(n)
        self.index.label(names, [label] * len(names))
        for name in names:
            self.model.relabel(name, (label,))

    @rule(n=st.integers(1, 8))
    def remove(self, n: int) -> None:
        names = self.some(n)
        assert self.index.remove(names) == len(names)
        for name in names:
            self.model.drop(name)

    @rule()
    def refresh(self) -> None:
        dry = self.index.refresh(dry_run=True)
        report = self.index.refresh()
        assert (dry.bits_recomputed, dry.bits_flipped) == (
            report.bits_recomputed,
            report.bits_flipped,
        )
        if self.model.rows:
            self.model.mapping = self.hasher.freeze()
        assert self.index.stale_bits() == 0
        self.codes_equal_a_rebuild()

    def codes_equal_a_rebuild(self) -> None:
        for entry in self.index.get(self.model.rows):
            home, bits = self.model.code(entry.id)
            assert entry.home == home
            assert entry.code is not None
            np.testing.assert_array_equal(entry.code, bits)

    @rule()
    def refresh_slowly(self) -> None:
        """Searches between slices see the old codes."""
        for _ in self.index.refresh_steps():
            self.search_equals_brute_force("hamming", 3)
        if self.model.rows:
            self.model.mapping = self.hasher.freeze()
        self.codes_equal_a_rebuild()

    @rule(kind=st.sampled_from(["hamming", "asymmetric"]), k=st.sampled_from([1, 7, 200]))
    def search_equals_brute_force(self, kind: str, k: int) -> None:
        queries = ALL[self.rng.integers(0, len(ALL), 2)]
        found = self.index.search(queries, k, kind)
        for row, x in enumerate(queries):
            far = {name: self.model.distance(name, x, kind) for name in self.model.order}
            n = min(k, len(far))
            assert found.counts[row] == n
            got = found.ids[row, :n].tolist()
            assert len(set(got)) == n
            np.testing.assert_allclose(
                found.distances[row, :n], [far[name] for name in got], atol=1e-4
            )
            np.testing.assert_allclose(
                found.distances[row, :n], sorted(far.values())[:n], atol=1e-4
            )
            if kind == "hamming" and self.model.coding == "home":
                # distances are whole numbers, so ties are ties
                place = {name: i for i, name in enumerate(self.model.order)}
                assert got == sorted(far, key=lambda name: (far[name], place[name]))[:n]
            for name, label in zip(got, found.labels[row, :n], strict=True):
                assert label in self.model.labels.get(name, (None,))

    @rule(radius=st.integers(0, 6))
    def radius_equals_brute_force(self, radius: int) -> None:
        x = ALL[self.rng.integers(0, len(ALL), 1)]
        r = radius if self.model.coding == "home" else radius / self.model.bits
        found = self.index.search_radius(x, r)
        far = {name: self.model.distance(name, x[0], "hamming") for name in self.model.order}
        edge = [name for name in far if abs(far[name] - r) < 1e-6]
        near = {name for name in far if far[name] <= r}
        got = set(found.ids[0, : found.counts[0]].tolist())
        assert got - set(edge) == near - set(edge)

    @rule(n=st.integers(1, 30))
    def filter_by_ids_equals_brute_force(self, n: int) -> None:
        names = self.some(n)
        if not names:
            return
        x = ALL[self.rng.integers(0, len(ALL), 1)]
        found = self.index.search(x, 5, "asymmetric", ids=names)
        far = sorted(self.model.distance(name, x[0], "asymmetric") for name in names)
        count = min(5, len(names))
        assert set(found.ids[0, :count].tolist()) <= set(names)
        np.testing.assert_allclose(found.distances[0, :count], far[:count], atol=1e-4)

    @rule(labels=st.lists(st.sampled_from([*range(10), "new"]), min_size=1, max_size=3))
    def filter_by_labels_equals_brute_force(self, labels: list[Any]) -> None:
        known = [label for label in labels if label in self.hasher.labels_]
        x = ALL[self.rng.integers(0, len(ALL), 1)]
        found = self.index.search(x, 5, "asymmetric", labels=known)
        wanted = {n for n, of in self.model.labels.items() if not {*known}.isdisjoint(of)}
        assert found.counts[0] == min(5, len(wanted))
        assert set(found.ids[0, : found.counts[0]].tolist()) <= wanted

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "index"):
            return
        stats = self.index.stats()
        assert len(self.index) == len(self.model.order) == stats["entries"]
        assert stats["unlabelled"] == len(set(self.model.order) - set(self.model.labels))
        assert stats["coded"] == len(self.model.rows)

    @invariant()
    def entries_agree(self) -> None:
        if not hasattr(self, "index") or not self.model.order:
            return
        for entry in self.index.get(self.some(5)):
            assert set(entry.labels) == set(self.model.labels.get(entry.id, ()))
            if entry.id in self.model.rows:
                assert entry.home == self.model.code(entry.id)[0]


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("coding", ["home", "full"])
def test_removing_everything_and_starting_again(coding: str) -> None:
    hasher = OnlineHasher(bits=8).partial_fit(ALL[:100], TRUTH[:100])
    index = Index(hasher, coding=coding)
    ids = index.add(ALL[:50])
    index.remove(ids)
    assert len(index) == 0
    assert index.search(ALL[:2], 3).counts.tolist() == [0, 0]
    again = index.add(ALL[:5])
    assert not set(ids) & set(again), "ids are never used again"
    assert index.search(ALL[:1], 1, "hamming").distances[0, 0] == 0
