"""`everhash key`: make a key for the service."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from everhash.cli.arguments import AsJson
from everhash.cli.formatting import print_json, printable
from everhash.serve.keys import add_key, as_toml, make_key


def key(
    role: Annotated[
        Literal["read", "write", "admin"],
        typer.Argument(help="The role; each role includes the ones before it."),
    ],
    name: Annotated[
        str | None, typer.Option(help="A name for the key, such as its user's.", show_default=False)
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="File of keys to add the key to.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key for everhash serve, and print it. It cannot be shown again.

    A file of keys holds the SHA-256 only. Without --keys, the lines for the file are printed too.

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
        typer.echo(f"\n{printable_lines(as_toml(made))}", nl=False)


def printable_lines(text: str) -> str:
    """Return lines with characters that could control a terminal escaped."""
    return "".join(f"{printable(line)}\n" for line in text.splitlines())
