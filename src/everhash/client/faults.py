"""Errors of a service, raised again as what they were.

The classes stand in a table here: a name in an answer never decides what is imported or called.
"""

from __future__ import annotations

from typing import Any

from everhash import errors
from everhash.errors import EverhashError, ServiceError

KINDS: dict[str, type[EverhashError]] = {
    kind.__name__: kind
    for kind in (
        errors.InputError,
        errors.FeatureTypeError,
        errors.DimensionError,
        errors.NotFiniteError,
        errors.LabelError,
        errors.OptionError,
        errors.IdError,
        errors.DuplicateIdError,
        errors.StaleCodesError,
        errors.LimitError,
        errors.UnknownNameError,
        errors.UnknownIdError,
        errors.NotFittedError,
        errors.NotOnlineError,
        errors.ModelFileError,
        errors.CollectionFileError,
        errors.StoreError,
        errors.LockedError,
        errors.ReadOnlyError,
        errors.ServiceError,
        errors.DataMissingError,
    )
}
VALUES: dict[type[EverhashError], tuple[str, ...]] = {
    errors.DimensionError: ("expected", "got"),
    errors.NotFiniteError: ("row",),
    errors.DuplicateIdError: ("id",),
    errors.StaleCodesError: ("expected", "got"),
    errors.UnknownIdError: ("id",),
}
"""What errors carry besides their message."""


def error_from(answer: Any, address: str, status: int = 500) -> EverhashError:
    """Return the error that an answer tells of.

    A code that is not in the table, or an answer of another form, is a `ServiceError`.
    """
    told = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("message"), str):
        hint = "is that a service's address?"
        return ServiceError(f"{address}: status {status}, without a reason", hint=hint)
    kind = KINDS.get(str(told.get("code")), ServiceError)
    error = kind.__new__(kind)
    # not the class's own: it would put a message together again from what it was given
    EverhashError.__init__(error, told["message"], hint=str(told.get("hint") or ""))
    values = told.get("values")
    for name in VALUES.get(kind, ()):
        value = values.get(name) if isinstance(values, dict) else None
        setattr(error, name, value if isinstance(value, int | str) else None)
    return error


def printable(text: str) -> str:
    r"""Return what a service sent for a message: no terminal takes it for a command.

    >>> printable("caf\u00e9 \x1b[31m")
    'café \\x1b[31m'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
