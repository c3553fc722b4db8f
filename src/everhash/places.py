"""How calls and options are written in the four places where people read messages.

A message may name a call or an option as `{call upsert}` or `{option keep_features="all"}`.
`told` writes it the way of the place where it is read:

    place    {call merge_labels}      {option keep_features="all"}   {option teach=False}
    python   merge_labels()           keep_features="all"            teach=False
    cli      everhash merge-labels    --keep-features all            --no-teach
    http     POST /labels/merge       "keep_features": "all"         "teach": false
    page     merge labels             keep features all              teach false
"""

from __future__ import annotations

import re
from typing import Literal

Place = Literal["python", "cli", "http", "page"]
PLACES: tuple[Place, ...] = ("python", "cli", "http", "page")
ROUTES = {
    "entries": "GET /entries",
    "labels": "GET /labels",
    "stats": "GET /stats",
    "rename_label": "POST /labels/rename",
    "merge_labels": "POST /labels/merge",
    "drop_label": "POST /labels/drop",
    "search_like": "POST /search",
    "search_radius": "POST /radius",
}
"""Routes of calls that are not POST and the call's name."""
COMMANDS = {"search_like": "search --like", "search_radius": "search -r"}
"""Commands of calls that are not the call's name with dashes."""
NO_ROUTES = {"create", "open", "restore", "upgrade", "verify"}
"""Calls that no service offers: who runs it gives the command."""
PHRASES: dict[str, dict[Place, str]] = {
    "key": {
        "python": "pass it as key=",
        "cli": "give it in EVERHASH_KEY",
        "http": "send it as `Authorization: Bearer KEY`",
        "page": "type it under Key, at the top right",
    },
    "patience": {
        "python": "ask for less at a time, or pass a larger timeout= to connect",
        "cli": "ask for less at a time",
        "http": "ask for less at a time",
        "page": "ask for less at a time",
    },
    "insecure": {
        "python": "use https, or insecure=True in a network you trust",
        "cli": "use https",
        "http": "use https",
        "page": "use https",
    },
    "X has": {
        "python": "X has",  # scikit-learn's words, which its checks look for
        "cli": "a row has",
        "http": "a row has",
        "page": "a row has",
    },
    "reshape": {
        "python": "Reshape your data: X.reshape(1, -1) if it is a single row, X.reshape(-1, 1) if "
        "it is a single feature",  # scikit-learn's words
        "cli": "Save a single row as a table of one row",
        "http": "Send rows as a list of lists, a single row as a list of one",
        "page": "Choose a file that holds a table with a row for each query",
    },
    "flatten": {
        "python": "Reshape your data: X.reshape(len(X), -1) makes a row of each item",
        "cli": "Save each item as one row of numbers",
        "http": "Send each item as one row of numbers",
        "page": "Choose a file that holds each item as one row of numbers",
    },
    "labels": {
        "python": "labels_ of a hasher and labels() of a collection list those that have",
        "cli": "`everhash labels` lists those that have",
        "http": "GET /labels lists those that have",
        "page": "the labels are listed below the code matrix",
    },
    "new label": {
        "python": "new=True makes a new label",
        "cli": "--new makes a new label",
        "http": '"new": true makes a new label',
        "page": "type it to make a new label",
    },
    "taken": {
        "python": "upsert() replaces an entry, remove() frees its id",
        "cli": "`everhash remove` frees it",
        "http": "POST /upsert replaces an entry, POST /remove frees its id",
        "page": "take another id, or remove the entry that has it",
    },
    "learn first": {
        "python": "call partial_fit(X, y) first, or learn or ingest of a collection",
        "cli": "`everhash ingest` teaches it",
        "http": "POST /learn and POST /ingest teach it",
        "page": "add rows with labels first",
    },
    "all rows": {
        "python": "call fit(X, y) with all of them, or take an online method, such as everhash",
        "cli": "take an online method, such as everhash; `everhash methods` lists them",
        "http": "take an online method, such as everhash",
        "page": "take an online method, such as everhash",
    },
    "create a cluster": {
        "python": "everhash.cluster.create() makes one",
        "cli": "`everhash cluster create` makes one",
        "http": "`everhash cluster create` makes one",
        "page": "`everhash cluster create` makes one",
    },
    "grow": {
        "python": "grow() adds shards",
        "cli": "`everhash cluster rebalance --shards` adds shards",
        "http": "`everhash cluster rebalance --shards` adds shards",
        "page": "`everhash cluster rebalance --shards` adds shards",
    },
    "open": {
        "python": "open it again",
        "cli": "run the command again",
        "http": "the service is stopping; ask again when it runs",
        "page": "the service is stopping; reload the page when it runs",
    },
}
"""What is said in other words in each place, as `{say key}`."""
NAMED = re.compile(r"\{(call|option|say) ([^{}]+)\}")


def told(text: str, place: Place) -> str:
    """Return a text with the calls and options it names written the way of a place.

    >>> [told("{call merge_labels} joins two", place) for place in PLACES[:2]]
    ['merge_labels() joins two', 'everhash merge-labels joins two']
    >>> told('pass {option keep_features="all"} or {option teach=False}', "cli")
    'pass --keep-features all or --no-teach'
    """
    write = {"call": _call, "option": _option, "say": _say}
    return NAMED.sub(lambda found: write[found[1]](found[2], place), text)


def _say(name: str, place: Place) -> str:
    """Return a phrase; a text of a user's that looks like one stays as it is."""
    return PHRASES[name][place] if name in PHRASES else f"{{say {name}}}"


def _call(name: str, place: Place) -> str:
    if place == "python":
        return f"{name}()"
    if place == "cli":
        return f"everhash {COMMANDS.get(name, name.replace('_', '-'))}"
    if name in NO_ROUTES:
        return f"`everhash {name}`, where the service runs,"
    if place == "http":
        return ROUTES.get(name, f"POST /{name}")
    return name.replace("_", " ")


def _option(text: str, place: Place) -> str:
    name, _, value = text.partition("=")
    if place == "python":
        return text if value else f"{name}="
    if place == "cli":
        return _flag(name, value.strip("\"'"))
    value = {"True": "true", "False": "false", "None": "null"}.get(value, value)
    if place == "http":
        return f'"{name}": {value}' if value else f'"{name}"'
    return f"{name} {value}".replace("_", " ").replace('"', "").rstrip()


def _flag(name: str, value: str) -> str:
    """Return an option of the command line; True and False become flags without a value."""
    if len(name) == 1:
        return f"-{name} {value}".rstrip()
    dashed = name.replace("_", "-")
    if value == "False":
        return f"--no-{dashed}"
    return f"--{dashed} {'' if value == 'True' else value}".rstrip()
