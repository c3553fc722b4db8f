"""Messages of a stream in Arrow's format, looked at before anybody reads what they bring.

Arrow checks that buffers lie inside the message that brings them, but unpacks what is compressed: a
megabyte could become a terabyte. What a client and a service have to know of each other's streams
stands in the messages' heads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

SCHEMA, BATCH, DICTIONARY = "schema", "record batch", "dictionary"


class Message(NamedTuple):
    """What the head of a message says."""

    kind: str
    size: int
    """Bytes of the head."""
    compressed: bool


def messages_in(content: bytes) -> Iterator[Message]:
    """Go through messages without reading what they bring.

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
        packed = message.type in (BATCH, DICTIONARY) and _is_compressed(head, message.type)
        yield Message(message.type, len(head), packed)


def _is_compressed(metadata: bytes, kind: str) -> bool:
    """Whether a message says that its buffers are compressed; see Message.fbs of Arrow."""
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _child(metadata, root, 2)
    if kind == DICTIONARY and header is not None:
        header = _child(metadata, header, 1)
    return header is None or _child(metadata, header, 3) is not None


def _child(data: bytes, table: int, field: int) -> int | None:
    """Return where a table's field of a flatbuffer points to; None where it is not set."""
    (back,) = struct.unpack_from("<i", data, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", data, _inside(vtable))
    if 4 + 2 * field >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + 4 + 2 * field)
    if offset == 0:
        return None
    (ahead,) = struct.unpack_from("<I", data, table + offset)
    return int(table + offset + ahead)


def _inside(place: int) -> int:
    if place < 0:  # or it would be counted from the end
        raise struct.error("a table outside of its message")
    return place
