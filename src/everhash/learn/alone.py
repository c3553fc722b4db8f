"""Labels that are solved alone between two publications, as new ones and those that have doubled.

The inverse of the last publication serves for them. It has not seen the rows that came since;
without them scores would have no bound. The sum of a label's new rows is taken for a share f of its
own, r of n rows: (Gc + l I + f r r' / n)^-1 r, which is a / (1 + f r'a / n) with
a = (Gc + l I)^-1 r (Sherman and Morrison, 1950).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.learn.row_memory import RowMemory

if TYPE_CHECKING:
    from everhash.learn.exact import ExactLearner

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
Waiting = dict[int, tuple[Doubles, int]]
"""Labels by number: the sum of their rows as it stood, and how many they were."""

TOGETHER = 8
"""Labels that are solved at a time."""


class Due(NamedTuple):
    """A label to be solved, by the rows up to a certain one."""

    row: int
    label: int
    rows: int
    """Rows of the label by then."""


class Solved(NamedTuple):
    """Labels that were solved together."""

    labels: Counts
    """(n,)"""
    sums: Doubles
    """(D, n) of their rows about the mean."""
    counts: Counts
    """(n,) how many these are."""
    weights: Doubles
    """(D, n) by ridge."""


def due_sums(
    dues: list[Due], memory: RowMemory, Q: NDArray[np.float32], rows: Counts, labels: Counts
) -> Waiting:
    """Return the sums of labels as they stood when they were due; only the newest of each counts.

    Args:
        dues: in order.
        memory: of the rows before.
        Q: (n, D) the rows since, on their grid.
        rows: the row of each of its labels.
        labels: and the label's number.
    """
    waiting: Waiting = {}
    for due in {due.label: due for due in dues}.values():
        until = int(np.searchsorted(rows, due.row, side="right"))
        mine = rows[:until][labels[:until] == due.label]
        total = memory.totals[due.label] + Q[mine].sum(axis=0, dtype=np.float64)
        waiting[due.label] = (total, due.rows)
    return waiting


def solved_alone(learner: ExactLearner, waiting: Waiting) -> Iterator[Solved]:
    """Solve labels, some at a time.

    It is always as many at once, some of them twice: BLAS rounds otherwise for other shapes, and
    no label may depend on which others wait with it.
    """
    everyone, view, mean = list(waiting), learner.view, learner.mean
    for start in range(0, len(everyone), TOGETHER):
        some = everyone[start : start + TOGETHER]
        labels = np.array(some + some[-1:] * (TOGETHER - len(some)))
        totals = np.array([waiting[label][0] for label in labels.tolist()])
        counts = np.array([waiting[label][1] for label in labels.tolist()])
        sums = (totals * view.steps - counts[:, None] * mean).T
        assert learner.inverse is not None  # noqa: S101 - the caller has looked
        weights = learner.inverse.solve(sums)
        unseen = 1 - np.minimum(1, learner.published.rows[labels] / np.maximum(counts, 1))
        reach = np.maximum(0, (sums * weights).sum(axis=0)) / np.maximum(counts, 1)
        yield Solved(labels, sums, counts, weights / (1 + unseen * reach))
