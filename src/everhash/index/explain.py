"""Explanations: what was learned of a match, and which bits agree with what was compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Bools, Floats
from everhash.index.coded import CodedEntries
from everhash.index.hasher import Hasher
from everhash.index.queries import EncodedQueries
from everhash.matches import Explanation

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries
    from everhash.index.ways.way import Found


def explain_hits(
    entries: ReadableEntries, queries: EncodedQueries, found: Found, meant: Floats | None
) -> list[list[Explanation]]:
    """Return one list a query: which bits of each match agree with the query's.

    An entry with a label is compared by its codeword, one without by its own bits. `meant` says how
    likely each match is to have the query's label, by what was learned.
    """
    hasher, names = entries.hasher, entries.codewords.names
    explained: list[list[Explanation]] = []
    for row in range(len(queries)):
        explained.append([])
        places, numbers = found.places[row].tolist(), found.numbers[row].tolist()
        likely = [None] * len(places) if meant is None else meant[row].tolist()
        for place, number, share in zip(places, numbers, likely, strict=True):
            if number >= 0 and hasher.assigns_codewords:
                why = _by_codeword(hasher, queries, row, number, names[number])
            elif place >= 0 and entries.coded is not None:
                why = _by_bits(entries.coded, queries, row, place)
            else:
                continue
            explained[-1].append(replace(why, meaning=share))
    return explained


def _by_codeword(
    hasher: Hasher, queries: EncodedQueries, row: int, number: int, name: Any
) -> Explanation:
    cycle, margins = int(hasher.label_cycles_[number]), queries.for_codewords[row]
    bits = np.zeros(margins.shape, np.int8)
    bits[cycle] = _agreement(queries, margins[cycle], hasher.words_[number] > 0)
    return Explanation(name, cycle, bits.reshape(-1))


def _by_bits(coded: CodedEntries, queries: EncodedQueries, row: int, place: int) -> Explanation:
    home, code = coded.code_of(place)
    margins = queries.for_codes[row]
    bits = np.zeros(margins.shape, np.int8)
    bits[home] = _agreement(queries, margins[home], code)
    return Explanation(None, home if coded.coding == "home" else -1, bits.reshape(-1))


def _agreement(queries: EncodedQueries, margins: Floats, code: Bools) -> NDArray[np.int8]:
    agree = np.where((margins > 0) == code, 1, -1).astype(np.int8)
    return agree if queries.hamming else np.where(margins == 0, 0, agree).astype(np.int8)
