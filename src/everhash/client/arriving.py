"""Answers on their way in: how long they may take, and how much of them may come.

A timeout of a socket begins again with every byte, so a service that sends one now and then would
be waited for without end. Here the bytes of an answer are counted, and the seconds.
"""

from __future__ import annotations

import io
import socket
from http.client import HTTPException, HTTPResponse
from time import monotonic
from typing import Any

HEAD = 64 << 10
"""Bytes of a head, and of all that say before it that it will come."""
SLOWEST = 64 << 10
"""Bytes that buy an answer another second."""


class SlowError(TimeoutError):
    """An answer that has begun, and stops or comes too slowly."""


class Arriving(io.RawIOBase):
    """The bytes of an answer, as long as there are not too many and they come in time.

    Args:
        connection: its timeout is for each wait. It is for all of them together too, but for a
            second more for each `SLOWEST` bytes that came.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._bytes = connection.makefile("rb", buffering=0)
        self._timeout = connection.gettimeout() or 0.0
        self.expect(HEAD)

    def expect(self, most: int | None) -> None:
        """Count from here on: so many bytes may come; None for any number of them at any pace."""
        self._most, self._came, self._since = most, 0, monotonic()

    def readinto(self, buffer: Any) -> int | None:
        """Wait for bytes."""
        self._connection.settimeout(self._patience())
        n = self._bytes.readinto(buffer)
        self._came += n or 0
        return n

    def _patience(self) -> float:
        """Return the seconds for which the next bytes may be waited for."""
        if self._most is None:
            return self._timeout
        if self._came > self._most:
            raise HTTPException(f"more than {self._most} bytes")
        spent = monotonic() - self._since - self._came / SLOWEST
        if spent >= self._timeout:
            raise TimeoutError
        return min(self._timeout, self._timeout - spent)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def close(self) -> None:
        """Let go of the connection, which may go on."""
        self._bytes.close()
        super().close()


class Response(HTTPResponse):
    """An HTTP answer that has to come in time."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self.arriving = Arriving(sock)
        self.fp = io.BufferedReader(self.arriving)
