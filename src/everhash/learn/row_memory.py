"""What the exact learner remembers of its rows: the rows themselves while they are few, then sums.

The first `FIRST_ROWS` rows are kept as they came, and the learner may move the centre of the view.
Then the view is settled, and only sums are kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError, LabelError
from everhash.learn.first_rows import FirstRows
from everhash.learn.growing import GrowingArray
from everhash.learn.ridge import FewRows, ManyRows, Moments
from everhash.learn.rotated_view import Rotated
from everhash.learn.sums import Sums, label_sums, on_grid

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

FIRST_ROWS = 1000
"""Rows that are kept, and after which the view is settled."""


class RowMemory:
    """Rows that can be learned from, added to, taken away from, and merged."""

    def __init__(self, view: Rotated, new_sums: Callable[[int], Sums] = Sums) -> None:
        self.view = view
        self.new_sums = new_sums
        self.settled = False
        """Whether the view no longer changes."""
        self.few: FirstRows | None = FirstRows(view.n_features)
        self.sums: Sums | None = None
        self._totals: GrowingArray[np.float64] = GrowingArray((view.width - 1,), np.float64)
        self.counts: GrowingArray[np.int64] = GrowingArray((), np.int64)
        """(n_labels,) rows of each label."""

    @property
    def rows(self) -> int:
        """Rows remembered."""
        return self.sums.rows if self.sums is not None else len(self._few)

    @property
    def _few(self) -> FirstRows:
        assert self.few is not None  # noqa: S101 - rows are kept where they are not summed up
        return self.few

    def meet(self, n_labels: int) -> None:
        """Make room for this many labels."""
        self.counts.grow_to(n_labels)
        (self._totals if self.sums is None else self.sums.labels).grow_to(n_labels)

    @property
    def totals(self) -> Doubles:
        """(n_labels, D) the sum of each label's rows on the grid."""
        return self._totals.rows if self.sums is None else self.sums.labels.rows

    def on_grid(self, X: Floats) -> Floats:
        """Return rows as they enter sums."""
        return on_grid(self.view.of(X), self.view.steps)

    def add(self, X: Floats, Q: Floats, rows: Counts, labels: Counts) -> None:
        """Remember rows, given as they came and as `on_grid` has them; counts are kept elsewhere.

        `rows` and `labels` pair them with their labels' numbers, rows ascending.
        """
        if self.sums is not None:
            self.sums.add(Q, rows, labels)
            return
        self._few.add(X, rows, labels)
        which, sums = label_sums(Q, rows, labels)
        self._totals.rows[which] += sums

    def check(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Refuse to forget rows that cannot have been learned, as far as that can be noticed."""
        fewer = self._fewer(labels)
        if fewer.min(initial=0) < 0 or len(X) > self.rows:
            raise _never_learned("more rows than were learned with these labels")
        if self.sums is None:
            found = len(self._few.find(X, rows, labels))
            if found < len(X):
                raise _never_learned(f"row {found}, which was not learned with these labels")
        elif not self.sums.could_hold(self.on_grid(X), rows, labels, fewer):
            raise _never_learned("rows that were not learned with these labels")

    def take_away(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Forget rows that `check` let through."""
        if self.sums is None:
            self._few.remove(self._few.find(X, rows, labels))
        else:
            self.sums.add(self.on_grid(X), rows, labels, sign=-1)
        self.counts.rows[:] = self._fewer(labels)

    def _fewer(self, labels: Counts) -> Counts:
        """Return how many rows each label would have left."""
        fewer: Counts = self.counts.rows - np.bincount(labels, minlength=len(self.counts))
        return fewer

    def merge(self, other: RowMemory, numbers: Counts) -> None:
        """Add what another of the same view remembers; for `numbers` see `ExactLearner.merge`."""
        self.sum_up()
        assert self.sums is not None  # noqa: S101 - they have just been summed up
        if other.sums is not None:
            self.sums.merge(other.sums, numbers)
        elif len(other._few):
            few = other._few
            self.sums.add(self.on_grid(few.X.rows), few.rows.rows, numbers[few.labels.rows])
        named = numbers >= 0
        self.counts.rows[numbers[named]] += other.counts.rows[named]

    def merge_labels(self, one: int, other: int) -> None:
        """Let all rows of one label have the other instead. Summed up, a row with both has two."""
        counts = self.counts.rows
        if self.sums is None:
            self._few.merge_labels(one, other)
            counts[:] = np.bincount(self._few.labels.rows, minlength=len(counts))
            return
        if counts[one] + counts[other] > self.rows:
            raise LabelError(
                f"{counts[one]} and {counts[other]} rows have these labels, of {self.rows} in all: "
                "some have both, and count once only",
                hint="after {call drop_label} of one, learn again the rows that have no other",
            )
        counts[other] += counts[one]
        self.sums.labels.rows[other] += self.sums.labels.rows[one]
        counts[one], self.sums.labels.rows[one] = 0, 0

    def drop_label(self, label: int, *, keep_rows: bool) -> None:
        """Let no row have a label; `keep_rows` says whether kept rows may be left without any."""
        self.counts.rows[label] = 0
        if self.sums is None:
            self._few.drop_label(label, keep_rows=keep_rows)
        else:
            self.sums.labels.rows[label] = 0

    def total_up(self) -> Floats:
        """Sum up the labels of kept rows as the view has them now; return the rows on the grid."""
        few, Q = self._few, self.on_grid(self._few.X.rows)
        which, sums = label_sums(Q, few.rows.rows, few.labels.rows)
        self._totals.rows[:] = 0
        self._totals.rows[which] = sums
        return Q

    def moments(self) -> Moments:
        """Return what all labels that have rows are solved from, in order of their numbers.

        A batch names labels before their first rows come; they must not be seen, as BLAS rounds
        otherwise for other shapes.
        """
        known = np.flatnonzero(self.counts.rows)
        steps, counts, n = self.view.steps, self.counts.rows[known], self.rows
        if self.sums is None:
            few = self._few
            labels = np.searchsorted(known, few.labels.rows)
            return FewRows(self.total_up() * steps, few.rows.rows, labels, len(known))
        total = self.sums.total
        mean = steps * total / max(n, 1)
        gram = self.sums.gram - np.outer(total, total / max(n, 1)).T  # .T for Fortran's order
        gram *= steps
        gram *= steps[:, None]
        sums = (self.sums.labels.rows[known] * steps - counts[:, None] * mean).T
        return ManyRows(gram, sums, mean, counts, n)

    @property
    def first_rows(self) -> Floats:
        """(n, d) rows as they came, while they are kept."""
        return self._few.X.rows

    def move_to(self, center: Floats) -> None:
        """Move the centre of the view, which is not settled."""
        self.view = self.view.moved_to(center)

    def sum_up(self) -> None:
        """Settle the view where it is, and keep sums instead of rows."""
        if self.sums is not None:
            return
        self.settled = True
        few, self.few = self._few, None
        self._totals.replace(self._totals.rows[:0])
        self.sums = self.new_sums(self.view.width - 1)
        self.sums.labels.grow_to(len(self.counts))
        if len(few):
            self.sums.add(self.on_grid(few.X.rows), few.rows.rows, few.labels.rows)


def _never_learned(what: str) -> InputError:
    return InputError(
        f"cannot forget {what}",
        hint="give rows and labels as they were learned; nothing has changed",
    )
