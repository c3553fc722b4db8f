"""Progress bars, and notes on why a command takes long: on stderr, and only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from everhash import kernels

NOTE_AFTER = 3.0
"""Seconds after which a wait is explained."""


@contextmanager
def waiting(reason: str = "") -> Iterator[None]:
    """Show on a terminal why the body takes long: while kernels compile, that; else the reason.

    Elsewhere the log says on stderr that kernels compile.
    """
    if not sys.stderr.isatty():
        yield
        return
    status = Console(stderr=True).status(reason)
    timer = Timer(NOTE_AFTER, status.start)
    timer.daemon = True

    @contextmanager
    def compiling(message: str) -> Iterator[None]:
        status.update(escape(message))
        status.start()
        yield
        status.update(reason)
        if not reason:
            status.stop()

    if reason:
        timer.start()
    announce, kernels.announce = kernels.announce, compiling
    try:
        yield
    finally:
        kernels.announce = announce
        timer.cancel()
        if reason:
            timer.join()
        status.stop()


def note(message: str) -> None:
    """Say on a terminal what a command does before its first result."""
    if sys.stderr.isatty():
        typer.echo(message, err=True)


def compile_kernels() -> None:
    """Compile or load all kernels, so that no later step waits for them."""
    with waiting():
        kernels.load_all()


class RowsColumn(ProgressColumn):
    """The rows done, the total, and the rows a second."""

    def render(self, task: Task) -> Text:
        """Return the text of this column."""
        done = f"{int(task.completed):,}"
        whole = f" of {int(task.total):,}" if task.total is not None else ""
        speed = f", {task.speed:,.0f} rows/s" if task.speed else ""
        return Text(f"{done}{whole}{speed}")


class Bar(Progress):
    """A progress bar with a line of status below it."""

    def __init__(self, what: str, total: int | None) -> None:
        self._status = ""
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            RowsColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self.add_task(what, total=total)

    @property
    def is_visible(self) -> bool:
        """Whether it is shown: stderr is a terminal."""
        return not self.disable

    def get_renderables(self) -> Iterator[RenderableType]:
        """Return the bar and the line of status."""
        yield from super().get_renderables()
        if self._status:
            yield Text(f"  {self._status}", style="dim", no_wrap=True, overflow="ellipsis")

    def advance_by(self, n: int, status: str = "") -> None:
        """Show that n more rows are done, and the new status."""
        self._status = status
        self.update(self._task, advance=n)
