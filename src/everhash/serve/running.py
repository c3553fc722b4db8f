"""The server process: its socket, and how it stops."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from fastapi import FastAPI
from uvicorn import Config, Server

from everhash.errors import OptionError
from everhash.serve import limits
from everhash.serve.connections import Connection, look_after
from everhash.serve.service import Service

log = logging.getLogger(__name__)
KEEP_ALIVE = 75
"""Seconds an idle connection is kept."""
PATIENCE = limits.SECONDS + 5
"""Seconds that requests get to end when the server stops."""

HURRY = 3
"""Seconds it takes to stop at most, once somebody has pressed Ctrl-C twice."""
INTERRUPTED = 130
"""The exit code then."""
AT_ONCE = 16
"""Connections that are accepted at once, before any is looked at."""
BACKLOG = 2048
"""Connections that may wait to be accepted."""

SWITCH = 0.0005
"""Seconds a thread may keep the interpreter while another waits for it: Python's five milliseconds
are longer than a search."""


class CollectionServer(Server):
    """A server that says when it listens, and ends if there is nothing to serve."""

    def __init__(self, config: Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.servers = []
        self.service, self._say = service, started
        self.hurried = False
        """Whether requests under way were given up."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is time to stop."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio takes one number for this and for AT_ONCE
        self._say()

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections; return whether it is time to stop."""
        connections: Any = tuple(self.server_state.connections)
        look_after(connections, self._loop.time())
        return await super().on_tick(counter) or self.service.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let requests end, and close the collection."""
        self.service.stop_telling()
        await super().shutdown(sockets)
        connections: Any = tuple(self.server_state.connections)
        for connection in connections:  # of clients that have not taken their answers until now
            connection.drop()
        await asyncio.sleep(0)  # until they are closed

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; at the second Ctrl-C, wait for no request any more."""
        if not (self.should_exit and sig == signal.SIGINT):
            super().handle_exit(sig, frame)
        elif not self.hurried:
            self.hurried = True
            self._loop.call_soon_threadsafe(self._hurry)

    def _hurry(self) -> None:
        """Give up all requests, so that only closing the file is left, and that within seconds."""
        log.warning("stopped at once: requests under way were given up")
        for server in self.servers:
            server.close()
        connections: Any = tuple(self.server_state.connections)
        for connection in connections:
            connection.drop()
        for task in self.server_state.tasks:
            self._loop.call_soon(task.cancel)  # once its connection is lost
        # whatever happens, a file that is not closed has all that was answered
        self._loop.call_later(HURRY, os._exit, INTERRUPTED)


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
        backlog=AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=PATIENCE,
    )
    return CollectionServer(config, app.state.service, started)


def run(app: FastAPI, listening: socket.socket, started: Callable[[], None]) -> None:
    """Serve until somebody sends SIGTERM or SIGINT; then end well, or raise what went wrong."""
    server = make_server(app, started)
    sys.setswitchinterval(SWITCH)

    def end(_number: int, _frame: FrameType | None) -> None:
        sys.exit(INTERRUPTED if server.hurried else 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again once everything is closed: this is what then happens
        signal.signal(number, end)
    server.run(sockets=[listening])
    if server.service.failure is not None:
        raise server.service.failure
