"""Labels as JSON, in files and over HTTP.

Texts, numbers and booleans are written as they are, bytes as {"bytes": hex}, tuples as
{"tuple": [...]}.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from everhash.errors import InputError, ModelFileError


def label_to_json(label: Hashable) -> Any:
    """Return a label as a JSON value.

    >>> label_to_json(("shoes", 3))
    {'tuple': ['shoes', 3]}
    """
    if isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise InputError(
        f"a label of type {type(label).__name__} cannot be saved",
        hint="use strings, numbers, bytes or tuples of them as labels",
    )


def label_from_json(value: Any) -> Hashable:
    """Return the label that `label_to_json` wrote."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return bytes.fromhex(value["bytes"])
    if isinstance(value, dict) and set(value) == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(label_from_json(part) for part in value["tuple"])
    raise ModelFileError("a label has an unknown form")
