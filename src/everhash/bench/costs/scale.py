"""How times grow: one size of a scene is varied, and one operation is timed in it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import everhash
from everhash import Collection, OnlineHasher, peers
from everhash.bench.costs.synthetic import SYNTHETIC, RowGenerator
from everhash.bench.costs.timing import load, rounds, seconds
from everhash.bench.datasets import Dataset
from everhash.bench.task import Task
from everhash.errors import OptionError
from everhash.index.index import Index
from everhash.learn.options import whole_number
from everhash.learn.stream_hasher import StreamHasher

BATCH = 1000
"""Rows learned at a time."""
CALL = 10_000
"""Entries added at a time."""
QUERIES, K = 100, 10
"""Queries at once, and results for each."""
EVERY = 100
"""Rows learned between two refreshes."""
AT_LEAST = 2048
"""Least number of rows encoded in a round, in several calls if need be."""
COMMITS = 5
"""Commits in a round."""
MAX_SIZE = 100_000_000
"""The largest size that is accepted."""


@dataclass(frozen=True)
class Scene:
    """The sizes of everything; the points of an axis differ in one of them."""

    rows: int = 8000
    """Rows learned before anything is timed; where encoding is timed, rows encoded at once."""
    labels: int = 10
    width: int = 32
    """Bits of a code."""
    features: int = 64
    labelled: int = 0
    """Entries with a label."""
    unlabelled: int = 0
    """Entries without."""
    method: str = "everhash"
    seed: int = 0

    def source(self) -> RowGenerator:
        """Return a generator of its rows."""
        return RowGenerator(self.labels, self.features, self.seed)

    def taught(self, source: RowGenerator, rows: int) -> StreamHasher:
        """Return a hasher that knows all labels and has learned `rows` rows."""
        hasher = peers.get(self.method, self.width, random_state=self.seed)
        hasher.begin(self.features).assign(range(self.labels))
        # the last label first: a one-vs-rest classifier is as wide as the labels it has seen
        hasher.partial_fit(source.rows_of(self.labels - 1, 1), [self.labels - 1])
        learn(hasher, source, rows)
        return hasher

    def fill(self, entries: Index | Collection, source: RowGenerator) -> None:
        """Add the entries."""
        for start in range(0, self.labelled, CALL):
            X, y = source.rows(min(CALL, self.labelled - start))
            entries.add(X, y=y)
        for start in range(0, self.unlabelled, CALL):
            entries.add(source.rows(min(CALL, self.unlabelled - start))[0])


def learn(
    hasher: StreamHasher, source: RowGenerator, rows: int, batch: int = BATCH
) -> list[tuple[int, float]]:
    """Learn rows in batches; return the rows and the seconds of each batch."""
    times = []
    for start in range(0, rows, batch):
        X, y = source.rows(min(batch, rows - start))
        times.append((len(X), seconds(partial(hasher.partial_fit, X, y))))
    return times


def time_learning(scene: Scene) -> list[float]:
    """Time learning. The best round has no publication of the exact learner in it."""
    source = scene.source()
    hasher = scene.taught(source, scene.rows)
    return [taken / n for _ in rounds() for n, taken in learn(hasher, source, BATCH)]


def time_encoding(scene: Scene) -> list[float]:
    """Time encoding."""
    source = scene.source()
    hasher, calls = scene.taught(source, Scene.rows), -(-AT_LEAST // scene.rows)
    X, _ = source.rows(scene.rows)

    def encode() -> None:
        for _ in range(calls):
            hasher.encode(X)

    return [seconds(encode) / (calls * scene.rows) for _ in rounds()]


def time_search(scene: Scene) -> list[float]:
    """Time searches of an index."""
    source = scene.source()
    index = Index(scene.taught(source, scene.rows))
    scene.fill(index, source)
    X, _ = source.rows(QUERIES)
    index.search(X, K, "meaning")  # the first one sorts the entries
    return [seconds(lambda: index.search(X, K, "meaning")) / QUERIES for _ in rounds()]


def time_refresh(scene: Scene) -> list[float]:
    """Time refreshes of an index after more rows, published if the learner publishes."""
    source = scene.source()
    hasher = scene.taught(source, scene.rows)
    index, times = Index(hasher), []
    scene.fill(index, source)
    for _ in rounds():
        learn(hasher, source, EVERY)
        if isinstance(hasher, OnlineHasher) and hasher.learner == "exact":
            hasher.publish()  # before this nothing is stale
        times.append(seconds(index.refresh) / (scene.labelled + scene.unlabelled))
    return times


def time_opening(scene: Scene) -> list[float]:
    """Time opening a collection and searching it."""
    with tempfile.TemporaryDirectory() as folder:
        path, source = make_collection(Path(folder), scene)
        query, _ = source.rows(1)

        def answer() -> None:
            with everhash.open(path, readonly=True) as collection:
                collection.search(query, K, "meaning")

        return [seconds(answer) for _ in rounds()]


def time_commit(scene: Scene) -> list[float]:
    """Time adding one labelled row to a collection durably."""
    with tempfile.TemporaryDirectory() as folder:
        path, source = make_collection(Path(folder), scene)
        X, y = source.rows(COMMITS)
        with everhash.open(path) as collection:

            def commit() -> None:
                for row in range(COMMITS):
                    collection.add(X[row : row + 1], y=y[row : row + 1])

            return [seconds(commit) / COMMITS for _ in rounds()]


def make_collection(folder: Path, scene: Scene) -> tuple[Path, RowGenerator]:
    """Write a collection, without waiting for the disk."""
    path, source = folder / "scale.ever", scene.source()
    hasher = scene.taught(source, scene.rows)
    with everhash.create(path, hasher=hasher, durability="none") as collection:
        scene.fill(collection, source)
    return path, source


class What(NamedTuple):
    """An operation that is timed."""

    measure: Callable[[Scene], list[float]]
    unit: str
    axes: tuple[str, ...]
    usual: Scene = Scene()


ENTRIES = {"labelled entries": "labelled", "unlabelled entries": "unlabelled"}
AXES = {name: name for name in ("rows", "labels", "width", "features")} | ENTRIES
"""The field of a scene that each axis varies."""
WHAT = {
    "learning": What(time_learning, "per row", ("rows", "labels", "width", "features")),
    "encoding": What(
        time_encoding, "per row", ("rows", "labels", "width", "features"), Scene(rows=1024)
    ),
    "search": What(
        time_search,
        "per query",
        (*ENTRIES, "labels", "width", "features"),
        Scene(labelled=20_000),
    ),
    "refresh": What(
        time_refresh,
        "per entry",
        ("unlabelled entries", "labels", "width"),
        Scene(unlabelled=20_000),
    ),
    "open": What(time_opening, "per open", tuple(ENTRIES)),
    "commit": What(time_commit, "per commit", tuple(ENTRIES)),
}


def measure(task: Task, _data: Dataset) -> dict[str, Any]:
    """Return the seconds of one point, the best of several rounds."""
    what, axis, scene = point_of(task)
    times = WHAT[what].measure(scene)
    return {
        "axis": axis,
        "size": getattr(scene, AXES[axis]),
        "what": what,
        "seconds": min(times),
        "unit": WHAT[what].unit,
        "rounds": len(times),
        "load": load(),
    }


def point_of(task: Task) -> tuple[str, str, Scene]:
    """Return what a task times, the axis and the scene; raise if they make no sense."""
    if task.dataset != SYNTHETIC:
        raise OptionError(
            f"scale needs the data set {SYNTHETIC!r}, got {task.dataset!r}",
            hint="it makes rows of the size that each point needs; leave --data out",
        )
    options = dict(task.options)
    what, axis, size = (options.pop(name, None) for name in ("what", "axis", "size"))
    if options:
        raise OptionError(f"no option {min(options)!r}", hint="expected what, axis and size")
    if what not in WHAT:
        raise OptionError(f"cannot measure {what!r}", hint=f"expected one of: {', '.join(WHAT)}")
    if axis not in WHAT[what].axes:
        known = ", ".join(WHAT[what].axes)
        raise OptionError(f"{what} has no axis {axis!r}", hint=f"expected one of: {known}")
    if axis == "width":
        size = task.bits
    varied: dict[str, Any] = {AXES[axis]: whole_number("size", size, least=1, most=MAX_SIZE)}
    if axis in ENTRIES:
        varied = {**dict.fromkeys(ENTRIES.values(), 0), **varied}
    usual = replace(WHAT[what].usual, method=task.method, seed=task.seed)
    if task.bits:  # a method may have no such choice
        usual = replace(usual, width=task.bits)
    return what, axis, replace(usual, **varied)
