"""The route that has to be fast goes around the routing of the framework, as costly as itself.

The route stands in the application all the same, for the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from everhash.serve.access import App

Answer = tuple[bytes, bytes]
"""A body, and its media type."""


class Shortcut:
    """Middleware that answers POST to one path itself.

    Args:
        app: what answers everything else.
        path: of the route.
        answer: makes an answer of a request's scope, and what tells that its client has left.
    """

    def __init__(self, app: App, path: str, answer: Callable[..., Awaitable[Answer]]) -> None:
        self._app, self._path, self._answer = app, path, answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        content, kind = await self._answer(scope, receive)
        length = str(len(content)).encode()
        headers = [(b"content-type", kind), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})
