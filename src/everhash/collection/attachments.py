"""Payloads and thumbnails: a small JSON value and a small picture that an entry may have.

They are columns of entries that are not in memory: the file keeps each value as a blob of its own,
and it is read only when a call asks for it. `ATTACHED` lists the columns; value c of the entry at
place p has number len(ATTACHED) p + c, which only this module and `renumber_blobs` count by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from json import JSONEncoder
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.collection.part_arrays import require
from everhash.errors import InputError, LimitError
from everhash.store.store import Store
from everhash.tabular import is_missing
from everhash.wire.payloads import NotJsonError, as_json_value

AttachmentColumns = tuple[Iterable[Any] | None, Iterable[Any] | None]
"""Payloads and thumbnails, one for each entry, as users give them."""
Blobs = dict[int, bytes | None]
"""Bytes to write, by number; None deletes what is there."""
COMPACT = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
JSON = (
    "a payload is what JSON can write: texts, numbers, booleans, lists, objects with text keys; "
    "dates, decimals and UUIDs become texts"
)
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
    blobs: Blobs = {}
    for kind, (attached, values) in enumerate(zip(ATTACHED, columns, strict=True)):
        for row, value in enumerate(_column(values, n, f"{attached.name}s")):
            blobs[KINDS * row + kind] = attached.pack(value, f"{attached.name} {row}")
    return blobs


def at_places(blobs: Blobs, places: NDArray[np.int64]) -> Blobs:
    """Return blobs with the numbers that belong to each entry's place."""
    where = places.tolist()
    return {KINDS * where[n // KINDS] + n % KINDS: data for n, data in blobs.items()}


def cleared_at(places: NDArray[np.int64]) -> Blobs:
    """Return the change that clears all that entries have attached."""
    return dict.fromkeys(_numbers(places.tolist()))


def blobs_at(store: Store, places: NDArray[np.int64]) -> Blobs:
    """Return what entries have attached, as `as_blobs` would return it."""
    where = places.tolist()  # SQLite finds nothing by a number of NumPy
    found, row_of = store.read_attached(_numbers(where)), {p: i for i, p in enumerate(where)}
    return {KINDS * row_of[n // KINDS] + n % KINDS: data for n, data in found.items()}


def place_of(number: int) -> int:
    """Return the place of the entry that a blob belongs to."""
    return number // KINDS


def _numbers(places: Iterable[int]) -> list[int]:
    return [KINDS * place + kind for place in places for kind in range(KINDS)]


def _column(values: Any, n: int, what: str) -> list[Any]:
    if values is None:
        return []
    single = isinstance(values, str | bytes | bytearray | memoryview | dict | set | frozenset)
    if single or not isinstance(values, Iterable):
        raise InputError(
            f"{what} must be a list, got a {type(values).__name__}",
            hint="give one for each entry, None where there is none",
        )
    if hasattr(values, "columns") and hasattr(values, "to_dict"):  # list() gives names of columns
        raise InputError(
            f"{what} must be a list, got a table", hint='df.to_dict("records") makes a list of rows'
        )
    column = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if len(column) != n:
        raise InputError(
            f"{n} entries but {len(column)} {what}",
            hint="give one for each entry, None where there is none",
        )
    return column


def written(payload: Any, name: str) -> bytes | None:
    """Return a payload as compact JSON, None for a gap; `wire.payloads` says what may be in it."""
    try:
        plain = as_json_value(payload)
        if plain is None:
            return None
        text = COMPACT.encode(plain)
        data = text.encode()
        if len(data) > limits.PAYLOAD:
            message = f"{name} takes {len(data)} bytes, at most {limits.PAYLOAD} are kept"
            raise LimitError(message, hint=ELSEWHERE)
    except NotJsonError as error:
        raise InputError(f"{name} is no JSON: it has {error!s:.100}", hint=JSON) from None
    except RecursionError:
        raise _too_deep(name) from None
    except LimitError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is no JSON: {error!s:.100}", hint=JSON) from None
    if not _is_shallow(plain, limits.NESTING):
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


def pictured(thumbnail: Any, name: str) -> bytes | None:
    """Return a thumbnail's bytes, None for a gap; raise if they are not a picture."""
    if is_missing(thumbnail):
        return None
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
    found = store.read_attached(_numbers(set(where)))
    values = {number: read_blob(number, data) for number, data in found.items()}
    return [Attachment(*map(values.get, _numbers([place]))) for place in where]


def read_payloads(store: Store, places: NDArray[np.int64]) -> list[Any]:
    """Return the payload of the entry at each place, None where it has none.

    Each is read once, so entries that are there several times share one value.
    """
    where = (KINDS * places).tolist()
    found = store.read_attached(list(dict.fromkeys(where)))
    payloads = {number: read_blob(number, data) for number, data in found.items()}
    return [payloads.get(number) for number in where]


def places_with_text(store: Store, places: list[int], text: str) -> Iterator[int]:
    """Yield those places whose payloads have a text among their texts, in upper or lower case."""
    folded, written = text.casefold(), COMPACT.encode(text)[1:-1].casefold()
    for number, data in store.read_attached([KINDS * place for place in places]).items():
        # what does not have it as JSON writes it need not be parsed
        if written in data.decode(errors="replace").casefold() and any(
            folded in value.casefold() for value in _texts(read_blob(number, data))
        ):
            yield place_of(number)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a JSON value; names of fields are none of them.

    >>> list(_texts({"title": "red boots", "sizes": [38, "39"]}))
    ['red boots', '39']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def read_blob(number: int, data: bytes) -> Any:
    """Return the value in a blob of the file; raise if it is none of its column."""
    return ATTACHED[number % KINDS].unpack(data, f"attached {number}")


def _picture(data: bytes, name: str) -> bytes:
    fits = len(data) <= limits.THUMBNAIL and image_type(data) is not None
    require(fits, name, "not a picture of a kind that is kept")
    return data


def _payload(data: bytes, name: str) -> Any:
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
    ends, most = store.attached_ends(), KINDS * store.about["places"]
    if store.attached is not None and ends is not None:
        inside = ends[0] >= 0 and ends[1] < most and store.attached.rows <= most
        require(inside, "attached", "it belongs to entries that are not there")


class Attached(NamedTuple):
    """A column of values that entries may have in the file."""

    name: str
    pack: Callable[[Any, str], bytes | None]
    """A value as bytes, None for a gap, or an error that names it."""
    unpack: Callable[[bytes, str], Any]
    """The value in a file's bytes, or an error."""


ATTACHED = (Attached("payload", written, _payload), Attached("thumbnail", pictured, _picture))
"""In the order of the fields of `Attachment`."""
KINDS = len(ATTACHED)
