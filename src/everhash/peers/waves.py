"""Rows seen as waves: cosines of a row's place along directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from everhash.learn.centering import unit_rows
from everhash.learn.views import Centred, Floats, margins_by

MAX_FREQUENCY = 1e12
"""What frequencies and phases stay below, so that sums of them are finite."""


@dataclass(frozen=True, eq=False)
class Waves(Centred):
    """A centred unit row z becomes cos(w·z + p) for each wave w with phase p, at unit length."""

    waves: Floats
    """(m, d) the direction of each wave, as long as its frequency."""
    phases: Floats
    """(m,) where each wave stands at the centre."""
    kind: ClassVar[str] = "waves"
    LAYOUT: ClassVar = Centred.LAYOUT | {"waves": (np.float32, 2), "phases": (np.float32, 1)}

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        return len(self.waves)

    def of(self, X: Floats) -> Floats:
        """Return (n, m) seen rows."""
        along = margins_by(self.waves[None], unit_rows(X, self.center)) + self.phases
        return unit_rows(np.cos(along), np.zeros(self.width, np.float32))

    def is_sound(self) -> bool:
        """Whether the arrays fit each other."""
        finite = all((np.abs(array) < MAX_FREQUENCY).all() for array in (self.waves, self.phases))
        return finite and self.waves.shape == (len(self.phases), len(self.center))
