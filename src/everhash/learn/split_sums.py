"""Sums of a lead, which leaves the products of rows to its shards; see `following`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.learn.sums import Sums, label_sums

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]


class SplitSums(Sums):
    """Sums of a lead: all but the products of rows, which shards add up.

    Rows that were there before shards began are multiplied here (`own`); so are those of the write
    that is being decided, if it publishes.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.squares = np.zeros(width)
        """(D,) the diagonal of the products, which tells what can be forgotten."""
        self.elsewhere: Doubles | None = np.zeros((width, width))
        """(D, D) the products that all shards have: none at first. None while nobody has asked."""
        self._undecided: list[tuple[int, Floats]] = []

    @classmethod
    def of(cls, sums: Sums, own: Doubles) -> SplitSums:
        """Return the same sums with products of their own; the others are elsewhere.

        Of the products of `sums` only the diagonal counts.
        """
        split = cls(len(sums.total))
        split.rows, split.total, split.labels = sums.rows, sums.total, sums.labels
        split.squares = sums.gram.diagonal().copy()
        split.gram = np.asfortranarray(own)
        split.decided()
        return split

    def add(self, Q: Floats, rows: Counts, labels: Counts, sign: int = 1) -> None:
        """Add rows, or take them away; their products are left to a shard."""
        self.rows += sign * len(Q)
        self.total += sign * Q.sum(axis=0, dtype=np.float64)
        which, sums = label_sums(Q, rows, labels)
        self.labels.rows[which] += sign * sums
        self.squares += sign * np.einsum("ij,ij->j", Q, Q, dtype=np.float64)
        self._undecided.append((sign, Q))

    def keep_products(self) -> None:
        """Multiply the rows of the write that is being decided here, and not in a shard."""
        undecided, self._undecided = self._undecided, []
        for sign, Q in undecided:
            super().add_products(Q, sign)

    def decided(self) -> None:
        """Leave the rows of a write to the shards that get them."""
        self._undecided, self.elsewhere = [], None

    @property
    def gram(self) -> Doubles:
        """(D, D) the products of all rows, wherever they are."""
        assert self.elsewhere is not None  # noqa: S101 - whoever publishes has gathered them
        total = np.asfortranarray(self.own_products + self.elsewhere)
        part = Sums(len(total))
        for sign, Q in self._undecided:
            part.add_products(Q, sign)
        return np.asfortranarray(total + part.gram)

    @gram.setter
    def gram(self, gram: Doubles) -> None:
        self._gram = gram

    @property
    def own_products(self) -> Doubles:
        """(D, D) the products that no shard has."""
        return super().gram

    @property
    def diagonal(self) -> Doubles:
        """(D,) the squares of all rows."""
        return self.squares

    def filed_products(self) -> Doubles:
        """Return the diagonal only, as a matrix: the rest is in the files of shards."""
        return np.diag(self.squares)
