"""Parts: arrays by name, as one safetensors buffer with a checksum."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import CollectionFileError

Arrays = dict[str, NDArray[Any]]
DAMAGED = "restore it from a snapshot; {call verify} names what is damaged"
TYPES = {
    "|i1": "I8", "|u1": "U8", "<i2": "I16", "<u2": "U16", "<i4": "I32", "<u4": "U32", "<i8": "I64",
    "<u8": "U64", "<f2": "F16", "<f4": "F32",
}  # fmt: skip
"""NumPy's types by the names that safetensors has for them."""
ABOUT = "about"
"""Name of the array of bytes that holds JSON, for values that are not arrays."""


class PartKey(NamedTuple):
    """The name of a part."""

    kind: str
    start: int

    def __str__(self) -> str:
        return f"{self.kind} {self.start}"


class Part(NamedTuple):
    """What the file says of a part, besides its bytes."""

    rows: int
    """Rows in it, of whatever its kind has."""
    written: int
    """The commit that wrote it."""
    checksum: int


class Listing(dict[PartKey, Part]):
    """All parts of a file by name, the starts of each kind in order, and a sum of checksums."""

    tally: int
    """Sum of all checksums: it differs if a part is missing, or an old one has come back."""
    _starts: dict[str, list[int]]

    def __init__(self, parts: Mapping[PartKey, Part] | None = None) -> None:
        super().__init__(parts or {})
        if isinstance(parts, Listing):
            self.tally = parts.tally
            self._starts = {kind: list(starts) for kind, starts in parts._starts.items()}
            return
        self.tally = sum(part.checksum for part in self.values())
        self._starts = {}
        for key in sorted(self):
            self._starts.setdefault(key.kind, []).append(key.start)

    def __setitem__(self, key: PartKey, part: Part) -> None:
        if key in self:
            self.tally -= self[key].checksum
        else:
            insort(self._starts.setdefault(key.kind, []), key.start)
        self.tally += part.checksum
        super().__setitem__(key, part)

    def __delitem__(self, key: PartKey) -> None:
        self.tally -= self[key].checksum
        starts = self._starts[key.kind]
        del starts[bisect_left(starts, key.start)]
        super().__delitem__(key)

    def starts(self, kind: str) -> list[int]:
        """Return where the parts of a kind start, ascending."""
        return self._starts.get(kind, [])[:]


def checksum(key: PartKey, rows: int, written: int, data: bytes | memoryview) -> int:
    """Return the CRC-32 of a part's bytes, its name, its rows and its commit."""
    return zlib.crc32(f"{key.kind}|{key.start}|{rows}|{written}".encode(), zlib.crc32(data))


def pack(arrays: Arrays, about: Any = None) -> bytes:
    """Return arrays, and JSON beside them, as a safetensors buffer.

    The library's own `save` copies everything three times, which took as long as writing to the
    file. Its `load` reads what is packed here; a test checks that.
    """
    if about is not None:
        text = json.dumps(about, separators=(",", ":")).encode()
        arrays = {**arrays, ABOUT: np.frombuffer(text, np.uint8)}
    # widest first, so that every array begins at a multiple of its own width
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header, end = {}, 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        kind, shape = TYPES[array.dtype.str], list(array.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    views = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for _, array in ordered]
    return b"".join([len(text).to_bytes(8, "little"), text, *(view.data for view in views)])


def unpack(data: bytes, key: PartKey) -> Arrays:
    """Return the arrays of a part."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(data))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CollectionFileError(f"{key}: not arrays: {error!s:.100}", hint=DAMAGED) from None


def about_of(arrays: Arrays, key: PartKey) -> Any:
    """Return the JSON of a part."""
    try:
        return json.loads(arrays[ABOUT].tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        raise CollectionFileError(f"{key}: not JSON: {error!s:.100}", hint=DAMAGED) from None
