"""Every message speaks the language of the places where it can be read.

A message of a shared room can be read in Python, on the command line, over HTTP and on the page.
So it has no syntax of one of them: it names calls and options as `everhash.places` describes, and
those exist wherever it is read.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import pytest
import typer.main
from pydantic import BaseModel

import everhash
from everhash import OnlineHasher, cli
from everhash.places import NAMED, NO_ROUTES, PHRASES, PLACES, Place, told
from everhash.serve import answer_schemas, schemas
from everhash.wire.routes import ROUTES
from tests.unit.error_sites import Text, files, texts

READ_IN: dict[str, tuple[Place, ...]] = {
    "cli/": ("cli",),
    "serve/": ("http", "page", "cli"),  # who runs a service gives commands
    "client/": ("python", "cli"),
    "sources/": ("python", "cli"),  # files are read there; a service gets bodies
    "bench/": ("cli",),  # `everhash bench` runs experiments; no public call does
    "checks/": ("python",),
    "peers/deep/": ("python",),  # neither a collection nor a command takes images
    "kernels/": ("python",),
    "metrics.py": ("python",),
    "estimator.py": ("python",),
}
"""The places of a folder or file; all of them for what is not named."""
ONE_PLACE = {
    *{"cli/", "serve/", "bench/", "checks/", "kernels/", "peers/deep/"},
    *{"metrics.py", "estimator.py"},
}
"""What may write its own place's syntax; elsewhere a text is read in several places."""
EXCEPTIONS = {
    ("stream.py", "(shape="): "scikit-learn's words, which its checks look for",
    ("serve/entries.py", "json=true"): "a query parameter, which is HTTP",
    ("collection/attachments.py", "to_dict("): "only a pandas frame, so only Python, gets there",
    (
        "sources/npy_header.py",
        "np.asarray(y, dtype=str)",
    ): "a .npy of objects can only be made in Python",
    ("wire/arrow.py", "pyarrow.ipc"): "whoever sends Arrow has a library for it",
    ("tabular.py", "X.toarray("): "only Python has sparse arrays",
    ("sources/csvs.py", "header line"): "a CSV has a header too",
    ("client/address.py", "`everhash key`"): "nothing else makes keys",
    (
        "cluster/connecting.py",
        "`ray start --head`",
    ): "Ray is started by its own command, by nothing else",
    ("learn/stream_hasher.py", "load_hasher"): "a model's file is read in Python only",
    ("peers/model_file.py", "everhash.peers.deep.load"): "and so is a deep method's",
}
"""A file and a part of its text that may stand, each with a reason."""
READS_ONLY = "nothing was changed"
"""Said after a failed write only, and so by no class that reads raise too."""


def places_of(file: str) -> tuple[Place, ...]:
    """Return where the messages of a file can be read."""
    return next((places for room, places in READ_IN.items() if file.startswith(room)), PLACES)


@cache
def commands() -> dict[str, set[str]]:
    """Return every command and its options."""

    def walk(command: Any, name: str) -> dict[str, set[str]]:
        options = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        found = {name: options}
        for child, sub in getattr(command, "commands", {}).items():
            found |= walk(sub, f"{name} {child}".strip())
        return found

    return walk(typer.main.get_command(cli.app), "")


@cache
def syntax() -> dict[str, re.Pattern[str]]:
    """Return what a text looks like that only one place understands."""
    first = "|".join(sorted({re.escape(name.split()[0]) for name in commands() if name}))
    return {
        "cli": re.compile(rf"(?<![\w-])--?[a-z][\w-]*|\beverhash ({first})\b"),
        "python": re.compile(r"\b[A-Za-z_][\w.]*\((?!s\))|\b[a-z_]+=(?!=)|\beverhash\.[a-z]"),
        "http": re.compile(r"\b(GET|POST|PUT|DELETE) /|\b[Hh]eader\b|Content-Type"),
        "page": re.compile(r"\b[Cc]lick\b|\bbutton\b"),
    }


def foreign(file: str, text: str) -> list[str]:
    """Return the places whose syntax a text has although it is read in another, too."""
    bare = NAMED.sub("", text)
    for where, part in EXCEPTIONS:
        if where == file:
            bare = bare.replace(part, "")
    places, own = places_of(file), any(file.startswith(room) for room in ONE_PLACE)
    allowed: set[str] = set(places) if own else set()
    return [place for place, form in syntax().items() if place not in allowed and form.search(bare)]


FILES = [file for file in files() if texts(file)]


@pytest.mark.parametrize("file", FILES)
def test_a_text_has_no_syntax_of_a_place_where_it_is_not_read(file: str) -> None:
    wrong = [(text, foreign(file, text.text)) for text in texts(file)]
    assert [f"{file}:{text.line} {found}: {text.text}" for text, found in wrong if found] == []


def calls_of(place: Place) -> set[str]:
    """Return the calls that a place offers, by their name in Python."""
    python = {
        *(name for owner in (everhash.CollectionApi, OnlineHasher) for name in dir(owner)),
        *everhash.__all__,
    }
    if place == "python":
        return python
    written = {name: told(f"{{call {name}}}", place) for name in python}
    if place == "http":
        routes = {f"{route.method} {route.path}" for route in ROUTES}
        return NO_ROUTES | {name for name, text in written.items() if text in routes}
    if place == "page":
        return python
    return {
        name
        for name, text in written.items()
        if (words := text.split())[1] in commands() and set(words[2:]) <= commands()[words[1]]
    }


def options_of(place: Place) -> set[str]:
    """Return the options that a place offers, as it writes them without a value."""
    if place == "python":
        takers: list[Any] = [everhash.create, everhash.open, everhash.read, everhash.connect]
        takers.append(everhash.cluster.open)
        public = [name for name in dir(everhash.CollectionApi) if not name.startswith("_")]
        calls = [getattr(everhash.Collection, name) for name in public]
        return {
            f"{name}="
            for taker in (OnlineHasher, *takers, *filter(inspect.isfunction, calls))
            for name in inspect.signature(taker).parameters
        }
    if place == "cli":
        return set().union(*commands().values())
    models = [*vars(schemas).values(), *vars(answer_schemas).values()]
    return {
        f'"{name}"'
        for model in models
        if inspect.isclass(model) and issubclass(model, BaseModel)
        for name in model.model_fields
    }


NAMING = [(file, text) for file in FILES for text in texts(file) if NAMED.search(text.text)]
NO_FIELDS = {"dim", "learner", "keep_features", "readonly", "keys", "port", "partial"}
"""Options that no request has: they are given when a collection is made or served."""


@pytest.mark.parametrize(
    ("file", "text"), NAMING, ids=[f"{file}:{text.line}" for file, text in NAMING]
)
def test_a_call_or_option_that_a_text_names_exists_where_it_is_read(file: str, text: Text) -> None:
    for kind, name in NAMED.findall(text.text):
        if (file, name) in EXCEPTIONS:
            continue
        for place in places_of(file):
            if kind == "call":
                assert name in calls_of(place), f"{place} has no call {name}"
            elif kind == "say":
                assert name in PHRASES
            elif place != "page" and not (place == "http" and name.split("=")[0] in NO_FIELDS):
                bare = told(f"{{option {name}}}", place).split("=")[0].split(":")[0].split()[0]
                written = f"{bare}=" if place == "python" else bare
                assert written in options_of(place), f"{place} has no option {written}"


@pytest.mark.parametrize("name", PHRASES)
def test_a_phrase_is_said_in_every_place_and_in_its_own_words(name: str) -> None:
    assert set(PHRASES[name]) == set(PLACES)
    for place, words in PHRASES[name].items():
        named = re.findall(r"`everhash ([a-z-]+)`", words)
        assert set(named) <= set(commands())
        routes = {f"{route.method} {route.path}" for route in ROUTES}
        assert set(re.findall(r"(?:GET|POST) /[a-z/]+", words)) <= routes
        if place != "http":
            assert not syntax()["http"].search(words)
        if place != "python":
            assert not syntax()["python"].search(words)


def test_what_reads_raise_does_not_say_that_nothing_was_changed() -> None:
    said = [text.text for file in ("errors.py",) for text in texts(file)]
    assert not [text for text in said if READS_ONLY in text]


def test_every_exception_is_needed() -> None:
    for file, part in EXCEPTIONS:
        assert any(part in text.text for text in texts(file)), (file, part)


@pytest.mark.parametrize("place", PLACES)
def test_a_text_of_a_user_that_looks_like_ours_does_no_harm(place: Place) -> None:
    error = everhash.errors.LabelError("label '{say nothing}' or '{call }' or '{option }'")
    assert "{say nothing}" in error.told(place).message
