"""How long an answer may take, and how much of it may come.

A timeout of a socket begins again with every byte, so a service that sends one now and then would
be waited for without end. Here the time and the bytes of a whole answer are counted, below httpx,
where they come in.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

import httpcore
import httpx

BYTES_A_SECOND = 64 << 10
"""Bytes for which an answer gets another second."""
IDLE_SECONDS = 2.0
"""Seconds an idle connection is used again: servers close them, and a write must not meet that."""


class Deadline:
    """What one answer may take: `seconds`, one more for each 64 KiB that came, and `max_bytes`."""

    def __init__(self, seconds: float, max_bytes: int) -> None:
        self._until, self._max_bytes, self._came = monotonic() + seconds, max_bytes, 0
        self._unlimited = False

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply it to everything this thread reads in the block."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def lift(self) -> None:
        """Let the rest of the answer have any size and take any time; only a pause ends it."""
        self._unlimited = True

    def seconds_left(self) -> float:
        """Return how long the next bytes may be waited for."""
        return float("inf") if self._unlimited else self._until - monotonic()

    def count(self, n: int) -> None:
        """Count bytes that came."""
        self._until += n / BYTES_A_SECOND
        self._came += n
        if self._came > self._max_bytes and not self._unlimited:
            raise httpcore.RemoteProtocolError(f"more than {self._max_bytes} bytes")


_CURRENT: ContextVar[Deadline | None] = ContextVar("everhash_deadline", default=None)


class _Stream(httpcore.NetworkStream):
    """A connection whose reads keep to the deadline of their request."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        deadline = _CURRENT.get()
        if deadline is None:
            return self._stream.read(max_bytes, timeout)
        left = deadline.seconds_left()
        if left <= 0:
            raise httpcore.ReadTimeout("the answer comes too slowly")
        data = self._stream.read(max_bytes, left if timeout is None else min(timeout, left))
        deadline.count(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens connections that keep to deadlines."""

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        return _Stream(super().connect_tcp(*arguments, **options))


class _Body(httpx.SyncByteStream):
    """The body of an answer on its way in."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class DeadlineTransport(httpx.BaseTransport):
    """httpx's way to a service, over connections that keep to deadlines."""

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=None,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return its answer, of which only the head has been read."""
        url, content = request.url, request.stream
        assert isinstance(content, Iterable)  # noqa: S101 - of a client that is not async
        response = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=content,
                extensions=request.extensions,
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
