"""The server process: its socket, and how it stops."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import NoReturn, cast

import uvicorn
from uvicorn import Config

from everhash.errors import OptionError
from everhash.serve import limits
from everhash.serve.connections import Gate
from everhash.serve.error_middleware import ErrorMiddleware
from everhash.serve.service import Service

log = logging.getLogger(__name__)

STOP_SECONDS = limits.SECONDS + 5
"""Seconds that requests get to end when the server stops."""
INTERRUPTED = 130
"""The exit code after a second Ctrl-C."""
CLOSE_SECONDS = 3
"""Seconds that closing the file may take then; not closed, it has all that was answered, too."""
BACKLOG = 2048
"""Connections that may wait to be accepted."""
SWITCH_SECONDS = 0.0005
"""Seconds a thread may keep the interpreter while another waits for it: Python's five milliseconds
are longer than a search."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens: from now on, connections wait to be accepted."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # the protocol must be named, or asyncio does not send small answers at once
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(
            f"cannot listen at {host}, port {port}: {reason}", hint="choose another {option port}"
        ) from None
    listening.set_inheritable(False)
    return listening


class Server(uvicorn.Server):
    """A server that goes on ignoring Ctrl-C if it was started so, as a script's background job is.

    uvicorn listens to it whatever the parent process has decided. SIGTERM ends the server always.
    """

    ignores_interrupts = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, unless this signal is ignored."""
        if not (self.ignores_interrupts and sig == signal.SIGINT):
            super().handle_exit(sig, frame)


def make_server(app: ErrorMiddleware) -> Server:
    """Return a server for what `make_app` has made.

    Its limit of connections is one more than ours: where all of ours are being worked for, and none
    makes room, the server answers one that comes with a bare 503.
    """
    gate = partial(Gate, app.service.connections)  # called as the class of a protocol is
    config = Config(
        app,
        loop="asyncio",
        http=cast("type[asyncio.Protocol]", gate),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=limits.CONNECTIONS + 1,
        timeout_keep_alive=limits.KEEP_ALIVE,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = app.service.server = Server(config)
    return server


def open_first(app: ErrorMiddleware) -> None:
    """Open the collection before the server runs: what is wrong with it is raised here.

    A thread does it, so that Ctrl-C interrupts the wait for it and not the compiler of kernels.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            app.service.open()
        except BaseException as error:
            failures.append(error)

    opening = threading.Thread(target=work, daemon=True)
    opening.start()
    try:
        opening.join()
    except KeyboardInterrupt:
        opening.join(CLOSE_SECONDS)
        raise
    for failure in failures:
        raise failure


def run(app: ErrorMiddleware, listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; then end well, or raise what went wrong."""
    server = make_server(app)
    server.ignores_interrupts = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    sys.setswitchinterval(SWITCH_SECONDS)

    def end(_number: int, _frame: FrameType | None) -> None:
        if server.force_exit:
            _give_up(app.service)
        if app.service.is_opening:  # the collection is closed; a compiler cannot be interrupted
            _exit(0)
        sys.exit(0)

    # uvicorn raises the signal again once everything is closed: this is what then happens
    signal.signal(signal.SIGTERM, end)
    if not server.ignores_interrupts:
        signal.signal(signal.SIGINT, end)
    server.run(sockets=[listening])
    failure = app.service.failure
    if failure is not None:
        raise failure


def _give_up(service: Service) -> NoReturn:
    """End at once, whatever is under way."""
    log.warning("stopped at once: requests under way were given up")
    end_interrupted(service)


def end_interrupted(service: Service) -> NoReturn:
    """Close the file if that takes no long time, and end without waiting for any thread."""
    closing = threading.Thread(target=service.close_collection, daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)
    _exit(INTERRUPTED)


def _exit(code: int) -> NoReturn:
    """End without waiting for threads."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
