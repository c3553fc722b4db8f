"""Likeness codes of rows: what entries are compared by where nothing was learned.

A code is one sign bit a dimension and two floats; see `everhash.kernels.likeness`. Rotation and
direction never change once they are settled, so codes never go stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.errors import DimensionError, InputError
from everhash.index.arrays import Counts, Floats, Words, kernel_array
from everhash.kernels.likeness import reference
from everhash.learn import seeds

ROUNDS = 3
"""Of signs and transforms in the rotation."""
MIN_SIZE = 256
"""Coordinates of the rotation, at least: with fewer bits estimates are too coarse."""
UNIT = 1e-3
"""How far the length of a direction read from a file may be from 1."""


class LikenessQueries(NamedTuple):
    """Codes of q queries: finer than those of entries, since they are not kept."""

    planes: Words
    """(q, 8, W) coordinates in whole steps, as bit planes."""
    totals: Counts
    """(q,) sum of the coordinates, in steps."""
    along: Floats
    """(q,) cosine with the direction."""
    step: Floats
    """(q,) size of a step."""
    rest: Floats
    """(q,) length of the part across the direction, of the row scaled to unit length."""


class Likeness:
    """Makes likeness codes: knows the rotation, and the direction that rows have in common.

    The direction is the mean of the first 16 rows, each scaled to unit length. Until they have come
    it is zeros, and codes made so far must be made again afterwards; see `meet`.

    >>> rows = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    >>> likeness = Likeness.draw(8)
    >>> likeness.meet(rows[:3]), likeness.meet(rows[3:]), len(likeness.first_rows)
    (False, True, 3)
    >>> codes, queries = likeness.encode(rows), likeness.queries(rows[:2])
    >>> likeness.estimates(codes, queries).argmax(axis=1).tolist()
    [0, 1]
    """

    FIRST: ClassVar[int] = 16
    """Rows that settle the direction."""

    def __init__(self, signs: NDArray[np.int8], direction: Floats, first: Floats) -> None:
        self.signs = signs
        """(ROUNDS, p) of -1 and +1."""
        self.direction = direction
        """(d,) of unit length; zeros until it is settled."""
        self.first = first
        """(m, d) rows met while the direction is not settled; empty afterwards."""
        self.first_rows = first[:0]
        """(m, d) rows met before the call of `meet` that returned True: their codes are old."""

    @classmethod
    def draw(cls, n_features: int) -> Likeness:
        """Return the codes' maker for rows of so many features; always the same one."""
        shape = ROUNDS, max(n_features, MIN_SIZE)
        rng = seeds.generator(0, seeds.LIKENESS)
        signs = (2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1).astype(np.int8)
        return cls(signs, np.zeros(n_features, np.float32), np.empty((0, n_features), np.float32))

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return len(self.direction)

    @property
    def size(self) -> int:
        """Coordinates of the rotation: bits of a code."""
        return int(self.signs.shape[1])

    @property
    def width(self) -> int:
        """Words of a code: its signs, 64 a word, and one for two floats."""
        return -(-self.size // 64) + 1

    @property
    def settled(self) -> bool:
        """Whether the direction is there, so that codes are final."""
        return bool(self.direction.any())

    def meet(self, rows: Floats) -> bool:
        """Remember rows, before they are encoded, until the direction is settled.

        Returns:
            Whether these rows settled it: then `first_rows` are the rows met in earlier calls, in
            order, whose codes must be made again.
        """
        if self.settled:
            return False
        met = np.concatenate([self.first, self._checked(rows)[: self.FIRST - len(self.first)]])
        if len(met) < self.FIRST:
            self.first = met
            return False
        self.first_rows, self.first = self.first, met[:0]
        self.direction = _mean_direction(met)
        return True

    def encode(self, rows: Floats) -> Words:
        """Return (n, width) codes of rows; each depends on its row only."""
        encode = kernels.load_likeness().encode
        codes: Words = encode(self._checked(rows), self.direction, self.signs)
        return codes

    def queries(self, rows: Floats) -> LikenessQueries:
        """Return the codes of queries."""
        encode = kernels.load_likeness().encode_queries
        return LikenessQueries(*encode(self._checked(rows), self.direction, self.signs))

    def estimates(self, codes: Words, queries: LikenessQueries) -> Floats:
        """Return (q, n) estimated cosines of queries with entries."""
        out = np.empty((len(queries.totals), len(codes)), np.float32)
        kernels.load_likeness().estimates_at(codes, np.arange(len(codes)), *queries[:4], out)
        return out

    def error_bound(self, codes: Words, queries: LikenessQueries) -> Floats:
        """Return (q, n) how far estimates may be from cosines; one in 1e9 is further, or fewer."""
        _, along, scale = reference.parts(codes)
        return reference.error_bounds(along, scale, queries.step, queries.rest, self.size)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold, for `read`."""
        return {"signs": self.signs, "direction": self.direction, "first": self.first}

    @classmethod
    def read(cls, n_features: int, arrays: Mapping[str, NDArray[Any]]) -> Likeness:
        """Return what `arrays` describes.

        Raises:
            InputError: they are not such arrays of rows with so many features.
        """
        size = max(n_features, MIN_SIZE)
        signs = _array(arrays, "signs", np.int8, (ROUNDS, size))
        direction = _array(arrays, "direction", np.float32, (n_features,))
        first = _array(arrays, "first", np.float32, (None, n_features))
        if not (np.abs(signs.astype(np.int64)) == 1).all():
            raise _unreadable("signs of -1 and +1", "other values")
        if not (np.isfinite(direction).all() and np.isfinite(first).all()):
            raise _unreadable("finite numbers", "NaN or infinity")
        length = float(np.sqrt((direction.astype(np.float64) ** 2).sum()))
        if length and abs(length - 1) > UNIT:
            raise _unreadable("a direction of length 1 or 0", f"length {length:g}")
        most = 0 if length else cls.FIRST - 1
        if len(first) > most:
            raise _unreadable(f"at most {most} rows before the direction", f"{len(first)}")
        return cls(signs, direction, first)

    def _checked(self, rows: Floats) -> Floats:
        if rows.ndim != 2 or rows.shape[1] != len(self.direction):
            raise DimensionError(
                expected=len(self.direction), got=rows.shape[-1], owner="this collection"
            )
        return kernel_array(rows, np.float32)


def _mean_direction(rows: Floats) -> Floats:
    """Return the direction of the mean of rows scaled to unit length."""
    exact = rows.astype(np.float64)
    length = np.sqrt((exact * exact).sum(axis=1, keepdims=True))
    mean = np.divide(exact, length, out=np.zeros_like(exact), where=length > 0).mean(axis=0)
    size = float(np.sqrt((mean * mean).sum()))
    if size < reference.TINY:  # any direction will do, and zeros would mean that there is none
        mean, size = np.eye(1, len(mean))[0], 1.0
    return np.asarray(mean / size, np.float32)


def _array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return an array of this type and shape, as kernels take it; None stands for any length."""
    array = arrays.get(name)
    if array is None:
        raise _unreadable(f"an array {name!r}", "none")
    fits = array.ndim == len(shape) and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        expected = f"{name} of shape {shape} and type {np.dtype(dtype)}"
        raise _unreadable(expected, f"{array.shape} of {array.dtype}")
    return kernel_array(array, dtype)


def _unreadable(expected: str, got: str) -> InputError:
    return InputError(
        f"likeness codes: expected {expected}, got {got}",
        hint="the file is damaged, or of another program; restore it from a copy",
    )
