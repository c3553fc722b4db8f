"""Fields of a request, in the forms the library takes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import limits as library
from everhash.errors import (
    FeatureTypeError,
    IdError,
    InputError,
    LabelError,
    LimitError,
    ModelFileError,
    OptionError,
)
from everhash.serve import limits
from everhash.serve.bodies import Given, check_count
from everhash.stream import as_label
from everhash.wire.labels import label_from_json
from everhash.wire.options import DISTANCES

MISSING = object()
NUMBERS = {int, float, bool, type(None)}
"""What stands in a row; null is not finite, and the library says so."""
ROW = '{"rows": [[0.1, 2, -3]]} is one row of three features'


def take(given: Given, name: str) -> Any:
    """Return a field that has to be there."""
    value = given.fields.get(name, MISSING)
    if value is MISSING or value is None:
        raise InputError(f"field {name!r} is missing", hint="see /openapi.json")
    return value


def rows_of(given: Given, most: int, what: str = "rows") -> NDArray[Any]:
    """Return rows as an array; the library looks at what they hold."""
    rows = take(given, "rows")
    if isinstance(rows, np.ndarray):
        check_count(len(rows), most, what)
        return rows
    listed = _listed(rows, "rows", most, what)
    _check_numbers(listed)
    try:
        return np.asarray(listed)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"X is no table of rows: {error!s:.200}", hint="rows of one length"
        ) from None


def _check_numbers(listed: list[Any]) -> None:
    """Refuse what is no number: in an array, each cell would be as wide as the longest text."""
    for number, row in enumerate(listed):
        if not isinstance(row, list):
            problem = f"row {number}: expected a list of numbers, got {_kind(row)}"
            raise InputError(problem, hint=ROW)
        if not NUMBERS.issuperset(map(type, row)):
            cell = next(cell for cell in row if type(cell) not in NUMBERS)
            problem = f"row {number}: features must be numbers, got {_kind(cell)}"
            raise FeatureTypeError(problem, hint=ROW)


def _listed(value: Any, name: str, most: int, what: str | None = None) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(
            f"field {name!r}: expected a list, got {_kind(value)}", hint="see /openapi.json"
        )
    check_count(len(value), most, what or name)
    return value


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")


def ids_of(given: Given, name: str = "ids", most: int = limits.ROWS) -> list[Any] | None:
    """Return ids as they came, None where there are none; the library looks at each."""
    value = given.fields.get(name)
    if value is None:
        return None
    ids = _listed(value, name, most)
    for one in ids:
        if isinstance(one, str) and not is_text(one):
            raise IdError("an id is not Unicode", hint="half a surrogate pair stands in it")
    return ids


def labels_of(given: Given, name: str = "labels") -> list[Any] | None:
    """Return the labels of rows: one, a set, or None each; None where none were given."""
    value = given.fields.get(name)
    if value is None:
        return None
    listed = _listed(value, name, limits.ROWS)
    check_count(sum(len(told) for told in listed if isinstance(told, list)), limits.GIVEN, name)
    return [_of_row(told, row) for row, told in enumerate(listed)]


def _of_row(told: Any, row: int) -> Any:
    if isinstance(told, list):
        return {label_of(one, row) for one in told}
    return None if told is None else label_of(told, row)


def label_of(told: Any, row: int = 0) -> Hashable:
    """Return one label."""
    try:
        label = label_from_json(told)
    except (ModelFileError, ValueError, TypeError, RecursionError):
        raise LabelError(
            f"row {row}: {_kind(told)} cannot be a label", hint="labels are texts or numbers"
        ) from None
    if len(label if isinstance(label, str) else repr(label)) > limits.LABEL:
        raise LimitError(f"row {row}: a label of more than {limits.LABEL} characters")
    if not _is_unicode(label):
        raise LabelError(f"row {row}: a label is not Unicode", hint="it has half a surrogate pair")
    return as_label(label, row)


def _is_unicode(label: Any) -> bool:
    if isinstance(label, tuple):
        return all(map(_is_unicode, label))
    return not isinstance(label, str) or is_text(label)


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def attached_of(given: Given) -> dict[str, list[Any]]:
    """Return payloads and thumbnails, those that were given."""
    found = {}
    for name in ("payloads", "thumbnails"):
        value = given.fields.get(name)
        if value is not None:
            found[name] = _listed(value, name, limits.ROWS)
    if given.plain and "thumbnails" in found:
        found["thumbnails"] = [_decoded(text, i) for i, text in enumerate(found["thumbnails"])]
    return found


def _decoded(text: Any, row: int) -> bytes | None:
    if text is None:
        return None
    try:
        if not isinstance(text, str):
            raise ValueError(_kind(text))
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        message = f"row {row}: the thumbnail is no base64: {error!s:.80}"
        raise InputError(message, hint="send the image's bytes as base64") from None


def k_of(value: Any) -> int:
    """Return how many entries a query asks for."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"k must be a whole number of at least 1, got {value!r:.40}")
    if value > library.RESULTS:
        raise LimitError(f"k = {value}, at most {library.RESULTS} are supported")
    return value


def distance_of(value: Any) -> str:
    """Return which distance a query asks for."""
    if value not in DISTANCES:
        hint = f"choose from {DISTANCES}"
        raise OptionError(f"distance {value!r:.40} is unknown", hint=hint)
    return str(value)


def flag_of(given: Given, name: str) -> bool:
    """Return whether something is wanted."""
    value = given.fields.get(name, False)
    if not isinstance(value, bool):
        raise OptionError(f"{name} is true or false, got {value!r:.40}")
    return value
