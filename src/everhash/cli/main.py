"""The Typer application with all commands, and how errors and warnings are printed."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import typer

from everhash import __version__
from everhash.cli.advise import advise
from everhash.cli.bench import bench
from everhash.cli.cluster import cluster
from everhash.cli.collection import create, restore, snapshot, upgrade, verify
from everhash.cli.demo import demo
from everhash.cli.entries import entries, get, remove
from everhash.cli.export import export
from everhash.cli.formatting import printable
from everhash.cli.groups import HELP, Command, Group, add_group
from everhash.cli.ingest import ingest
from everhash.cli.keys import key
from everhash.cli.labels import drop_label, label, labels, merge_labels, rename_label, unlabel
from everhash.cli.methods import methods
from everhash.cli.predict import predict
from everhash.cli.refresh import refresh
from everhash.cli.search import search
from everhash.cli.serve import serve
from everhash.cli.stats import stats
from everhash.errors import EverhashError, StoreError, exit_code

app = typer.Typer(
    name="everhash",
    help="Compact binary codes, learned online from a labelled stream that never stops growing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=Group,
    context_settings=HELP,
)
COMMANDS = (
    *(create, ingest, search, predict, get, entries, remove),
    *(labels, label, unlabel, rename_label, merge_labels, drop_label),
    *(refresh, stats, verify, upgrade, snapshot, restore, export, serve, key),
    *(advise, methods, demo),
)
for command in COMMANDS:
    app.command(cls=Command)(command)
add_group(app, bench)
add_group(app, cluster)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"everhash {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Everything everhash does, one command each."""


def run_app() -> None:
    """Run the command: an `EverhashError` becomes one line on stderr, a bug keeps its traceback.

    Typer ends silently with exit code 1 if the reader of a pipe has gone (`| head`).
    """
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        try:
            _call_app()
        except EverhashError as error:
            _fail(error)
        except OSError as error:
            if error.filename is None:
                raise
            problem = f"{error.filename}: {error.strerror}"
            _fail(StoreError(problem, hint="check the path and its permissions"))


def _call_app() -> None:
    """Run the command and flush what it has printed."""
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            # otherwise Python flushes again when it exits, and prints an error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)


def _fail(error: EverhashError) -> None:
    typer.echo(f"error: {printable(error.told('cli'))}", err=True)
    sys.exit(exit_code(error))


def _print_warning(message: Warning | str, *_args: Any, **_kwargs: Any) -> None:
    typer.echo(f"warning: {printable(message)}", err=True)
