"""A task of kind `likeness`: which part it is, and the figures of its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from everhash.bench.costs.timing import load
from everhash.bench.datasets import Dataset
from everhash.bench.likeness.engines import ENGINES, FLAT, OURS, takes_recall
from everhash.bench.likeness.inserts import beside_searches, while_growing
from everhash.bench.likeness.race import ROUNDS, race, versions
from everhash.bench.likeness.rows import RowSource
from everhash.bench.task import Task
from everhash.errors import OptionError
from everhash.learn.options import whole_number

MAX_SIZE, MAX_ROUNDS, MAX_SECONDS = 100_000_000, 200, 3600
SECONDS = 10
Options = dict[str, Any]


def _search(task: Task, source: RowSource, options: Options) -> dict[str, Any]:
    found = race(
        source, options["size"], task.queries, _names(options["engines"]), options["rounds"]
    )
    return {"engines": found, "rounds": options["rounds"], "takes_recall": takes_recall()}


def _inserts(_task: Task, source: RowSource, options: Options) -> dict[str, Any]:
    return beside_searches(source, options["size"], options["seconds"])


def _growing(_task: Task, source: RowSource, options: Options) -> dict[str, Any]:
    return while_growing(source, options["size"], options["to"])


class Part(NamedTuple):
    """How a part is measured, and its options with their defaults; None if there is none."""

    measure: Callable[[Task, RowSource, Options], dict[str, Any]]
    options: Options


PARTS = {
    "search": Part(_search, {"size": None, "rounds": ROUNDS, "engines": ""}),
    "inserts": Part(_inserts, {"size": None, "seconds": SECONDS}),
    "growing": Part(_growing, {"size": None, "to": None}),
}
MOST = {"size": MAX_SIZE, "to": MAX_SIZE, "rounds": MAX_ROUNDS, "seconds": MAX_SECONDS}


def measure(task: Task, _data: Dataset) -> dict[str, Any]:
    """Return the figures of a task."""
    part, source, options = read_options(task)
    source.check()
    figures = PARTS[part].measure(task, source, options)
    about = {"part": part, "size": options["size"], "packages": versions(), "load": load()}
    return {**about, **figures}


def read_options(task: Task) -> tuple[str, RowSource, Options]:
    """Return the part, its rows and all its options; raise if they make no sense."""
    given = dict(task.options)
    part = given.pop("part", None)
    if part not in PARTS:
        raise OptionError(f"no part {part!r}", hint=f"expected one of: {', '.join(PARTS)}")
    known = PARTS[part].options
    if foreign := sorted(set(given) - set(known)):
        raise OptionError(
            f"{part} has no option {foreign[0]!r}", hint=f"expected {', '.join(known)}"
        )
    options = known | given
    for name in options.keys() & MOST.keys():
        options[name] = whole_number(name, options[name], least=1, most=MOST[name])
    if part == "growing" and options["to"] <= options["size"]:
        raise OptionError(f"to must be above size, got {options['to']} and {options['size']}")
    if part == "search":
        _names(options["engines"])
    return part, RowSource(task.dataset, task.seed), options


def _names(listed: str) -> list[str]:
    """Return names of engines: those of a list, ours and the one with the answers; else all.

    >>> _names("usearch")
    ['everhash', 'FAISS Flat', 'usearch']
    """
    named = [name.strip() for name in listed.split(",") if name.strip()]
    for name in named:
        if name not in ENGINES:
            raise OptionError(f"no engine {name!r}", hint=f"expected some of: {', '.join(ENGINES)}")
    return [name for name in ENGINES if not named or name in (OURS, FLAT, *named)]
