"""The command line: one file a command group, joined here."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import typer

from everhash import __version__
from everhash.cli.advise import advise
from everhash.cli.bench import bench
from everhash.cli.collection import create, restore, snapshot, stats, verify
from everhash.cli.demo import demo
from everhash.cli.entries import label, remove
from everhash.cli.export import export
from everhash.cli.formatting import shown
from everhash.cli.ingest import ingest
from everhash.cli.keys import key
from everhash.cli.methods import methods
from everhash.cli.refresh import refresh
from everhash.cli.search import search
from everhash.cli.serve import serve
from everhash.errors import EverhashError, StoreError, exit_code

app = typer.Typer(
    name="everhash",
    help="Compact binary codes, learned online from a labelled stream that never stops growing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    *(create, ingest, search, label, remove, refresh, stats, verify),
    *(snapshot, restore, export, serve, key, advise, methods, demo),
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(bench)


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
    """Entry point: deliberate errors become one line on stderr, bugs keep their traceback.

    Typer itself turns Ctrl-C into exit code 130, and an output that nobody reads any more
    (`| head`) into exit code 1, both without a word.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            _call()
        except EverhashError as error:
            _fail(error)
        except OSError as error:
            if error.filename is None:
                raise
            problem = f"{error.filename}: {error.strerror}"
            _fail(StoreError(problem, hint="check the path, and the rights to it"))


def _call() -> None:
    """Run the command and write out all that it has printed."""
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            # or Python tries again at its very end, and complains
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)


def _fail(error: EverhashError) -> None:
    typer.echo(f"error: {shown(error)}", err=True)
    sys.exit(exit_code(error))


def _warn(message: Warning | str, *_about: Any, **_more: Any) -> None:
    typer.echo(f"warning: {shown(message)}", err=True)
