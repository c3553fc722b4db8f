"""How many requests are worked on at once, and for how long."""

from __future__ import annotations

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
        self._metrics.running += 1
        try:
            await self._within_time(scope, receive, send)
        finally:
            self._metrics.running -= 1

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
