"""The command line: one file a command group, joined in `main.py`.

It is an optional part of everhash. This file imports none of its packages, so that `run` can name
the extra to install when they are missing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from everhash.extras import missing

if TYPE_CHECKING:
    from everhash.cli.main import app as app

NOT_INSTALLED = 2
"""Exit code if the packages of the command line are not installed."""


def run() -> None:
    """Entry point: run the command, or end with one line if the extra `cli` is not installed."""
    problem = missing("cli")
    if problem is not None:
        sys.stderr.write(f"error: {problem}\n")
        sys.exit(NOT_INSTALLED)
    from everhash.cli.main import run_app

    run_app()


def __getattr__(name: str) -> Any:
    """Return the Typer application, `app`, which is imported on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from everhash.cli.main import app

    return app
