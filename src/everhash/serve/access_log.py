"""One line for each request: who asked for what, and how it ended. No query, no key, no body."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger("everhash.access")
KEY = "everhash.key"
"""Where the name of the key stands in the scope of a request."""
MAX_PATH = 200


class Sent:
    """What went out to the client."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.status = 0
        """0 if the client left before it was answered."""
        self.bytes = 0

    async def send(self, message: Any) -> None:
        """Pass on a message, and count it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.bytes += len(message.get("body", b""))
        await self._send(message)


def log_request(scope: Any, sent: Sent, seconds: float) -> None:
    """Write the line of a request. The time is the logger's."""
    host = (scope.get("client") or ("-",))[0]
    path = "".join(c if c.isprintable() else "?" for c in scope["path"][:MAX_PATH])
    log.info(
        "%s %s %s %s %s %dB %.1fms",
        *(host, scope.get(KEY, "-"), scope["method"], path),
        *(sent.status or "gone", sent.bytes, 1000 * seconds),
    )
