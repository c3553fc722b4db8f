"""Every value of a JSON object spoiled in every way: left out, of another type, at an extreme."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

MISSING = object()
"""Stands for a value that is left out."""
EXTREMES = (-1, 0, 500_000, 2**31, 2**62, 2**63, 10**30)
STRANGE: tuple[Any, ...] = (MISSING, None, True, 0.5, 1e300, "", "7", [], [7], {}, {"a": 7})
VALUES: tuple[Any, ...] = (*STRANGE, *EXTREMES)
FEW = 3
"""Values of a list that are spoiled; the others are like them."""


class Spoiled(NamedTuple):
    """An object with one value that is not as it was."""

    name: str
    """Which one, and what it is now."""
    value: Any


def spoil(good: Any, values: tuple[Any, ...] = VALUES) -> Iterator[Spoiled]:
    """Yield copies of a JSON object, each with one value spoiled, however deep."""
    for place in _places(good, ()):
        for value in values:
            copied = copy.deepcopy(good)
            holder = copied
            for key in place[:-1]:
                holder = holder[key]
            if value is MISSING:
                del holder[place[-1]]
            else:
                holder[place[-1]] = value
            said = "missing" if value is MISSING else json.dumps(value)
            if copied != good or type(value) is bool:
                yield Spoiled(f"{'.'.join(map(str, place))} {said}", copied)


def _places(good: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    keys = list(good)[:99] if isinstance(good, dict) else range(min(FEW, len(good)))
    for key in keys:
        yield (*above, key)
        if isinstance(good[key], dict | list):
            yield from _places(good[key], (*above, key))
