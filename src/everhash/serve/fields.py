"""Fields of requests as pydantic checks them, with the library's own rules and errors.

A validator here may raise one of `everhash.errors`; `bodies.explain` takes it out again, so that a
client gets the error that the library would raise.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Hashable
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from everhash import limits as library
from everhash.errors import (
    IdError,
    InputError,
    LabelError,
    LimitError,
    ModelFileError,
    TooLargeError,
)
from everhash.serve import limits
from everhash.stream import as_label
from everhash.wire.ids import ID_CHARACTERS, is_unicode
from everhash.wire.labels import label_from_json
from everhash.wire.options import WAYS, check_by, check_k, check_radius, check_recall


def _rows(rows: list[list[float]]) -> NDArray[Any]:
    try:
        return np.asarray(rows)
    except ValueError:
        raise InputError("rows of several lengths", hint="send rows of one length") from None


def _ids(values: list[Any]) -> list[Any]:
    """Refuse ids that cannot be sent back; the library checks the rest."""
    for value in values:
        if isinstance(value, str) and not is_unicode(value):
            raise IdError("an id is not Unicode", hint="it has half a surrogate pair")
    return values


def _row_labels(values: list[Any]) -> list[Any]:
    """Return the labels of rows: one, a set, or None each."""
    several = sum(len(value) for value in values if isinstance(value, list))
    if several > limits.ROW_LABELS:
        raise TooLargeError(
            f"{several} labels, at most {limits.ROW_LABELS} a request", hint="split the request"
        )
    return [_labels_of(value, row) for row, value in enumerate(values)]


def _labels_of(value: Any, row: int) -> Any:
    if isinstance(value, list):
        return {read_label(one, f"row {row}: ", row) for one in value}
    return None if value is None else read_label(value, f"row {row}: ", row)


def _labels(values: list[Any]) -> list[Any]:
    """Return labels that a search is narrowed to."""
    return [read_label(value, f"label {number}: ") for number, value in enumerate(values)]


def _one_label(value: Any) -> Hashable:
    return read_label(value)


def read_label(value: Any, where: str = "", row: int = 0) -> Hashable:
    """Return one label, if it can be served; an error says where it stands."""
    try:
        label = label_from_json(value)
    except (ModelFileError, ValueError, TypeError, RecursionError):
        raise LabelError(
            f"{where}{value!r:.40} cannot be a label", hint="labels are texts or numbers"
        ) from None
    if len(label if isinstance(label, str) else repr(label)) > limits.LABEL:
        raise LimitError(f"{where}a label of more than {limits.LABEL} characters")
    if not _has_unicode(label):
        raise LabelError(f"{where}a label is not Unicode", hint="it has half a surrogate pair")
    return as_label(label, row)


def _has_unicode(label: Any) -> bool:
    if isinstance(label, tuple):
        return all(map(_has_unicode, label))
    return not isinstance(label, str) or is_unicode(label)


def _thumbnails(values: list[Any]) -> list[bytes | None]:
    return [_picture(value, row) for row, value in enumerate(values)]


def _picture(value: Any, row: int) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InputError(
            f"row {row}: the thumbnail is no base64", hint="send the image's bytes as base64"
        ) from None


ID = {
    "title": "id",
    "anyOf": [{"type": "integer"}, {"type": "string", "minLength": 1, "maxLength": ID_CHARACTERS}],
    "description": "An int64, or a string of 1 to 64 characters.",
}
LABEL: dict[str, Any] = {
    "title": "label",
    "anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "object")],
    "description": 'A text or a number; bytes as {"bytes": hex}, tuples as {"tuple": [...]}.',
}
ROW_LABEL: dict[str, Any] = {
    "title": "label, list of labels or null",
    "anyOf": [*LABEL["anyOf"], {"type": "array", "items": LABEL}, {"type": "null"}],
    "description": "A label, a list of several, or null for an unlabelled row.",
}

PAYLOAD = {
    "title": "JSON value",
    "description": f"A JSON value of at most {library.PAYLOAD:,} bytes.",
}
THUMBNAIL = {
    "title": "base64 text",
    "type": ["string", "null"],
    "description": f"A PNG, JPEG, GIF or WebP of at most {library.THUMBNAIL:,} bytes, as base64.",
}


def _array(items: dict[str, Any], most: int = limits.ROWS) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": items, "maxItems": most})


_few, _many, _page = (Field(max_length=most) for most in (limits.QUERIES, limits.ROWS, limits.PAGE))
Row = Annotated[list[float], Field(fail_fast=True)]
Queries = Annotated[
    list[Row], Field(fail_fast=True, max_length=limits.QUERIES), AfterValidator(_rows)
]
Rows = Annotated[list[Row], Field(fail_fast=True, max_length=limits.ROWS), AfterValidator(_rows)]
Id = Annotated[Any, WithJsonSchema(ID)]
Ids = Annotated[list[Any], _many, AfterValidator(_ids), _array(ID)]
PageIds = Annotated[list[Any], _page, AfterValidator(_ids), _array(ID, limits.PAGE)]
QueryIds = Annotated[list[Any], _few, AfterValidator(_ids), _array(ID, limits.QUERIES)]
Label = Annotated[Any, WithJsonSchema(LABEL)]
OneLabel = Annotated[Any, AfterValidator(_one_label), WithJsonSchema(LABEL)]
Labels = Annotated[list[Any], _many, AfterValidator(_labels), _array(LABEL)]
RowLabels = Annotated[list[Any], _many, AfterValidator(_row_labels), _array(ROW_LABEL)]
Payload = Annotated[Any, WithJsonSchema(PAYLOAD)]
Payloads = Annotated[list[Any], _many, _array(PAYLOAD)]
Thumbnails = Annotated[list[Any], _many, AfterValidator(_thumbnails), _array(THUMBNAIL)]
K = Annotated[
    int,
    BeforeValidator(check_k),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": library.RESULTS}),
]
Recall = Annotated[
    float,
    BeforeValidator(check_recall),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
]
Radius = Annotated[float, BeforeValidator(check_radius), WithJsonSchema({"type": "number"})]
By = Annotated[
    str,
    BeforeValidator(check_by),
    WithJsonSchema({"type": "string", "enum": list(WAYS)}),
]
