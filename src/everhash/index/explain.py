"""Why entries matched, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everhash.index.hasher import Hasher
from everhash.index.query import Query
from everhash.index.unlabelled import Unlabelled
from everhash.matches import Explanation

if TYPE_CHECKING:
    from everhash.index.ranking import Ranked


def explain_hits(
    hasher: Hasher,
    query: Query,
    ranked: Ranked,
    names: NDArray[Any],
    coded: Unlabelled | None,
) -> list[list[Explanation]]:
    """Compare each query with each of its matches, as the ranking did."""
    found: list[list[Explanation]] = []
    for row in range(len(query)):
        found.append([])
        pairs = zip(ranked.places[row].tolist(), ranked.numbers[row].tolist(), strict=True)
        for place, number in pairs:
            if number >= 0 and hasher.assigns_codewords:
                found[-1].append(_labelled(hasher, query, row, number, names[number]))
            elif place >= 0 and coded is not None:
                found[-1].append(_coded(coded, query, row, place))
    return found


def _labelled(hasher: Hasher, query: Query, row: int, number: int, name: Any) -> Explanation:
    cycle, margins = int(hasher.label_cycles_[number]), query.newest[row]
    bits = np.zeros(margins.shape, np.int8)
    bits[cycle] = _agreement(query, margins[cycle], hasher.words_[number] > 0)
    return Explanation(name, cycle, bits.reshape(-1))


def _coded(coded: Unlabelled, query: Query, row: int, place: int) -> Explanation:
    home, code = coded.code_of(place)
    margins = query.theirs[row]
    bits = np.zeros(margins.shape, np.int8)
    bits[home] = _agreement(query, margins[home], code)
    return Explanation(None, home if coded.coding == "home" else -1, bits.reshape(-1))


def _agreement(
    query: Query, margins: NDArray[np.float32], code: NDArray[np.bool_]
) -> NDArray[np.int8]:
    agree = np.where((margins > 0) == code, 1, -1).astype(np.int8)
    return agree if query.hamming else np.where(margins == 0, 0, agree).astype(np.int8)
