"""Whatever a reader returns comes from one state of the file, also beside a compaction.

Compacting gives entries other places in the file. A reader that looks up a place in memory and
then reads at it from the newer file would return what belongs to somebody else.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection
from everhash.errors import StoreError, UnknownIdError
from everhash.matches import Matches
from everhash.store.store import Store
from tests.conftest import Stream
from tests.unit.collection.conftest import GIF

N = 60
STAYS = [f"e{i}" for i in range(1, N, 2)]
"""Entries that the writer does not remove."""
GOES = [f"e{i}" for i in range(0, N, 2)]
ROWS = np.random.default_rng(0).normal(size=(N + 10, 16)).astype(np.float32)
QUERIES = ROWS[[3, 20, 41]]
STEPS = ("begin", "run", "read_attached", "read_bytes", "open_blob")
"""Calls of a store by which a reader comes to the file."""


def matched(matches: Matches) -> Any:
    scores, likeness = (np.nan_to_num(part).tolist() for part in (matches.scores, matches.likeness))
    return matches.ids.tolist(), scores, likeness, matches.payloads


CALLS: dict[str, Callable[[Collection], Any]] = {
    "attachments": lambda col: col.attachments(STAYS),
    "features": lambda col: col.features(STAYS).tolist(),
    "search": lambda col: matched(col.search(QUERIES, 5)),
    "payloads": lambda col: matched(col.search(QUERIES, 5, payloads=True)),
    "likeness": lambda col: matched(col.search(QUERIES, 5, "likeness", payloads=True)),
    "exact": lambda col: matched(col.search(QUERIES, 5, exact=True)),
    "explain": lambda col: len(col.search(QUERIES, 5, exact=True, explain=True).explanations),
    "like": lambda col: matched(col.search_like(STAYS[:4], 5, payloads=True)),
    "radius": lambda col: matched(col.search_radius(QUERIES, 0.2, "likeness", payloads=True)),
    "page": lambda col: [e.id for e in col.page(0, 100, text="odd").entries],
    "entries": lambda col: [(e.id, e.labels) for e in col.entries()],
    "texts": lambda col: [(e.id, e.labels) for e in col.entries(text="payload")],
    "labels": lambda col: [(info.label, info.entries) for info in col.labels()],
    "refresh": lambda col: col.refresh(dry_run=True).entries,
    "stats": lambda col: [col.stats()[name] for name in ("entries", "arrived", "commit")],
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "c.ever"
    with everhash.create(path, dim=16, bits=8) as col:
        ids = [f"e{i}" for i in range(N)]
        payloads = [{"n": f"payload {i}", "is": "odd" if i % 2 else "even"} for i in range(N)]
        pictures = [GIF + bytes([i]) for i in range(N)]
        labels = [None if i % 3 else i % 4 for i in range(N)]
        col.ingest(ROWS[:N], labels, ids, payloads=payloads, thumbnails=pictures)
    return path


def compact(col: Collection) -> None:
    """Give all entries that stay another place; new ones take the places of the old."""
    col.remove(GOES)
    col.compact()
    col.add(ROWS[N:], [f"new {i}" for i in range(10)], payloads=["payload of a new one"] * 10)


@contextmanager
def both(path: Path, original: Path) -> Iterator[tuple[Collection, Collection]]:
    shutil.copy(original, path)
    with everhash.open(path) as writer, everhash.open(path, readonly=True) as reader:
        yield writer, reader


class At:
    """Calls something before the n-th step of a reader's store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n: int, what: Callable[[], None]) -> None:
        self.left, self._what = n, what
        for name in STEPS:
            self._watch(monkeypatch, name, getattr(Store, name))

    def _watch(self, monkeypatch: pytest.MonkeyPatch, name: str, real: Any) -> None:
        def step(store: Store, *args: Any, **options: Any) -> Any:
            if store.readonly:
                self.left -= 1
                if self.left == -1:
                    self._what()
            return real(store, *args, **options)

        monkeypatch.setattr(Store, name, step)

    @property
    def done(self) -> bool:
        return self.left < 0


@pytest.mark.parametrize("name", CALLS)
def test_a_compaction_at_any_moment_of_a_call_does_not_mix_states(
    tmp_path: Path, original: Path, name: str
) -> None:
    call, n, done = CALLS[name], 0, True
    while done:
        with both(tmp_path / f"{n}.ever", original) as (writer, reader):
            before = call(writer)
            with pytest.MonkeyPatch.context() as patched:
                at = At(patched, n, lambda: compact(writer))
                got = call(reader)
            done = at.done
            if not done:
                compact(writer)
            assert got in (before, call(writer)), f"the file was compacted before step {n}"
            assert call(reader) in (before, call(writer)), "a call later"
        n += 1


def test_held_keeps_a_reader_at_one_state_whatever_the_writer_does(
    tmp_path: Path, original: Path
) -> None:
    with both(tmp_path / "c.ever", original) as (writer, reader):
        with reader.held():
            before = {name: call(reader) for name, call in CALLS.items()}
            compact(writer)
            assert not reader.catch_up()
            assert {name: call(reader) for name, call in CALLS.items()} == before
            assert reader.attachments(GOES)[3].payload["n"] == "payload 6"
        assert reader.catch_up()
        assert all(call(reader) == call(writer) for call in CALLS.values())
        with pytest.raises(UnknownIdError):
            reader.attachments(GOES)


def test_held_begins_with_the_newest_state(tmp_path: Path, original: Path) -> None:
    with both(tmp_path / "c.ever", original) as (writer, reader):
        compact(writer)
        with reader.held():
            assert len(reader) == len(STAYS) + 10


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("text", [None, "payload"])
def test_a_listing_says_that_numbers_have_changed_under_it(
    tmp_path: Path, original: Path, monkeypatch: pytest.MonkeyPatch, readonly: bool, text: Any
) -> None:
    for module in ("read_calls.PAGE_ENTRIES", "finding.LOOKS"):
        monkeypatch.setattr(f"everhash.collection.{module}", 8)
    with both(tmp_path / "c.ever", original) as (writer, reader):
        left = (reader if readonly else writer).entries(text=text)
        seen = [next(left).id for _ in range(8)]
        assert seen == [f"e{i}" for i in range(8)]
        compact(writer)
        reader.catch_up()
        with pytest.raises(StoreError, match="compacted meanwhile"):
            list(left)


def test_a_listing_goes_on_after_anything_but_a_compaction(
    tmp_path: Path, original: Path, monkeypatch: pytest.MonkeyPatch, digits: Stream
) -> None:
    monkeypatch.setattr("everhash.collection.read_calls.PAGE_ENTRIES", 8)
    monkeypatch.setattr("everhash.collection.recorder.MAX_WAITING", 3)  # folds at every change
    with both(tmp_path / "c.ever", original) as (writer, reader):
        left = reader.entries()
        seen = [next(left).id for _ in range(8)]
        writer.remove(["e0", "e20"])
        writer.label(["e30", "e31"], [1, 2])
        writer.learn(ROWS, [i % 4 for i in range(len(ROWS))])
        writer.refresh()
        assert reader.catch_up()
        seen += [entry.id for entry in left]
        assert seen == [f"e{i}" for i in range(N) if i != 20]
