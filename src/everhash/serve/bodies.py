"""What a body holds: JSON, an array of NumPy, or an Arrow table. Nothing in it is believed.

Sizes are held against the bytes that came before anything is allocated for them.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import limits as library
from everhash.errors import FeatureTypeError, InputError, LimitError
from everhash.serve.answers import ARROW
from everhash.serve.arrow import read_table
from everhash.serve.errors import too_large, unsupported
from everhash.sources.npy_header import NpyHeader

NPY = "application/x-npy"
JSON = "application/json"
NESTED = 1_000_000
"""Lists and objects of a JSON body; each takes far more memory than the two bytes it is sent in."""
KINDS = {("f", 2), ("f", 4), ("f", 8), *((kind, size) for kind in "iu" for size in (1, 2, 4, 8))}
"""Types of numbers that rows may have, and their bytes."""
FIELDS = {"id": "ids", "label": "labels", "payload": "payloads", "thumbnail": "thumbnails"}
"""What the columns of a table are called in JSON."""


class Given(NamedTuple):
    """What a request has brought."""

    fields: dict[str, Any]
    """By name, as JSON has them."""
    plain: bool
    """Whether it came as JSON: labels, payloads and thumbnails are then still in JSON's form."""


def read_body(content: bytes, content_type: str, fields: frozenset[str], most: int) -> Given:
    """Return the fields of a body.

    Args:
        content: the body.
        content_type: what it says it is.
        fields: names it may have; where "rows" is none of them it has to be JSON.
        most: rows it may have.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        return Given(read_json(content, fields), plain=True)
    if kind == NPY and "rows" in fields:
        return Given({"rows": read_npy(content, most)}, plain=False)
    if kind == ARROW and "rows" in fields:
        columns = read_table(content, most)
        told = {FIELDS.get(name, "rows"): column for name, column in columns.items()}
        _check_names(told, fields)
        return Given(told, plain=False)
    kinds = (JSON, NPY, ARROW) if "rows" in fields else (JSON,)
    raise unsupported(
        f"a body of type {kind[:80]!r} cannot be read here",
        f"send it with Content-Type {' or '.join(kinds)}",
    )


def read_json(content: bytes, fields: frozenset[str]) -> dict[str, Any]:
    """Return a JSON object that has no other fields than these."""
    from pydantic_core import from_json

    if len(content) > NESTED and content.count(b"[") + content.count(b"{") > NESTED:
        raise too_large(f"JSON of more than {NESTED} lists and objects", "send rows as .npy")
    try:
        told = from_json(content or b"{}", cache_strings="keys")
    except ValueError as error:
        raise InputError(f"the body is no JSON: {error!s:.200}", hint="an object") from None
    if not isinstance(told, dict):
        raise InputError(
            f"expected a JSON object, got a {type(told).__name__}", hint=f"fields: {_named(fields)}"
        )
    _check_names(told, fields)
    return told


def _check_names(told: dict[str, Any], fields: frozenset[str]) -> None:
    if not told.keys() <= fields:
        unknown = next(name for name in told if name not in fields)
        raise InputError(f"field {unknown!r:.80} is unknown here", hint=f"fields: {_named(fields)}")


def _named(fields: frozenset[str]) -> str:
    return ", ".join(sorted(fields))


def read_npy(content: bytes, most: int) -> NDArray[Any]:
    """Return the (n, d) array that a .npy file holds, without copying it."""
    stored = NpyHeader(io.BytesIO(content), len(content), "the body")
    if len(stored.shape) != 2 or not all(type(n) is int for n in stored.shape):
        shape = f"shape {stored.shape!s:.80}"
        raise InputError(f"expected an array of rows (n, d), got {shape}", hint="X.reshape(n, d)")
    if (stored.dtype.kind, stored.dtype.itemsize) not in KINDS:
        message = f"features must be numbers, got {stored.dtype!s:.80}"
        raise FeatureTypeError(message, hint="np.save(file, X.astype(np.float32))")
    check_count(stored.shape[0], most, "rows")
    if stored.shape[1] > library.DIMS:
        message = f"{stored.shape[1]} features, at most {library.DIMS}"
        raise LimitError(message, hint="send rows of fewer features")
    if stored.size != len(content) - stored.offset:
        there = len(content) - stored.offset
        message = f"the body: expected {stored.size} bytes for shape {stored.shape}, got {there}"
        raise InputError(message, hint="send one array and nothing else")
    order = stored.shape[::-1] if stored.fortran else stored.shape
    rows = np.frombuffer(content, stored.dtype, offset=stored.offset).reshape(order)
    return rows.T if stored.fortran else rows


def check_count(n: int, most: int, what: str) -> None:
    """Refuse more of something than a request may have."""
    if n > most:
        raise too_large(f"{n} {what}, at most {most} a request", "split the request")
