"""Every way of searching an index equals brute force, and a refresh equals a rebuild."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.datasets import load_digits

from everhash import Index, Matches, OnlineHasher, peers
from everhash.errors import OptionError
from everhash.learn.stream_hasher import StreamHasher
from everhash.wire.options import WAYS

from .index_model import Expected, Model, Row, Scope

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
SCOPES = st.sampled_from(["all", "all", "labels", "ids", "unlabelled", "labels and ids"])


def new_hasher(method: str, rho: int | None, seed: int, *, still: bool) -> StreamHasher:
    # while the centre moves nothing can be certified, so half of the runs have a still one
    center: Any = ALL.mean(axis=0) if still else "warmup"
    if method == "everhash":
        return OnlineHasher(BITS, rho, random_state=seed, features=30)
    if method == "everhash-sgd":
        options = {"center": center, "step": 0.3}
        return OnlineHasher(BITS, rho, random_state=seed, learner="sgd", **options)
    hasher = peers.get(method, BITS, random_state=seed, **METHODS[method])
    if still and "center" in hasher.get_params():
        hasher.set_params(center=center)
    return hasher


class IndexMachine(RuleBasedStateMachine):
    """Any history of calls, compared with the model after each."""

    @initialize(
        seed=st.integers(0, 1000),
        coding=st.sampled_from(["home", "home", "full"]),
        keep=st.sampled_from(["all", "all", "unlabelled", "none"]),
        likeness=st.sampled_from([True, True, False]),
        certify=st.booleans(),
        rho=st.sampled_from([2, 3, None]),
        still=st.booleans(),
        method=st.sampled_from(["everhash"] * 4 + ["everhash-sgd", *METHODS]),
        learned=st.booleans(),
    )
    def start(
        self,
        seed: int,
        coding: str,
        keep: str,
        likeness: bool,
        certify: bool,
        rho: int | None,
        still: bool,
        method: str,
        learned: bool,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.hasher = new_hasher(method, rho, seed, still=still)
        rows = self.rng.integers(0, len(ALL), 30)
        self.hasher.partial_fit(ALL[rows], TRUTH[rows] % 3 if learned else None)
        options: dict[str, Any] = {"keep_features": keep, "likeness": likeness}
        self.index = Index(self.hasher, coding=coding, certify=certify, **options)
        self.model = Model(self.hasher, coding, keep, likeness=likeness)
        self.removed: list[Any] = []
        self.names = 0

    def some(self, n: int) -> list[Any]:
        living = list(self.model.rows)
        return [living[i] for i in self.rng.permutation(len(living))[:n]]

    def queries(self, n: int) -> Row:
        """Rows, sometimes unlike all others or the same as entries."""
        rows = ALL[self.rng.integers(0, len(ALL), n)]
        if self.rng.random() < 0.2:
            rows = rows[:, ::-1] * np.float32(3)
        if self.rng.random() < 0.2 and self.model.rows:
            rows = np.array([self.model.rows[name] for name in self.some(n)])
        return np.ascontiguousarray(rows, np.float32)

    # What changes an index

    @rule(n=st.integers(1, 20), labels=st.integers(1, 10))
    def learn(self, n: int, labels: int) -> None:
        rows = self.rng.integers(0, len(ALL), n)
        self.hasher.partial_fit(ALL[rows], TRUTH[rows] % labels)

    @rule(n=st.integers(1, 400))
    def warm_up(self, n: int) -> None:
        self.hasher.partial_fit(ALL[self.rng.integers(0, len(ALL), n)])

    @rule(
        n=st.integers(1, 25),
        named=st.sampled_from(["default", "new", "again", "replace"]),
        unlabelled=st.sampled_from([0.0, 0.6, 1.0]),
    )
    def add(self, n: int, named: str, unlabelled: float) -> None:
        rows = self.rng.integers(0, len(ALL), n)
        labels: list[Any] = []
        for truth in TRUTH[rows].tolist():
            several = {truth, (truth + 1) % 10} if self.rng.random() < 0.2 else truth
            labels.append(None if self.rng.random() < unlabelled else several)
        ids = self.ids_for(n, named)
        made = self.index.add(ALL[rows], ids, labels, replace=named == "replace")
        assert ids in (None, made)
        given = [of if isinstance(of, set) else {of} - {None} for of in labels]
        self.removed = [name for name in self.removed if name not in made]
        self.model.add(made, ALL[rows], [tuple(sorted(of)) for of in given])

    def ids_for(self, n: int, named: str) -> list[Any] | None:
        self.names += n
        if named == "default":
            return None
        known = {"again": self.removed, "replace": self.some(n)}.get(named, [])
        known = [known[i] for i in self.rng.permutation(len(known))[:n]]
        return known + [f"e{self.names - i}" for i in range(n - len(known))]

    @rule(n=st.integers(1, 5), label=st.sampled_from(["new", "newer", 3, 8]))
    def relabel(self, n: int, label: Any) -> None:
        names = self.some(n)
        self.index.label(names, [label] * len(names))
        self.model.label(names, label)

    @rule(n=st.integers(1, 8))
    def unlabel(self, n: int) -> None:
        names = self.some(n)
        labelled = [name for name in names if name in self.model.labels]
        if labelled and self.hasher.assigns_codewords and self.model.keep != "all":
            with pytest.raises(OptionError, match="not kept"):
                self.index.unlabel(names)
            return
        self.index.unlabel(names)
        self.model.unlabel(labelled)

    @rule(n=st.integers(1, 8))
    def remove(self, n: int) -> None:
        names = self.some(n)
        assert self.index.remove(names) == len(names)
        assert not self.index.has(names).any()
        self.removed += names
        self.model.remove(names)

    @precondition(lambda self: getattr(self.hasher, "learner", None) == "exact")
    @rule()
    def drop_a_label(self) -> None:
        """No entry is taken for a label that is gone."""
        used = {label for of in self.model.labels.values() for label in of}
        free = [label for label in self.hasher.labels_ if label not in {*used, None}]
        if free:
            self.hasher.drop_label(free[int(self.rng.integers(len(free)))])
            self.index.labels_changed()

    @rule()
    def compact(self) -> None:
        self.index.compact()
        self.model.compact()
        assert self.index.arrived == len(self.model.rows)

    @rule()
    def refresh(self) -> None:
        dry = self.index.refresh(dry_run=True)
        report = self.index.refresh()
        assert (dry.bits_recomputed, dry.bits_flipped) == (
            report.bits_recomputed,
            report.bits_flipped,
        )
        self.model.refresh()
        assert self.index.stale_bits() == 0 or self.model.keep == "none"
        self.entries_equal_a_rebuild()

    def entries_equal_a_rebuild(self) -> None:
        codes, guesses = self.model.codes(), self.model.guessed_labels()
        for entry in self.index.get(self.model.coded):
            home, bits = codes[entry.id]
            assert entry.home == home
            np.testing.assert_array_equal(entry.code, bits)
            assert entry.guess == guesses.get(entry.id)

    @rule()
    def refresh_slowly(self) -> None:
        """Searches between slices see the old codes."""
        for _ in self.index.refresh_steps():
            self.search_equals_brute_force("hamming", 3, "all", False)
            self.search_equals_brute_force("meaning", 3, "all", False)
        self.model.refresh()
        self.entries_equal_a_rebuild()

    @precondition(
        lambda self: self.model.keep == "all" and self.model.likeness and self.model.coder.settled
    )
    @rule(added=st.integers(0, 10), removed=st.integers(0, 5))
    def make_cells(self, added: int, removed: int) -> None:
        """Entries may come and go between the steps."""
        if not self.model.rows:
            return
        for step, _ in enumerate(self.index.cell_steps()):
            if step == 1 and added:
                self.add(added, "default", 0.5)
                self.remove(removed)
        assert self.index.cells is not None

    # Searching

    def scope(self, kind: str) -> Scope:
        names = self.some(int(self.rng.integers(1, 30))) if "ids" in kind else None
        known = [label for label in self.hasher.labels_ if label is not None]
        chosen = self.rng.permutation(len(known))[: int(self.rng.integers(1, 4))]
        labels = [known[i] for i in chosen] if "labels" in kind else None
        return Scope(labels, names, kind == "unlabelled")

    def expect(
        self, x: Row, by: str, scope: Scope, exact: bool, k: int | None = None
    ) -> Expected | None:
        """What brute force finds, or None if the model says that it cannot be found."""
        try:
            return self.model.search(x, by, scope, exact=exact, k=k)
        except OptionError:
            return None

    @rule(
        by=st.sampled_from([*WAYS, "meaning", "meaning"]),
        k=st.sampled_from([1, 7, 200]),
        kind=SCOPES,
        exact=st.booleans(),
    )
    def search_equals_brute_force(self, by: str, k: int, kind: str, exact: bool) -> None:
        queries, scope = self.queries(2), self.scope(kind)
        expected = [self.expect(x, by, scope, exact and by != "likeness", k) for x in queries]
        if None in expected:
            # one that asks for features of entries that rank too low to be read may be answered
            if not exact:
                with pytest.raises(OptionError):
                    self.index.search(queries, k, by, **scope._asdict(), exact=exact)
            return
        found = self.index.search(queries, k, by, **scope._asdict(), exact=exact, recall=1)
        for row, want in enumerate(expected):
            assert want is not None
            self.assert_found(found, row, want, k)

    @precondition(lambda self: self.index.cells is not None)
    @rule(k=st.sampled_from([1, 7, 200]), kind=SCOPES)
    def cells_give_entries_that_are_there(self, k: int, kind: str) -> None:
        """A search of cells may miss entries, but what it finds is right and in order."""
        queries, scope = self.queries(2), self.scope(kind)
        found = self.index.search(queries, k, "likeness", **scope._asdict())
        for row, x in enumerate(queries):
            want = self.expect(x, "likeness", scope, False)
            assert want is not None
            n = int(found.counts[row])
            assert n == min(k, len(want.names))
            got, place = found.ids[row, :n].tolist(), {name: i for i, name in enumerate(want.names)}
            order = [place[name] for name in got]
            assert order == sorted({*order})
            np.testing.assert_array_equal(found.scores[row, :n], want.scores[order])

    @rule(
        by=st.sampled_from(WAYS),
        r=st.sampled_from([-1.0, 0.0, 0.1, 0.5, 0.9, 2.0, 5.0]),
        kind=SCOPES,
    )
    def radius_equals_brute_force(self, by: str, r: float, kind: str) -> None:
        x, scope = self.queries(1), self.scope(kind)
        want = self.expect(x[0], by, scope, False)
        if want is None:
            with pytest.raises(OptionError):
                self.index.search_radius(x, r, by, **scope._asdict())
            return
        found = self.index.search_radius(x, r, by, **scope._asdict())
        near = want.scores <= r if want.by in ("hamming", "asymmetric") else want.scores >= r
        if (np.abs(want.scores - r) < 1e-4).any() and want.by != "meaning":
            return  # rounding decides
        names = [name for name, inside in zip(want.names, near, strict=True) if inside]
        within = Expected(want.by, names, want.scores[near], want.likeness[near])
        self.assert_found(found, 0, within, max(1, len(names)))

    def assert_found(self, found: Matches, row: int, want: Expected, k: int) -> None:
        n = min(k, len(want.names))
        assert (int(found.counts[row]), found.by[row]) == (n, want.by)
        got = found.ids[row, :n].tolist()
        np.testing.assert_allclose(found.scores[row, :n], want.scores[:n], atol=1e-4)
        assert len(set(got)) == n
        whole = want.by == "hamming" and self.model.coding == "home"
        if (
            want.by in ("relevance", "meaning", "likeness") or whole
        ):  # other distances tie but for rounding
            assert got == want.names[:n]
            np.testing.assert_array_equal(found.likeness[row, :n], want.likeness[:n])
        score = dict(zip(want.names, want.scores, strict=True))
        np.testing.assert_allclose(found.scores[row, :n], [score[name] for name in got], atol=1e-4)
        guesses = self.model.guessed_labels()
        for at, name in enumerate(got):
            labels = self.model.labels.get(name, (None,))
            assert found.labels[row, at] in labels
            assert found.guesses[row, at] == guesses.get(name)
        assert all(name is None or name == -1 for name in found.ids[row, n:].tolist())
        assert np.isnan(found.scores[row, n:]).all()

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "index"):
            return
        stats = self.index.stats()
        assert len(self.index) == len(self.model.rows) == stats["entries"]
        assert stats["labelled"] == len(self.model.labels)
        assert stats["coded"] == len(self.model.coded)

    @invariant()
    def entries_agree(self) -> None:
        if not hasattr(self, "index"):
            return
        assert [e.id for e in self.index.page(0, 10_000).entries] == list(self.model.rows)
        guesses = self.model.guessed_labels()
        for entry in self.index.get(self.some(5)):
            assert set(entry.labels) == set(self.model.labels.get(entry.id, ()))
            assert entry.guess == guesses.get(entry.id)
        kept = [name for name in self.some(5) if name in self.model.kept]
        expected = np.array([self.model.rows[name] for name in kept]).reshape(-1, 64)
        np.testing.assert_array_equal(self.index.features(kept), expected)


def test_after_any_history_it_answers_as_the_model_does(thorough: bool) -> None:
    histories = settings(max_examples=150 if thorough else 30, stateful_step_count=40)
    run_state_machine_as_test(IndexMachine, settings=histories)


@pytest.mark.parametrize("coding", ["home", "full"])
def test_removing_everything_and_starting_again(coding: str) -> None:
    hasher = OnlineHasher(bits=8).partial_fit(ALL[:100], TRUTH[:100])
    index = Index(hasher, coding=coding)
    ids = index.add(ALL[:50])
    index.remove(ids)
    assert len(index) == 0
    assert index.search(ALL[:2], 3).counts.tolist() == [0, 0]
    again = index.add(ALL[:5])
    assert not set(ids) & set(again), "default ids never come again by themselves"
    assert index.search(ALL[:1], 1, "hamming").scores[0, 0] == 0
