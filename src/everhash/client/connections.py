"""Connections that stay open between calls, and what can go wrong on them."""

from __future__ import annotations

import os
import selectors
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from time import monotonic
from typing import NamedTuple, Self, cast

import everhash
from everhash.client.address import Address
from everhash.client.arriving import Response, SlowError
from everhash.client.faults import printable
from everhash.errors import ReadOnlyError, ServiceError

PIECE = 1 << 20
"""Bytes read at a time."""
MOST = 256 << 20
"""Bytes of an answer that is taken into memory."""
FRESH = 2.0
"""Seconds after which a kept connection is not trusted with a request that must not be repeated:
servers close idle ones, and it may be on its way."""
JSON = "application/json"
PATIENCE = "pass a larger timeout to connect"
UNKNOWN = "whether the call was applied is not known: look before you repeat it"


class Request(NamedTuple):
    """What is asked of a service."""

    method: str
    target: str
    """Route and query."""
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    repeatable: bool = True
    """Whether it may be sent twice: it only reads."""


class Connections:
    """Connections to one service. Each serves one thread at a time and stays open for the next.

    A request that only reads is sent once more if the service had closed the connection meanwhile.
    One that writes is not: nobody could tell whether it was applied.
    """

    def __init__(self, address: Address, key: str | None, timeout: float) -> None:
        self.address = address
        self._timeout = timeout
        self._headers = {"User-Agent": f"everhash/{everhash.__version__}"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._secure = ssl.create_default_context() if address.scheme == "https" else None
        self._turn = threading.Lock()
        self._kept: list[tuple[float, HTTPConnection]] | None = []
        self._process = os.getpid()

    def ask(self, request: Request) -> Reply:
        """Send a request and return its answer, of which only the head has been read."""
        kept = self._take(request)
        if kept is not None:
            with self.guarding(kept, request, again=request.repeatable):
                return Reply(self, kept, request, self._send(kept, request))
        fresh = self._connect()
        with self.guarding(fresh, request):
            return Reply(self, fresh, request, self._send(fresh, request))

    def _send(self, connection: HTTPConnection, request: Request) -> Response:
        headers = {**self._headers, "Accept": request.accept}
        if request.method != "GET":
            headers["Content-Type"] = request.content_type
        target = self.address.prefix + request.target
        connection.sock.settimeout(self._timeout)  # less of it may be left from the last answer
        with suppress(BrokenPipeError):  # it may have answered that this is too much to read
            connection.request(request.method, target, request.body or None, headers)
        return cast(Response, connection.getresponse())

    def _connect(self) -> HTTPConnection:
        host, port = self.address.host, self.address.port
        if self._secure is None:
            connection = HTTPConnection(host, port, timeout=self._timeout)
        else:
            connection = HTTPSConnection(host, port, timeout=self._timeout, context=self._secure)
        connection.response_class = Response
        try:
            connection.connect()
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | HTTPException | UnicodeError):
                raise self._unreachable(error) from None
            raise
        return connection

    # Keeping

    def _take(self, request: Request) -> HTTPConnection | None:
        """Return a connection that nobody uses, if there is one that still works."""
        while True:
            with self._turn:
                if self._kept is None:
                    raise ReadOnlyError(f"{self.address} is closed", hint="connect again")
                if self._process != os.getpid():  # the parent goes on with these
                    self._kept, self._process = [], os.getpid()
                if not self._kept:
                    return None
                since, connection = self._kept.pop()
            old = not request.repeatable and monotonic() - since > FRESH
            if not old and not _has_ended(connection):
                return connection
            connection.close()

    def keep(self, connection: HTTPConnection) -> None:
        """Take a connection back for the next call."""
        with self._turn:
            if self._kept is not None:
                self._kept.append((monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        """Close connections now, or when their call has ended. Calls after this are refused."""
        with self._turn:
            kept, self._kept = self._kept or [], None
        for _, connection in kept:
            connection.close()

    # What can go wrong

    @contextmanager
    def guarding(
        self, connection: HTTPConnection, request: Request, *, again: bool = False
    ) -> Iterator[None]:
        """Close a connection on which something fails, and say what it was.

        With `again`, a connection that the service had closed is no error.
        """
        try:
            yield
        except BaseException as error:
            connection.close()
            if again and isinstance(error, ConnectionError):
                return
            broken = OSError | HTTPException | ValueError  # as http.client says of a false chunk
            if isinstance(error, broken) and not isinstance(error, ServiceError):
                raise self._broken(error, request) from None
            raise

    def _unreachable(self, error: Exception) -> ServiceError:
        if isinstance(error, ssl.SSLCertVerificationError):
            hint = "use the name its certificate is for; one of your own goes into SSL_CERT_FILE"
            return ServiceError(f"{self.address}: {error.verify_message}", hint=hint)
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            reason = f"no answer within {self._timeout:g} s"
        hint = "is `everhash serve` running there? nothing was sent"
        return ServiceError(f"{self.address} cannot be reached: {reason}", hint=hint)

    def _broken(self, error: Exception, request: Request) -> ServiceError:
        if isinstance(error, SlowError):
            problem, hint = "the answer stops, or comes too slowly", PATIENCE
        elif isinstance(error, TimeoutError):
            problem, hint = f"no answer within {self._timeout:g} s", PATIENCE
        elif isinstance(error, ConnectionError | IncompleteRead):
            problem, hint = "the connection was closed before the answer was complete", "try again"
        else:
            problem, hint = (
                f"no HTTP answer: {printable(str(error)):.100}",
                "is that a service's address?",
            )
        hint = hint if request.repeatable else UNKNOWN
        return ServiceError(f"{self.address}: {problem}", hint=hint)


class Reply:
    """An answer on its way in. Its connection is kept once all of it was read."""

    def __init__(
        self,
        connections: Connections,
        connection: HTTPConnection,
        request: Request,
        response: Response,
    ) -> None:
        self.status = response.status
        self._connections, self._connection = connections, connection
        self._request, self._response = request, response
        self._open = True

    def header(self, name: str) -> str:
        """Return a header, "" if it was not sent."""
        return self._response.getheader(name, "")

    @property
    def content_type(self) -> str:
        """What the answer says it is."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    def whole(self) -> bytes:
        """Return the answer, if it has a size that can be and comes in time."""
        pieces, size = [], self._response.length or 0
        if size <= MOST:
            size = 0
            self._response.arriving.expect(2 * MOST)  # chunks have heads too
            for piece in self._pieces():
                pieces.append(piece)
                size += len(piece)
                if size > MOST:
                    break
        if size > MOST:
            raise ServiceError(
                f"{self._connections.address}: an answer of more than {MOST >> 20} MiB",
                hint="ask for less at a time",
            )
        return b"".join(pieces)

    def pieces(self) -> Iterator[bytes]:
        """Go through an answer of any size, which it has to tell, however long that takes."""
        if self._response.length is None:
            raise ServiceError(
                f"{self._connections.address}: an answer that does not say how long it is",
                hint="is that a service's address?",
            )
        self._response.arriving.expect(None)
        return self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        response = self._response
        while True:
            with self._connections.guarding(self._connection, self._request):
                piece = self._read()
                if not piece and response.length:
                    raise IncompleteRead(b"", response.length)
            if not piece:
                break
            yield piece
        if not response.will_close:
            self._open = False
            self._connections.keep(self._connection)

    def _read(self) -> bytes:
        try:
            return self._response.read(PIECE)
        except TimeoutError:
            raise SlowError from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        if self._open:
            self._connection.close()


def _has_ended(connection: HTTPConnection) -> bool:
    """Whether a service has closed a connection, or said something nobody asked for."""
    with selectors.DefaultSelector() as watch:
        watch.register(connection.sock, selectors.EVENT_READ)
        return bool(watch.select(0))
