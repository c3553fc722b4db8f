"""Requests that take too long are given up.

A timer for each would cost as much as the rest of a short request; one look at all of them, ten
times a second, costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

LOOK = 0.1
"""Seconds between two looks."""
T = TypeVar("T")


class LateError(Exception):
    """What was waited for took too long."""


class Deadlines:
    """Tasks that have until some time. Only the event loop touches it."""

    def __init__(self) -> None:
        self._due: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._looking = False

    async def within(self, seconds: float, awaited: Awaitable[T]) -> T:
        """Return what is awaited, or raise `LateError` if that takes longer."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._due[task] = loop.time() + seconds
        if not self._looking:
            self._looking = True
            loop.call_later(LOOK, self._look, loop)
        try:
            return await awaited
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            self._late.discard(task)
            task.uncancel()
            raise LateError from None
        finally:
            self._due.pop(task, None)

    def forget(self, task: asyncio.Task[Any] | None) -> None:
        """Let a task take as long as it wants from now on."""
        if task is not None:
            self._due.pop(task, None)

    def give_up(self, task: asyncio.Task[Any] | None) -> None:
        """Let a task be late now, unless it is done: it is suspended where it may be cancelled."""
        if task is not None and self._due.pop(task, None) is not None:
            self._late.add(task)
            task.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give up the tasks that are late."""
        now = loop.time()
        for task in [task for task, due in self._due.items() if due <= now]:
            self.give_up(task)
        self._looking = bool(self._due)
        if self._looking:
            loop.call_later(LOOK, self._look, loop)
