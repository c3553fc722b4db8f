"""Experiments: TOML files that list what is run."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from everhash import peers
from everhash.bench.baselines import BASELINES, LOGISTIC
from everhash.bench.kinds import KINDS, PROTOCOLS
from everhash.bench.task import Task, as_options
from everhash.errors import DataMissingError, OptionError, UnknownNameError
from everhash.peers import deep

HERE = files("everhash.bench") / "experiments"


@dataclass(frozen=True)
class Runs:
    """A grid of tasks: all combinations of methods, bits, seeds and the other lists."""

    dataset: str
    kind: str = "retrieval"
    methods: str | tuple[str, ...] = "all"
    """Names, or "all", "online", "batch"."""
    bits: tuple[int, ...] = (32,)
    rows_a_label: tuple[int, ...] = (200,)
    protocols: tuple[str, ...] = ("strict",)
    shares: tuple[float, ...] = (0.0,)
    options: tuple[dict[str, Any], ...] = ({},)
    seeds: int = 5
    batch_seeds: int = 3
    """Seeds of methods that need all their rows at once, or keep them: they are slow."""
    entries: int = 100_000
    queries: int = 1000

    def tasks(self, place: str) -> Iterator[Task]:
        """Yield all tasks, seed by seed, so that an unfinished run has whole tables."""
        names = named(self.methods, place)
        axes = product(self.rows_a_label, self.protocols, self.shares, names)
        cells = [(*cell, *more) for cell in axes for more in product(self.options, self.bits)]
        for seed in range(max(self.seeds, self.batch_seeds)):
            there = set()
            for rows, protocol, share, method, options, bits in cells:
                width = bits if has_bits(method) else 0
                task = Task(
                    *(self.kind, self.dataset, method, width, seed, rows, protocol, share),
                    *(self.entries, self.queries, as_options(options)),
                )
                if seed < self.seeds_of(method) and task not in there:
                    there.add(task)
                    yield task

    def seeds_of(self, method: str) -> int:
        """Return the number of seeds of a method."""
        if method in BASELINES:
            return self.seeds
        if method in deep.names():
            return self.batch_seeds
        about = peers.describe(method)
        return self.batch_seeds if about.stores_rows or not about.online else self.seeds


@dataclass(frozen=True)
class Experiment:
    """Runs under one name, with the title and the Markdown text above their report."""

    name: str
    title: str
    text: str
    runs: tuple[Runs, ...]
    about: frozenset[str] = frozenset()
    """The data sets that title and text speak of; none if they speak of no set."""

    def tasks(self) -> list[Task]:
        """Return all tasks without duplicates, seed by seed."""
        there = (task for runs in self.runs for task in runs.tasks(self.name))
        return sorted(dict.fromkeys(there), key=lambda task: task.seed)


def check_options(tasks: Iterable[Task]) -> None:
    """Raise if a method does not take the options of its tasks, before any of them runs."""
    there = dict.fromkeys((task.method, task.options) for task in tasks if _has_own_options(task))
    for method, options in there:
        known = peers.get(method).get_params()
        foreign = [name for name, _ in options if name not in known]
        if foreign:
            raise OptionError(
                f"{method} has no option {foreign[0]!r}",
                hint=f"it has {', '.join(sorted(known))}; give other methods [[runs]] of their own",
            )


def _has_own_options(task: Task) -> bool:
    """Return whether the options of a task are its method's, not those of what is timed."""
    return KINDS[task.kind].needs_data and task.method not in BASELINES and bool(task.options)


def names() -> list[str]:
    """Return the names of all experiments."""
    return sorted(entry.name[:-5] for entry in HERE.iterdir() if entry.name.endswith(".toml"))


def load(name: str) -> Experiment:
    """Return an experiment by name, or by the path of a .toml file."""
    if name.endswith(".toml"):
        if not Path(name).is_file():
            raise DataMissingError(f"no file at {name}", hint="check the path")
        return parse(Path(name).read_text(encoding="utf-8"), Path(name).stem)
    if name not in names():
        raise UnknownNameError(
            f"no experiment {name!r}",
            hint=f"expected one of: {', '.join(names())}, or a .toml file",
        )
    return parse((HERE / f"{name}.toml").read_text(encoding="utf-8"), name)


def parse(content: str, name: str) -> Experiment:
    """Parse an experiment; unknown keys raise."""
    try:
        table = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"experiment {name}: {error}") from None
    _refuse_unknown(table, {"title", "text", "runs"}, name)
    listed = table.get("runs")
    if not isinstance(listed, list) or not listed:
        raise OptionError(f"experiment {name} has no [[runs]]")
    runs = tuple(_runs(part, name) for part in listed)
    title, text = str(table.get("title", name)), str(table.get("text", ""))
    return Experiment(name, title, text, runs, frozenset(each.dataset for each in runs))


def _runs(table: Any, place: str) -> Runs:
    known = {field.name for field in fields(Runs)}
    _refuse_unknown(table, known, place)
    if table.get("kind", "retrieval") not in KINDS:
        raise OptionError(
            f"experiment {place}: no kind {table['kind']!r}",
            hint=f"expected one of: {', '.join(KINDS)}",
        )
    for protocol in table.get("protocols", ()):
        if protocol not in PROTOCOLS:
            raise OptionError(
                f"experiment {place}: no protocol {protocol!r}",
                hint=f"expected one of: {', '.join(PROTOCOLS)}",
            )
    lists = {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
    try:
        return Runs(**{**table, **lists})
    except TypeError:
        raise OptionError(f"experiment {place}: [[runs]] must name a dataset") from None


def _refuse_unknown(table: dict[str, Any], known: set[str], place: str) -> None:
    foreign = sorted(set(table) - known)
    if foreign:
        raise OptionError(
            f"experiment {place}: unknown {', '.join(foreign)}",
            hint=f"expected {', '.join(sorted(known))}",
        )


def named(methods: str | Iterable[str], place: str) -> list[str]:
    """Return the methods of a list of names and groups, without duplicates.

    >>> named("paper,okh,paper", "here")
    ['paper', 'okh']
    """
    listed = methods.split(",") if isinstance(methods, str) else methods
    return list(dict.fromkeys(name for part in listed for name in _group(part, place)))


def _group(name: str, place: str) -> list[str]:
    known = [*peers.names(), *BASELINES]
    batch = [method for method in peers.names() if not peers.describe(method).online]
    batch.append(LOGISTIC)
    online = [method for method in known if method not in batch]
    groups = {"all": known, "online": online, "batch": batch}
    if name not in (*known, *deep.names(), *groups):
        raise UnknownNameError(
            f"{place}: no method {name!r}",
            hint=f"expected one of: {', '.join((*known, *deep.names(), *groups))}",
        )
    return groups.get(name, [name])


def has_bits(method: str) -> bool:
    """Return whether the width of a method's codes can be chosen."""
    if method in deep.names():
        return True
    return method in peers.names() and "bits" in peers.get(method).get_params()
