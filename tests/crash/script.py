"""A script of calls, and everything that can be observed of a collection after each of them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash import Collection, OnlineHasher
from everhash.collection import pieces, recorder
from everhash.index import index
from everhash.store import store
from everhash.wire.options import WAYS

DIM, BITS, LABELS = 16, 16, 10
PROBES = np.random.default_rng(7).integers(0, 17, (6, DIM)).astype(np.float32)
GIF = b"GIF89a"
SPENT = {"at", "seconds", "entries_touched", "bits_recomputed", "bits_certified", "homes_checked"}
"""What a refresh cost, which depends on how often the file was opened."""
BEHIND = {"path", "bytes", "commit", "refreshing", "cells", "recall"}
"""What differs by where a collection is, or by how far the making of cells behind it has come."""
State = dict[str, str]
"""One digest for each thing that can be observed."""


class Call(NamedTuple):
    """A call of the public interface."""

    method: str
    arguments: dict[str, Any]

    def run(self, collection: Collection) -> None:
        getattr(collection, self.method)(**self.arguments)

    def __str__(self) -> str:
        sizes = (f"{name}={np.shape(value)}" for name, value in self.arguments.items())
        return f"{self.method}({', '.join(sizes)})"


class Script(NamedTuple):
    """Calls, and the states before the first and after each of them."""

    calls: list[Call]
    states: list[State]


def create(path: Path | None, durability: str = "commit") -> Collection:
    """Make the collection a script begins with."""
    hasher = OnlineHasher(BITS, 4, features=20)
    return everhash.create(path, DIM, hasher=hasher, durability=durability)


@cache
def script() -> Script:
    """Return a short script that does everything."""
    return write_script(30, seed=9)


def filled(path: Path, calls: int) -> Collection:
    """Return a collection after so many calls of the short script."""
    collection = create(path)
    for call in script().calls[:calls]:
        call.run(collection)
    return collection


def use_small_parts(log: int = 2_000_000) -> None:
    """Let short scripts merge, fold and compact parts, and write the log back at so many bytes.

    To be called in a process of the test's own.
    """
    sizes = {"MAX_WAITING": 6, "PART_ENTRIES": 128, "BLOCK_BYTES": 4000}
    of_modules = ((recorder, sizes), (pieces, {"PIECE_BYTES": 5000}), (store, {"LOG_BYTES": log}))
    for module, names in of_modules:
        for name, size in names.items():
            assert hasattr(module, name)
            setattr(module, name, size)


def use_small_cells() -> None:
    """Let small collections have cells, and make them again often, in the background.

    To be called in a process of the test's own.
    """
    for name, size in {"LEAST": 40, "GROWTH": 1.3}.items():
        assert hasattr(index, name)
        setattr(index, name, size)


def write_script(length: int, seed: int) -> Script:
    """Make up calls, and run them undisturbed in memory to know what has to come of them."""
    calls = []
    with create(None) as collection:
        states = [observe(collection)]
        for call in islice(_calls(collection, np.random.default_rng(seed)), length):
            call.run(collection)
            calls.append(call)
            states.append(observe(collection))
    return Script(calls, states)


def _calls(collection: Collection, rng: np.random.Generator) -> Iterator[Call]:
    """Go through all kinds of calls in ever new orders, each fit for what the last ones left."""
    author = _Author(collection, rng)
    first = [author.learn, author.ingest, author.add, author.add_with_ids]
    deck = [*first, author.add, author.ingest_mixed, author.label, author.remove, author.refresh]
    deck += [author.attach, author.attach_some, author.forget, author.correct, author.unlabel]
    deck += [author.upsert, author.update, author.rename, author.merge, author.drop]
    deck += [author.add_again, author.compact]
    for write in first:
        yield write()
    while True:
        for place in rng.permutation(len(deck)).tolist():
            yield deck[place]()


class _Author:
    """Writes calls of each kind."""

    def __init__(self, collection: Collection, rng: np.random.Generator) -> None:
        self._collection, self._rng = collection, rng
        self._centers = rng.integers(0, 17, (LABELS, DIM))
        self._taught: dict[str, Any] = {}
        self._known: dict[Any, None] = {}
        """Ids that have had an entry, as far as any call has named them."""

    def learn(self) -> Call:
        X, y = self._rows(12)
        self._taught = {"X": X, "y": y}
        return Call("learn", self._taught)

    def forget(self) -> Call:
        """Take back what was taught last, if anything was since the last time."""
        if not self._taught:
            return self.learn()
        taught, self._taught = self._taught, {}
        return Call("forget", taught)

    def ingest(self) -> Call:
        X, y = self._rows(8)
        return Call("ingest", {"X": X, "y": y})

    def ingest_mixed(self) -> Call:
        """Labels, several labels and no label, under names."""
        X, y = self._rows(6)
        y[0], y[1] = {y[0], "both"}, None
        carried = {"payloads": self._payloads(6), "thumbnails": self._thumbnails(6)}
        return Call("ingest", {"X": X, "y": y, "ids": self._names("i", 6), **carried})

    def add(self) -> Call:
        return Call("add", {"X": self._rows(10)[0]})

    def add_with_ids(self) -> Call:
        X, y = self._rows(5)
        return Call("add", {"X": X, "y": [None, *y[1:]], "ids": self._names("a", 5)})

    def label(self) -> Call:
        chosen = self._living(5)
        return Call("label", {"ids": chosen, "y": self._rows(len(chosen))[1]})

    def correct(self) -> Call:
        """Change the labels alone."""
        chosen = self._living(4)
        return Call("label", {"ids": chosen, "y": self._rows(len(chosen))[1], "teach": False})

    def unlabel(self) -> Call:
        return Call("unlabel", {"ids": self._living(6)})

    def upsert(self) -> Call:
        """Some entries come in place of others, some are new."""
        ids = [*self._living(3), *self._names("u", 2)]
        X, y = self._rows(len(ids))
        return Call("upsert", {"X": X, "ids": ids, "y": y, "payloads": self._payloads(len(ids))})

    def update(self) -> Call:
        chosen = self._living(3)
        return Call("update", {"ids": chosen, "X": self._rows(len(chosen))[0]})

    def rename(self) -> Call:
        (label,) = self._labels(1)
        return Call("rename_label", {"label": label, "to": f"renamed {self._rng.integers(2**40)}"})

    def merge(self) -> Call:
        label, into = self._labels(2)
        return Call("merge_labels", {"label": label, "into": into})

    def drop(self) -> Call:
        (label,) = self._labels(1)
        return Call("drop_label", {"label": label})

    def add_again(self) -> Call:
        """An id that was removed is free again."""
        X, y = self._rows(len(self._removed))
        return Call("ingest", {"X": X, "y": y, "ids": self._removed}) if len(X) else self.add()

    def compact(self) -> Call:
        """Give back the places of removed entries, if there are any."""
        stats = self._collection.stats()
        return Call("compact", {}) if stats["arrived"] > stats["entries"] else self.remove()

    def attach(self) -> Call:
        chosen = self._living(6)
        return Call("attach", {"ids": chosen, "payloads": self._payloads(len(chosen))})

    def attach_some(self) -> Call:
        """Thumbnails for some, and none any more for others."""
        chosen = self._living(8)
        return Call("attach", {"ids": chosen, "thumbnails": self._thumbnails(len(chosen))})

    def remove(self) -> Call:
        return Call("remove", {"ids": self._living(7)})

    @property
    def _removed(self) -> list[Any]:
        """Some ids that had an entry and have none now."""
        gone = [name for name in self._known if not self._collection.has([name])[0]]
        return gone[-3:]

    def _labels(self, n: int) -> list[Any]:
        """Some labels; what was taught last can then not be taken back as it was."""
        self._taught = {}
        known = [label for label in self._collection.hasher.labels_ if label is not None]
        return [known[place] for place in self._rng.permutation(len(known))[:n]]

    def refresh(self) -> Call:
        return Call("refresh", {})

    def _rows(self, n: int) -> tuple[NDArray[np.float32], list[Any]]:
        y = self._rng.integers(0, LABELS, n)
        noise = self._rng.integers(-4, 5, (n, DIM))
        return np.clip(self._centers[y] + noise, 0, 16).astype(np.float32), y.tolist()

    def _payloads(self, n: int) -> list[Any]:
        """Small ones, large ones, and none in the middle."""
        sizes = self._rng.integers(0, 2000, n).tolist()
        payloads: list[Any] = [{"é": size, "x": "x" * size} for size in sizes]
        payloads[n // 2 : n // 2 + 1] = [None] * (n > 0)
        return payloads

    def _thumbnails(self, n: int) -> list[bytes | None]:
        sizes = self._rng.integers(0, 5000, n).tolist()
        return [None if i % 3 == 0 else GIF + bytes(size) for i, size in enumerate(sizes)]

    def _names(self, kind: str, n: int) -> list[Any]:
        """Numbers far from the default ones, or strings."""
        first = int(self._rng.integers(0, 2**40))
        named = self._rng.random() < 0.5
        return [f"{kind}{first + i}" if named else first + i for i in range(n)]

    def _living(self, n: int) -> list[Any]:
        ids = [entry.id for entry in self._collection.entries()]
        self._known |= dict.fromkeys(ids)
        return [ids[place] for place in self._rng.permutation(len(ids))[:n]]


def observe(collection: Collection) -> State:
    """Return digests of all that a collection shows of itself."""
    hasher, stats = collection.hasher, collection.stats()
    report = stats.pop("last_refresh") or {}
    ids = [entry.id for entry in collection.entries()]
    seen = {
        "carried": [vars(carried) for carried in collection.attachments(ids)],
        "entries": [_plain(vars(entry)) for entry in collection.entries()],
        "labels": hasher.labels_,
        "codewords": _plain(hasher.codewords_),
        "margins": _plain(hasher.margins(PROBES)),
        **{by: _plain(vars(collection.search(PROBES, 10, by, recall=1))) for by in WAYS},
        "stats": [item for item in stats.items() if item[0] not in BEHIND],
        "refresh": [item for item in report.items() if item[0] not in SPENT],
    }
    return {name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in seen.items()}


def observe_file(path: Path) -> State:
    """Return what somebody sees who opens the file now."""
    with everhash.open(path, readonly=True) as collection:
        return observe(collection)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == object else (value.shape, value.tobytes())
    return value


def check_state(found: State, *expected: State, when: str) -> None:
    """Fail unless the state is one of those expected, and say what differs."""
    if found not in expected:
        differ = [[name for name in found if found[name] != state[name]] for state in expected]
        raise AssertionError(f"{when}: not a state that was expected; other are {differ}")


def check_sound(path: Path) -> None:
    """Fail if reading all of the file shows any damage."""
    problems = everhash.verify(path).problems
    assert not problems, f"{path}: {problems}"


def copy(path: Path, target: Path) -> None:
    """Copy a collection's file and log, as a crash would leave them, over what is there."""
    for end in ("", "-wal", "-shm"):
        source, copied = (file.with_name(file.name + end) for file in (path, target))
        copied.unlink(missing_ok=True)
        if end != "-shm" and source.exists():
            shutil.copyfile(source, copied)
