"""What an index returns about its entries: one by one, or a page of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.wire.ids import Id
from everhash.wire.options import check_whole


@dataclass(frozen=True)
class Entry:
    """What the index knows about an entry."""

    id: Id
    labels: tuple[Hashable, ...]
    """Empty for an unlabelled entry."""
    home: int | None
    """The cycle of its own bits; None if it has none, and is found by its labels' codewords."""
    code: NDArray[np.bool_] | None
    """Its own bits, or None."""
    guess: Hashable = None
    """The label an unlabelled entry is taken for; None if it has labels or is taken for none."""


class Page(NamedTuple):
    """Some entries in order of arrival."""

    entries: list[Entry]
    next: int | None
    """Number of the entry to go on with; None if this is the last page."""


def check_page(start: Any, limit: Any = 1, stop: Any = None) -> None:
    """Raise if a page would start before the first entry, be empty, or end nowhere."""
    check_whole("start", start, least=0)
    check_whole("limit", limit, least=1)
    if stop is not None:
        check_whole("stop", stop, least=0)
