"""A small memory of rows, so that a stream that arrives label by label does not forget.

Plain SGD on a stream sorted by label unlearns each label while it learns the next. After a new row
we therefore learn once more from a remembered row of the same cycle, if the stream has long not
sent its label: where labels keep coming, replaying them would only wear the remembered rows in. The
memory keeps a uniform sample of at most `keep` rows a label, raw, because the centre may move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.kernels.reference import CHANCES
from everhash.learn import seeds
from everhash.learn.growing import GrowingArray

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class Lessons(NamedTuple):
    """What to learn from, in order: new rows, and remembered ones between them."""

    rows: Floats
    times: Counts
    """Which new row each one is, or follows."""
    labels: Counts
    joins: NDArray[np.bool_]
    """Where a label arrives."""


class Memory:
    """At most `keep` rows of each label."""

    def __init__(self, keep: int, n_features: int, *, seed: int) -> None:
        self.keep = keep
        self.draws = 0
        self._seed = seed
        self.rows: GrowingArray[np.float32] = GrowingArray((n_features,), np.float32)
        self.clock: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.heard: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.seen: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.slots: GrowingArray[np.int64] = GrowingArray((keep,), np.int64)

    def meet(self, n_labels: int, labels_per_cycle: int) -> None:
        """Make room for this many labels."""
        for array in (self.heard, self.seen, self.slots):
            array.grow_to(n_labels)
        self.clock.grow_to(-(-n_labels // labels_per_cycle))

    def weave(self, X: Floats, labels: Counts, labels_per_cycle: int, known: int) -> Lessons:
        """Lay remembered rows between new ones, and remember some of the new.

        Args:
            X: (n, d) new rows.
            labels: (n,) the number of each one's label.
            labels_per_cycle: label number i lives in cycle i // labels_per_cycle.
            known: labels that had arrived before these rows.
        """
        chances = self._chances(len(labels))
        sources, times, learned, joins, written, stored = kernels.load().plan_replay(
            labels,
            labels_per_cycle,
            known,
            chances,
            self.clock.rows,
            self.heard.rows,
            self.seen.rows,
            self.slots.rows,
            len(self.rows),
        )
        remembered = sources < 0
        rows = X[np.where(remembered, 0, sources)]
        rows[remembered] = self.rows.rows[~sources[remembered]]
        self.rows.grow_to(stored)
        changed = np.flatnonzero(written >= 0)
        self.rows.rows[changed] = X[written[changed]]
        return Lessons(rows, times, learned, joins)

    def _chances(self, n: int) -> NDArray[np.float64]:
        """Return uniform numbers for the next n rows, the same however rows fall into batches."""
        stream = seeds.stream(self._seed, seeds.REPLAY)
        steps = -(-CHANCES // 4)  # the stream moves four numbers a step
        stream.advance(self.draws * steps)
        self.draws += n
        numbers = np.random.Generator(stream).random((n, 4 * steps))
        return np.ascontiguousarray(numbers[:, :CHANCES])
