"""All engines on the same rows: each is built in turn, then all are asked in turns.

A round asks every engine at every setting, so that load on the machine slows all alike. Every
engine is built in one process, answers first in a second, and is raced and weighed in a third.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from everhash.bench.likeness.child import Child, ChildError, Place, Worker
from everhash.bench.likeness.engines import ENGINES, FLAT, Setting, in_words
from everhash.bench.likeness.rows import Counts, RowSource
from everhash.errors import OptionError

ROUNDS, SINGLES = 5, 200
"""Rounds, and queries that each setting is asked one by one in all of them together."""
SLOW, SLOW_ROUNDS = 10.0, 2
"""A call that took longer is made in so many rounds only: noise hardly changes it."""


@dataclass
class Curve:
    """What was measured at one setting of an engine."""

    setting: Setting
    recall: float
    asked: int
    """Queries in one call."""
    alone: int
    """Queries asked one by one in a round, at most."""
    batch: list[float] = field(default_factory=list)
    """Seconds of a call, a round each."""
    singles: list[list[float]] = field(default_factory=list)
    """Seconds of each query, a round each."""

    def figures(self) -> dict[str, Any]:
        """Return queries a second, each the best of the rounds, and the median of single calls."""
        every = [taken for taken_round in self.singles for taken in taken_round]
        return {
            "setting": in_words(self.setting),
            "recall": self.recall,
            "asked": self.asked,
            "asked_alone": len(every),
            "batch": self.asked / min(self.batch),
            "single": max(len(of_round) / sum(of_round) for of_round in self.singles),
            "single_ms": median(every) * 1e3,
        }


def race(
    source: RowSource, size: int, queries: int, names: Iterable[str], rounds: int = ROUNDS
) -> dict[str, Any]:
    """Return the figures of each engine; those of one that failed are a note."""
    with tempfile.TemporaryDirectory(prefix="everhash-likeness-") as folder:
        places = {
            name: Place(name, Path(folder) / f"{number}.index", source, size, queries)
            for number, name in enumerate(names)
        }
        found: dict[str, dict[str, Any]] = {name: _built(place) for name, place in places.items()}
        built = [place for name, place in places.items() if "note" not in found[name]]
        if found[FLAT].get("note"):
            raise OptionError(f"{FLAT} has no answers to compare with: {found[FLAT]['note']}")
        for name, figures in _raced(built, rounds):
            found[name] |= figures
    return found


def _built(place: Place) -> dict[str, Any]:
    """Return what building, saving and opening cost; a note if the engine cannot."""
    about: dict[str, Any] = {"holds": ENGINES[place.name].holds}
    try:
        with Child(place) as child:
            about |= child.ask(Worker.build)
        with Child(place) as child:
            about["first_answer"] = child.ask(Worker.first_answer)
    except ChildError as error:
        about["note"] = str(error)
    return about


def _raced(places: list[Place], rounds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the curve of each engine, and what it keeps in memory."""
    curves: dict[str, list[Curve]] = {}
    with ExitStack() as stack:
        children = {place.name: stack.enter_context(Child(place)) for place in places}
        children[FLAT].ask(Worker.open)
        truth: Counts = children[FLAT].ask(Worker.answers, {}, places[0].queries)
        for name, child in list(children.items()):
            try:
                child.ask(Worker.open)
                settings = ENGINES[name].settings
                curves[name] = [_begun(child, setting, truth) for setting in settings]
            except ChildError as error:  # what was built of the others took long: they go on
                del children[name]
                yield name, {"note": str(error)}
        for number in range(rounds):
            _round(children, curves, number, rounds)
        for name, child in children.items():
            figures = [curve.figures() for curve in curves[name]]
            yield name, {"settings": figures, **child.ask(Worker.grown)}


def _begun(child: Child, setting: Setting, truth: Counts) -> Curve:
    """Return how much is found at a setting, without times yet."""
    asked, alone = child.ask(Worker.affordable, setting)
    found = child.ask(Worker.answers, setting, asked)
    return Curve(setting, recall_of(found, truth[:asked]), asked, alone)


def _round(
    children: dict[str, Child], curves: dict[str, list[Curve]], number: int, rounds: int
) -> None:
    """Ask everybody at every setting, in one call and one by one."""
    first, last = (SINGLES * turn // rounds for turn in (number, number + 1))
    everybody = [(child, curve) for name, child in children.items() for curve in curves[name]]
    for child, curve in everybody:
        if number < SLOW_ROUNDS or curve.batch[0] < SLOW:
            curve.batch.append(child.ask(Worker.batch, curve.setting, curve.asked))
    for child, curve in everybody:
        until = min(last, first + curve.alone)
        curve.singles.append(child.ask(Worker.singles, curve.setting, first, until))


def recall_of(found: Counts, truth: Counts) -> float:
    """Return the share of the true K entries that were found.

    >>> recall_of(np.array([[1, 2], [3, -1]]), np.array([[2, 1], [4, 3]]))
    0.75
    """
    right = [np.isin(true, those).mean() for those, true in zip(found, truth, strict=True)]
    return float(np.mean(right))


def versions() -> dict[str, str]:
    """Return the versions of the peers that are installed."""
    there = {}
    for name in ("faiss-cpu", "usearch"):
        with suppress(PackageNotFoundError):
            there[name] = version(name)
    return there
