"""One request and its answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from everhash.client.answers import whole
from everhash.client.connections import JSON, Connections, Reply, Request
from everhash.client.faults import error_from, printable
from everhash.errors import EverhashError, LimitError, ServiceError

FOREIGN = "is that the address of an everhash service of this version?"
MISSHAPEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
"""What reading an answer of an unexpected form raises."""
PAUSE = 1.0
"""Seconds until a service that is busy, or still starting, is asked again."""


@dataclass(frozen=True)
class Limits:
    """What a service takes at a time."""

    rows: int
    queries: int
    page: int
    body: int


class Service:
    """A service's routes: what goes out is sent, what comes back is checked, errors are raised.

    Args:
        connections: to the service.
        patience: seconds for which a service that is busy is asked again, if that is harmless.
    """

    def __init__(self, connections: Connections, patience: float) -> None:
        self.connections, self._patience = connections, patience
        self.name = str(connections.address)
        told = self.get("/limits")
        with self.reading():
            names = ("rows", "queries", "page", "body")
            self.limits = Limits(*(whole(told[name], 1) for name in names))

    def get(self, route: str, **query: Any) -> dict[str, Any]:
        """Ask for something."""
        return self.send(Request("GET", with_query(route, query)))

    def post(
        self, route: str, content: Mapping[str, Any], *, writes: bool = False
    ) -> dict[str, Any]:
        """Hand something over as JSON."""
        return self.send(Request("POST", route, as_json(content), repeatable=not writes))

    def send(self, request: Request) -> dict[str, Any]:
        """Return the answer to a request, which is JSON."""
        with self.answering(request) as reply:
            return self.content(reply)

    @contextmanager
    def answering(self, request: Request) -> Iterator[Reply]:
        """Yield an answer that is no error and has not been read yet."""
        self._check_size(request)
        until = time.monotonic() + self._patience
        while True:
            with self.connections.ask(request) as reply:
                if 200 <= reply.status < 300:
                    yield reply
                    return
                error = self._error(reply)
                later = type(error) is ServiceError and reply.status == 503
                if not (later and request.repeatable and time.monotonic() + PAUSE < until):
                    raise error
            time.sleep(PAUSE)

    def _check_size(self, request: Request) -> None:
        """Refuse what the service would: it would not read it, and could hardly say why."""
        if request.body and len(request.body) > self.limits.body:
            raise LimitError(
                f"a body of more than {self.limits.body} bytes",
                hint="send fewer rows at a time, or .npy",
            )

    def _error(self, reply: Reply) -> EverhashError:
        if 300 <= reply.status < 400:
            problem = f"{self.name} sends elsewhere: {printable(reply.header('Location')):.200}"
            return ServiceError(problem, hint="connect to that address")
        return error_from(self.content(reply), self.name, reply.status)

    def content(self, reply: Reply) -> dict[str, Any]:
        """Return an answer that is JSON."""
        kind = reply.content_type or "no type"
        if kind != JSON:
            raise ServiceError(
                f"{self.name} answers with status {reply.status} and {printable(kind):.80}",
                hint=FOREIGN,
            )
        text = reply.whole()
        try:
            content = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise ServiceError(f"{self.name} answers with what is no JSON object", hint=FOREIGN)
        return content

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Refuse an answer that cannot be read as what it should be."""
        try:
            yield
        except ServiceError:
            raise
        except (*MISSHAPEN, EverhashError):
            problem = f"{self.name}: an answer of an unknown form"
            raise ServiceError(problem, hint=FOREIGN) from None


def as_json(content: Mapping[str, Any]) -> bytes:
    """Return content as it is sent."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def with_query(route: str, query: Mapping[str, Any]) -> str:
    """Return a route with what is asked of it.

    >>> with_query("/entries", {"start": 0, "codes": True})
    '/entries?start=0&codes=true'
    """
    plain = {n: str(v).lower() if isinstance(v, bool) else v for n, v in query.items()}
    return f"{route}?{urlencode(plain)}" if plain else route


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
