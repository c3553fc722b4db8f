"""Payloads as people have them, as the JSON values that are kept.

    texts, booleans, whole numbers   unchanged
    floats                           unchanged; of 16 or 32 bits as the shortest decimal
    NaN, NaT, pandas.NA              null: what None becomes in arrays and frames
    dates, times                     ISO 8601; moments with a time zone in UTC, with a Z
    Decimal                          a text with all digits, since a float might round them
    UUID                             its text
    lists, tuples, arrays            lists
    dict                             an object; its keys must be texts
    anything else                    refused: infinity, sets, bytes, durations, …

`everhash.sources.payload_values` does the same with columns of a table.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from everhash.tabular import is_missing

MAX_PLAIN_EXPONENT = 100
"""Decimals with more digits than this before the point are written with an exponent."""


class NotJsonError(Exception):
    """A value that has no JSON form; the message names it."""


def as_json_value(value: Any) -> Any:
    """Return a value as JSON has it; raise `NotJsonError` if it has no such form.

    >>> as_json_value({"price": Decimal("12.50"), "on": date(2024, 5, 1), "n": np.int64(3)})
    {'price': '12.50', 'on': '2024-05-01', 'n': 3}
    """
    if isinstance(value, dict):
        return {_key(key): as_json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(part) for part in value]
    if isinstance(value, np.ndarray):
        return as_json_value(value[()]) if value.ndim == 0 else list(map(as_json_value, value))
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return a single value as JSON has it."""
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        value = _from_numpy(value)
    if isinstance(value, float) and math.isinf(value):
        raise NotJsonError("infinity")
    return value if isinstance(value, str | int | float) else _text(value)


def _from_numpy(value: np.generic) -> Any:
    """Return a NumPy scalar as a Python value; durations as they are, to be refused."""
    if isinstance(value, np.float16 | np.float32):
        return float(str(value))
    if isinstance(value, np.datetime64):
        return shortened(str(value))
    if isinstance(value, np.longdouble):
        return float(value)
    return value if isinstance(value, np.timedelta64) else value.item()


def _text(value: Any) -> str | None:
    """Return a value that JSON has no form of its own for as a text."""
    if isinstance(value, datetime):  # pandas.Timestamp too, with its nanoseconds
        aware = value.tzinfo is not None
        text = (value.astimezone(UTC) if aware else value).isoformat()
        return shortened(text.removesuffix("+00:00")) + "Z" * aware
    if isinstance(value, date | time):
        return shortened(value.isoformat())
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        if value.is_finite():
            return str(value) if abs(value.adjusted()) > MAX_PLAIN_EXPONENT else f"{value:f}"
        raise NotJsonError("infinity")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, set | frozenset):
        raise NotJsonError("a set, which has no order: pass a sorted list")
    raise NotJsonError(f"a {type(value).__name__}")


def shortened(text: str) -> str:
    """Return a moment without the zeros at the end of its fraction of a second."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise NotJsonError(f"a key {key!r:.80} that is not a text")
    return str(key)
