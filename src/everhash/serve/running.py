"""The server process: its socket, its connections, and how it stops."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import h11
from fastapi import FastAPI
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from everhash.errors import OptionError
from everhash.serve import limits
from everhash.serve.service import Service

KEEP_ALIVE = 75
"""Seconds an idle connection is kept."""
PATIENCE = limits.SECONDS + 5
"""Seconds that requests get to end when the server stops."""

SWITCH = 0.0005
"""Seconds a thread may keep the interpreter while another waits for it: Python's five milliseconds
are longer than a search."""


class Connection(H11Protocol):
    """A connection whose client has to send the head of a request, and take answers, in time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head from now on."""
        super().connection_made(transport)
        self._expect_head()
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux; elsewhere the system's own time counts
            accepted: socket.socket = transport.get_extra_info("socket")
            patience = int(1000 * limits.STALL_SECONDS)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)

    def data_received(self, data: bytes) -> None:
        """Expect the rest of a head that has begun."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_clock()
        elif self._clock is None and not self.transport.is_closing():
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._clock = self.loop.call_later(limits.HEAD_SECONDS, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


class CollectionServer(Server):
    """A server that says when it listens, and ends if there is nothing to serve."""

    def __init__(self, config: Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.service, self._say = service, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._say()

    async def on_tick(self, counter: int) -> bool:
        """Return whether it is time to stop."""
        return await super().on_tick(counter) or self.service.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let requests end, and close the collection."""
        self.service.stop_telling()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # the protocol must be named, or asyncio does not send small answers at once
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(
            f"cannot listen at {host}, port {port}: {reason}", hint="choose another --port"
        ) from None
    listening.set_inheritable(False)
    return listening


def make_server(app: FastAPI, started: Callable[[], None]) -> CollectionServer:
    """Return a server for what `make_app` has made; it calls `started` once it listens."""
    config = Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=PATIENCE,
    )
    return CollectionServer(config, app.state.service, started)


def run(app: FastAPI, listening: socket.socket, started: Callable[[], None]) -> None:
    """Serve until somebody sends SIGTERM or SIGINT; then end well, or raise what went wrong."""
    server = make_server(app, started)
    sys.setswitchinterval(SWITCH)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again once everything is closed: this is what then happens
        signal.signal(number, _end)
    server.run(sockets=[listening])
    if server.service.failure is not None:
        raise server.service.failure


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
