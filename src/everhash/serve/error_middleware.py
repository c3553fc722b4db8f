"""What every request goes through: access, its body, limits, and errors in one form.

One middleware, so that the route that has to be fast, /search, passes no other layer: it is called
from here, without the framework's routing, which costs as much as the search itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any

from everhash.errors import ServiceError
from everhash.serve import limits
from everhash.serve.access import Access
from everhash.serve.access_log import Sent, log_request
from everhash.serve.answers import Answers, send_body, send_in_time
from everhash.serve.body_limit import Bodies
from everhash.serve.cors import with_cors
from everhash.serve.endpoints import BODY, Reply
from everhash.serve.errors import (
    RETRY,
    ClientGoneError,
    RefusedError,
    busy,
    place_in,
    response_to,
    too_slow,
)
from everhash.serve.heads import Headers, read_head
from everhash.serve.service import Service
from everhash.wire.media import JSON
from everhash.wire.routes import Route, route_of

log = logging.getLogger(__name__)
FastHandler = Callable[[Service, Any, Any], Awaitable[Reply]]
"""Makes a reply of a request's scope, and of what says that its client has left."""
POLICY = (
    b"default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
NO_STORE = (b"cache-control", b"no-store")
COMMON = [*HEADERS, NO_STORE]


class ErrorMiddleware:
    """The ASGI application: a middleware around the framework's.

    Args:
        app: routes every request that is not answered here.
        service: whose metrics count requests.
        access: who may ask.
        fast: handlers that are called without routing, by the path they answer.
        access_log: write a line for each request.
    """

    def __init__(
        self,
        app: Any,
        service: Service,
        access: Access,
        fast: Mapping[str, FastHandler],
        *,
        access_log: bool = False,
    ) -> None:
        self.app, self.service = app, service
        self._access, self._fast, self._bodies = access, fast, Bodies()
        self._logs = access_log
        self._checked = with_cors(self._respond, access.origins)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, count it, and log it if that was asked for."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, sent = perf_counter(), Sent(send)
        connections, client = self.service.connections, tuple(scope.get("client") or ("", 0))
        connections.begin(client)
        try:
            await self._checked(scope, receive, sent.send)
        except ClientGoneError:  # or does not read
            connections.abort(client)
            await asyncio.sleep(0)  # until the server knows
        finally:
            connections.end(client)
            route, seconds = route_of(scope["path"]), perf_counter() - began
            name = "other" if route is None else route.path
            self.service.metrics.count(name, scope["method"], sent.status, seconds)
            if self._logs:
                log_request(scope, sent, seconds)

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, whatever goes wrong."""
        response = Response(send, self.service.answers)
        try:
            headers = read_head(scope)
            allowed = self._access.check(scope, headers)
            if allowed.free:
                await self.app(scope, receive, response.send)
            else:
                await self._answer(allowed, headers, scope, receive, response)
        except ClientGoneError:
            raise
        except asyncio.CancelledError:  # the server stops, and waits no longer
            await self._fail(busy("the service is stopping"), response, scope)
        except Exception as error:
            await self._fail(error, response, scope)

    async def _answer(
        self, route: Route, headers: Headers, scope: Any, receive: Any, response: Response
    ) -> None:
        """Read the body of a request, if its route takes one, and run it, all in time."""
        body: bytes | None = None
        takes = bool(route.takes) and scope["method"] == route.method
        try:
            async with asyncio.timeout(limits.SECONDS if route.hurried else None) as timeout:
                response.timeout = timeout
                if takes:
                    body = scope[BODY] = await self._bodies.read(headers, receive)
                await self._run(route, scope, receive, response)
        except TimeoutError:
            raise _too_late(route, waiting=takes and body is None) from None
        finally:
            response.timeout = None
            if body is not None:
                self._bodies.release(body)
                del scope[BODY]  # a connection keeps its scope until the next request

    async def _run(self, route: Route, scope: Any, receive: Any, response: Response) -> None:
        """Work on a request while there is room."""
        metrics = self.service.metrics
        if metrics.running >= limits.REQUESTS:
            raise busy(f"{limits.REQUESTS} requests are being worked on")
        metrics.running += 1
        response.on_start = metrics.finish_running
        fast = self._fast.get(route.path)
        try:
            if fast is None or BODY not in scope:
                await self.app(scope, receive, response.send)
            else:
                await response.send_whole(*await fast(self.service, scope, receive))
        finally:
            response.start()

    async def _fail(self, error: Exception, response: Response, scope: Any) -> None:
        """Answer with an error, unless an answer has begun: the server then closes."""
        if response.status == 500:
            return  # the framework has raised again what it answered
        status, headers, body = response_to(error, self.service.path, place_in(scope))
        log_failure(error, status, scope)
        if not response.status:
            with suppress(OSError):
                await response.send_whole(body, JSON, status, headers)


class Response:
    """An answer on its way out, with the headers that all answers have."""

    def __init__(self, send: Any, answers: Answers) -> None:
        self._send, self._answers = send, answers
        self.status = 0
        """0 while nothing has been sent."""
        self.on_start: Callable[[], None] | None = None
        """Called once, when the answer begins: a client may take as long as it wants to read it."""
        self.timeout: asyncio.Timeout | None = None
        """Of the work on the answer, not of sending it."""

    def start(self) -> None:
        """Let the next request in, and stop the clock."""
        if self.on_start is not None:
            self.on_start()
            self.on_start = None
        if self.timeout is not None and not self.timeout.expired():
            self.timeout.reschedule(None)
        self.timeout = None

    async def send(self, message: Any) -> None:
        """Pass on a message of the framework."""
        if message["type"] == "http.response.start":
            self.start()
            self.status, headers = message["status"], message["headers"]
            names = {name for name, _ in headers}
            more = [] if b"cache-control" in names else [NO_STORE]
            if self.status == 503 and b"retry-after" not in names:
                more += _encoded(RETRY)
            message["headers"] = [*headers, *HEADERS, *more]
            await send_in_time(self._send, message)
        else:
            await send_body(self._send, self._answers, message)

    async def send_whole(
        self, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer that is there."""
        self.start()
        self.status = status
        pairs = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))]
        if headers:
            pairs += _encoded(headers)
        pairs += COMMON
        start = {"type": "http.response.start", "status": status, "headers": pairs}
        await send_in_time(self._send, start)
        content = {"type": "http.response.body", "body": body}
        await send_body(self._send, self._answers, content)


def log_failure(error: Exception, status: int, scope: Any) -> None:
    """Log what is an error of the service itself, which clients are not shown."""
    if status == 500:
        log.error("%s %s failed", scope["method"], scope["path"][:80], exc_info=error)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _too_late(route: Route, *, waiting: bool) -> RefusedError:
    """Return the refusal of a request that took too long, perhaps waiting for its body."""
    if waiting:
        return too_slow()
    hint = "ask for less at a time"
    if route.writes:
        hint = "it may still be carried out: look before you repeat it"
    error = ServiceError(f"no answer within {limits.SECONDS} s", hint=hint)
    return RefusedError(503, error, RETRY)
