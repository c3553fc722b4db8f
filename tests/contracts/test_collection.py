"""A collection reopened at any moment equals one that was never closed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.datasets import load_digits

import everhash
from everhash import Attachment, Collection, OnlineHasher, peers
from everhash.collection import pieces, recorder
from everhash.errors import InputError, LabelError, OptionError, StoreError
from everhash.index import refresh
from everhash.learn.stream_hasher import StreamHasher
from everhash.wire.options import WAYS

ALL, TRUTH = load_digits(return_X_y=True)
ALL = ALL.astype(np.float32)
PROBES = ALL[:12]
METHODS: dict[str, dict[str, Any]] = {
    "onehot": {},
    "hmoh": {"classes": 30},
    "mihash": {"sample": 20, "update_every": 10},
    "okh": {"anchors": 20},
    "bsodh": {"batch": 20},
    "lemon": {"batch": 20},
    "oasis": {"batch": 20, "vector": 40},
    "smarthash": {"anchors": 20, "batch": 20},
}
PAYLOADS: list[Any] = [None, {"é": [1, None, 2.5]}, "text", 0, [[], {}], "x" * 4000]
THUMBNAILS = [None, b"GIF89a" + bytes(30), b"\x89PNG\r\n\x1a\n" + bytes(30_000)]
WHAT = st.sampled_from(["neither", "payloads", "thumbnails", "both"])
UNSEEN = ("path", "bytes", "commit", "last_refresh")
"""Of `stats`: what a file has and memory has not."""


def assert_same(one: Collection, other: Collection) -> None:
    """Everything that can be seen of one collection can be seen of the other."""
    stats, others = one.stats(), other.stats()
    for name in UNSEEN:
        stats.pop(name), others.pop(name)
    assert stats == others
    assert one.hasher.labels_ == other.hasher.labels_
    np.testing.assert_array_equal(one.hasher.codewords_, other.hasher.codewords_)
    np.testing.assert_array_equal(one.hasher.versions_, other.hasher.versions_)
    np.testing.assert_array_equal(one.hasher.margins(PROBES), other.hasher.margins(PROBES))
    np.testing.assert_array_equal(one.hasher.trust_, other.hasher.trust_)
    for mine, theirs in zip(
        one.hasher.posterior(PROBES), other.hasher.posterior(PROBES), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    for entry, same in zip(one.entries(), other.entries(), strict=True):
        assert (entry.id, entry.labels, entry.home) == (same.id, same.labels, same.home)
        assert entry.guess == same.guess
        np.testing.assert_array_equal(entry.code, same.code)
    ids = [entry.id for entry in one.entries()]
    assert one.attachments(ids) == other.attachments(ids)
    for info, same_info in zip(one.labels(), other.labels(), strict=True):
        assert {**vars(info), "codeword": None} == {**vars(same_info), "codeword": None}
        np.testing.assert_array_equal(info.codeword, same_info.codeword)
    for by in WAYS:
        assert_same_answers(one, other, by)


def assert_same_answers(one: Collection, other: Collection, by: str) -> None:
    """Two collections find the same, or both say that they cannot."""
    try:
        a = one.search(PROBES, 7, by, payloads=True)
    except OptionError as error:
        with pytest.raises(OptionError, match=re.escape(str(error))):
            other.search(PROBES, 7, by)
        return
    b = other.search(PROBES, 7, by, payloads=True)
    for name in ("ids", "scores", "likeness", "labels", "guesses", "counts", "novelty"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.by, a.payloads) == (b.by, b.payloads)


class CollectionMachine(RuleBasedStateMachine):
    """Any history of calls on two collections: one in memory, one in a file that is reopened."""

    @initialize(
        seed=st.integers(0, 1000),
        coding=st.sampled_from(["home", "home", "full"]),
        keep=st.sampled_from(["all", "all", "all", "unlabelled", "none"]),
        likeness=st.sampled_from([True, True, False]),
        auto=st.sampled_from([True, True, False]),
        rho=st.sampled_from([2, 5]),
        still=st.booleans(),
        method=st.sampled_from(["everhash"] * 5 + ["everhash-sgd", *METHODS]),
    )
    def start(
        self,
        seed: int,
        coding: str,
        keep: str,
        likeness: bool,
        auto: bool,
        rho: int,
        still: bool,
        method: str,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "c.ever"
        self.rng = np.random.default_rng(seed)
        self.names: list[Any] = []
        self.carried: dict[Any, Attachment] = {}
        self.count = 0
        center: Any = ALL.mean(axis=0) if still else "warmup"
        # small parts, so that short histories merge, fold and compact them
        self.sizes = {
            recorder: {"MAX_WAITING": 6, "PART_ENTRIES": 128, "BLOCK_BYTES": 20_000},
            pieces: {"PIECE_BYTES": 5000},
        }
        self.before = {m: {name: vars(m)[name] for name in of} for m, of in self.sizes.items()}
        for module, sizes in self.sizes.items():
            vars(module).update(sizes)
        self.slice, refresh.SLICE = refresh.SLICE, 7
        self.steps: list[Any] = []

        def make(path: Path | None) -> Collection:
            hasher: StreamHasher = OnlineHasher(12, rho, random_state=seed, features=30)
            if method == "everhash-sgd":
                options = {"center": center, "step": 0.3}
                hasher = OnlineHasher(12, rho, random_state=seed, learner="sgd", **options)
            elif method != "everhash":
                hasher = peers.get(method, 12, random_state=seed, **METHODS[method])
            kept: dict[str, Any] = {"keep_features": keep, "likeness": likeness}
            return everhash.create(
                path, 64, hasher=hasher, coding=coding, auto_refresh=auto, **kept
            )

        self.auto = auto
        self.removed: list[Any] = []
        self.kept, self.filed = make(None), make(self.path)
        self.reader = everhash.open(self.path, readonly=True)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            for module, sizes in self.before.items():
                vars(module).update(sizes)
            refresh.SLICE = self.slice
            for col in (self.kept, self.filed, self.reader):
                col.close()
            shutil.rmtree(self.folder)

    def both(self, name: str, *arguments: Any, **named: Any) -> tuple[Any, Any]:
        kept, filed = (getattr(col, name)(*arguments, **named) for col in (self.kept, self.filed))
        self.wait()
        return kept, filed

    def wait(self) -> None:
        for col in (self.kept, self.filed):
            assert col.wait(30)

    def done(self, name: str, *arguments: Any, **named: Any) -> bool:
        """Call both; return whether they could. What they refuse changes nothing."""
        refusals = []
        for col in (self.kept, self.filed):
            before, commit = col.stats(), col.stats()["commit"]
            try:
                getattr(col, name)(*arguments, **named)
            except (OptionError, LabelError) as error:
                refusals.append(str(error))
                assert (col.stats(), col.stats()["commit"]) == (before, commit)
        assert refusals[1:] == refusals[:1]
        self.wait()
        return not refusals

    def given(self, n: int, what: str) -> dict[str, list[Any]]:
        """Payloads, thumbnails or both for so many entries, none for some of them."""
        columns = {"payloads": PAYLOADS, "thumbnails": THUMBNAILS}
        return {
            name: [values[i] for i in self.rng.integers(0, len(values), n)]
            for name, values in columns.items()
            if what in (name, "both")
        }

    def carry(self, names: list[Any], given: dict[str, list[Any]]) -> None:
        """Have the dictionary say what entries carry from now on."""
        for column, values in given.items():
            for name, value in zip(names, values, strict=True):
                old = self.carried.get(name, Attachment())
                self.carried[name] = replace(old, **{column.removesuffix("s"): value})

    def some(self, n: int) -> list[Any]:
        return [self.names[i] for i in self.rng.permutation(len(self.names))[:n]]

    @rule(n=st.integers(1, 30), labels=st.integers(1, 10))
    def learn(self, n: int, labels: int) -> None:
        rows = self.rng.integers(0, len(ALL), n)
        self.both("learn", ALL[rows], TRUTH[rows] % labels)

    @rule(n=st.integers(1, 30))
    def forget(self, n: int) -> None:
        """What was just learned is taken back; twice it cannot be, but by chance."""
        rows, labels = ALL[self.rng.integers(0, len(ALL), n)], [f"once {n}"] * n
        self.both("learn", rows, labels)
        if not isinstance(self.kept.hasher, OnlineHasher) or self.kept.hasher.learner == "sgd":
            with pytest.raises(OptionError):
                self.filed.forget(rows, labels)
            return
        self.both("forget", rows, labels)
        with pytest.raises(InputError):
            self.filed.forget(rows, labels)

    @rule(n=st.integers(1, 1200))
    def learn_without_labels(self, n: int) -> None:
        self.both("learn", ALL[self.rng.integers(0, len(ALL), n)])

    @rule(
        n=st.integers(1, 40),
        named=st.sampled_from([None, "text", "number", "again"]),
        unlabelled=st.sampled_from([0.0, 0.5, 1.0]),
        learn=st.booleans(),
        what=WHAT,
    )
    def add(self, n: int, named: str | None, unlabelled: float, learn: bool, what: str) -> None:
        rows, labels = self.labelled_rows(n, unlabelled)
        ids = None if named is None else self.ids_for(n, named)
        given = self.given(n, what)
        if learn:
            mine, theirs = self.both("ingest", rows, labels, ids, **given)
        else:
            mine, theirs = self.both("add", rows, ids, labels, **given)
        assert mine == theirs
        self.take(mine, given)

    def labelled_rows(self, n: int, unlabelled: float) -> tuple[Any, list[Any]]:
        rows = self.rng.integers(0, len(ALL), n)
        labels: list[Any] = []
        for truth in TRUTH[rows].tolist():
            several = {truth, ("odd", truth % 2)} if self.rng.random() < 0.2 else truth
            labels.append(None if self.rng.random() < unlabelled else several)
        return ALL[rows], labels

    def ids_for(self, n: int, named: str) -> list[Any]:
        """Ids of entries that are new, were removed, or are there."""
        self.count += n
        numbers = range(10_000 + self.count - n, 10_000 + self.count)
        known = {"again": self.removed[-n:], "replace": self.some(n)}.get(named, [])
        ids = [*known, *(-i if named == "number" else f"é{i}" for i in numbers)]
        return ids[:n]

    def take(self, names: list[Any], given: dict[str, list[Any]]) -> None:
        """Note entries that are new, or came in place of others."""
        self.names += [name for name in names if name not in self.names]
        self.removed = [name for name in self.removed if name not in names]
        for name in names:
            self.carried.pop(name, None)
        self.carry(names, given)

    @rule(
        n=st.integers(1, 20),
        unlabelled=st.sampled_from([0.0, 0.5, 1.0]),
        teach=st.booleans(),
        what=WHAT,
    )
    def upsert(self, n: int, unlabelled: float, teach: bool, what: str) -> None:
        rows, labels = self.labelled_rows(n, unlabelled)
        ids, given = self.ids_for(n, "replace"), self.given(n, what)
        if self.done("upsert", rows, ids, labels, **given, teach=teach):
            self.take(ids, given)

    @rule(n=st.integers(1, 12), teach=st.booleans())
    def update(self, n: int, teach: bool) -> None:
        names = self.some(n)
        rows = ALL[self.rng.integers(0, len(ALL), len(names))]
        if names:
            self.done("update", names, rows, teach=teach)

    @rule(n=st.integers(1, 20), what=WHAT)
    def attach(self, n: int, what: str) -> None:
        names = self.some(n)
        given = self.given(len(names), what)
        self.both("attach", names, **given)
        self.carry(names, given)

    @rule(n=st.integers(1, 20))
    def a_dictionary_knows_what_entries_carry(self, n: int) -> None:
        names = self.some(n)
        expected = [self.carried.get(name, Attachment()) for name in names]
        assert self.both("attachments", names) == (expected, expected)

    @rule(
        n=st.integers(1, 6),
        label=st.sampled_from(["new", b"raw", 3, {8, "two"}]),
        teach=st.booleans(),
    )
    def label(self, n: int, label: Any, teach: bool) -> None:
        if names := self.some(n):
            self.done("label", names, [label] * len(names), teach=teach)

    @rule(n=st.integers(1, 12), teach=st.booleans())
    def unlabel(self, n: int, teach: bool) -> None:
        self.done("unlabel", self.some(n), teach=teach)

    def some_labels(self, n: int) -> list[Any]:
        known = [label for label in self.kept.hasher.labels_ if label is not None]
        return [known[i] for i in self.rng.permutation(len(known))[:n]]

    @rule()
    def rename_a_label(self) -> None:
        for label in self.some_labels(1):
            self.count += 1
            self.both("rename_label", label, f"renamed {self.count}")

    @rule()
    def merge_two_labels(self) -> None:
        if len(labels := self.some_labels(2)) == 2:
            self.done("merge_labels", *labels)

    @rule()
    def drop_a_label(self) -> None:
        for label in self.some_labels(1):
            self.done("drop_label", label)

    @rule(n=st.integers(1, 30))
    def remove(self, n: int) -> None:
        names = self.some(n)
        assert self.both("remove", names) == (len(names), len(names))
        self.names = [name for name in self.names if name not in names]
        self.removed += names
        for name in names:
            self.carried.pop(name, None)

    @rule()
    def compact(self) -> None:
        mine, theirs = self.both("compact")
        assert mine == theirs
        assert self.filed.compact() == 0

    @precondition(lambda self: not self.steps)
    @rule()
    def refresh(self) -> None:
        mine, theirs = self.both("refresh")
        # certificates are not kept in the file, so a reopened collection may compute more
        assert mine.bits_flipped == theirs.bits_flipped
        assert mine.homes_moved == theirs.homes_moved
        mine, theirs = self.both("stats")
        assert mine["stale_bits"] == theirs["stale_bits"]
        assert mine["stale_bits"] == 0 or mine["unrefreshable"]

    @rule(n=st.integers(1, 4))
    def begin_a_refresh(self, n: int) -> None:
        """Whatever comes next comes in between; `end_the_refresh` ends it."""
        if not self.steps:
            self.steps = [col.refresh_steps() for col in (self.kept, self.filed)]
        for _ in range(n):
            self.go_on(lambda steps: next(steps, None))

    def go_on(self, step: Callable[[Any], Any]) -> None:
        """Go on with both refreshes; entries that lost their labels meanwhile end both."""
        errors = []
        for steps in self.steps:
            try:
                step(steps)
            except StoreError as error:
                errors.append(str(error))
        assert errors[1:] == errors[:1]
        if errors:
            self.give_up()
        self.wait()

    @precondition(lambda self: self.steps)
    @rule(to_the_end=st.booleans())
    def end_the_refresh(self, to_the_end: bool) -> None:
        if to_the_end:
            self.go_on(refresh.report_of)
        self.give_up()
        assert_same(self.kept, self.filed)

    def give_up(self) -> None:
        for steps in self.steps:
            steps.close()
        self.steps = []

    @rule()
    def teach_the_hasher_directly(self) -> None:
        for col in (self.kept, self.filed):
            col.hasher.partial_fit(ALL[:3], TRUTH[:3])
            if isinstance(col.hasher, OnlineHasher):
                exact = col.hasher.learner == "exact"
                col.hasher.set_params(**{"publish": 1.3} if exact else {"step": 0.2})
        self.both("learn", ALL[3:5], TRUTH[3:5])

    @rule()
    def reopen(self) -> None:
        self.give_up()
        self.filed.close()
        self.filed = everhash.open(self.path, auto_refresh=self.auto)
        assert_same(self.kept, self.filed)
        expected = [self.carried.get(name, Attachment()) for name in self.names]
        assert self.filed.attachments(self.names) == expected

    @rule()
    def verify(self) -> None:
        found = everhash.verify(self.path)
        assert found.problems == ()
        assert found.entries == len(self.names)

    @rule()
    def a_reader_catches_up(self) -> None:
        self.reader.catch_up()
        assert_same(self.kept, self.reader)

    @rule()
    def snapshot(self) -> None:
        copy = self.folder / "copy.ever"
        self.filed.snapshot(copy)
        with everhash.open(copy, readonly=True) as other:
            assert_same(self.kept, other)
        copy.unlink()


def test_reopened_at_any_moment_it_equals_one_that_was_never_closed(thorough: bool) -> None:
    histories = settings(max_examples=60 if thorough else 10, stateful_step_count=30)
    run_state_machine_as_test(CollectionMachine, settings=histories)


@pytest.mark.parametrize("coding", ["home", "full"])
def test_the_file_holds_few_parts_however_small_the_calls(tmp_path: Path, coding: str) -> None:
    hasher = OnlineHasher(8, features=100)
    with everhash.create(tmp_path / "c.ever", 64, hasher=hasher, coding=coding) as col:
        for i in range(120):
            col.ingest(ALL[i : i + 1], TRUTH[i : i + 1])
            col.add(ALL[i : i + 1])
        parts = [key.kind for key in col._store.parts]
        for kind in ("entries", "codes", "features"):
            assert parts.count(kind) < 30
