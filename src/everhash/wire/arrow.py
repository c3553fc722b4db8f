"""Rows as an Arrow stream: columns vector, id, label, payload and thumbnail.

Arrow checks that buffers lie inside the message that brings them, but it unpacks what is
compressed: a megabyte could become a terabyte. So the heads of all messages are read first: how
long the schema is, how many messages there are, and that nothing is compressed. Nor may a
dictionary be sent in parts: each batch would keep a copy of all that came before.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import EverhashError, FeatureTypeError, InputError, TooLargeError
from everhash.wire.arrow_columns import check_column, column_values, is_text, json_values

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
    delta: bool
    """Whether it adds to a dictionary that has come before."""


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
        kind = message.type
        has_buffers = kind in (BATCH, DICTIONARY)
        compressed = has_buffers and _is_compressed(head, kind)
        yield Message(kind, len(head), compressed, kind == DICTIONARY and _is_delta(head))


def _is_compressed(metadata: bytes, kind: str) -> bool:
    """Whether a message says that its buffers are compressed; see Message.fbs of Arrow."""
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _child(metadata, root, 2)
    if kind == DICTIONARY and header is not None:
        header = _child(metadata, header, 1)
    return header is None or _child(metadata, header, 3) is not None


def _is_delta(metadata: bytes) -> bool:
    """Whether a dictionary adds to one that has come before."""
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _child(metadata, root, 2)
    place = None if header is None else _place(metadata, header, 2)
    return place is not None and struct.unpack_from("<B", metadata, place) != (0,)


def _child(data: bytes, table: int, field: int) -> int | None:
    """Return where a field of a flatbuffer's table points to; None where it is not set."""
    place = _place(data, table, field)
    if place is None:
        return None
    (ahead,) = struct.unpack_from("<I", data, place)
    return int(place + ahead)


def _place(data: bytes, table: int, field: int) -> int | None:
    """Return where a field of a flatbuffer's table stands; None where it is not set."""
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
    return int(table + offset)


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


def read_rows(content: bytes, max_rows: int, max_labels: int) -> dict[str, Any]:
    """Return the fields of a request: `rows` as an (n, d) array, the others as lists.

    It has at most `max_rows` rows, and all of them together `max_labels` labels.
    """
    import pyarrow as pa

    try:
        _check_messages(content)
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            _check_schema(stream.schema)
            table = _read_batches(stream, max_rows)
        table.validate(full=True)
        return {FIELDS[name]: _column(table, name, max_labels) for name in table.column_names}
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
        if message.delta:
            raise InputError("a dictionary in parts is not read", hint="send it whole")
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
        return is_text(kind)
    if name == "label" and is_list:
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(numbers or is_text(kind) or types.is_null(kind))


def _read_batches(stream: Any, max_rows: int) -> Any:
    import pyarrow as pa

    batches, n = [], 0
    for batch in stream:
        n += batch.num_rows
        if n > max_rows:
            raise TooLargeError(f"{n} rows, at most {max_rows} a request", hint="split the request")
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


def _column(table: Any, name: str, max_labels: int) -> Any:
    column, field = table.column(name), table.schema.field(name)
    if name == "vector":
        return _vectors(column)
    check_column(column, max_labels if name == "label" else len(column))
    values = column_values(column)
    as_json = (field.metadata or {}).get(b"everhash") == b"json"
    if name == "payload" or (name in ("id", "label") and as_json):
        return json_values(values, name)
    return values


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
