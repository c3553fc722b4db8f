"""How many requests are worked on at once, and for how long.

A request is worked on until its answer begins: `connections.py` sees to it that answers are taken.
"""

from __future__ import annotations

import asyncio
from typing import Any

from everhash.errors import ServiceError
from everhash.serve import limits
from everhash.serve.access import App
from everhash.serve.deadlines import Deadlines, LateError
from everhash.serve.errors import SOON, RefusedError, busy
from everhash.serve.metrics import Metrics

FREE = {"/live", "/ready", "/limits", "/events"}
"""Routes that cost nothing, or have a limit of their own."""
UNHURRIED = {"/snapshot"}
"""Routes whose answers may take as long as their size wants."""


class Gate:
    """Middleware that turns away whoever comes while it is full: those inside are served."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics, self._deadlines = app, metrics, Deadlines()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on while there is room."""
        if scope["type"] != "http" or scope["path"] in FREE:
            await self._app(scope, receive, send)
            return
        if self._metrics.running >= limits.REQUESTS:
            raise busy(f"{limits.REQUESTS} requests are being worked on")
        place = Place(self._metrics, self._deadlines, send)
        try:
            await self._within_time(scope, receive, place.send)
        finally:
            place.leave()

    async def _within_time(self, scope: Any, receive: Any, send: Any) -> None:
        answering = self._app(scope, receive, send)
        if scope["path"] in UNHURRIED:
            await answering
            return
        try:
            await self._deadlines.within(limits.SECONDS, answering)
        except LateError:
            error = ServiceError(
                f"no answer within {limits.SECONDS} s",
                hint="a write may still be carried out: look before you repeat it",
            )
            raise RefusedError(503, error, SOON) from None


class Place:
    """Room for one request, until its answer begins: clients may take as long as they are let."""

    def __init__(self, metrics: Metrics, deadlines: Deadlines, send: Any) -> None:
        self._metrics, self._deadlines, self._send = metrics, deadlines, send
        self._task, self._taken = asyncio.current_task(), True
        metrics.running += 1

    async def send(self, message: Any) -> None:
        """Pass a message on; the first one begins the answer."""
        if self._taken:
            self.leave()
        await self._send(message)

    def leave(self) -> None:
        """Make room for another request."""
        if self._taken:
            self._taken = False
            self._metrics.running -= 1
            self._deadlines.forget(self._task)
