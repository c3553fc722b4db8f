"""Errors of a service, raised again as what they were.

The classes stand in a table: a name in an answer never decides what is imported or called.
"""

from __future__ import annotations

from typing import Any

from everhash import errors
from everhash.errors import EverhashError, ServiceError

CLASSES: dict[str, type[EverhashError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, EverhashError) and kind is not EverhashError
}


def error_from(answer: Any, address: str, status: int = 500) -> EverhashError:
    """Return the error that an answer describes.

    A code that is not in the table, or an answer of another form, is a `ServiceError`.
    """
    said = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("message"), str):
        hint = "is that a service's address?"
        return ServiceError(f"{address}: status {status}, without a reason", hint=hint)
    kind = CLASSES.get(str(said.get("code")), ServiceError)
    error = kind.__new__(kind)
    # not the class's own constructor, which would make the message anew
    EverhashError.__init__(error, said["message"], hint=str(said.get("hint") or ""))
    values = said.get("values")
    for name in kind.carries:
        value = values.get(name) if isinstance(values, dict) else None
        setattr(error, name, value if isinstance(value, int | str) else None)
    return error


def printable(text: str) -> str:
    r"""Return a service's text for a message, with nothing a terminal would obey.

    >>> printable("caf\u00e9 \x1b[31m")
    'café \\x1b[31m'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
