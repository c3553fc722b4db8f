"""How a method declares its options: fields of its class, each with a default and a check.

    @dataclass(eq=False, repr=False)
    class MIHash(ReservoirMethod):
        step: float = option(0.5, size)
        bins: int = option(16, whole(1, 1000))

The fields are the constructor's signature. A check returns the value to work with, or raises an
OptionError that names the option. Checks run when learning begins, as scikit-learn asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from everhash.errors import OptionError
from everhash.learn.options import between, one_of, positive, whole_number

T = TypeVar("T")
Check = Callable[[str, Any], Any]
"""Takes an option's name and value."""
CenterOption = str | ArrayLike | None

MAX_SIZE = 1e6
"""Largest number that `size` accepts."""


def option(default: T, check: Check) -> T:
    """Declare an option by its default and its check."""
    return field(default=default, metadata={"check": check})


def checks_of(method: Any) -> dict[str, Check]:
    """Return the check of each option that was declared with one."""
    return {f.name: f.metadata["check"] for f in fields(method) if "check" in f.metadata}


def whole(least: int, most: int | None = None) -> Check:
    """Return a check for whole numbers in a range, its ends included."""
    return lambda name, value: whole_number(name, value, least=least, most=most)


def number(least: float, most: float) -> Check:
    """Return a check for numbers in a range, its ends included."""
    return lambda name, value: between(name, value, least, most)


def choice(*words: str) -> Check:
    """Return a check for one of a few words."""
    return lambda name, value: one_of(name, value, words)


def optional(check: Check) -> Check:
    """Return a check that accepts None as well."""
    return lambda name, value: None if value is None else check(name, value)


def size(name: str, value: Any) -> float:
    """Return an option that is a positive number, small enough to keep arithmetic finite."""
    checked = positive(name, value)
    if checked > MAX_SIZE:
        raise OptionError(f"{name} must be at most {MAX_SIZE:,.0f}, got {value!r}")
    return checked


matrix_bits = whole(1, 4096)
"""Checks the bits of a method that has a matrix of bits by bits."""
share = number(0, 1)
"""Accepts a share, from 0 to 1."""
