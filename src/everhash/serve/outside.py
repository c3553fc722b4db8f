"""What every answer goes through: security headers, metrics, and errors in one shape."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from time import perf_counter
from typing import Any

from everhash.serve.access import App, route_of
from everhash.serve.errors import JSON, answer_to, busy
from everhash.serve.intake import GoneError
from everhash.serve.service import Service

log = logging.getLogger(__name__)
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
RETRY = (b"retry-after", b"1")
METHODS = {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"}
"""Methods that metrics name; a client can make up others without end."""


class Outside:
    """The outermost middleware."""

    def __init__(self, app: App, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and answer for whatever goes wrong."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, answer = perf_counter(), Answer(send)
        try:
            await self._app(scope, receive, answer.send)
        except GoneError:
            pass
        except asyncio.CancelledError:  # the server stops, and waits no longer
            await self._tell(busy("the service is stopping"), answer, scope)
        except Exception as error:
            await self._tell(error, answer, scope)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            route, seconds = route_of(scope["path"]), perf_counter() - began
            self._service.metrics.count(route, method, answer.status, seconds)

    async def _tell(self, error: Exception, answer: Answer, scope: Any) -> None:
        status, headers, body = answer_to(error, self._service.path)
        if status == 500:
            log.error("%s %s failed", scope["method"], route_of(scope["path"]), exc_info=error)
        if answer.status:
            return  # it is under way; the server closes the connection
        more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        length = (b"content-length", str(len(body)).encode())
        start = {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", JSON), length, *more],
        }
        with suppress(OSError):
            await answer.send(start)
            await answer.send({"type": "http.response.body", "body": body})


class Answer:
    """An answer on its way out."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.status = 0
        """0 while nothing has been sent."""

    async def send(self, message: Any) -> None:
        """Pass a message on, its head with the headers that all answers have."""
        if message["type"] == "http.response.start":
            self.status, headers = message["status"], message["headers"]
            own = {name for name, _ in headers}
            more = () if b"cache-control" in own else (NO_STORE,)
            if self.status == 503 and b"retry-after" not in own:
                more = (*more, RETRY)
            message["headers"] = [*headers, *HEADERS, *more]
        await self._send(message)
