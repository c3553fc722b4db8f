"""Answers that are sent: in pieces, as fast as a client reads, and bounded together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from everhash.serve import limits
from everhash.serve.errors import ClientGoneError, busy

PIECE = 256 << 10
"""Bytes that are handed to the server at a time."""


class Answers:
    """Counts the bytes of all answers that clients have not read yet."""

    def __init__(self) -> None:
        self._held = 0

    def check(self, content: bytes) -> bytes:
        """Return an answer, or refuse to send it while too many others wait to be read."""
        if len(content) > PIECE and self._held + len(content) > limits.ANSWERS:
            raise busy("too many answers wait to be read", "read answers as they come")
        return content

    @contextmanager
    def held(self, content: bytes) -> Iterator[None]:
        """Count an answer while it is sent."""
        self._held += len(content)
        try:
            yield
        finally:
            self._held -= len(content)


async def send_in_time(send: Any, message: Any) -> None:
    """Hand a message to the server, which waits while its client does not read.

    A client that has taken nothing for a minute has left, as far as the service is concerned.
    """
    try:
        async with asyncio.timeout(limits.READ_SECONDS):
            await send(message)
    except TimeoutError:
        raise ClientGoneError from None


async def send_body(send: Any, answers: Answers, message: Any) -> None:
    """Send a piece of an answer, a large one in smaller pieces."""
    content: bytes = message.get("body", b"")
    if len(content) <= PIECE:
        await send_in_time(send, message)
        return
    with answers.held(content):
        for start in range(0, len(content), PIECE):
            last = start + PIECE >= len(content)
            more = not last or message.get("more_body", False)
            piece = {**message, "body": content[start : start + PIECE], "more_body": more}
            await send_in_time(send, piece)
