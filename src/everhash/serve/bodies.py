"""What a body holds: JSON, an array of NumPy, or an Arrow table. Nothing in it is believed.

Sizes are compared with the bytes that came before anything is allocated for them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import from_json

from everhash import limits as library
from everhash.errors import (
    EverhashError,
    FeatureTypeError,
    InputError,
    LimitError,
    OptionError,
    TooLargeError,
)
from everhash.serve import limits
from everhash.serve.errors import unsupported
from everhash.serve.schemas import Request
from everhash.sources.npy_header import NpyHeader
from everhash.wire.arrow import read_rows
from everhash.wire.arrow_columns import MAX_NESTED
from everhash.wire.media import ARROW, JSON, NPY, media_type

NUMBERS = {("f", 2), ("f", 4), ("f", 8), *((kind, size) for kind in "iu" for size in (1, 2, 4, 8))}
"""Types of numbers that rows may have, and their bytes."""
FLAGS = ("unlabelled", "exact", "explain", "payloads", "teach", "new", "unused")
"""Options that are true or false."""
IN_QUERY: dict[str, Callable[[str], Any]] = {
    "k": int,
    "r": float,
    "recall": float,
    "by": str,
    **dict.fromkeys(FLAGS, {"true": True, "false": False}.__getitem__),
}
"""Options that may stand in the query string, where the body has no place for them."""
OBJECT = "send a JSON object; /docs has an example of each"
ROWS = 'each row is a list of numbers; one row is "rows": [[0.1, 2, -3]]'
R = TypeVar("R", bound=Request)


def read_body(
    model: type[R], content: bytes, content_type: str, query: Mapping[str, str] | None = None
) -> R:
    """Return the request that a body and a query string make."""
    kind = media_type(content_type)
    try:
        if kind == JSON:
            _check_nesting(content)
            if not query:
                return model.model_validate_json(content)
            fields = _object(content)
        elif kind in (NPY, ARROW) and model.max_rows:
            return _read_table(model, content, kind, query or {})
        else:
            kinds = (JSON, NPY, ARROW) if model.max_rows else (JSON,)
            raise unsupported(
                f"a body of type {kind[:80]!r} is not read here"
                if kind
                else "a body without a type",
                f"send it with Content-Type {' or '.join(kinds)}",
            )
        return model.model_validate({**_options(model, query), **fields})
    except ValidationError as error:
        raise explain(error.errors(include_url=False)[0], tuple(model.model_fields)) from None


def _read_table(model: type[R], content: bytes, kind: str, query: Mapping[str, str]) -> R:
    """Return the request of an array or a table, whose rows need no look at each number here."""
    if kind == NPY:
        fields: dict[str, Any] = {"rows": read_npy(content, model.max_rows)}
    else:
        fields = read_rows(content, model.max_rows, limits.ROW_LABELS)
    rows = fields.pop("rows")
    request = model.model_validate({**_options(model, query), **fields, "rows": []})
    request.rows = rows  # type: ignore[attr-defined]
    return request


def _check_nesting(content: bytes) -> None:
    if len(content) > MAX_NESTED and content.count(b"[") + content.count(b"{") > MAX_NESTED:
        raise TooLargeError(
            f"JSON of more than {MAX_NESTED} lists and objects", hint="send rows as .npy"
        )


def _object(content: bytes) -> dict[str, Any]:
    try:
        fields = from_json(content)
    except ValueError as error:
        raise InputError(f"the body is no JSON: {error!s:.200}", hint=OBJECT) from None
    if not isinstance(fields, dict):
        raise InputError("the body is no JSON object", hint=OBJECT)
    return fields


def _options(model: type[Request], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that stand in the query string."""
    found: dict[str, Any] = {}
    taken = [name for name in IN_QUERY if name in model.model_fields]
    for name, text in query.items():
        if name not in taken:
            raise OptionError(
                f"{name!r:.40} is not read in the query string",
                hint=f"it may have {', '.join(taken)}; other fields go into a JSON body",
            )
        try:
            found[name] = IN_QUERY[name](text)
        except (ValueError, KeyError):
            raise OptionError(f"{name} cannot be {text!r:.40}", hint="see /docs") from None
    return found


def explain(problem: Mapping[str, Any], known: Iterable[str] = ()) -> EverhashError:
    """Return the error that says what pydantic found wrong first, in a form with known fields."""
    own = problem.get("ctx", {}).get("error")
    if isinstance(own, EverhashError):
        return own
    kind, place = problem["type"], [str(part) for part in problem["loc"]]
    field, where = (place[0] if place else ""), ".".join(place)
    if kind == "too_long":
        n, most = problem["ctx"]["actual_length"], problem["ctx"]["max_length"]
        what = "ids in like" if field == "like" else field
        return TooLargeError(f"{n} {what}, at most {most} a request", hint="split the request")
    if field == "rows" and kind == "float_type":
        return FeatureTypeError(f"row {place[1]}: features must be numbers", hint=ROWS)
    if field == "rows" and kind == "list_type":
        return InputError("rows must be a list of rows", hint=ROWS)
    said = problem["msg"][:200]
    message, hint = {
        "list_type": (f"{where} must be a list", "a list of one, if there is one"),
        "missing": (f"field {where!r} is missing", "see /docs"),
        "json_invalid": (f"the body is no JSON: {said.partition(': ')[2]}", OBJECT),
        "model_type": ("the body is no JSON object", OBJECT),
        "extra_forbidden": (
            f"field {where!r:.80} is unknown here",
            f"the body may have {', '.join(known)}",
        ),
    }.get(kind, (f"{where or 'the body'}: {said[:1].lower()}{said[1:]}", "see /docs"))
    return (OptionError if field in FLAGS else InputError)(message, hint=hint)


def read_npy(content: bytes, max_rows: int) -> NDArray[Any]:
    """Return the (n, d) array that a .npy file holds, without copying it."""
    header = NpyHeader(io.BytesIO(content), len(content), "the body")
    if len(header.shape) != 2 or not all(type(n) is int for n in header.shape):
        shape = f"shape {header.shape!s:.80}"
        one = (
            f"one row is an array of shape (1, {header.shape[0]})" if len(header.shape) == 1 else ""
        )
        hint = one or "n rows of d numbers are an array of shape (n, d)"
        raise InputError(f"expected an array of rows (n, d), got {shape}", hint=hint)
    if (header.dtype.kind, header.dtype.itemsize) not in NUMBERS:
        message = f"features must be numbers, got {header.dtype!s:.80}"
        raise FeatureTypeError(message, hint="save them as float32")
    n, dims = header.shape
    if n > max_rows:
        raise TooLargeError(f"{n} rows, at most {max_rows} a request", hint="split the request")
    if dims > library.DIMS:
        message = f"{dims} features, at most {library.DIMS}"
        raise LimitError(message, hint="send rows of fewer features")
    there = len(content) - header.offset
    if header.size != there:
        message = f"the body: expected {header.size} bytes for shape {header.shape}, got {there}"
        raise InputError(message, hint="send one array and nothing else")
    order = header.shape[::-1] if header.fortran else header.shape
    rows = np.frombuffer(content, header.dtype, offset=header.offset).reshape(order)
    return rows.T if header.fortran else rows
