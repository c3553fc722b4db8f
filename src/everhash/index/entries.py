"""Entries as they are told of, one by one or by the page."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.wire.ids import Id


@dataclass(frozen=True)
class Entry:
    """What the index knows of an entry."""

    id: Id
    labels: tuple[Hashable, ...]
    """Empty for an unlabelled entry."""
    home: int | None
    """The cycle its own bits belong to; None where it is known by its label's codeword."""
    code: NDArray[np.bool_] | None
    """Those bits."""


class Page(NamedTuple):
    """Some entries in order of arrival."""

    entries: list[Entry]
    next: int | None
    """Number of the entry the next page starts with; None if this is the last one."""


def check_page(start: int, limit: int = 1) -> None:
    """Refuse a page before the first one, or of nothing."""
    if start < 0 or limit < 1:
        problem = f"start must be at least 0 and limit at least 1, got {start} and {limit}"
        raise OptionError(problem, hint="the first one has number 0")
