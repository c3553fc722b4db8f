"""How hash functions see a row: centred at unit length, or by its likeness to a few anchors.

Seen rows have unit length, whatever the view: signs do not depend on it, and certificates of bits
are angles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.learn.centering import unit_rows

Floats = NDArray[np.float32]

BANDWIDTH = 2.0
"""The mean squared distance of centred unit rows, which kernel methods divide by."""


@dataclass(frozen=True, eq=False)
class View:
    """Rows measured from a centre, and from there by anchors if there are any.

    With anchors a row becomes exp(-|z - a|^2 / (2 * 2)) for each anchor a, less the mean of that
    over the anchors themselves: the kernel features of KSH (Liu, Wang, Ji, Jiang, Chang, CVPR
    2012), whose bandwidth is the mean squared distance of rows. Of centred unit rows that is 2.
    """

    center: Floats
    """(d,)"""
    anchors: Floats | None = None
    """(m, d) at unit length, as seen from the centre."""
    offset: Floats | None = None
    """(m,) mean likeness of the anchors to each anchor."""

    @classmethod
    def by_anchors(cls, rows: Floats) -> Self:
        """Return the view that these rows, centred at their own mean, give as anchors."""
        center = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        anchors = unit_rows(rows, center)
        likeness = _likeness(anchors, anchors)
        return cls(center, anchors, likeness.mean(axis=0, dtype=np.float64).astype(np.float32))

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        return len(self.center if self.anchors is None else self.anchors)

    def of(self, X: Floats) -> Floats:
        """Return (n, width) seen rows. Each depends on its own row only."""
        Z = unit_rows(X, self.center)
        if self.anchors is None or self.offset is None:
            return Z
        return unit_rows(_likeness(Z, self.anchors), self.offset)

    def same_as(self, other: View) -> bool:
        """Whether both see every row alike."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in vars(self))
        return self is other or all(_same(one, two) for one, two in pairs)


def margins_by(functions: Floats, Z: Floats) -> Floats:
    """Return (n, n_cycles * k) values w·z; each depends on its own row and function only."""
    out = np.empty((len(Z), functions.shape[0] * functions.shape[1]), np.float32)
    kernels.load().margins_into(Z, functions, out)
    return out


def _likeness(Z: Floats, anchors: Floats) -> Floats:
    """Return exp(-|z - a|^2 / (2 * BANDWIDTH)) of unit rows and anchors."""
    products = margins_by(anchors[None], Z)
    likeness: Floats = np.exp((products - np.float32(1)) / np.float32(BANDWIDTH))
    return likeness


def _same(one: Floats | None, two: Floats | None) -> bool:
    return one is two or (one is not None and two is not None and np.array_equal(one, two))
