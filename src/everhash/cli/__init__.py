"""The command line: one file a command group, joined in `main.py`.

It is an optional part of everhash. This file imports none of its packages, so that `run` can name
the extra to install when they are missing.
"""

from __future__ import annotations

import _thread
import signal
import sys
from threading import Timer
from typing import TYPE_CHECKING, Any

from everhash.extras import missing

if TYPE_CHECKING:
    from everhash.cli.main import app as app

NOT_INSTALLED = 2
"""Exit code if the packages of the command line are not installed."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""
MOMENT = 0.01
"""Seconds after which a Ctrl-C that was dropped counts again."""


def run() -> None:
    """Entry point: run the command, or end with one line if the extra `cli` is not installed.

    Ctrl-C ends it with one line too, while packages are still being imported; and without one when
    the command is done, and only Python has not ended yet.
    """
    before, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    try:
        problem = missing("cli")
        if problem is not None:
            sys.stderr.write(f"error: {problem}\n")
            sys.exit(NOT_INSTALLED)
        from everhash.cli.main import run_app

        run_app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        sys.unraisablehook = before
        # another handler, such as that of `nohup`, is left in place
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt_again(dropped: Any) -> None:
    """Let Ctrl-C count a moment later if it came in a callback, whose exceptions Python drops."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        Timer(MOMENT, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(dropped)


def __getattr__(name: str) -> Any:
    """Return the Typer application, `app`, which is imported on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from everhash.cli.main import app

    return app
