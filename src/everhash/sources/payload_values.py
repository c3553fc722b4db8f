"""Payloads from columns: how each Arrow type is converted to JSON.

    null, NaN, NaT                None
    texts, integers, booleans     unchanged
    floats                        the shortest decimal that rounds to the float; infinity is refused
    decimals                      a text with all digits, since a float might round them
    dates, times                  ISO 8601; timestamps with a time zone in UTC, with a Z
    lists, structs, maps          lists and objects; the keys of a map must be texts
    UUIDs                         their text
    anything else                 refused: bytes, durations, …

NaN becomes None because many programs write it for a gap. Infinity is refused because it is a
value, which None would hide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError
from everhash.sources.columns import ColumnChoice, arrow, location
from everhash.wire.payloads import NotJsonError, shortened

MAX_BATCH_BYTES = 32 << 20
"""Bytes of payloads and thumbnails in a batch, about: a column of videos must not fill memory."""

UNCHANGED = ("boolean", "integer", "string", "large_string", "string_view", "null")
"""Arrow types whose Python values are JSON values."""


def as_payloads(
    columns: Mapping[str, Any], choice: ColumnChoice, where: str, start: int
) -> list[Any] | None:
    """Return a payload a row: the value of one column, or an object of several.

    A column is an Arrow array, or a list of values that are JSON already.

    The object leaves out gaps; a row with nothing but gaps has no payload. `where` and `start`,
    the number of the first row, are for error messages.
    """
    if choice.payload is None:
        return None
    values = {name: _values(name, columns[name], where, start) for name in choice.payload_columns}
    if isinstance(choice.payload, str):
        return values[choice.payload]
    rows = zip(*values.values(), strict=True)
    pairs = ([(n, v) for n, v in zip(values, row, strict=True) if v is not None] for row in rows)
    return [dict(row) or None for row in pairs]


def as_column(array: NDArray[Any], where: str) -> Any:
    """Return an array as an Arrow array; rows of an array with more than one axis become lists."""
    if array.dtype.kind not in "biufUM" or 0 in array.shape[1:]:
        got = f"{array.dtype} of shape {array.shape}"
        message = f"{location(where)}expected texts, numbers, booleans or dates, got {got}"
        raise InputError(message, hint="name another, or save it as one of these")
    pa = arrow()
    column = pa.array(array.ravel().astype(array.dtype.newbyteorder("=")))
    for size in reversed(array.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _values(name: str, column: Any, where: str, start: int) -> list[Any]:
    if isinstance(column, list):
        return column
    types = arrow().types
    if any(getattr(types, f"is_{kind}")(column.type) for kind in UNCHANGED):
        return list(column.to_pylist())
    found: list[Any] = []
    try:
        found.extend(map(_value, column))  # extended one by one, so that its length is the row
    except NotJsonError as error:
        at = location(where, name, start + len(found))
        hint = "leave the column out, or cast it to texts or numbers; images go into thumbnails"
        raise InputError(f"{at}expected a JSON value, got {error}", hint=hint) from None
    return found


def _value(scalar: Any) -> Any:
    """Return an Arrow scalar as a JSON value."""
    if not scalar.is_valid:
        return None
    convert = CONVERTERS.get(type(scalar).__name__.removesuffix("Scalar"))
    if convert is not None:
        return convert(scalar)
    if hasattr(scalar.type, "storage_type"):
        return _value(scalar.value)
    raise NotJsonError(f"{scalar.type!s:.80}")


def _same(scalar: Any) -> Any:
    return scalar.as_py()


def _text(scalar: Any) -> str:
    return str(scalar.as_py())


def _decimal(scalar: Any) -> str:
    try:
        return format(scalar.as_py(), "f")
    except ArithmeticError:  # more digits than its type allows: a damaged file
        raise NotJsonError(f"no {scalar.type}") from None


def _float(scalar: Any) -> float | None:
    return _finite(float(scalar.as_py()))


def _short_float(scalar: Any) -> float | None:
    kind = np.float16 if scalar.type.bit_width == 16 else np.float32
    return _finite(float(str(kind(scalar.as_py()))))


def _finite(number: float) -> float | None:
    if math.isinf(number):
        raise NotJsonError("infinity")
    return None if math.isnan(number) else number


def _date(scalar: Any) -> str | None:
    text = _iso(scalar.value, "D" if scalar.type.bit_width == 32 else "ms")
    return text and text.partition("T")[0]


def _time(scalar: Any) -> str | None:
    text = _iso(scalar.value, scalar.type.unit)
    return text and text.partition("T")[2]


def _timestamp(scalar: Any) -> str | None:
    text = _iso(scalar.value, scalar.type.unit)
    return text if text is None or scalar.type.tz is None else f"{text}Z"


def _iso(value: int, unit: str) -> str | None:
    text = str(np.int64(value).view(f"M8[{unit}]"))
    return None if text == "NaT" else shortened(text)


def _list(scalar: Any) -> list[Any]:
    return [_value(value) for value in scalar.values]


def _struct(scalar: Any) -> dict[str, Any]:
    names = [field.name for field in scalar.type]
    return _object(names, [_value(scalar[i]) for i in range(len(names))])


def _map(scalar: Any) -> dict[str, Any]:
    pairs = [(_value(pair[0]), _value(pair[1])) for pair in scalar.values]
    return _object([key for key, _ in pairs], [value for _, value in pairs])


def _object(keys: list[Any], values: list[Any]) -> dict[str, Any]:
    for key in keys:
        if not isinstance(key, str):
            raise NotJsonError(f"a key {key!r:.80} that is not a text")
    made = dict(zip(keys, values, strict=True))
    if len(made) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotJsonError(f"key {twice!r:.80} twice")
    return made


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("String", "LargeString", "StringView", "Boolean"), _same),
    **{f"{sign}Int{bits}": _same for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("HalfFloat", "Float"), _short_float),
    **{f"Decimal{bits}": _decimal for bits in (32, 64, 128, 256)},
    **dict.fromkeys(("Date32", "Date64"), _date),
    **dict.fromkeys(("Time32", "Time64"), _time),
    **{f"{size}List{view}": _list for size in ("", "Large") for view in ("", "View")},
    "FixedSizeList": _list,
    "Double": _float,
    "Timestamp": _timestamp,
    "Struct": _struct,
    "Map": _map,
    "Uuid": _text,
    "Dictionary": lambda scalar: _value(scalar.value),
}
"""The function that converts each Arrow scalar type, by the type's name."""
