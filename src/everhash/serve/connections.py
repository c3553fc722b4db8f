"""Connections: what clients have to send and to take in time, and how many there may be.

A connection waits for its client between two requests, and while an answer is not taken. When
there are too many, or too much is not taken, the one that has waited longest makes room: whoever
comes with a request is served.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Iterable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from everhash.serve import limits

CHANGING = {"/learn", "/forget", "/add", "/ingest", "/attach", "/label", "/remove"}
"""Routes whose client is told what became of its request even if it sends no more; whoever asks for
something else, and then closes, has left."""
SHARE = 3
"""One in so many of the files that the process may open can be a connection: others are files that
are sent, and the collection's own."""


class Connection(H11Protocol):
    """A connection whose client has to send requests, and take answers, in time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._clock: asyncio.TimerHandle | None = None
        self._held = False
        self.since = 0.0
        """When it began to wait for its client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head from now on."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._start_clock()
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux; elsewhere the system's own time counts
            accepted: socket.socket = transport.get_extra_info("socket")
            patience = int(1000 * limits.STALL_SECONDS)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
        connections: Any = self.connections
        make_room(connections)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._stop_clock()
        super().connection_lost(exc)

    # What comes in

    def handle_events(self) -> None:
        """Go on with what has come in, but begin nothing while the last answer is not taken.

        So an answer always has room: it is written at once, and counts as not taken.
        """
        if self._is_between and self.unsent:
            self._held = True
            self.flow.pause_reading()
            return
        super().handle_events()
        if not self._expects:
            self._stop_clock()
        elif self._clock is None and not self.transport.is_closing():
            self._start_clock()

    def go_on(self) -> None:
        """Go on, now that the last answer is taken."""
        if self._held and not self.transport.is_closing():
            self._held = False
            self.flow.resume_reading()
            self.handle_events()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer whoever has sent a whole request to change something, and will send no more."""
        whole = self.conn.their_state is not h11.SEND_BODY
        if self._is_between or not whole or self.scope["path"] not in CHANGING:
            return False
        self.cycle.keep_alive = False
        return True

    @property
    def _is_between(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _expects(self) -> bool:
        """Whether the rest of a head has to come, or of a body that nobody reads."""
        if self.conn.their_state is h11.IDLE:
            return bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY and self._is_between

    def _start_clock(self) -> None:
        self._clock = self.loop.call_later(limits.HEAD_SECONDS, self.drop)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    # What goes out

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has not taken."""
        return self.transport.get_write_buffer_size()

    @property
    def waits(self) -> bool:
        """Whether it waits for its client."""
        return self._is_between or self.flow.write_paused or self.transport.is_closing()

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent."""
        self.since = self.loop.time()
        super().pause_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request, and not for long if the body of this one is still coming."""
        self.since = self.loop.time()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._start_clock()
        super().on_response_complete()

    def drop(self) -> None:
        """End it at once, whatever was not taken."""
        self.connections.discard(self)
        self.transport.abort()


def make_room(connections: Collection[Connection]) -> None:
    """Drop the connection that has waited longest if there are too many."""
    if len(connections) > most():
        waiting = [connection for connection in connections if connection.waits]
        min(waiting, key=lambda connection: connection.since).drop()


def most() -> int:
    """Return how many connections there may be."""
    try:
        import resource
    except ImportError:  # not a Unix
        return limits.CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = files == resource.RLIM_INFINITY
    return limits.CONNECTIONS if unlimited else min(limits.CONNECTIONS, files // SHARE)


def look_after(connections: Iterable[Connection], now: float) -> None:
    """Drop those who do not take their answers; go on with those who have."""
    total, waiting = 0, list[tuple[float, int, Connection]]()
    for connection in connections:
        size = connection.unsent
        total += size
        if not size:
            connection.go_on()
        elif connection.waits:
            waiting.append((connection.since, size, connection))
    for since, size, connection in sorted(waiting, key=lambda each: each[0]):
        if total <= limits.UNSENT and now - since <= limits.TAKE_SECONDS:
            break
        connection.drop()
        total -= size
