"""The same thing has the same name in Python, on the command line and over HTTP.

What is compared is what users see: signatures, options of commands, fields of requests. The table
in docs/reference.md, section "One name each", is held to them too.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from click import Command, Group

import everhash
from everhash import CollectionApi
from everhash.cli import app
from everhash.serve import schemas
from everhash.wire.routes import ROUTES
from tests.unit.serve.serving import serving

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"
CALLS = {
    "learn": ("/learn", None),
    "forget": ("/forget", None),
    "add": ("/add", None),
    "ingest": ("/ingest", "ingest"),
    "upsert": ("/upsert", None),
    "update": ("/update", None),
    "attach": ("/attach", None),
    "search": ("/search", "search"),
    "search_like": ("/search", "search"),
    "search_radius": ("/radius", "search"),
    "predict": ("/predict", "predict"),
    "get": ("/get", "get"),
    "has": ("/has", None),
    "label": ("/label", "label"),
    "unlabel": ("/unlabel", "unlabel"),
    "rename_label": ("/labels/rename", "rename-label"),
    "merge_labels": ("/labels/merge", "merge-labels"),
    "drop_label": ("/labels/drop", "drop-label"),
    "remove": ("/remove", "remove"),
}
"""The route and the command of each call that has them."""
CONVENTIONS = {"X": "rows", "y": "labels"}
"""Names that scikit-learn has taught Python users, and what JSON calls the same."""
COMMAND_ONLY = {
    *{"target", "queries", "sources"},  # files and addresses
    *{"features", "label", "id", "payload", "thumbnail", "format"},  # columns of such a file
    *{
        "batch_rows",
        "limit",
        "resume",
        "create",
        "bits",
        "durability",
        "code",
    },  # and how much of it
    *{"json", "help", "new", "learn"},  # --no-learn: add, not ingest
}
"""What a command line needs and a call does not."""
COMMANDS: Group = typer.main.get_command(app)  # type: ignore[assignment]


def parameters(call: str) -> set[str]:
    """Return the arguments of a call of every collection."""
    return set(inspect.signature(getattr(CollectionApi, call)).parameters) - {"self"}


def fields(path: str) -> set[str]:
    """Return the fields of a route's request."""
    route = next(route for route in ROUTES if route.path == path)
    assert route.request is not None
    return set(getattr(schemas, route.request).model_fields)


def options(command: str, group: Group = COMMANDS) -> set[str]:
    """Return the options of a command in Python's spelling, without what turns them off."""
    found: Command = group.commands[command]
    names = {name for option in found.params for name in (option.opts or [str(option.name)])}
    return {name.lstrip("-").removeprefix("no-").replace("-", "_") for name in names}


@pytest.mark.parametrize("call", CALLS)
def test_arguments_are_called_the_same_over_http(call: str) -> None:
    path, _ = CALLS[call]
    of_all = [parameters(other) for other, (route, _) in CALLS.items() if route == path]
    named = {CONVENTIONS.get(name, name) for name in parameters(call)}
    assert named <= fields(path)
    assert fields(path) <= {CONVENTIONS.get(name, name) for name in set().union(*of_all)}


@pytest.mark.parametrize("call", [call for call, (_, command) in CALLS.items() if command])
def test_options_are_called_as_the_arguments_are(call: str) -> None:
    command = CALLS[call][1]
    assert command is not None
    of_all = [parameters(other) for other, (_, name) in CALLS.items() if name == command]
    assert options(command) <= set().union(*of_all) | COMMAND_ONLY


def test_options_of_creating_are_called_as_the_arguments_are() -> None:
    known = set(inspect.signature(everhash.create).parameters)
    known |= set(inspect.signature(everhash.OnlineHasher).parameters)
    assert options("create") <= known | {"method", "classes", "json"}


def test_options_of_creating_a_cluster_are_called_as_the_arguments_are() -> None:
    known = set(inspect.signature(everhash.cluster.create).parameters)
    created = options("create", COMMANDS.commands["cluster"])  # type: ignore[arg-type]
    assert created <= known | {"json"}
    assert known - created == {"partial", "patience"}  # a command that creates asks nothing


def test_short_options_mean_one_thing_each() -> None:
    meanings: dict[str, set[str]] = {}
    for command in every_command(COMMANDS):
        for option in command.params:
            for name in option.opts:
                if re.fullmatch("-[a-z]", name):
                    meanings.setdefault(name, set()).add(str(option.name))
    assert {name for name, meant in meanings.items() if len(meant) > 1} == set()
    assert meanings["-k"] == {"k"}
    assert meanings["-r"] == {"r"}


def every_command(group: Group) -> list[Command]:
    """Return all commands, those of groups included."""
    found = []
    for command in group.commands.values():
        found += every_command(command) if isinstance(command, Group) else [command]
    return found


def table() -> list[dict[str, str]]:
    """Return the rows of the table in the reference."""
    section = REFERENCE.read_text().partition("## One name each")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    heading, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert heading == ["thing", "Python", "command line", "HTTP"]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_the_table_of_names_is_true() -> None:
    rows = table()
    assert len(rows) >= 15
    for row in rows:
        for place, check in (
            ("Python", in_python),
            ("command line", in_commands),
            ("HTTP", in_http),
        ):
            for name in re.findall("`([^`]*)`", row[place]):
                assert check(name), f"{row['thing']}: {name} is not there in {place}"


def in_python(name: str) -> bool:
    """Whether `call(argument)` or `Class.attribute` exists."""
    if found := re.fullmatch(r"([\w.]+)\((\w+)\)", name):
        called = callable_named(found[1])
        return called is not None and found[2] in inspect.signature(called).parameters
    owner, _, attribute = name.partition(".")
    kind = getattr(everhash, owner, None)
    return kind is not None and (hasattr(kind, attribute) or attribute in kind.__annotations__)


def callable_named(name: str) -> Any:
    """Return a public function or class, or a call of every collection."""
    found: Any = everhash
    for word in name.split("."):
        found = getattr(found, word, None)
    return found or getattr(CollectionApi, name, None)


def in_commands(name: str) -> bool:
    """Whether `command --option` exists."""
    command, _, option = name.rpartition(" ")
    group: Any = COMMANDS
    for word in command.split():
        group = group.commands.get(word)
        if group is None:
            return False
    return any(option in (*each.opts, *each.secondary_opts) for each in group.params)


def in_http(name: str) -> bool:
    """Whether `METHOD /route field` exists, in what is sent or in what comes back."""
    method, path, field = name.split()
    text = str(openapi()["paths"][path][method.lower()])
    return bool(re.search(rf"\b{re.escape(field)}\b", text + models(text)))


@cache
def openapi() -> dict[str, Any]:
    """Return the description of the service."""
    with everhash.create(None, dim=4) as empty, serving(empty) as served:
        document: dict[str, Any] = served.get("/openapi.json").json()
    return document


def models(text: str, seen: frozenset[str] = frozenset()) -> str:
    """Return the models that a piece of the description refers to, as text."""
    found = set(re.findall(r"#/components/schemas/(\w+)", text)) - seen
    every = openapi()["components"]["schemas"]
    return "".join(str(every[name]) + models(str(every[name]), seen | found) for name in found)
