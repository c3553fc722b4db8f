"""`everhash methods`: the methods that learn codes, and their options."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from everhash import peers
from everhash.cli.arguments import AsJsonLines
from everhash.cli.completion import complete_method
from everhash.cli.formatting import print_json
from everhash.learn.options import OWN
from everhash.peers.registry import new_hasher


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show this method only. Default: all.",
            metavar="NAME",
            autocompletion=complete_method,
        ),
    ] = None,
    as_json: AsJsonLines = False,
) -> None:
    """List the methods and what each needs; everhash create takes those that are not batch.

    Example: everhash methods mihash
    """
    found = [peers.describe(name) for name in ([name] if name else peers.names())]
    if as_json:
        for about in found:
            print_json(asdict(about))
        return
    if name:
        _show_one(found[0])
        return
    table = Table(
        title="methods",
        caption="batch: learns from all rows at once, in Python only; not for everhash create",
    )
    for column in ("name", "year", "learns from", "labelled entries", "notes"):
        table.add_column(column)
    for about in found:
        kept = "by codeword" if about.codewords else "by their own bits"
        table.add_row(about.name, str(about.year), _needs(about), kept, "; ".join(_notes(about)))
    Console().print(table)


def _show_one(about: peers.Description) -> None:
    table = Table(title=about.title, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    options = _options(about.name).items()
    for row in (
        ("citation", about.citation),
        ("learns from", _needs(about)),
        ("labelled entries", "by codeword" if about.codewords else "by their own bits"),
        ("notes", "; ".join(_notes(about)) or "none"),
        ("options in Python", ", ".join(f"{option}={value}" for option, value in options)),
    ):
        table.add_row(*row)
    Console().print(table)


def _options(name: str) -> dict[str, Any]:
    """Return the options of a method and their defaults, without those of its other learner."""
    options = new_hasher(name).get_params()
    learner = options.get("learner")
    others = [OWN[other] for other in OWN if learner not in (None, other)]
    return {option: options[option] for option in options if option not in chain(*others)}


def _needs(about: peers.Description) -> str:
    words = {"labels": "labels", "pairs": "pairs, drawn from labels", "nothing": "rows alone"}
    return words[about.needs]


def _notes(about: peers.Description) -> list[str]:
    notes = [] if about.online else ["batch"]
    if about.needs_class_count:
        notes.append("needs --classes")
    if about.batch > 1:
        notes.append(f"waits for {about.batch} rows")
    if about.stores_rows:
        notes.append("stores every row")
    return notes
