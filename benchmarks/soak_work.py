"""The processes of `soak.py`: one that writes mixed work, and some that search all the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import everhash
from everhash import Collection, OnlineHasher
from everhash.bench import datasets
from large_rows import SETS, Floats, real_rows, split
from soak_model import Effect, Labels, Log, entries_of

FIRST_LABELS, MOST_LABELS = 100, 400
"""Labels at the start; beyond so many two are merged or one is dropped before a new one comes."""
ROWS, FEW = 20, 8
"""Rows of an ingest or an addition, and entries of other calls."""
SEARCHES = 20.0
"""Searches a second of a reader."""
CATCH_UP, TELL = 0.5, 5.0
"""Seconds after which a reader catches up, and writes down what it has measured."""
KINDS = {"ingest": 6, "add": 2, "label": 2, "unlabel": 1, "update": 2, "remove": 4, "search": 4}
"""How often a call of each kind is made, out of all; the rest is rare."""
RARE = {"rename": 0.3, "merge": 0.1, "drop": 0.1, "refresh": 0.3, "compact": 0.02}


class Plan(NamedTuple):
    """How a soak is done."""

    folder: Path
    data: str
    """"sets" for four sets of image features, "digits" for scikit-learn's."""
    entries: int
    """About so many entries there are, all the while."""
    calls: float
    """Calls a second of the writer, at most."""
    seed: int

    @property
    def path(self) -> Path:
        """The collection's file."""
        return self.folder / "soak.ever"

    @property
    def log(self) -> Path:
        """Where the writer notes its calls."""
        return self.folder / "calls.jsonl"

    def readings(self, number: int) -> Path:
        """Return where a reader writes what it has measured."""
        return self.folder / f"reader{number}.jsonl"

    def prepare(self) -> None:
        """Keep rows and labels in the folder, where processes find them at once."""
        if self.data == "sets":
            X, y = real_rows()
        else:
            data = datasets.load("digits")
            X, y = data.X, split(data.X, data.y, 30)
        np.savez(self.folder / "rows.npz", X=X, y=y)

    def rows(self) -> tuple[Floats, list[str]]:
        """Return rows and the names of their labels."""
        with np.load(self.folder / "rows.npz") as file:
            return file["X"], [f"label {number}" for number in file["y"].tolist()]


def data_here() -> str:
    """Return what rows there are on this machine."""
    return "sets" if all(map(datasets.is_here, SETS)) else "digits"


def create(plan: Plan) -> None:
    """Make the collection, and note what is in it."""
    plan.prepare()
    X, y = plan.rows()
    known = set(sorted(set(y))[:FIRST_LABELS])
    chosen = np.flatnonzero([label in known for label in y])
    picks = np.random.default_rng(plan.seed).choice(chosen, plan.entries).tolist()
    names = [f"first {number}" for number in range(plan.entries)]
    put: Labels = {name: y[pick] for name, pick in zip(names, picks, strict=True)}
    log = Log(plan.log)
    with everhash.create(plan.path, X.shape[1], hasher=OnlineHasher(32)) as collection:
        log.note(begin=asdict(Effect(put)), call="create")
        collection.ingest(X[picks], list(put.values()), names)
        log.note(end="create", seconds=0.0, entries=len(collection), labels=len(known))


class Writer:
    """Makes up calls that fit what is there, and makes them."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan, self._rng = plan, np.random.default_rng((plan.seed, number))
        self._X, self._y = plan.rows()
        self._log, self._number, self._made = Log(plan.log), number, 0
        start = time.perf_counter()
        self._collection: Collection = everhash.open(plan.path)
        self._log.note(opened=time.perf_counter() - start)
        self._entries = entries_of(self._collection)
        self._ids = list(self._entries)

    def run(self) -> None:
        """Make calls until somebody kills this process."""
        kinds = {**KINDS, **RARE}
        names, shares = list(kinds), np.array(list(kinds.values())) / sum(kinds.values())
        while True:
            start = time.perf_counter()
            self._step(str(self._rng.choice(names, p=shares)))
            time.sleep(max(0.0, start + 1 / self._plan.calls - time.perf_counter()))

    def _step(self, kind: str) -> None:
        """Make a call of a kind; as many entries are removed as come."""
        if kind in ("ingest", "add") and len(self._entries) > 1.05 * self._plan.entries:
            kind = "remove"
        if kind == "remove" and len(self._entries) < 0.95 * self._plan.entries:
            kind = "ingest"
        effect, run = getattr(self, f"_{kind}")()
        self._log.note(begin=asdict(effect), call=kind)
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
        labels = len(self._collection.hasher.labels_)
        self._entries = effect.on(self._entries)
        self._ids = list(self._entries)
        self._log.note(end=kind, seconds=seconds, entries=len(self._entries), labels=labels)

    def _new(self, n: int) -> tuple[list[int], list[str]]:
        """Draw rows for new entries, and names that nobody has had."""
        picks = self._rng.integers(0, len(self._X), n).tolist()
        self._made += n
        return picks, [f"{self._number}.{self._made - i}" for i in range(n)]

    def _some(self, n: int, *, labelled: bool = False) -> list[str]:
        """Draw ids that are there."""
        places = self._rng.choice(len(self._ids), min(4 * n, len(self._ids)), replace=False)
        drawn = [self._ids[place] for place in places.tolist()]
        return [name for name in drawn if not labelled or self._entries[name] is not None][:n]

    def _labels(self, n: int) -> list[str]:
        """Draw labels that the collection knows."""
        known = [str(label) for label in self._collection.hasher.labels_ if label is not None]
        return [known[place] for place in self._rng.permutation(len(known))[:n].tolist()]

    def _known(self, picks: list[int]) -> list[str]:
        """Return the labels of rows; a label that is new only now and then."""
        known = {str(label) for label in self._collection.hasher.labels_}
        new = self._rng.random() < 0.05 and len(known) < MOST_LABELS
        spare = self._labels(1)[0]
        return [self._y[pick] if new or self._y[pick] in known else spare for pick in picks]

    def _ingest(self) -> tuple[Effect, Callable[[], Any]]:
        picks, names = self._new(ROWS)
        y = self._known(picks)
        call = partial(self._collection.ingest, self._X[picks], y, names)
        return Effect(dict(zip(names, y, strict=True))), call

    def _add(self) -> tuple[Effect, Callable[[], Any]]:
        picks, names = self._new(ROWS)
        return Effect(dict.fromkeys(names)), partial(self._collection.add, self._X[picks], names)

    def _label(self) -> tuple[Effect, Callable[[], Any]]:
        names = self._some(FEW)
        y = self._labels(len(names))
        names = names[: len(y)]
        return Effect(dict(zip(names, y, strict=True))), partial(self._collection.label, names, y)

    def _unlabel(self) -> tuple[Effect, Callable[[], Any]]:
        names = self._some(FEW, labelled=True)
        return Effect(dict.fromkeys(names)), partial(self._collection.unlabel, names)

    def _update(self) -> tuple[Effect, Callable[[], Any]]:
        names = self._some(FEW)
        picks, _ = self._new(len(names))
        kept = {name: self._entries[name] for name in names}
        return Effect(kept), partial(self._collection.update, names, self._X[picks])

    def _remove(self) -> tuple[Effect, Callable[[], Any]]:
        names = self._some(2 * ROWS)
        return Effect(gone=names), partial(self._collection.remove, names)

    def _search(self) -> tuple[Effect, Callable[[], Any]]:
        picks, _ = self._new(1)
        return Effect(), partial(self._collection.search, self._X[picks])

    def _rename(self) -> tuple[Effect, Callable[[], Any]]:
        (label,) = self._labels(1)
        to = f"renamed {self._rng.integers(2**40)}"
        return Effect(label=(label, to)), partial(self._collection.rename_label, label, to)

    def _merge(self) -> tuple[Effect, Callable[[], Any]]:
        label, into = self._labels(2)
        return Effect(label=(label, into)), partial(self._collection.merge_labels, label, into)

    def _drop(self) -> tuple[Effect, Callable[[], Any]]:
        (label,) = self._labels(1)
        return Effect(label=(label, None)), partial(self._collection.drop_label, label)

    def _refresh(self) -> tuple[Effect, Callable[[], Any]]:
        return Effect(), self._collection.refresh

    def _compact(self) -> tuple[Effect, Callable[[], Any]]:
        return Effect(), self._collection.compact


def write(plan: Plan, number: int) -> None:
    """What the writer's process does; an error is noted, and ends it."""
    try:
        Writer(plan, number).run()
    except Exception as error:
        Log(plan.log).note(error=f"writer: {error!r}")
        raise


def read(plan: Plan, number: int) -> None:
    """What a reader's process does: search, catch up, write down how long that took."""
    X, _ = plan.rows()
    queries = X[np.random.default_rng((plan.seed, number)).integers(0, len(X), 2000)]
    del X
    log = Log(plan.readings(number))
    try:
        with everhash.open(plan.path, readonly=True) as collection:
            _search_on(collection, queries, log)
    except Exception as error:
        log.note(error=f"reader {number}: {error!r}")
        raise


def _search_on(collection: Collection, queries: Floats, log: Log) -> None:
    times: list[float] = []
    catching: list[float] = []
    told = caught = time.perf_counter()
    for number in range(2**62):
        start = time.perf_counter()
        collection.search(queries[number % len(queries)][None])
        end = time.perf_counter()
        times.append(end - start)
        if end - caught > CATCH_UP:
            collection.catch_up()
            caught = time.perf_counter()
            catching.append(caught - end)
        if end - told > TELL:
            log.note(search=times, catch_up=catching)
            times, catching, told = [], [], end
        time.sleep(max(0.0, start + 1 / SEARCHES - time.perf_counter()))
