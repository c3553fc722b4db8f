"""Bodies: read whole before anything works on them, bounded in size, time and number.

A request does not count as running while its body arrives, so slow senders keep nobody out.
"""

from __future__ import annotations

from typing import Any

from everhash.errors import LimitError, ServiceError
from everhash.serve import limits
from everhash.serve.access import App, Headers, header, route_of
from everhash.serve.deadlines import Deadlines, LateError
from everhash.serve.errors import CLOSE, RefusedError, busy, unsupported

BODY = "everhash.body"
"""Where a body stands in the scope of its request."""
READS = {"GET", "HEAD"}


class GoneError(Exception):
    """The client has left before its body was there."""


class Intake:
    """Middleware that reads bodies."""

    def __init__(self, app: App) -> None:
        self._app, self._deadlines = app, Deadlines()
        self._arriving = self._bytes = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, then pass the request on."""
        if scope["type"] != "http" or scope["method"] in READS or _is_nowhere(scope["path"]):
            await self._app(scope, receive, send)
            return
        check_head(scope["headers"])
        if self._arriving >= limits.ARRIVING:
            raise busy("too many bodies arrive at once")
        held = [0]
        try:
            scope[BODY] = await self._read(receive, held)
            await self._app(scope, receive, send)
        finally:
            self._bytes -= held[0]

    async def _read(self, receive: Any, held: list[int]) -> bytes:
        """Return a body; `held` says how many of the bytes held are this one's."""
        self._arriving += 1
        try:
            collecting = self._collect(receive, held)
            return await self._deadlines.within(limits.BODY_SECONDS, collecting)
        except LateError:
            problem = f"the body was not there within {limits.BODY_SECONDS} s"
            error = ServiceError(problem, hint="send it in smaller parts")
            raise RefusedError(408, error, CLOSE) from None
        finally:
            self._arriving -= 1

    async def _collect(self, receive: Any, held: list[int]) -> bytes:
        pieces: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            piece, more = message.get("body", b""), message.get("more_body", False)
            pieces.append(piece)
            held[0] += len(piece)
            self._bytes += len(piece)
            if held[0] > limits.BODY:
                raise _too_large()
            if self._bytes > limits.BODIES:
                raise RefusedError(503, busy("too many large bodies at once").error, CLOSE)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _is_nowhere(path: str) -> bool:
    """Whether nobody will read a body sent there."""
    return route_of(path) == "other"


def check_head(headers: Headers) -> None:
    """Refuse by its announcement a body that is too large, or compressed."""
    announced = header(headers, b"content-length")
    if announced and (not announced.isdigit() or int(announced) > limits.BODY):
        raise _too_large()
    if (header(headers, b"content-encoding") or b"identity").lower() != b"identity":
        raise unsupported("compressed bodies are not read", "send it as it is")


def _too_large() -> RefusedError:
    error = LimitError(
        f"a body of more than {limits.BODY} bytes", hint="send fewer rows at a time, or .npy"
    )
    return RefusedError(413, error, CLOSE)
