"""What endpoints share: their type, and the request that a body makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from fastapi.responses import Response

from everhash.serve import schemas
from everhash.serve.bodies import read_body
from everhash.serve.service import Service
from everhash.wire.routes import BY_PATH

Endpoint = Callable[..., Awaitable[Response]]
"""What FastAPI calls; its parameters are those of the query string."""
Reply = tuple[bytes, str]
"""A body, and its media type."""
BODY = "everhash.body"
"""Where a body stands in the scope of its request."""
LARGE = 1 << 16
"""Bytes of a body from which on a thread reads it instead of the event loop."""
MODELS: dict[str, type[schemas.Request]] = {
    path: getattr(schemas, route.request)
    for path, route in BY_PATH.items()
    if route.request is not None
}
"""The form of each route's body."""


async def parse(service: Service, scope: Any) -> Any:
    """Return the request that the body and the query string of a route make."""
    content: bytes = scope[BODY]
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    query = scope["query_string"]
    read = partial(
        read_body,
        MODELS[scope["path"]],
        content,
        kind.decode("latin-1"),
        dict(parse_qsl(query.decode("latin-1"))) if query else None,
    )
    return read() if len(content) < LARGE else await service.decode(read)
