"""How the exact learner sees a row: turned at random, with rectified random features beside it.

    u  = (x - center) / |x - center|
    z  = (R u, relu(R' u) scaled to unit length, 1) / sqrt(3)

R and R' are random rotations made of signs and Walsh-Hadamard transforms (see `lift` in
`kernels.reference`): no matrix to keep, O(D log d) a row. Linear functions of z are then curved
ones of x, as in random kitchen sinks (Rahimi and Recht, NIPS 2008); relu gives the arc-cosine
kernel (Cho and Saul, NIPS 2009). Turning the linear part changes no ridge solution, but spreads
every row evenly over its coordinates, so that one fixed grid serves them all (`steps`; see `sums`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.learn import seeds
from everhash.learn.centering import unit_rows
from everhash.learn.views import Centred

Floats = NDArray[np.float32]

ROUNDS = 3
"""Of signs and transforms in a rotation."""
MIN_SIZE = 64
"""Coordinates a rotation works on: fewer would turn to few directions only."""
GRID = 127
"""Steps from zero to the end of the grid that sums count in."""
REACH = 5.5
"""Standard deviations of a coordinate to the end of the grid; rows beyond are cut off there."""


def seen_width(n_features: int, features: int) -> int:
    """Return how many numbers a seen row has: turned, rectified, and the constant."""
    return max(n_features, MIN_SIZE) + features + 1


@dataclass(frozen=True, eq=False)
class Rotated(Centred):
    """Centred unit rows, turned; rectified random features; a constant, for biases."""

    signs: NDArray[np.int8]
    """(1 + blocks, ROUNDS, p) of -1 and +1."""
    features: NDArray[np.int64]
    """(1,) how many random features."""
    kind: ClassVar[str] = "rotated"
    LAYOUT: ClassVar = Centred.LAYOUT | {"signs": (np.int8, 3), "features": (np.int64, 1)}

    @classmethod
    def draw(cls, center: Floats, features: int, seed: int) -> Self:
        """Return the view that a seed gives."""
        p = max(len(center), MIN_SIZE)
        shape = (1 + -(-features // p), ROUNDS, p)
        rng = seeds.generator(seed, seeds.FEATURES)
        signs = 2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1
        return cls(center, signs.astype(np.int8), np.array([features], np.int64))

    def moved_to(self, center: Floats) -> Rotated:
        """Return the same view from another centre."""
        return Rotated(center, self.signs, self.features)

    @property
    def width(self) -> int:
        """Numbers a seen row has, the constant included."""
        return seen_width(self.n_features, int(self.features[0]))

    def of(self, X: Floats) -> Floats:
        """Return (n, width) seen rows."""
        out = np.empty((len(X), self.width), np.float32)
        if len(X) == 0:  # a new collection: nothing to compile a kernel for
            return out
        signs = np.require(self.signs, requirements="W")  # which reads them: Numba's wish
        kernels.load().lift_into(unit_rows(X, self.center), signs, int(self.features[0]), out)
        return out

    @property
    def turned(self) -> int:
        """Its first coordinates, which are the row turned; the rectified ones come after."""
        return int(self.signs.shape[2])

    @property
    def constant(self) -> float:
        """What every seen row ends with."""
        return float(np.float32(1 / np.sqrt(3 if self.features[0] else 2)))

    @property
    def steps(self) -> NDArray[np.float64]:
        """(width - 1,) the grid on which sums count each coordinate but the constant.

        A turned coordinate has variance 1/p, a rectified one 1/features about zero.
        """
        p, features = self.signs.shape[2], int(self.features[0])
        turned = min(1.0, REACH / np.sqrt(p)) / GRID
        rectified = min(1.0, REACH * np.sqrt(2 / max(1, features))) / GRID
        return self.constant * np.concatenate([np.full(p, turned), np.full(features, rectified)])

    def is_sound(self) -> bool:
        """Whether the arrays fit each other."""
        blocks, rounds, p = self.signs.shape
        fits = (
            rounds == ROUNDS
            and p == max(len(self.center), MIN_SIZE)
            and self.features.shape == (1,)
        )
        fits = fits and blocks == 1 + -(-int(self.features[0]) // p)
        return bool(fits and self.features[0] >= 0 and (np.abs(self.signs) == 1).all())
