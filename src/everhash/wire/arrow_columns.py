"""Columns of an Arrow table as lists of Python's, counted before they are made.

A table is small where its values are not: rows share a value of a dictionary, a null takes no byte,
a boolean takes a bit. So what a column would become is counted first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from everhash import limits
from everhash.errors import InputError, TooLargeError

MAX_TEXT = 64 << 20
"""Bytes that the texts of a column may have, each counted as often as it stands in a row."""
MAX_NESTED = 1_000_000
"""Lists and objects in the JSON of a request; each takes far more memory than its two bytes."""
MAX_PAYLOAD = 8 * limits.PAYLOAD
"""Bytes of the text of a payload, in which characters may be written as six."""


def check_column(column: Any, max_values: int) -> None:
    """Refuse a column that would take far more memory than the body that brought it."""
    values = texts = 0
    for chunk in column.chunks:
        if _is_list(chunk.type):
            chunk = chunk.values  # noqa: PLW2901 - the same for what rows have several of
        values += len(chunk)
        if values > max_values:
            raise TooLargeError(
                f"more than {max_values} values in a column", hint="split the request"
            )
        texts += _text_bytes(chunk)
        if texts > MAX_TEXT:
            raise TooLargeError(
                f"more than {MAX_TEXT} bytes of text in a column", hint="split the request"
            )


def _text_bytes(chunk: Any) -> int:
    """Return how many bytes the texts of a column have; those that rows share, for each row."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(chunk.type):
        if not is_text(chunk.dictionary.type):
            return 0
        lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
    elif is_text(chunk.type):
        lengths = pc.binary_length(chunk)
    else:
        return 0
    return int(pc.sum(lengths.cast("int64")).as_py() or 0)


def is_text(kind: Any) -> bool:
    """Whether a column of this type has texts."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind))


def column_values(column: Any) -> list[Any]:
    """Return a column as a list; values that rows share are not copied for each row."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        return [value for chunk in column.chunks for value in _shared(chunk)]
    if _is_list(column.type) and types.is_dictionary(column.type.value_type):
        return [
            None if start is None else shared[start:end]
            for chunk in column.chunks
            for shared in [_shared(chunk.values)]
            for start, end in _ranges(chunk)
        ]
    return list(column.to_pylist())


def _shared(chunk: Any) -> list[Any]:
    """Return the values of rows that share some; those of no row are not looked at."""
    used = chunk.indices.unique().drop_null()
    values = dict(zip(used.to_pylist(), chunk.dictionary.take(used).to_pylist(), strict=True))
    return [values.get(index) for index in chunk.indices.to_pylist()]


def _ranges(chunk: Any) -> Iterator[tuple[int | None, int | None]]:
    offsets, there = chunk.offsets.to_pylist(), chunk.is_valid().to_pylist()
    for valid, (start, end) in zip(there, pairwise(offsets), strict=True):
        yield (start, end) if valid else (None, None)


def json_values(texts: list[Any], name: str) -> list[Any]:
    """Return what JSON texts say; one that stands in many rows is read once."""
    if any(type(text) not in (str, type(None)) for text in texts):
        raise InputError(f"column {name!r} is no JSON: no text", hint="one value a row")
    distinct = {text for text in texts if text is not None}
    if sum(text.count("[") + text.count("{") for text in distinct) > MAX_NESTED:
        raise TooLargeError(
            f"JSON of more than {MAX_NESTED} lists and objects", hint="split the request"
        )
    longest = max(map(len, distinct), default=0)
    if name == "payload" and longest > MAX_PAYLOAD:
        raise TooLargeError(
            f"a payload of {longest} characters, at most {limits.PAYLOAD} bytes",
            hint="keep what is larger elsewhere, and its address in the payload",
        )
    values = {text: _json(text, name) for text in distinct}
    return [None if text is None else values[text] for text in texts]


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"{error!s:.80}"
        raise InputError(f"column {name!r} is no JSON: {reason}", hint="one value a row") from None
