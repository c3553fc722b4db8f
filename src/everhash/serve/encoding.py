"""Answers as JSON text."""

from __future__ import annotations

import json
from typing import Any

import pydantic_core


def to_json(value: Any) -> bytes:
    """Return a value as JSON.

    >>> to_json({"id": 7, "label": None})
    b'{"id":7,"label":null}'
    """
    try:
        return pydantic_core.to_json(value)
    except pydantic_core.PydanticSerializationError:
        # a text with half a surrogate pair, which the library takes as an id
        return json.dumps(value, separators=(",", ":")).encode()
