"""How hash functions see a row: centred at unit length, by its likeness to anchors, or otherwise.

Seen rows have unit length, whatever the view: signs do not depend on it, and certificates of bits
are angles. A row that lies on its centre is seen as zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.learn.centering import unit_rows
from everhash.stream import MAX_FEATURE

Floats = NDArray[np.float32]

BANDWIDTH = 2.0
"""The mean squared distance of centred unit rows, which kernel methods divide by."""


@dataclass(frozen=True, eq=False)
class View:
    """What turns a row into what functions are multiplied with. Its fields are arrays."""

    kind: ClassVar[str]
    """Its name in a file."""
    LAYOUT: ClassVar[dict[str, tuple[type[np.generic], int]]]
    """Type and number of axes of each field."""

    @property
    def n_features(self) -> int:
        """Features of a row."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        raise NotImplementedError

    def of(self, X: Floats) -> Floats:
        """Return (n, width) seen rows. Each depends on its own row only."""
        raise NotImplementedError

    def is_sound(self) -> bool:
        """Whether the arrays fit each other; asked of a view that was read from a file."""
        raise NotImplementedError

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def read(cls, arrays: dict[str, NDArray[Any]]) -> Self | None:
        """Return the view that these arrays are; None if they are none."""
        found = {name: arrays.get(name) for name in cls.LAYOUT}
        for name, (dtype, axes) in cls.LAYOUT.items():
            array = found[name]
            if array is None or array.dtype != dtype or array.ndim != axes or array.size == 0:
                return None
            if array.dtype.kind == "f" and not (np.abs(array) < MAX_FEATURE).all():
                return None
        view = cls(**found)
        return view if view.is_sound() else None

    def same_as(self, other: View) -> bool:
        """Whether both see every row alike."""
        if self is other:
            return True
        mine, theirs = self.arrays(), other.arrays()
        return self.kind == other.kind and all(
            np.array_equal(array, theirs[name]) for name, array in mine.items()
        )


@dataclass(frozen=True, eq=False)
class Centred(View):
    """Rows measured from a centre, at unit length."""

    center: Floats
    """(d,)"""
    kind: ClassVar[str] = "centred"
    LAYOUT: ClassVar = {"center": (np.float32, 1)}

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return len(self.center)

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        return len(self.center)

    def of(self, X: Floats) -> Floats:
        """Return (n, d) seen rows."""
        return unit_rows(X, self.center)

    def is_sound(self) -> bool:
        """Whether the arrays fit each other."""
        return True


@dataclass(frozen=True, eq=False)
class Homogeneous(Centred):
    """Centred unit rows with a constant at their end, so that functions have thresholds.

    A row z is seen as (z, 1) / sqrt(2): w·z > t is the function (w, -t).
    """

    kind: ClassVar[str] = "homogeneous"

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        return len(self.center) + 1

    def of(self, X: Floats) -> Floats:
        """Return (n, d + 1) seen rows."""
        seen = np.ones((len(X), self.width), np.float32)
        seen[:, :-1] = unit_rows(X, self.center)
        return seen * np.float32(np.sqrt(0.5))


@dataclass(frozen=True, eq=False)
class Anchored(Centred):
    """Rows by their likeness to anchors.

    A centred unit row z becomes exp(-|z - a|^2 / (2 * 2)) for each anchor a, less the mean of that
    over the anchors themselves: the kernel features of KSH (Liu, Wang, Ji, Jiang, Chang, CVPR
    2012), whose bandwidth is the mean squared distance of rows. Of centred unit rows that is 2.
    """

    anchors: Floats
    """(m, d) at unit length, as seen from the centre."""
    offset: Floats
    """(m,) mean likeness of the anchors to each anchor."""
    kind: ClassVar[str] = "anchored"
    LAYOUT: ClassVar = Centred.LAYOUT | {"anchors": (np.float32, 2), "offset": (np.float32, 1)}

    @classmethod
    def by(cls, rows: Floats, center: Floats | None = None) -> Self:
        """Return the view that these rows give as anchors, centred at their mean by default."""
        if center is None:
            center = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        anchors = unit_rows(rows, center)
        likeness = _likeness(anchors, anchors)
        return cls(center, anchors, likeness.mean(axis=0, dtype=np.float64).astype(np.float32))

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        return len(self.anchors)

    def of(self, X: Floats) -> Floats:
        """Return (n, m) seen rows."""
        return unit_rows(_likeness(unit_rows(X, self.center), self.anchors), self.offset)

    def is_sound(self) -> bool:
        """Whether the arrays fit each other."""
        return self.anchors.shape == (len(self.offset), len(self.center))


def margins_by(functions: Floats, Z: Floats) -> Floats:
    """Return (n, n_cycles * k) values w·z; each depends on its own row and function only."""
    out = np.empty((len(Z), functions.shape[0] * functions.shape[1]), np.float32)
    kernels.load().margins_into(Z, functions, out)
    return out


def word_scores(margins: Floats, words: NDArray[np.int8], labels_per_cycle: int) -> Floats:
    """Return (n, n_labels) how far margins point towards words; each depends on its own row only.

    These are the scores of `FrozenMapping.scores`, to rounding, without a direction for each label.
    """
    out = np.empty((len(margins), len(words)), np.float32)
    words = np.require(words, requirements="W")  # which reads them: Numba's wish
    kernels.load().word_scores_into(margins, words, labels_per_cycle, out)
    return out


def _likeness(Z: Floats, anchors: Floats) -> Floats:
    """Return exp(-|z - a|^2 / (2 * BANDWIDTH)) of unit rows and anchors."""
    products = margins_by(anchors[None], Z)
    likeness: Floats = np.exp((products - np.float32(1)) / np.float32(BANDWIDTH))
    return likeness
