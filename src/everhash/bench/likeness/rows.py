"""Rows to search and queries, made in blocks: a million of them are never in memory at once.

The same name and seed give the same rows in every process.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.bench import datasets
from everhash.bench.costs.synthetic import SYNTHETIC
from everhash.errors import OptionError

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
CLINC = "clinc-noise"
"""Sentences of CLINC150 with noise."""
SOURCES = (CLINC, SYNTHETIC)
DIM = 384
BLOCK = 50_000
"""Rows made at a time."""
NOISE = 0.3
"""Length of the noise that is added to a sentence, which has length 1."""
CENTRES, GROUPS, OWN, SPREAD = 10_000, 100, 0.5, 1.3
"""Of synthetic rows, as in `benchmarks/find_rows.py`: centres stand in groups."""
BASES, ASKED, ROWS = range(3)
"""What random numbers are drawn for: each has a sequence of its own."""


class RowSource(NamedTuple):
    """Rows and queries of length 1, by the name of a data set and a seed."""

    name: str
    seed: int = 0

    def check(self) -> None:
        """Raise if there are no such rows."""
        if self.name not in SOURCES:
            raise OptionError(
                f"likeness has no rows {self.name!r}",
                hint=f"expected one of: {', '.join(SOURCES)}; leave --data out",
            )
        if self.name == CLINC:
            datasets.require(["clinc150"], "or leave out the runs of clinc-noise")

    def blocks(self, n: int, start: int = 0) -> Iterator[Floats]:
        """Yield n rows in blocks; `start` counts blocks, so that later ones are other rows."""
        for number, first in enumerate(range(0, n, BLOCK), start):
            rng = np.random.default_rng([self.seed, ROWS, number])
            yield self._draw(rng, min(BLOCK, n - first))

    def queries(self, n: int) -> Floats:
        """Return n queries: held-out sentences, or further rows around the same centres."""
        rng = np.random.default_rng([self.seed, ASKED])
        if self.name == SYNTHETIC:
            return self._draw(rng, n)
        held_out = _sentences()[1]
        return held_out[rng.choice(len(held_out), n, replace=n > len(held_out))]

    def _draw(self, rng: np.random.Generator, n: int) -> Floats:
        noise = rng.standard_normal((n, DIM), np.float32)
        if self.name == SYNTHETIC:
            centres, axes = _centres(self.seed)
            return unit(centres[rng.integers(0, len(centres), n)] + noise @ axes)
        bases = _sentences()[0]
        noise *= np.float32(NOISE / np.sqrt(DIM))
        noise += bases[rng.integers(0, len(bases), n)]
        return unit(noise)


def unit(X: Floats) -> Floats:
    """Return rows at length 1."""
    scaled: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return scaled


@cache
def _sentences() -> tuple[Floats, Floats]:
    """Return sentences that rows are made of, and those of the test split, which are held out."""
    data = datasets.load("clinc150")
    rows = unit(data.X)
    return rows[~data.is_query], rows[data.is_query]


@cache
def _centres(seed: int) -> tuple[Floats, Floats]:
    """Return the centres of synthetic rows, and the axes of the noise around them.

    The spectrum of the noise falls as 1/sqrt(i), as that of embeddings does: where all directions
    have the same share, all rows of a centre are equally far from each other.
    """
    rng = np.random.default_rng([seed, BASES])
    groups = rng.standard_normal((GROUPS, DIM), np.float32)
    own = rng.standard_normal((CENTRES, DIM), np.float32)
    centres = groups[np.arange(CENTRES) % GROUPS] + np.float32(OWN) * own
    falling = np.arange(1, DIM + 1, dtype=np.float32) ** -0.5
    scale = np.float32(SPREAD) * falling / np.sqrt((falling**2).mean())
    axes, _ = np.linalg.qr(rng.standard_normal((DIM, DIM), np.float32))
    return centres, scale[:, None] * axes
