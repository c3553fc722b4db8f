"""Locality-Sensitive Hashing by random hyperplanes (Charikar, STOC 2002).

    paper               here
    r                   functions_      (bits, d) Gaussian directions, a function a row

h(z) = sgn(r·z): two rows differ in a bit with probability angle / pi. It learns nothing but the
centre of the rows, and is what every learned code must beat.

Where we differ, on purpose:
  * Rows are centred at their mean, which the analysis does not need and real features do.
  * Directions have unit length. It changes no sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from everhash.peers.batch_method import BatchMethod, Report
from everhash.peers.description import Description
from everhash.peers.method import Counts, Floats


@dataclass(eq=False, repr=False)
class LSH(BatchMethod):
    """Signs of random projections."""

    about: ClassVar = Description(
        name="lsh",
        title="Locality-Sensitive Hashing",
        year=2002,
        citation="M. S. Charikar: Similarity Estimation Techniques from Rounding Algorithms, ACM "
        "Symposium on Theory of Computing, 2002",
        online=False,
        supervised=False,
        needs="nothing",
        codewords=False,
    )

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:  # noqa: ARG002
        self.functions_[:] = self._random_functions()
