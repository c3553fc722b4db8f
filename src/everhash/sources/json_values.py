"""Labels, ids and pictures from JSON values, as lines of JSON and columns of JSON have them."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from everhash.errors import IdError, InputError, LabelError, ModelFileError
from everhash.wire.labels import label_from_json

IDS = "an id is an integer or a string"


def as_label_value(value: Any, at: str) -> Any:
    """Return a label, a set for a list, None for null; `at` begins an error's message.

    >>> as_label_value("a", ""), as_label_value([], ""), as_label_value({"tuple": ["a", 1]}, "")
    ('a', set(), ('a', 1))
    """
    if value is None:
        return None
    try:
        if isinstance(value, list):
            return {label_from_json(each) for each in value}
        return label_from_json(value)
    except (ModelFileError, ValueError, TypeError, RecursionError):
        raise LabelError(
            f"{at}{value!r:.80} cannot be a label",
            hint="labels are texts or numbers, or a list of them",
        ) from None


def as_id_value(value: Any, at: str) -> int | str:
    """Return an id; `at` begins an error's message."""
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    raise IdError(f"{at}expected an id, got {value!r:.80}", hint=IDS)


def as_picture(value: Any, at: str) -> bytes | None:
    """Return the bytes of a picture in base64, None for null; `at` begins an error's message."""
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        message = f"{at}expected a picture in base64, got {value!r:.40}"
        raise InputError(message, hint="write the bytes of the image in base64") from None
