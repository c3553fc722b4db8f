"""How costs grow: one number of a scene is varied, and one thing is timed in it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import everhash
from everhash import Collection, OnlineHasher, peers
from everhash.bench.costs.synthetic import SYNTHETIC, Source
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
"""Asked at once, and entries wanted of each."""
EVERY = 100
"""Rows learned between two refreshes."""
AT_LEAST = 2048
"""Rows encoded in a round, in as many calls as that takes."""
COMMITS = 5
"""In a round."""
MOST = 100_000_000
"""The largest size: what is not a slip of the finger."""


@dataclass(frozen=True)
class Scene:
    """How much there is of everything; the points of an axis differ in one of these."""

    rows: int = 8000
    """Of the stream before anything is timed; where encoding is timed, rows encoded at once."""
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

    def source(self) -> Source:
        """Return rows for it."""
        return Source(self.labels, self.features, self.seed)

    def taught(self, source: Source, rows: int) -> StreamHasher:
        """Return a hasher that knows all labels and has learned so many rows."""
        hasher = peers.get(self.method, self.width, random_state=self.seed)
        hasher.begin(self.features).assign(range(self.labels))
        # the last label first: a one-vs-rest classifier is as wide as the labels it has met
        hasher.partial_fit(source.rows_of(self.labels - 1, 1), [self.labels - 1])
        learn(hasher, source, rows)
        return hasher

    def fill(self, entries: Index | Collection, source: Source) -> None:
        """Add the entries."""
        for start in range(0, self.labelled, CALL):
            X, y = source.rows(min(CALL, self.labelled - start))
            entries.add(X, y=y)
        for start in range(0, self.unlabelled, CALL):
            entries.add(source.rows(min(CALL, self.unlabelled - start))[0])


def learn(
    hasher: StreamHasher, source: Source, rows: int, batch: int = BATCH
) -> list[tuple[int, float]]:
    """Learn rows, a batch at a time; return each one's rows and seconds, without making them."""
    times = []
    for start in range(0, rows, batch):
        X, y = source.rows(min(batch, rows - start))
        times.append((len(X), seconds(partial(hasher.partial_fit, X, y))))
    return times


def time_learning(scene: Scene) -> list[float]:
    """Go on with a stream. The best round has no publication of the exact learner in it."""
    source = scene.source()
    hasher = scene.taught(source, scene.rows)
    return [taken / n for _ in rounds() for n, taken in learn(hasher, source, BATCH)]


def time_encoding(scene: Scene) -> list[float]:
    """Encode rows."""
    source = scene.source()
    hasher, calls = scene.taught(source, Scene.rows), -(-AT_LEAST // scene.rows)
    X, _ = source.rows(scene.rows)

    def encode() -> None:
        for _ in range(calls):
            hasher.encode(X)

    return [seconds(encode) / (calls * scene.rows) for _ in rounds()]


def time_search(scene: Scene) -> list[float]:
    """Search an index."""
    source = scene.source()
    index = Index(scene.taught(source, scene.rows))
    scene.fill(index, source)
    X, _ = source.rows(QUERIES)
    index.search(X, K)  # the first one sorts the entries
    return [seconds(lambda: index.search(X, K)) / QUERIES for _ in rounds()]


def time_refresh(scene: Scene) -> list[float]:
    """Bring an index up to date with some more rows, published where that is a learner's way."""
    source = scene.source()
    hasher = scene.taught(source, scene.rows)
    index, times = Index(hasher), []
    scene.fill(index, source)
    for _ in rounds():
        learn(hasher, source, EVERY)
        if isinstance(hasher, OnlineHasher) and hasher.learner == "exact":
            hasher.publish()  # nothing is stale before
        times.append(seconds(index.refresh) / (scene.labelled + scene.unlabelled))
    return times


def time_opening(scene: Scene) -> list[float]:
    """Open a collection and ask it something."""
    with tempfile.TemporaryDirectory() as folder:
        path, source = make_collection(Path(folder), scene)
        query, _ = source.rows(1)

        def answer() -> None:
            with everhash.open(path, readonly=True) as collection:
                collection.search(query, K)

        return [seconds(answer) for _ in rounds()]


def time_commit(scene: Scene) -> list[float]:
    """Add one labelled row to a collection, and wait for the disk."""
    with tempfile.TemporaryDirectory() as folder:
        path, source = make_collection(Path(folder), scene)
        X, y = source.rows(COMMITS)
        with everhash.open(path) as collection:

            def commit() -> None:
                for row in range(COMMITS):
                    collection.add(X[row : row + 1], y=y[row : row + 1])

            return [seconds(commit) / COMMITS for _ in rounds()]


def make_collection(folder: Path, scene: Scene) -> tuple[Path, Source]:
    """Write a collection, without waiting for the disk."""
    path, source = folder / "scale.ever", scene.source()
    hasher = scene.taught(source, scene.rows)
    with everhash.create(path, hasher=hasher, durability="none") as collection:
        scene.fill(collection, source)
    return path, source


class What(NamedTuple):
    """Something that takes time."""

    measure: Callable[[Scene], list[float]]
    unit: str
    axes: tuple[str, ...]
    usual: Scene = Scene()


ENTRIES = {"labelled entries": "labelled", "unlabelled entries": "unlabelled"}
AXES = {name: name for name in ("rows", "labels", "width", "features")} | ENTRIES
"""What may grow, and the number of a scene that it is."""
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
    """Return the seconds of one point: the best round of several."""
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
    """Read what a task times, which number it varies, and the scene; refuse what makes no sense."""
    if task.dataset != SYNTHETIC:
        raise OptionError(
            f"scale needs the data set {SYNTHETIC!r}, got {task.dataset!r}",
            hint="it makes rows as large as each point asks for; leave --data out",
        )
    told = dict(task.options)
    what, axis, size = (told.pop(name, None) for name in ("what", "axis", "size"))
    if told:
        raise OptionError(f"no option {min(told)!r}", hint="there are what, axis and size")
    if what not in WHAT:
        raise OptionError(f"cannot measure {what!r}", hint=f"choose from {', '.join(WHAT)}")
    if axis not in WHAT[what].axes:
        known = ", ".join(WHAT[what].axes)
        raise OptionError(f"{what} has no axis {axis!r}", hint=f"choose from {known}")
    if axis == "width":
        size = task.bits
    varied: dict[str, Any] = {AXES[axis]: whole_number("size", size, least=1, most=MOST)}
    if axis in ENTRIES:
        varied = {**dict.fromkeys(ENTRIES.values(), 0), **varied}
    usual = replace(WHAT[what].usual, method=task.method, seed=task.seed)
    if task.bits:  # a method may have no such choice
        usual = replace(usual, width=task.bits)
    return what, axis, replace(usual, **varied)
