"""Bodies: read whole before anything works on them, bounded in size and together.

Starlette's own limit would answer in plain text; every error here has one form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everhash.errors import TooLargeError
from everhash.serve import limits
from everhash.serve.errors import CLOSE, ClientGoneError, RefusedError, busy, unsupported


class Bodies:
    """Reads bodies, and counts the bytes of all that are held at once."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, headers: Mapping[bytes, bytes], receive: Any) -> bytes:
        """Return the body of a request; `release` it when the request has been answered."""
        check_announced(headers)
        pieces: list[bytes] = []
        size, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                piece, more = message.get("body", b""), message.get("more_body", False)
                pieces.append(piece)
                size += len(piece)
                self._held += len(piece)
                if size > limits.BODY:
                    raise _too_large()
                if self._held > limits.BODIES:
                    raise busy("too many bytes arrive at once", **CLOSE)
        except BaseException:
            self._held -= size
            raise
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def release(self, body: bytes) -> None:
        """Count a body no more."""
        self._held -= len(body)


def check_announced(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body by its head: too large, or compressed."""
    announced = headers.get(b"content-length")
    if announced and (not announced.isdigit() or int(announced) > limits.BODY):
        raise _too_large()
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise unsupported("compressed bodies are not read", "send it as it is")


def _too_large() -> RefusedError:
    error = TooLargeError(
        f"a body of more than {limits.BODY} bytes", hint="send fewer rows at a time, or .npy"
    )
    return RefusedError(413, error, CLOSE)
