"""A thread that makes calls in order and hands what they return to the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from everhash.serve.errors import busy

log = logging.getLogger(__name__)
T = TypeVar("T")


Settled = tuple["asyncio.Future[Any]", Any, Exception | None]
"""Who waits, and what the call returned or raised."""


class Worker:
    """One thread, one call at a time.

    A call whose request was given up before its turn is not made. What a call raises is raised
    where it is waited for, and touches no other call.

    Args:
        name: of the thread.
        room: calls that may wait; more are refused.
    """

    def __init__(self, name: str, room: int) -> None:
        self._room, self._waiting = room, 0
        self._calls: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._name, self._thread = name, threading.current_thread()

    def start(self) -> None:
        """Begin, for the first time or after a stop."""
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Make the calls that wait, then end."""
        self._calls.put(None)
        await asyncio.to_thread(self._thread.join)

    async def run(self, call: Callable[[], T]) -> T:
        """Return what a call returns, made in this thread."""
        if self._waiting >= self._room:
            raise busy("too many calls wait for their turn")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def make() -> None:
            if not future.cancelled():
                loop.call_soon_threadsafe(hand_over, [(future, *attempt(call))])

        self._waiting += 1
        self.put(make)
        try:
            return await future
        finally:
            self._waiting -= 1

    def put(self, call: Callable[[], Any]) -> None:
        """Have a call made whose result nobody waits for; it must not raise."""
        self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:  # the event loop may have been closed before the call was done
                log.exception("a result was lost")


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Return what a call returns, or what it raises."""
    try:
        return call(), None
    except Exception as error:
        return None, error


def hand_over(settled: list[Settled]) -> None:
    """Let those go on who wait for these calls; to be called in the event loop."""
    for future, result, error in settled:
        if future.done():  # given up meanwhile
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
