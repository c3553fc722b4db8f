"""Rows as an Arrow stream: columns vector, id, label, payload and thumbnail.

Arrow checks that buffers lie inside the message that brings them, but it unpacks what is
compressed: a megabyte could become a terabyte. So the heads of all messages are read first: how
long the schema is, how many messages there are, and that nothing is compressed.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import EverhashError, FeatureTypeError, InputError, TooLargeError

SCHEMA, BATCH, DICTIONARY = "schema", "record batch", "dictionary"
FIELDS = {
    "vector": "rows",
    "id": "ids",
    "label": "labels",
    "payload": "payloads",
    "thumbnail": "thumbnails",
}
"""Columns of a table, and the fields of a request they are."""
SCHEMA_BYTES = 1 << 16
MAX_MESSAGES = 1_000
"""record batches and dictionaries of a stream"""
HINT = "pyarrow.ipc.new_stream writes one"
AS_JSON = {b"everhash": b"json"}
"""Metadata of a column `id` or `label` whose texts are JSON: ids or labels of several types."""


# The heads of messages


class Message(NamedTuple):
    """What the head of a message says."""

    kind: str
    head_bytes: int
    compressed: bool


def messages_in(content: bytes) -> Iterator[Message]:
    """Yield the messages of a stream without reading their buffers.

    What is no stream raises an error of pyarrow's, `OSError` or `struct.error`.
    """
    import pyarrow as pa

    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(content))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        head = message.metadata.to_pybytes()
        has_buffers = message.type in (BATCH, DICTIONARY)
        yield Message(message.type, len(head), has_buffers and _is_compressed(head, message.type))


def _is_compressed(metadata: bytes, kind: str) -> bool:
    """Whether a message says that its buffers are compressed; see Message.fbs of Arrow."""
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _child(metadata, root, 2)
    if kind == DICTIONARY and header is not None:
        header = _child(metadata, header, 1)
    return header is None or _child(metadata, header, 3) is not None


def _child(data: bytes, table: int, field: int) -> int | None:
    """Return where a field of a flatbuffer's table points to; None where it is not set."""
    (back,) = struct.unpack_from("<i", data, table)
    vtable = table - back
    if vtable < 0:  # a negative offset would count from the end
        raise struct.error("a table outside of its message")
    (size,) = struct.unpack_from("<H", data, vtable)
    if 4 + 2 * field >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + 4 + 2 * field)
    if offset == 0:
        return None
    (ahead,) = struct.unpack_from("<I", data, table + offset)
    return int(table + offset + ahead)


# Writing


def write_rows(fields: Mapping[str, Any]) -> bytes:
    """Return the fields of a request as a stream.

    Args:
        fields: `rows` as a float32 array; `ids` and `labels` as JSON values; `payloads` as JSON
            texts; `thumbnails` as bytes. Fields that are None or missing are left out.
    """
    import pyarrow as pa

    rows = fields["rows"]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    columns = {pa.field("vector", vectors.type): vectors}
    for name in ("id", "label", "payload", "thumbnail"):
        values = fields.get(FIELDS[name])
        if values is not None:
            field, column = _written(name, values)
            columns[field] = column
    table = pa.record_batch(list(columns.values()), schema=pa.schema(list(columns)))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    return sink.getvalue()


def _written(name: str, values: list[Any]) -> tuple[Any, Any]:
    """Return the field and the column of a table."""
    import pyarrow as pa

    if name == "thumbnail":
        return pa.field(name, pa.binary()), pa.array(values, pa.binary())
    if name == "payload":
        return pa.field(name, pa.string()), pa.array(values, pa.string())
    if name == "id" and all(isinstance(value, int) for value in values):
        return pa.field(name, pa.int64()), pa.array(values, pa.int64())
    texts = [None if value is None else json.dumps(value) for value in values]
    return pa.field(name, pa.string(), metadata=AS_JSON), pa.array(texts, pa.string())


# Reading


def read_rows(content: bytes, max_rows: int) -> dict[str, Any]:
    """Return the fields of a request: `rows` as an (n, d) array, the others as lists."""
    import pyarrow as pa

    try:
        _check_messages(content)
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            _check_schema(stream.schema)
            table = _read_batches(stream, max_rows)
        table.validate(full=True)
        return {FIELDS[name]: _column(table, name) for name in table.column_names}
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
    for number, message in enumerate(messages_in(content)):
        if number == 0 and message.head_bytes > SCHEMA_BYTES:
            raise InputError(f"a schema of more than {SCHEMA_BYTES} bytes", hint="fewer columns")
        if message.compressed:
            raise InputError("compressed buffers are not read", hint="write without compression")
        if number == MAX_MESSAGES:
            raise TooLargeError(f"more than {MAX_MESSAGES} record batches", hint="combine them")


def _check_schema(schema: Any) -> None:
    names = schema.names
    for name in names:
        if name not in FIELDS or names.count(name) > 1:
            raise InputError(f"column {name!r:.80} is not read", hint=f"columns: {tuple(FIELDS)}")
    if "vector" not in names:
        raise InputError("the table has no column 'vector'", hint=f"columns: {tuple(FIELDS)}")
    for field in schema:
        if not _fits(field.name, field.type):
            kind = FeatureTypeError if field.name == "vector" else InputError
            message = f"column {field.name!r} of type {field.type!s:.80} cannot be read"
            raise kind(message, hint="see Arrow bodies in docs/service.md")


def _fits(name: str, kind: Any) -> bool:
    """Whether a column may have this type."""
    from pyarrow import types

    if types.is_null(kind):
        return name != "vector"
    is_list = types.is_list(kind) or types.is_large_list(kind)
    if name == "vector":
        of_numbers = (is_list or types.is_fixed_size_list(kind)) and (
            types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
        )
        return bool(of_numbers)
    if name == "thumbnail":
        return bool(types.is_binary(kind) or types.is_large_binary(kind))
    if name == "payload":
        return _is_text(kind)
    if name == "label" and is_list:
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(numbers or _is_text(kind) or types.is_null(kind))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _read_batches(stream: Any, max_rows: int) -> Any:
    import pyarrow as pa

    batches, n = [], 0
    for batch in stream:
        n += batch.num_rows
        if n > max_rows:
            raise TooLargeError(f"{n} rows, at most {max_rows} a request", hint="split the request")
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


def _column(table: Any, name: str) -> Any:
    column, field = table.column(name), table.schema.field(name)
    if name == "vector":
        return _vectors(column)
    values = column_values(column)
    as_json = (field.metadata or {}).get(b"everhash") == b"json"
    if name == "payload" or (name in ("id", "label") and as_json):
        return [None if text is None else _json(text, name) for text in values]
    return values


def column_values(column: Any) -> list[Any]:
    """Return a column as a list; values that rows share are not copied for each row."""
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


def _vectors(column: Any) -> NDArray[Any]:
    """Return vectors as an array; none may be missing, and all have one length."""
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
