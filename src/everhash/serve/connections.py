"""Connections: how long a head may be and may take, and who makes room when there are many.

The server's parser keeps a head in memory until it is whole, and waits for it without end. So each
connection has a gate before it: an asyncio protocol that hands on all it gets, and a second parser
of the same kind that says where in a request the connection is.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from everhash.serve import limits

Client = tuple[str, int]
"""Address and port of who has opened a connection, as a request's scope has them."""
TOO_LARGE = "431 Request Header Fields Too Large"
TOO_LATE = "408 Request Timeout"


class Connections:
    """All connections, and those of them that nobody works for, the longest first.

    Only the event loop touches it. Behind another server it stays empty, and does nothing.
    """

    def __init__(self) -> None:
        self._all: dict[Client, Gate] = {}
        self._resting: dict[Client, Gate] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, client: Client, gate: Gate) -> None:
        """Add a connection. If there are too many, the one that rests longest is closed.

        Where none rests, the server has a limit of its own.
        """
        if len(self._all) >= limits.CONNECTIONS and self._resting:
            oldest = next(iter(self._resting))
            self._resting[oldest].abort()
            self.remove(oldest)
        self._all[client] = self._resting[client] = gate

    def remove(self, client: Client) -> None:
        """Forget a connection that is closed."""
        self._all.pop(client, None)
        self._resting.pop(client, None)

    def begin(self, client: Client) -> None:
        """Note that a request of a connection is being worked on."""
        gate = self._resting.pop(client, None)
        if gate is not None:
            gate.begin()

    def end(self, client: Client) -> None:
        """Note that it was answered."""
        gate = self._all.get(client)
        if gate is not None:
            self._resting[client] = gate
            gate.end()

    def abort(self, client: Client) -> None:
        """Close a connection at once, whatever its client has not read."""
        gate = self._all.get(client)
        if gate is not None:
            gate.abort()


class Gate(asyncio.Protocol):
    """One connection: the server's protocol behind bounds.

    Args:
        connections: where it is counted.
        given: what the server gives its own protocol, handed on.
    """

    def __init__(self, connections: Connections, **given: Any) -> None:
        self._connections = connections
        self._inner = HttpToolsProtocol(**given)
        self._parser = httptools.HttpRequestParser(self)
        # as the server's own: an answer to a request may be under way when more arrives
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._client: Client = ("", 0)
        self._working = False
        self._between = False
        """Whether a request is complete, and nothing of another has come."""
        self._progress = False
        """Whether the last bytes have brought an end of a head, of a request, or some of a body."""
        self._quiet = 0
        """Bytes since there was progress: of a head, of trailers, or of nothing at all."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a head."""
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self._client = (str(name[0]), int(name[1])) if name else ("", id(self))
        self._inner.connection_made(self._transport)
        self._connections.add(self._client, self)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_watching()
        self._connections.remove(self._client)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand on what came, unless it is more than a head may have."""
        self._progress = self._between = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._progress = True  # a request that is answered as if it had not asked for it
        except httptools.HttpParserError:
            self._inner.data_received(data)  # answers with 400
            self._transport.close()
            return
        self._quiet = 0 if self._progress else self._quiet + len(data)
        if self._quiet > limits.HEAD:
            self._refuse(TOO_LARGE)
            return
        self._inner.data_received(data)
        self._watch()

    def eof_received(self) -> None:
        """Hand on that the client sends no more: the transport closes then."""
        self._inner.eof_received()

    def pause_writing(self) -> None:
        """Hand on that the client does not read."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that it does."""
        self._inner.resume_writing()

    # What the parser says

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._between = False

    def on_headers_complete(self) -> None:
        """The last byte of a head."""
        self._progress = True

    def on_body(self, _: bytes) -> None:
        """Some of a body."""
        self._progress = True

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        self._progress = self._between = True

    # Time

    def begin(self) -> None:
        """A request is being worked on: from here on the service has deadlines of its own."""
        self._working = True
        self._stop_watching()

    def end(self) -> None:
        """It was answered; the rest of a body that nobody reads has to come in time, too."""
        self._working = False
        self._watch()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _watch(self) -> None:
        """Expect the rest of a request in time; the server itself closes idle connections."""
        if self._working or self._between:
            self._stop_watching()
        elif self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(limits.HEAD_SECONDS, self._refuse, TOO_LATE)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: str) -> None:
        """Close, and say why if the client can still be told."""
        self._stop_watching()
        if self._working or self._transport.get_write_buffer_size():
            self._transport.abort()
            return
        said = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self._transport.write(said.encode())
        self._transport.close()
