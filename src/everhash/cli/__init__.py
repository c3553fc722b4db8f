"""The command line: one file a command group, joined here."""

from __future__ import annotations

import sys

import typer

from everhash import __version__
from everhash.cli.advise import advise
from everhash.cli.demo import demo
from everhash.errors import EverhashError, exit_code

app = typer.Typer(
    name="everhash",
    help="Compact binary codes, learned online from a labelled stream that never stops growing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(advise)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everhash {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Everything everhash does, one command each."""


def run() -> None:
    """Entry point: deliberate errors become one line on stderr, bugs keep their traceback."""
    try:
        app()
    except EverhashError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(exit_code(error))
