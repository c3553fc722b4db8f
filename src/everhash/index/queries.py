"""Encoded queries: by the newest mapping for codewords, by an older one for stored codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import Codes, pack_bits
from everhash.errors import InputError, OptionError, StaleCodesError
from everhash.index.arrays import Floats, Words
from everhash.index.hasher import Hasher
from everhash.learn.mapping import FrozenMapping
from everhash.stream import as_rows


@dataclass(frozen=True, eq=False)
class EncodedQueries:
    """A batch of queries, one row of margins a cycle.

    Queries given as codes have margins of -1 and +1, and are compared by Hamming distance only.
    """

    for_codewords: Floats
    """(q, n_cycles, k) margins by the newest mapping, to compare with codewords."""
    for_codes: Floats
    """(q, n_cycles, k) margins by the coded entries' mapping, to compare with their bits; for full
    codes (q, 1, width), without coded entries (q, 0, k)."""
    hamming: bool
    has_margins: bool

    @classmethod
    def of(
        cls,
        X: ArrayLike | Codes,
        hasher: Hasher,
        mapping: FrozenMapping | None,
        by: str,
        coding: str,
    ) -> EncodedQueries:
        """Encode queries once for each mapping that is needed; `by` names the distance."""
        if isinstance(X, Codes):
            for_codewords = for_codes = _signs(X, hasher, mapping, by)
        else:
            for_codewords = for_codes = hasher.margins(X)
            if mapping is not None and mapping.version != hasher.version_:
                rows = as_rows(X, hasher.n_features_in_, "this index")
                for_codes = mapping.margins(mapping.measure(rows))
        n, k = len(for_codewords), hasher.bits
        for_codes = for_codes[:, :0] if mapping is None else for_codes
        return cls(
            for_codewords=for_codewords.reshape(n, -1, k),
            for_codes=for_codes.reshape(n, -1, k) if coding == "home" else for_codes[:, None],
            hamming=by == "hamming",
            has_margins=not isinstance(X, Codes),
        )

    def __len__(self) -> int:
        return len(self.for_codewords)

    def form(self, margins: Floats) -> NDArray[Any]:
        """Return what segments take: packed words for Hamming distance, else the margins."""
        return words_of(margins) if self.hamming else np.ascontiguousarray(margins)


def words_of(margins: Floats) -> Words:
    """Pack the signs of (q, n_cycles, k) margins; each cycle starts a new word."""
    q, cycles, k = margins.shape
    return pack_bits((margins > 0).reshape(q * cycles, k)).reshape(q, cycles, -1)


def _signs(codes: Codes, hasher: Hasher, mapping: FrozenMapping | None, by: str) -> Floats:
    """Return codes as margins of -1 and +1, or raise if they cannot be compared with entries."""
    if by != "hamming":
        raise OptionError("codes have no margins", hint='pass rows, or {option by="hamming"}')
    for version in (hasher.version_, hasher.version_ if mapping is None else mapping.version):
        if codes.version != version:
            raise StaleCodesError(expected=version, got=codes.version)
    signs = codes.unpack().astype(np.float32)
    if not signs.all():
        raise InputError("queries must have all bits active", hint="let the hasher encode them")
    return signs
