"""Parts: arrays by name, as one safetensors buffer with a checksum."""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import CollectionFileError

Arrays = dict[str, NDArray[Any]]
DAMAGED = "restore it from a snapshot; `everhash verify` names what is damaged"
ABOUT = "about"
"""Name of the array that holds JSON, for what is no array."""


class Key(NamedTuple):
    """What a part is called."""

    kind: str
    start: int

    def __str__(self) -> str:
        return f"{self.kind} {self.start}"


class Part(NamedTuple):
    """What the file says of a part, besides its bytes."""

    rows: int
    """How many rows it stands for."""
    written: int
    """The commit that wrote it."""
    checksum: int


def checksum(key: Key, rows: int, written: int, data: bytes | memoryview) -> int:
    """Return the CRC-32 of a part's bytes and of everything that says what they are."""
    return zlib.crc32(f"{key.kind}|{key.start}|{rows}|{written}".encode(), zlib.crc32(data))


def pack(arrays: Arrays, about: Any = None) -> bytes:
    """Return arrays, and JSON beside them, as bytes."""
    from safetensors.numpy import save

    if about is not None:
        text = json.dumps(about, separators=(",", ":")).encode()
        arrays = {**arrays, ABOUT: np.frombuffer(text, np.uint8)}
    return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def unpack(data: bytes, key: Key) -> Arrays:
    """Return the arrays of a part."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(data))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CollectionFileError(f"{key}: no arrays: {error!s:.100}", hint=DAMAGED) from None


def about_of(arrays: Arrays, key: Key) -> Any:
    """Return the JSON of a part."""
    try:
        return json.loads(arrays[ABOUT].tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        raise CollectionFileError(f"{key}: no JSON: {error!s:.100}", hint=DAMAGED) from None
