"""Values of a JSON answer that may be wrong: each has the right type and size, or raises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_COUNT = 2**63 - 1


def read_count(value: Any, least: int = 0, most: int = MAX_COUNT) -> int:
    """Return a whole number, one that counts something."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError("no count, or one out of range")
    return value


def read_number(value: Any, most: float = math.inf) -> float:
    """Return a number of at least 0."""
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise ValueError("no number, or one out of range")
    return float(value)


def read_flag(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def read_list(value: Any, n: int | None = None) -> list[Any]:
    """Return a list, of n values if n is known."""
    if not isinstance(value, list) or (n is not None and len(value) != n):
        raise ValueError("no list, or one of another length")
    return value


def read_signs(value: Any) -> NDArray[np.int8]:
    """Return bits as -1, 0 and +1."""
    signs = np.array(read_list(value), np.int8)
    if signs.ndim != 1 or signs.tolist() != value or (abs(signs) > 1).any():
        raise ValueError("no bits")
    return signs
