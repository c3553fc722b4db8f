"""Payloads and thumbnails: a small JSON value and a small picture that an entry may have.

They are kept in the file as blobs by number, 2 p for the payload and 2 p + 1 for the thumbnail of
the entry at place p, and read only when a call asks for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from json import JSONEncoder
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.collection.part_arrays import require
from everhash.errors import InputError, LimitError
from everhash.store.store import Store

AttachmentColumns = tuple[Iterable[Any] | None, Iterable[Any] | None]
"""Payloads and thumbnails, one for each entry, as users give them."""
Blobs = dict[int, bytes | None]
"""Bytes to write, by number; None deletes what is there."""
COMPACT = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
JSON = "a payload is what JSON can write: texts, numbers, booleans, lists, objects with text keys"
PICTURE = "a thumbnail is the bytes of a PNG, JPEG, GIF or WebP file"
ELSEWHERE = "keep what is larger elsewhere, and its name here"


@dataclass(frozen=True)
class Attachment:
    """Payload and thumbnail of an entry."""

    payload: Any = None
    """A JSON value: dict, list, str, int, float or bool; None if there is none."""
    thumbnail: bytes | None = None
    """A picture as PNG, JPEG, GIF or WebP; None if there is none."""


def image_type(data: bytes) -> str | None:
    """Return the media type of a picture by its first bytes; None if it is not one of four.

    >>> image_type(b"GIF89a..."), image_type(b"<svg>")
    ('image/gif', None)
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


# From users


def as_blobs(columns: AttachmentColumns, n: int) -> Blobs:
    """Return the blobs of n entries at places 0, 1, 2, …; raise if a value cannot be kept.

    A column that is None leaves all entries as they are; an item that is None deletes.
    """
    payloads, thumbnails = columns
    blobs: Blobs = {}
    for row, payload in enumerate(_column(payloads, n, "payloads")):
        blobs[2 * row] = None if payload is None else written(payload, f"payload {row}")
    for row, thumbnail in enumerate(_column(thumbnails, n, "thumbnails")):
        name = f"thumbnail {row}"
        blobs[2 * row + 1] = None if thumbnail is None else pictured(thumbnail, name)
    return blobs


def at_places(blobs: Blobs, places: NDArray[np.int64]) -> Blobs:
    """Return blobs with the numbers that belong to each entry's place."""
    where = places.tolist()
    return {2 * where[number // 2] + number % 2: data for number, data in blobs.items()}


def cleared_at(places: NDArray[np.int64]) -> Blobs:
    """Return the change that clears payloads and thumbnails."""
    return dict.fromkeys(np.concatenate([2 * places, 2 * places + 1]).tolist())


def _column(values: Any, n: int, what: str) -> list[Any]:
    if values is None:
        return []
    single = isinstance(values, str | bytes | bytearray | memoryview | dict | set | frozenset)
    if single or not isinstance(values, Iterable):
        raise InputError(
            f"{what} must be a list, got a {type(values).__name__}",
            hint="give one for each entry, None where there is none",
        )
    column = list(values)
    if len(column) != n:
        raise InputError(
            f"{n} entries but {len(column)} {what}",
            hint="give one for each entry, None where there is none",
        )
    return column


def written(payload: Any, name: str) -> bytes:
    """Return a payload as compact JSON; raise if it would not be read back as it is."""
    try:
        text = COMPACT.encode(payload)
        data = text.encode()
        if len(data) > limits.PAYLOAD:
            message = f"{name} takes {len(data)} bytes, at most {limits.PAYLOAD} are kept"
            raise LimitError(message, hint=ELSEWHERE)
        same = bool(json.loads(text) == payload)
    except RecursionError:
        raise _too_deep(name) from None
    except LimitError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is no JSON: {error!s:.100}", hint=JSON) from None
    if not same:
        raise InputError(f"{name} would not be read as it was written", hint=JSON)
    if not _is_shallow(payload, limits.NESTING):
        raise _too_deep(name)
    return data


def _too_deep(name: str) -> LimitError:
    return LimitError(
        f"{name} is nested deeper than {limits.NESTING} lists and objects",
        hint="flatten it, or write the inner part as a text",
    )


def _is_shallow(value: Any, left: int) -> bool:
    """Whether lists and objects are nested no deeper than `left` levels."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return left > 0 and all(_is_shallow(part, left - 1) for part in inner)


def pictured(thumbnail: Any, name: str) -> bytes:
    """Return a thumbnail's bytes; raise if they are not a picture."""
    if not isinstance(thumbnail, bytes | bytearray | memoryview):
        message = f"{name} is no picture but a {type(thumbnail).__name__}"
        raise InputError(message, hint=PICTURE)
    data = bytes(thumbnail)
    if len(data) > limits.THUMBNAIL:
        message = f"{name} takes {len(data)} bytes, at most {limits.THUMBNAIL} are kept"
        raise LimitError(message, hint="make the picture smaller")
    if image_type(data) is None:
        raise InputError(f"{name} is no picture: it starts {data[:8]!r}", hint=PICTURE)
    return data


# From the file


def read_attachments(store: Store, places: NDArray[np.int64]) -> list[Attachment]:
    """Return payloads and thumbnails of the entries at these places."""
    where = places.tolist()
    found = store.read_attached([2 * place + kind for place in set(where) for kind in (0, 1)])
    return [
        Attachment(*(read_blob(n, found[n]) if n in found else None for n in (2 * p, 2 * p + 1)))
        for p in where
    ]


def read_payloads(store: Store, places: NDArray[np.int64]) -> list[Any]:
    """Return the payload of the entry at each place, None where it has none.

    Each is read once, so entries that are there several times share one value.
    """
    where = (2 * places).tolist()
    found = store.read_attached(list(dict.fromkeys(where)))
    payloads = {number: read_blob(number, data) for number, data in found.items()}
    return [payloads.get(number) for number in where]


def read_blob(number: int, data: bytes) -> Any:
    """Return the payload or thumbnail in a blob of the file; raise if it is neither."""
    name = f"attached {number}"
    if number % 2:
        fits = len(data) <= limits.THUMBNAIL and image_type(data) is not None
        require(fits, name, "not a picture of a kind that is kept")
        return data
    require(len(data) <= limits.PAYLOAD, name, f"a payload of {len(data)} bytes")
    try:
        text = data.decode()
        value = json.loads(text)
        usable = _is_shallow(value, limits.NESTING) and COMPACT.encode(value) == text
    except (ValueError, RecursionError):
        usable = False
    require(usable and value is not None, name, "not a payload as it is written")
    return value


def check_numbers(store: Store) -> None:
    """Raise if there are blobs of entries yet to come: those would get them."""
    ends, places = store.attached_ends(), store.about["places"]
    if store.attached is not None and ends is not None:
        inside = ends[0] >= 0 and ends[1] < 2 * places and store.attached.rows <= 2 * places
        require(inside, "attached", "it belongs to entries that are not there")
