"""One form for every error, and the status that goes with each class.

    {"error": {"code": "DimensionError", "message": …, "hint": …, "status": 422, "exit": 2,
               "values": {"expected": 64, "got": 3}}}

`code` is the class in `everhash.errors`, `exit` the exit code of the command line, `values` the
numbers and ids that the error carries. Message and hint name routes and fields, unless the header
Everhash-Place says that they are read elsewhere: in python, on the command line (cli), on the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everhash import errors
from everhash.errors import EverhashError, InputError, ServiceError, exit_code
from everhash.places import PLACES, Place
from everhash.serve import limits
from everhash.wire.media import PLACE

STATUS: dict[type[EverhashError], int] = {
    errors.DuplicateIdError: 409,
    errors.StaleCodesError: 409,
    errors.LabelConflictError: 409,
    errors.TooLargeError: 413,
    errors.InputError: 422,
    errors.NotOnlineError: 422,
    errors.UnknownNameError: 404,
    errors.NotFittedError: 409,
    errors.ReadOnlyError: 409,
    errors.ClosedError: 503,
    errors.DiskFullError: 507,
    errors.LockedError: 503,
    errors.StoreError: 503,
    errors.CollectionFileError: 500,
    errors.DataMissingError: 404,
    errors.ServiceError: 503,
}
"""The first class that fits decides."""
MEANINGS = {
    400: "A head that could be read in two ways, or no HTTP.",
    401: "No key, or an unknown one.",
    403: "A key for less, another Host, or a page of another site.",
    404: "No such entry, label, job or route.",
    405: "Another method is needed.",
    408: "The body took too long.",
    409: "Not as things stand: an id that is taken, labels that somebody has changed, a "
    "collection served for reading.",
    413: "More rows, queries or bytes than a request or its answer may have.",
    415: "A body of another type.",
    422: "Something sent cannot be used.",
    431: "A head that is too long.",
    500: "An error of the service.",
    503: "Too many requests, starting, stopping, or out of time; Retry-After says when.",
    507: "The disk is full.",
}
"""How any request may end."""
PLACE_HEADER = PLACE.lower().encode()
CLOSE = {"Connection": "close"}
RETRY = {"Retry-After": "1"}
INTERNAL: dict[str, Any] = {
    "code": "InternalError",
    "message": "something went wrong in the service",
    "hint": "its log says what",
    "status": 500,
    "exit": 1,
}


class RefusedError(Exception):
    """A request that the service itself refuses, with a status of its own."""

    def __init__(
        self, status: int, error: EverhashError, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(str(error))
        self.status, self.error, self.headers = status, error, dict(headers or {})


class ClientGoneError(Exception):
    """The client has left before it was answered."""


def busy(message: str, hint: str = "try again in a second", **headers: str) -> RefusedError:
    """Return the refusal of what could be done later."""
    return RefusedError(503, ServiceError(message, hint=hint), {**RETRY, **headers})


def too_slow() -> RefusedError:
    """Return the refusal of a body that does not come."""
    problem = f"the body was not there within {limits.SECONDS} s"
    return RefusedError(408, ServiceError(problem, hint="send it in smaller parts"), CLOSE)


def unsupported(message: str, hint: str) -> RefusedError:
    """Return the refusal of a body whose type is not read."""
    return RefusedError(415, InputError(message, hint=hint))


def status_of(error: EverhashError) -> int:
    """Return the status of one of the library's errors."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def place_in(scope: Any) -> Place:
    """Return the place where a client says that messages are read; over HTTP if it does not."""
    said = next((value for name, value in scope["headers"] if name == PLACE_HEADER), b"")
    return next((place for place in PLACES if place.encode() == said), "http")


def describe(error: Exception, path: Path | None = None, place: Place = "http") -> dict[str, Any]:
    """Return an error as JSON, in the words of a place.

    The folder of the collection's file, at `path`, is left out.
    """
    if isinstance(error, RefusedError):
        status, error = error.status, error.error
    elif isinstance(error, EverhashError):
        status = status_of(error)
    else:
        return INTERNAL
    error = error.told(place)
    message = error.message if path is None else error.message.replace(str(path), path.name)
    described = {
        "code": type(error).__name__,
        "message": message,
        "hint": error.hint,
        "status": status,
        "exit": exit_code(error),
    }
    values = {name: getattr(error, name) for name in error.carries}
    return {**described, "values": values} if values else described


def response_to(
    error: Exception, path: Path | None, place: Place
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the answer to a request that failed."""
    described = describe(error, path, place)
    headers = error.headers if isinstance(error, RefusedError) else {}
    if described["status"] == 503:
        headers = {**RETRY, **headers}
    return described["status"], headers, json.dumps({"error": described}).encode()
