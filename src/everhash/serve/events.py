"""What happens, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from everhash.serve import limits
from everhash.serve.errors import busy

PING = 15.0
"""Seconds of silence after which a comment is sent, so that no proxy closes the connection."""
BACKLOG = 256
"""Events that may wait for a slow listener before it is dropped."""
FIRST_IDS = 20
"""Ids that an event names."""
FIRST_LABELS = 100
"""New labels that an event names."""
TYPES = (
    *("stats", "accuracy", "learned", "forgotten", "added", "updated", "labelled", "unlabelled"),
    *("removed", "renamed", "merged", "dropped", "refreshed"),
)
Event = tuple[str, dict[str, Any]]
"""Its type and its data."""


def encode(event: Event) -> bytes:
    r"""Return an event as it is sent.

    >>> encode(("removed", {"count": 1}))
    b'event: removed\ndata: {"count":1}\n\n'
    """
    kind, data = event
    return f"event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class Listener:
    """One connection, and the events that wait for it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(BACKLOG)

    def put(self, text: bytes) -> bool:
        """Add an event; return False if the listener has fallen too far behind."""
        try:
            self.queue.put_nowait(text)
        except asyncio.QueueFull:
            return False
        return True

    def end(self) -> None:
        """End the connection, whatever still waits."""
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(None)


class Events:
    """All listeners. Only the event loop touches it."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._listeners)

    def publish(self, event: Event) -> None:
        """Send an event to all; listeners that do not keep up are dropped and may reconnect."""
        if not self._listeners:
            return
        text = encode(event)
        for listener in list(self._listeners):
            if not listener.put(text):
                listener.end()
                self._listeners.discard(listener)

    def join(self) -> Listener:
        """Add a listener, if there is room for one."""
        if len(self._listeners) >= limits.LISTENERS:
            raise busy(
                f"{limits.LISTENERS} connections listen already", "close one, or poll /stats"
            )
        listener = Listener()
        self._listeners.add(listener)
        return listener

    async def stream(self, listener: Listener) -> AsyncIterator[bytes]:
        """Yield a listener's events until it leaves or the service stops."""
        try:
            while True:
                try:
                    text = await asyncio.wait_for(listener.queue.get(), PING)
                except TimeoutError:
                    text = b": ping\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._listeners.discard(listener)

    def end(self) -> None:
        """Disconnect all listeners: the service stops."""
        for listener in self._listeners:
            listener.end()
        self._listeners.clear()
