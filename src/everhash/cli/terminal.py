"""What a person at a terminal sees besides results: progress, and why nothing happens yet.

All of it goes to stderr, and only if that is a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console, RenderableType
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

COMPILING = "compiling search kernels, most of a minute, once"
PATIENCE = 3.0
"""Seconds after which a wait is explained; compiled kernels are there before."""


@contextmanager
def waiting(reason: str = COMPILING) -> Iterator[None]:
    """Say why it takes so long, once it does."""
    if not sys.stderr.isatty():
        yield
        return
    status = Console(stderr=True).status(reason)
    timer = Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def compile_kernels() -> None:
    """Have all kernels ready, so that nobody waits for them in the middle of something."""
    with waiting():
        kernels.load()
        kernels.load_refresh()
        kernels.load_search()


class Rows(ProgressColumn):
    """How many rows are done, of how many, and how many a second."""

    def render(self, task: Task) -> Text:
        """Write it out."""
        done = f"{int(task.completed):,}"
        whole = f" of {int(task.total):,}" if task.total is not None else ""
        speed = f", {task.speed:,.0f} rows/s" if task.speed else ""
        return Text(f"{done}{whole}{speed}")


class Bar(Progress):
    """A progress bar, and below it where things stand."""

    def __init__(self, what: str, total: int | None) -> None:
        self._state = ""
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            Rows(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self.add_task(what, total=total)

    @property
    def seen(self) -> bool:
        """Whether anybody sees it."""
        return not self.disable

    def get_renderables(self) -> Iterator[RenderableType]:
        """Return the two lines."""
        yield from super().get_renderables()
        if self._state:
            yield Text(f"  {self._state}", style="dim", no_wrap=True, overflow="ellipsis")

    def move(self, n: int, state: str = "") -> None:
        """Show that n more rows are done, and where things stand."""
        self._state = state
        self.update(self._task, advance=n)
