"""`everhash key`: a key for the service."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from everhash.cli.arguments import AsJson
from everhash.cli.formatting import print_json, shown
from everhash.serve.keys import add_key, as_toml, make_key


def key(
    role: Annotated[
        Literal["read", "write", "admin"],
        typer.Argument(help="What it allows; each role may do what those before it may."),
    ],
    name: Annotated[
        str | None, typer.Option(help="Whose it is, to tell keys apart.", show_default=False)
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="File of keys to add it to.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key for everhash serve, and print it: nobody can tell it later.

    A file of keys has its SHA-256 only. Without --keys, the lines for the file are printed too.

    Example: everhash key write --name loader --keys keys.toml
    """
    secret, made = make_key(role, name)
    if keys is not None:
        add_key(keys, made)
    if as_json:
        print_json({"key": secret, **asdict(made)})
        return
    typer.echo(secret)
    if keys is None:
        typer.echo(f"\n{shown_lines(as_toml(made))}", nl=False)


def shown_lines(text: str) -> str:
    """Return lines with nothing in them that moves a cursor."""
    return "".join(f"{shown(line)}\n" for line in text.splitlines())
