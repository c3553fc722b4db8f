"""What rows carry: values of columns as JSON has them.

    null, NaN, NaT                None: that is how tables write a gap
    texts, integers, booleans     as they are
    floats                        the shortest decimal that means them; infinity is refused
    decimals                      a text with all their digits, which a float might round
    dates, times                  ISO 8601; one with a time zone in UTC, with a Z
    lists, structs, maps          lists and objects; the keys of a map are texts
    UUIDs                         their text
    anything else                 refused: bytes, durations, …

NaN is a gap because many writers of tables have no other; infinity means something, and a null in
its place would hide it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError
from everhash.sources.columns import ColumnChoice, arrow, place

WEIGHT = 32 << 20
"""bytes a batch carries, about: who names a column of films is to get an error, and no crash"""

AS_THEY_ARE = ("boolean", "integer", "string", "large_string", "string_view", "null")
"""What Arrow calls the types whose values JSON has too."""


class _ForeignError(Exception):
    """A value that JSON does not have; says which."""


def as_payloads(
    columns: Mapping[str, Any], wanted: ColumnChoice, where: str, start: int
) -> list[Any] | None:
    """Return a payload a row: the value of the one column, or an object of several.

    A gap among several columns is left out; where all are gaps, there is no payload.
    `where` and `start` are for the messages.
    """
    if wanted.payload is None:
        return None
    values = {name: _values(name, columns[name], where, start) for name in wanted.payload_columns}
    if isinstance(wanted.payload, str):
        return values[wanted.payload]
    rows = zip(*values.values(), strict=True)
    pairs = ([(n, v) for n, v in zip(values, row, strict=True) if v is not None] for row in rows)
    return [dict(row) or None for row in pairs]


def as_column(array: NDArray[Any], where: str) -> Any:
    """Return an array as a column of Arrow's; its rows are lists if it has more axes."""
    if array.dtype.kind not in "biufUM" or 0 in array.shape[1:]:
        got = f"{array.dtype} of shape {array.shape}"
        message = f"{place(where)}expected texts, numbers, booleans or dates, got {got}"
        raise InputError(message, hint="name another, or save it as one of these")
    pa = arrow()
    column = pa.array(array.ravel().astype(array.dtype.newbyteorder("=")))
    for size in reversed(array.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _values(name: str, column: Any, where: str, start: int) -> list[Any]:
    types = arrow().types
    if any(getattr(types, f"is_{kind}")(column.type) for kind in AS_THEY_ARE):
        return list(column.to_pylist())
    found: list[Any] = []
    try:
        found.extend(map(_value, column))  # not a list of its own, or the row would not be known
    except _ForeignError as foreign:
        at = place(where, name, start + len(found))
        hint = "leave the column out, or cast it to texts or numbers; pictures are thumbnails"
        raise InputError(f"{at}expected what JSON has, got {foreign}", hint=hint) from None
    return found


def _value(scalar: Any) -> Any:
    """Return a value of Arrow's as JSON has it."""
    if not scalar.is_valid:
        return None
    way = WAYS.get(type(scalar).__name__.removesuffix("Scalar"))
    if way is not None:
        return way(scalar)
    if hasattr(scalar.type, "storage_type"):
        return _value(scalar.value)
    raise _ForeignError(f"{scalar.type!s:.80}")


def _same(scalar: Any) -> Any:
    return scalar.as_py()


def _text(scalar: Any) -> str:
    return str(scalar.as_py())


def _decimal(scalar: Any) -> str:
    try:
        return format(scalar.as_py(), "f")
    except ArithmeticError:  # more digits than its type has: damaged
        raise _ForeignError(f"no {scalar.type}") from None


def _float(scalar: Any) -> float | None:
    return _finite(float(scalar.as_py()))


def _short_float(scalar: Any) -> float | None:
    kind = np.float16 if scalar.type.bit_width == 16 else np.float32
    return _finite(float(str(kind(scalar.as_py()))))


def _finite(number: float) -> float | None:
    if math.isinf(number):
        raise _ForeignError("infinity")
    return None if math.isnan(number) else number


def _date(scalar: Any) -> str | None:
    text = _iso(scalar.value, "D" if scalar.type.bit_width == 32 else "ms")
    return text and text.partition("T")[0]


def _time(scalar: Any) -> str | None:
    text = _iso(scalar.value, scalar.type.unit)
    return text and text.partition("T")[2]


def _moment(scalar: Any) -> str | None:
    text = _iso(scalar.value, scalar.type.unit)
    return text if text is None or scalar.type.tz is None else f"{text}Z"


def _iso(value: int, unit: str) -> str | None:
    text = str(np.int64(value).view(f"M8[{unit}]"))
    if text == "NaT":
        return None
    return text.rstrip("0").rstrip(".") if "." in text else text


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
            raise _ForeignError(f"a key {key!r:.80}, which is no text")
    made = dict(zip(keys, values, strict=True))
    if len(made) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _ForeignError(f"key {twice!r:.80} twice")
    return made


WAYS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("String", "LargeString", "StringView", "Boolean"), _same),
    **{f"{sign}Int{bits}": _same for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("HalfFloat", "Float"), _short_float),
    **{f"Decimal{bits}": _decimal for bits in (32, 64, 128, 256)},
    **dict.fromkeys(("Date32", "Date64"), _date),
    **dict.fromkeys(("Time32", "Time64"), _time),
    **{f"{size}List{view}": _list for size in ("", "Large") for view in ("", "View")},
    "FixedSizeList": _list,
    "Double": _float,
    "Timestamp": _moment,
    "Struct": _struct,
    "Map": _map,
    "Uuid": _text,
    "Dictionary": lambda scalar: _value(scalar.value),
}
"""What Arrow calls a type, and how its values are written in JSON."""
