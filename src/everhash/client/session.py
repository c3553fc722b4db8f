"""One request and its answer, over connections that stay open between calls."""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

import everhash
from everhash.client.address import Address
from everhash.client.deadline import Deadline, DeadlineTransport
from everhash.client.remote_errors import error_from, printable
from everhash.errors import ClosedError, EverhashError, ServiceError
from everhash.places import Place
from everhash.wire.media import JSON, PLACE, media_type
from everhash.wire.routes import route_of
from everhash.wire.values import read_count

MAX_ANSWER = 256 << 20
"""Bytes of an answer that is taken into memory."""
PAUSE = 1.0
"""Seconds until a service that is busy, or still starting, is asked again."""
FOREIGN = "is that the address of an everhash service of this version?"
PATIENCE = "{say patience}"
UNKNOWN = "whether the call was applied is not known: look before you repeat it"
MISSHAPEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
"""What reading an answer of an unexpected form raises."""


@dataclass(frozen=True)
class ServiceLimits:
    """What a service takes at a time."""

    rows: int
    queries: int
    page: int
    body: int


@dataclass(frozen=True)
class ApiCall:
    """A request; its method and whether it may be sent twice stand in the table of routes."""

    path: str
    content: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    query: Mapping[str, Any] | None = None

    @property
    def method(self) -> str:
        """GET or POST."""
        route = route_of(self.path)
        return "GET" if route is None else route.method

    @property
    def writes(self) -> bool:
        """Whether it changes something, so that it must not be sent twice."""
        route = route_of(self.path)
        return route is not None and route.writes


class Session:
    """A service's routes: requests are sent, answers checked, errors raised.

    A request that only reads is sent once more if the service had closed the connection meanwhile,
    and again while the service is busy. One that writes is not: nobody could tell whether it was
    applied.
    """

    def __init__(self, address: Address, key: str | None, timeout: float, place: Place) -> None:
        self.name, self._timeout = str(address), timeout
        self._headers = {
            PLACE: place,
            "User-Agent": f"everhash/{everhash.__version__}",
            "Accept-Encoding": "identity",
        }
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._secure = ssl.create_default_context() if address.scheme == "https" else None
        self._client = self._make_client()
        self._process = os.getpid()
        try:
            said = self.call("/limits")
            with self.reading():
                names = ("rows", "queries", "page", "body")
                self.limits = ServiceLimits(*(read_count(said[name], 1) for name in names))
        except BaseException:
            self.close()
            raise

    def _make_client(self) -> httpx.Client:
        return httpx.Client(
            headers=self._headers, timeout=self._timeout, transport=DeadlineTransport(self._secure)
        )

    def close(self) -> None:
        """Close the connections. Calls after this are refused."""
        self._client.close()

    # Asking

    def call(
        self, path: str, content: Mapping[str, Any] | None = None, **query: Any
    ) -> dict[str, Any]:
        """Return the answer of a route, which is JSON."""
        body = b"" if content is None else as_json(content)
        return self.send(ApiCall(path, body, query=query))

    def send(self, call: ApiCall) -> dict[str, Any]:
        """Return the answer to a request, which is JSON."""
        with self.open(call) as response:
            return self.read_json(response)

    @contextmanager
    def open(self, call: ApiCall) -> Iterator[httpx.Response]:
        """Yield an answer that is no error and has not been read yet."""
        until = time.monotonic() + self._timeout
        while True:
            with self._answer(call) as response:
                if response.is_success:
                    yield response
                    return
                error = self._error(response)
                busy = type(error) is ServiceError and response.status_code == 503
            if not busy or call.writes or time.monotonic() + PAUSE >= until:
                raise error
            time.sleep(PAUSE)

    @contextmanager
    def _answer(self, call: ApiCall) -> Iterator[httpx.Response]:
        """Yield an answer of which only the head has been read."""
        deadline = Deadline(self._timeout, 2 * MAX_ANSWER)  # chunks have heads too
        with self._explaining(call), deadline.applied(), ExitStack() as stack:
            try:
                response = self._send(call)
            except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
                if call.writes or not _was_closed(error):
                    raise
                response = self._send(call)
            stack.callback(response.close)
            response.extensions["deadline"] = deadline
            yield response

    def _send(self, call: ApiCall) -> httpx.Response:
        if self._client.is_closed:
            raise ClosedError(f"{self.name} is closed", hint="connect again")
        if self._process != os.getpid():  # the parent goes on with its connections
            self._client, self._process = self._make_client(), os.getpid()
        headers = {"Accept": call.accept}
        if call.content:
            headers["Content-Type"] = call.content_type
        query = {
            n: str(v).lower() if isinstance(v, bool) else v for n, v in (call.query or {}).items()
        }
        request = self._client.build_request(
            call.method,
            self.name + call.path,
            params=query or None,
            content=call.content or None,
            headers=headers,
        )
        return self._client.send(request, stream=True)

    # Reading

    def read(self, response: httpx.Response) -> bytes:
        """Return the body of an answer, if it is not too large."""
        pieces, size = [], int(response.headers.get("content-length") or 0)
        if size <= MAX_ANSWER:
            size = 0
            for piece in response.iter_raw():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_ANSWER:
                    break
        if size > MAX_ANSWER:
            raise ServiceError(
                f"{self.name}: an answer of more than {MAX_ANSWER >> 20} MiB",
                hint="ask for less at a time",
            )
        return b"".join(pieces)

    def pieces(self, response: httpx.Response) -> Iterator[bytes]:
        """Yield an answer of any size, which it has to name, however long that takes."""
        if "content-length" not in response.headers:
            raise ServiceError(
                f"{self.name}: an answer that does not say how long it is", hint=FOREIGN
            )
        response.extensions["deadline"].lift()
        yield from response.iter_raw()

    def read_json(self, response: httpx.Response) -> dict[str, Any]:
        """Return the JSON object of an answer."""
        kind = media_type(response.headers.get("content-type", "")) or "no type"
        if kind != JSON:
            raise ServiceError(
                f"{self.name} answers with status {response.status_code} and {printable(kind):.80}",
                hint=FOREIGN,
            )
        text = self.read(response)
        try:
            content = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise ServiceError(f"{self.name} answers with what is no JSON object", hint=FOREIGN)
        return content

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn whatever an answer of another form raises into a `ServiceError`."""
        try:
            yield
        except ServiceError:
            raise
        except (*MISSHAPEN, EverhashError):
            problem = f"{self.name}: an answer of an unknown form"
            raise ServiceError(problem, hint=FOREIGN) from None

    # What can go wrong

    def _error(self, response: httpx.Response) -> EverhashError:
        if response.is_redirect or 300 <= response.status_code < 400:
            location = printable(response.headers.get("location", ""))
            problem = f"{self.name} sends elsewhere: {location:.200}"
            return ServiceError(problem, hint="connect to that address")
        return error_from(self.read_json(response), self.name, response.status_code)

    @contextmanager
    def _explaining(self, call: ApiCall) -> Iterator[None]:
        """Raise what a connection raises as a `ServiceError`."""
        try:
            yield
        except (httpcore.ConnectError, httpcore.ConnectTimeout, UnicodeError) as error:
            raise self._unreachable(error) from None
        except httpcore.TimeoutException:
            hint = UNKNOWN if call.writes else PATIENCE
            problem = f"{self.name}: no answer within {self._timeout:g} s"
            raise ServiceError(problem, hint=hint) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError) as error:
            hint = UNKNOWN if call.writes else "try again; is that a service's address?"
            problem = "the connection was closed before the answer was complete"
            if not _was_closed(error):
                problem = f"no HTTP answer: {printable(str(error)):.100}"
            raise ServiceError(f"{self.name}: {problem}", hint=hint) from None

    def _unreachable(self, error: Exception) -> ServiceError:
        cause = error.__cause__ or error.__context__ or error
        if isinstance(cause, ssl.SSLCertVerificationError):
            hint = "use the name its certificate is for; one of your own goes into SSL_CERT_FILE"
            return ServiceError(f"{self.name}: {cause.verify_message}", hint=hint)
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        if isinstance(error, httpcore.ConnectTimeout):
            reason = f"no answer within {self._timeout:g} s"
        hint = "is `everhash serve` running there? nothing was sent"
        return ServiceError(f"{self.name} cannot be reached: {reason}", hint=hint)


def _was_closed(error: Exception) -> bool:
    """Whether the service closed a connection, perhaps before it read the request."""
    if isinstance(error, httpcore.ProtocolError):
        return re.search("disconnected|closed", str(error)) is not None
    return not isinstance(error, httpcore.ConnectError)


def as_json(content: Mapping[str, Any]) -> bytes:
    """Return content as it is sent."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
