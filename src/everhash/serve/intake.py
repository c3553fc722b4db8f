"""Bodies: read whole before anything works on them, bounded in size, time and number.

A request does not count as running while its body arrives, so slow senders keep nobody out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from everhash.errors import LimitError, ServiceError
from everhash.serve import limits
from everhash.serve.access import App, Headers, header
from everhash.serve.deadlines import Deadlines, LateError
from everhash.serve.errors import CLOSE, SOON, RefusedError, unsupported

BODY = "everhash.body"
"""Where a body stands in the scope of its request."""
TAKING = {
    "/learn",
    "/forget",
    "/add",
    "/ingest",
    "/attach",
    "/label",
    "/remove",
    "/search",
    "/radius",
    "/get",
    "/has",
    "/refresh",
}
"""Routes that take a body; all of them need a key where there are keys. No other body is read."""


class GoneError(Exception):
    """The client has left before its body was there."""


class Arrival:
    """A body on its way in."""

    def __init__(self) -> None:
        self.task = asyncio.current_task()
        self.size = 0
        self.ended = False
        """Whether it had to make room for others."""


class Intake:
    """Middleware that reads bodies.

    When there are too many, or too much of them, the one that began first is ended: so whoever
    sends slowly is in nobody's way, and a body that comes at once is always taken.
    """

    def __init__(self, app: App) -> None:
        self._app, self._deadlines = app, Deadlines()
        self._bytes = 0
        self._arriving: dict[Arrival, None] = {}
        """The one that began first stands first."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, then pass the request on."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in TAKING:
            await self._app(scope, receive, send)
            return
        check_head(scope["headers"])
        arrival = Arrival()
        try:
            scope[BODY] = await self._read(receive, arrival)
            await self._app(scope, receive, send)
        finally:
            scope.pop(BODY, None)  # the connection keeps its scope until the next request
            self._bytes -= arrival.size

    async def _read(self, receive: Any, arrival: Arrival) -> bytes:
        self._arriving[arrival] = None
        try:
            collecting = self._collect(receive, arrival)
            return await self._deadlines.within(limits.BODY_SECONDS, collecting)
        except LateError:
            if arrival.ended:
                raise _crowded() from None
            problem = f"the body was not there within {limits.BODY_SECONDS} s"
            error = ServiceError(problem, hint="send it in smaller parts")
            raise RefusedError(408, error, CLOSE) from None
        finally:
            self._arriving.pop(arrival, None)

    async def _collect(self, receive: Any, arrival: Arrival) -> bytes:
        pieces: list[bytes] = []
        more = True
        while more:
            self._make_room(arrival)
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            piece, more = message.get("body", b""), message.get("more_body", False)
            pieces.append(piece)
            arrival.size += len(piece)
            self._bytes += len(piece)
            if arrival.size > limits.BODY:
                raise _too_large()
        self._make_room(arrival)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _make_room(self, arrival: Arrival) -> None:
        """End the bodies that began first while there are too many, at last this one."""
        while len(self._arriving) > limits.ARRIVING or self._bytes > limits.BODIES:
            first = next(iter(self._arriving))
            del self._arriving[first]
            self._bytes -= first.size
            first.size, first.ended = 0, True
            if first is arrival:
                raise _crowded()
            self._deadlines.give_up(first.task)


def check_head(headers: Headers) -> None:
    """Refuse by its announcement a body that is too large, or compressed."""
    announced = header(headers, b"content-length")
    if announced and (not announced.isdigit() or int(announced) > limits.BODY):
        raise _too_large()
    if (header(headers, b"content-encoding") or b"identity").lower() != b"identity":
        raise unsupported("compressed bodies are not read", "send it as it is")


def _crowded() -> RefusedError:
    error = ServiceError("too many bodies arrive at once", hint="try again in a second")
    return RefusedError(503, error, {**SOON, **CLOSE})


def _too_large() -> RefusedError:
    error = LimitError(
        f"a body of more than {limits.BODY} bytes", hint="send fewer rows at a time, or .npy"
    )
    return RefusedError(413, error, CLOSE)
