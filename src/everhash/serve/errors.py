"""One shape for every error, and the status that goes with each class.

    {"error": {"code": "DimensionError", "message": …, "hint": …, "status": 422, "exit": 2,
               "values": {"expected": 64, "got": 3}}}

`code` is the class in `everhash.errors`, `exit` what the command line would end with, `values` the
numbers and ids that the error carries as attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everhash import errors
from everhash.errors import EverhashError, InputError, LimitError, ServiceError, exit_code

STATUS: dict[type[EverhashError], int] = {
    errors.DuplicateIdError: 409,
    errors.StaleCodesError: 409,
    errors.InputError: 422,
    errors.NotOnlineError: 422,
    errors.UnknownNameError: 404,
    errors.NotFittedError: 409,
    errors.ReadOnlyError: 409,
    errors.LockedError: 503,
    errors.StoreError: 503,
    errors.CollectionFileError: 500,
    errors.DataMissingError: 404,
    errors.ServiceError: 503,
}
"""The first class that fits decides."""
FULL = "disk is full"
VALUES = ("expected", "got", "row", "id")
JSON = b"application/json"
CLOSE = {"Connection": "close"}
SOON = {"Retry-After": "1"}


class RefusedError(Exception):
    """A request refused by the service itself, with a status of its own."""

    def __init__(
        self, status: int, error: EverhashError, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(str(error))
        self.status, self.error, self.headers = status, error, dict(headers or {})


def too_large(message: str, hint: str) -> RefusedError:
    """Return the refusal of more rows, queries or bytes than a request may have."""
    return RefusedError(413, LimitError(message, hint=hint))


def busy(message: str, hint: str = "try again in a second") -> RefusedError:
    """Return the refusal of what could be done later."""
    return RefusedError(503, ServiceError(message, hint=hint), SOON)


def unsupported(message: str, hint: str) -> RefusedError:
    """Return the refusal of a body of another kind than can be read."""
    return RefusedError(415, InputError(message, hint=hint))


def status_of(error: EverhashError) -> int:
    """Return the status of the library's own errors."""
    if isinstance(error, errors.StoreError) and FULL in error.message:
        return 507
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def describe(error: EverhashError, status: int | None = None) -> dict[str, Any]:
    """Return an error as JSON tells it."""
    told: dict[str, Any] = {
        "code": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "status": status_of(error) if status is None else status,
        "exit": exit_code(error),
    }
    values = {name: vars(error)[name] for name in VALUES if name in vars(error)}
    return {**told, "values": values} if values else told


INTERNAL: dict[str, Any] = {
    "code": "InternalError",
    "message": "something went wrong in the service",
    "hint": "its log says what",
    "status": 500,
    "exit": 1,
}


def describe_any(error: Exception) -> dict[str, Any]:
    """Return whatever was raised as JSON tells it."""
    if isinstance(error, RefusedError):
        return describe(error.error, error.status)
    return describe(error) if isinstance(error, EverhashError) else INTERNAL


def without_path(told: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """Return an error that names a file and not where it is."""
    if path is None:
        return told
    return {**told, "message": told["message"].replace(str(path), path.name)}


def answer_to(error: Exception, path: Path | None = None) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for whatever was raised; `path` is nobody's business."""
    told = without_path(describe_any(error), path)
    headers = error.headers if isinstance(error, RefusedError) else {}
    if told["status"] == 503:
        headers = {**SOON, **headers}
    return told["status"], headers, json.dumps({"error": told}).encode()
