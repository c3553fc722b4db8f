"""Tables in Arrow's stream format, from a stranger.

Arrow checks that buffers lie inside the message that brings them. What it would believe is checked
here first: how long a schema is, how many messages there are, and that nothing is compressed, since
a megabyte could become a terabyte.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.client.messages import messages_in
from everhash.errors import EverhashError, FeatureTypeError, InputError
from everhash.serve.errors import too_large

COLUMNS = ("vector", "id", "label", "payload", "thumbnail")
SCHEMA = 1 << 16
"""bytes of a schema"""
MESSAGES = 1_000
"""record batches and dictionaries of a stream"""
HINT = "pyarrow.ipc.new_stream writes one"
AS_JSON = (b"everhash", b"json")
"""Metadata of a column `id` or `label` whose texts are JSON: how ids or labels of several types are
sent."""


def read_table(content: bytes, most: int) -> dict[str, Any]:
    """Return the columns of a table: `vector` as (n, d) array, the others as lists."""
    import pyarrow as pa

    try:
        _check_messages(content)
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            _check_schema(stream.schema)
            table = _read_rows(stream, most)
        table.validate(full=True)
        return {name: _column(table, name) for name in table.column_names}
    except EverhashError:
        raise
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        OverflowError,
        struct.error,
        OSError,
    ) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"the body is no Arrow stream: {reason:.200}", hint=HINT) from None


def _check_messages(content: bytes) -> None:
    """Go through the messages without reading what they bring."""
    for number, message in enumerate(messages_in(content)):
        if number == 0 and message.size > SCHEMA:
            raise InputError(f"a schema of more than {SCHEMA} bytes", hint="send columns only")
        if message.compressed:
            raise InputError("compressed buffers are not read", hint="write without compression")
        if number == MESSAGES:
            raise too_large(f"more than {MESSAGES} record batches", "combine them")


def _check_schema(schema: Any) -> None:
    names = schema.names
    for name in names:
        if name not in COLUMNS or names.count(name) > 1:
            raise InputError(f"column {name!r:.80} is not read", hint=f"columns: {COLUMNS}")
    if "vector" not in names:
        raise InputError("the table has no column 'vector'", hint=f"columns: {COLUMNS}")
    for field in schema:
        if not _TYPES[field.name](field.type):
            kind = FeatureTypeError if field.name == "vector" else InputError
            message = f"column {field.name!r} of type {field.type!s:.80} cannot be read"
            raise kind(message, hint="see Arrow bodies in docs/service.md")


def _is_vector(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    return bool(lists and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_plain(kind: Any) -> bool:
    """Whether a column holds texts or numbers, each for itself or as one of a few."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(numbers or _is_text(kind) or types.is_null(kind))


def _is_label(kind: Any) -> bool:
    from pyarrow import types

    several = types.is_list(kind) or types.is_large_list(kind)
    return _is_plain(kind.value_type) if several else _is_plain(kind)


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_null(kind))


def _is_payload(kind: Any) -> bool:
    from pyarrow import types

    return _is_text(kind) or bool(types.is_null(kind))


_TYPES = {
    "vector": _is_vector,
    "id": _is_plain,
    "label": _is_label,
    "payload": _is_payload,
    "thumbnail": _is_bytes,
}


def _read_rows(stream: Any, most: int) -> Any:
    import pyarrow as pa

    batches, n = [], 0
    for batch in stream:
        n += batch.num_rows
        if n > most:
            raise too_large(f"{n} rows, at most {most} a request", "split the request")
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


def _column(table: Any, name: str) -> Any:
    column, field = table.column(name), table.schema.field(name)
    if name == "vector":
        return _rows(column)
    values = _values(column)
    as_json = (field.metadata or {}).get(AS_JSON[0]) == AS_JSON[1]
    if name == "payload" or (name in ("id", "label") and as_json):
        return [None if text is None else _json(text, name) for text in values]
    return values


def _values(column: Any) -> list[Any]:
    """Return a column as a list; values that rows share are taken once and not copied for each."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        return [value for chunk in column.chunks for value in _shared(chunk)]
    if hasattr(column.type, "value_type") and types.is_dictionary(column.type.value_type):
        return [
            None if start is None else shared[start:end]
            for chunk in column.chunks
            for shared in [_shared(chunk.values)]
            for start, end in _ranges(chunk)
        ]
    return list(column.to_pylist())


def _shared(chunk: Any) -> list[Any]:
    values = chunk.dictionary.to_pylist()
    return [None if i is None else values[i] for i in chunk.indices.to_pylist()]


def _ranges(chunk: Any) -> Iterator[tuple[int | None, int | None]]:
    offsets, there = chunk.offsets.to_pylist(), chunk.is_valid().to_pylist()
    for valid, (start, end) in zip(there, pairwise(offsets), strict=True):
        yield (start, end) if valid else (None, None)


def _json(text: Any, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"{error!s:.80}"
        raise InputError(f"column {name!r} is no JSON: {reason}", hint="one value a row") from None


def _rows(column: Any) -> NDArray[Any]:
    """Return vectors as an array; all have to be there, and of one length."""
    if column.null_count:
        raise InputError("a vector is missing", hint="send rows that have one")
    parts = []
    for chunk in column.chunks:
        values = chunk.flatten()
        if values.null_count:
            raise InputError("a vector lacks a number", hint="send whole vectors")
        lengths = set(chunk.value_lengths().to_pylist()) if len(chunk) else set()
        if len(lengths) > 1:
            raise InputError("vectors of several lengths", hint="rows of one length")
        width = lengths.pop() if lengths else 0
        parts.append(np.asarray(values).reshape(len(chunk), width))
    filled = [part for part in parts if len(part)]
    if len({part.shape[1] for part in filled}) > 1:
        raise InputError("vectors of several lengths", hint="rows of one length")
    return np.concatenate(filled) if filled else np.empty((0, 0), np.float32)
