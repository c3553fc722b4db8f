"""Which columns of numbers are the features, where nobody has named them.

Embeddings in columns are numbered: e0, e1, e2, or pixel_0_0, pixel_0_1. A column of numbers beside
such a family is rarely a feature, and a large one ruins all the others. It is never taken silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from everhash.errors import InputError

EXPORTED = ("guess", "home", "code")
"""Columns that `everhash export` writes beside features; reading them back leaves them out."""
SHOWN = 3
"""Columns of a family that a message names."""


class Family(NamedTuple):
    """Columns whose names differ in their numbers only, in the order of these."""

    numbers: list[tuple[int, ...]]
    columns: list[str]

    @property
    def whole(self) -> bool:
        """Whether no number is missing: each counts on, and all combinations are there."""
        room = 1
        for place in zip(*self.numbers, strict=True):
            found = set(place)
            room *= len(found) if max(found) - min(found) == len(found) - 1 else 0
        return room == len(self.columns) == len(set(self.numbers))

    @property
    def pattern(self) -> str:
        """A glob that names them."""
        prefix = re.split(r"\d", self.columns[0])[0]
        return f"{prefix}*" if prefix else "[0-9]*"

    def __str__(self) -> str:
        first = ", ".join(self.columns[:SHOWN])
        return f"{first} … {self.columns[-1]}" if len(self.columns) > SHOWN else first


def families(names: Iterable[str]) -> list[Family]:
    """Return the families among names, each of two columns or more.

    >>> [str(family) for family in families(["e1", "price", "e0", "e10", "e2"])]
    ['e0, e1, e2 … e10']
    """
    groups: dict[str, list[tuple[tuple[int, ...], str]]] = {}
    for name in names:
        numbers = tuple(int(digits) for digits in re.findall(r"[0-9]{1,9}", name))
        groups.setdefault(re.sub(r"[0-9]{1,9}", "#", name), []).append((numbers, name))
    ordered = [sorted(group) for kind, group in groups.items() if "#" in kind and len(group) > 1]
    return [Family([n for n, _ in group], [name for _, name in group]) for group in ordered]


def numbered_features(numbers: Sequence[str], at: str) -> list[str]:
    """Return the columns of numbers to take as features: one whole family, or all if none has one.

    Raises if a number of the family is missing, if there are two families, or if other numbers
    stand beside it. `at` begins the message.

    >>> numbered_features(["width", "height"], "")
    ['width', 'height']
    """
    found = families(numbers)
    if not found:
        return list(numbers)
    family = max(found, key=lambda family: len(family.columns))
    known = {*family.columns, *EXPORTED}
    others = [name for name in numbers if name not in known]
    carried = (others or family.columns[-1:])[0]
    ways = (
        f"name the features, as in {{option features={family.pattern!r}}}; or what entries carry, "
        f"as in {{option payload={carried!r}}}; or leave the rest out of the source"
    )
    if len(found) > 1:
        listed = "; ".join(map(str, found[:SHOWN]))
        raise InputError(f"{at}several sets of numbered columns: {listed:.300}", hint=ways)
    if others:
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        beside = f"{', '.join(map(repr, others[:SHOWN])):.200}{more}"
        message = f"{at}{family} look like the features, but other numbers stand beside them: "
        raise InputError(f"{message:.400}{beside}", hint=ways)
    if not family.whole:
        raise InputError(f"{at}{family} are numbered with gaps: some are missing", hint=ways)
    return family.columns
