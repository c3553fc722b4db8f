"""Why entries matched, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from everhash.index.matches import Explanation
from everhash.index.query import Query

if TYPE_CHECKING:
    from everhash.index.index import Index
    from everhash.index.ranking import Ranked


def explain_hits(index: Index, query: Query, ranked: Ranked) -> list[list[Explanation]]:
    """Compare each query with each of its matches, as the ranking did."""
    names = index.hasher.labels_
    found = []
    for row in range(len(query)):
        pairs = zip(ranked.places[row].tolist(), ranked.numbers[row].tolist(), strict=True)
        found.append(
            [
                _labelled(index, query.newest[row], number, names[number])
                if number >= 0
                else _coded(index, query, row, place)
                for place, number in pairs
                if place >= 0
            ]
        )
    return found


def _labelled(index: Index, margins: NDArray[np.float32], number: int, name: object) -> Explanation:
    cycle = int(index.hasher.label_cycles_[number])
    bits = np.zeros(margins.shape, np.int8)
    bits[cycle] = _agreement(margins[cycle], index.hasher.words_[number] > 0)
    return Explanation(name, cycle, bits.reshape(-1))


def _coded(index: Index, query: Query, row: int, place: int) -> Explanation:
    assert query.theirs is not None  # noqa: S101 - for mypy
    margins = query.theirs[row]
    home, code = index._code_of(place)
    bits = np.zeros(margins.shape, np.int8)
    bits[home] = _agreement(margins[home], code)
    return Explanation(None, home if index.coding == "home" else -1, bits.reshape(-1))


def _agreement(margins: NDArray[np.float32], code: NDArray[np.bool_]) -> NDArray[np.int8]:
    return np.where((margins > 0) == code, 1, -1).astype(np.int8)
