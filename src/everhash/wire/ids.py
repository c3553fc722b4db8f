"""What an id is: an int64, or a string of 1 to 64 characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import IdError
from everhash.stream import one_or_more

Id = int | str
IdList = list[Id] | NDArray[np.int64]
"""Several ids: an array if all are numbers."""
ID_CHARACTERS = 64
"""characters of an id"""


def as_ids(values: Iterable[Any]) -> IdList:
    """Return ids as plain values; raise if one of them cannot be an id. One alone is a list of one.

    >>> as_ids("sku-17"), as_ids(range(2)).tolist()
    (['sku-17'], [0, 1])
    """
    values = values.to_pylist() if hasattr(values, "to_pylist") else one_or_more(values)
    if not isinstance(values, Iterable):
        raise IdError(f"expected ids, got {type(values).__name__}", hint="pass a list of ids")
    if isinstance(values, np.ndarray) and values.dtype.kind == "i" and values.ndim == 1:
        return values.astype(np.int64)
    ids = [as_id(value) for value in values]
    if all(isinstance(value, int) for value in ids):
        return np.array(ids, np.int64)
    return ids


def as_id(value: Any) -> Id:
    """Return one id as an int or a str; raise if it cannot be an id."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str) and 1 <= len(plain) <= ID_CHARACTERS:
        return plain
    if isinstance(plain, int) and not isinstance(plain, bool) and -(2**63) <= plain < 2**63:
        return plain
    raise IdError(
        f"{plain!r:.80} cannot be an id",
        hint=f"an id is an int64 or a string of 1 to {ID_CHARACTERS} characters",
    )


def plain_ids(ids: IdList) -> list[Id]:
    """Return ids as a list of Python values, as JSON has them."""
    return ids.tolist() if isinstance(ids, np.ndarray) else ids


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8; Python's may have half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
