"""Codes: bits packed in words, stamped with the version of the mapping that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from everhash.errors import DimensionError
from everhash.kernels.reference import masked_hamming
from everhash.products import product

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Codes:
    """Ternary codes of `width` bits, packed: bit t of word j is hash function 64 j + t.

    >>> codes = Codes.pack(np.array([[1, -1, 0], [1, 1, 1]], np.int8), version=7)
    >>> codes.unpack().tolist(), codes.version
    ([[1, -1, 0], [1, 1, 1]], 7)
    """

    words: Words
    """(n, ceil(width / 64)) set where the bit is +1."""
    mask: Words
    """(n, ceil(width / 64)) set where the bit is active, that is not 0."""
    width: int
    version: int
    """Version of the mapping that made them; the same version means the same hash functions."""

    @classmethod
    def pack(cls, signs: NDArray[np.int8], version: int) -> Self:
        """Pack an (n, width) array of -1, 0 and +1."""
        return cls(pack_bits(signs > 0), pack_bits(signs != 0), signs.shape[1], version)

    def unpack(self) -> NDArray[np.int8]:
        """Return the (n, width) array of -1, 0 and +1."""
        on, active = (unpack_bits(words, self.width) for words in (self.words, self.mask))
        return np.where(active, np.where(on, 1, -1), 0).astype(np.int8)

    def to_bytes(self) -> NDArray[np.uint8]:
        """Return (n, ceil(width / 8)) bytes, as binary indexes like FAISS's take them.

        Bit t of byte j, from the lowest, is hash function 8 j + t; set where it is +1. Bits after
        the last function are 0. Bytes cannot say that a bit is inactive: it is 0 as if it were -1,
        so distances between bytes equal `hamming` only where all bits are active, as `encode`
        makes them.

        >>> Codes.pack(np.array([[1, -1, 1, -1, -1, -1, -1, -1, 1]], np.int8), 0).to_bytes()
        array([[5, 1]], dtype=uint8)
        """
        as_bytes = self.words.astype("<u8").view(np.uint8)
        return np.ascontiguousarray(as_bytes[:, : -(-self.width // 8)])

    def __len__(self) -> int:
        return len(self.words)


def pack_bits(bits: NDArray[np.bool_]) -> Words:
    """Pack (n, width) booleans: bit t of word j is column 64 j + t.

    >>> pack_bits(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    n, width = bits.shape
    padded = np.zeros((n, -(-width // 64) * 64), np.bool_)
    padded[:, :width] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack_bits(words: Words, width: int) -> NDArray[np.bool_]:
    """Undo `pack_bits`."""
    as_bytes = words.astype("<u8").view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=width, bitorder="little").astype(np.bool_)


def hamming(queries: Codes, entries: Codes) -> NDArray[np.int64]:
    """Return (n_queries, n_entries) masked Hamming distances.

    A bit that is inactive on either side does not count.

    >>> query = Codes.pack(np.array([[1, 1, -1]], np.int8), version=0)
    >>> hamming(query, Codes.pack(np.array([[1, 0, 1], [-1, -1, 1]], np.int8), 0)).tolist()
    [[1, 3]]
    """
    if queries.width != entries.width:
        raise DimensionError(expected=entries.width, got=queries.width, what="bits")
    distances = [
        masked_hamming(query, entries.words, entries.mask & active)
        for query, active in zip(queries.words, queries.mask, strict=True)
    ]
    return np.array(distances, np.int64).reshape(len(queries), len(entries))


def asymmetric(margins: NDArray[np.float32], entries: Codes) -> NDArray[np.float32]:
    """Return (n_queries, n_entries) minus the sum of code times query margin over active bits.

    The query keeps its margins instead of their signs, so a bit counts by how sure the query is of
    it. For codewords this is the ranking of a linear classifier with weights sum_t c_t w_t.

    >>> entries = Codes.pack(np.array([[1, 0, 1], [-1, -1, 1]], np.int8), version=0)
    >>> asymmetric(np.array([[0.5, 2, -1]], np.float32), entries).tolist()
    [[0.5, 3.5]]
    """
    if margins.shape[1] != entries.width:
        raise DimensionError(expected=entries.width, got=margins.shape[1], what="bits")
    scores: NDArray[np.float32] = product(margins, entries.unpack().T.astype(np.float32))
    return -scores
