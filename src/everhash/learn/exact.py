"""The exact learner: one pass over the stream that equals the batch, in any order.

Each function of a cycle is fitted to its labels' codewords by squared loss, rows of other cycles
having target 0. That is ridge regression, and its solution needs nothing but sums of the rows (see
`sums` and `ridge`): with a_y the classifier of label y, the functions of cycle c are

    W_c = sum over labels y of c of  word_y a_y'

How likely labels are is said by other scores, made of the same sums (see `pool`).

What is served changes only at certain rows of the stream, so that nothing goes stale in between:
  * All labels are solved, and a penalty is chosen, when rows have grown enough (`publication`).
  * In between, a label that is new or has doubled is solved alone, with the inverse of the last
    publication (`alone`).

Rows are scored before they are learned (see `record`), by what is served at that moment.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.learn.alone import Due, Waiting, due_sums, solved_alone
from everhash.learn.blas import one_thread
from everhash.learn.growing import GrowingArray
from everhash.learn.left_out import right_without, sample
from everhash.learn.mixture import hints_of
from everhash.learn.options import Options
from everhash.learn.pool import HELPING, RIDGE_ALONE, make_pool, usual_rows
from everhash.learn.publication import until_publication
from everhash.learn.record import Record
from everhash.learn.ridge import MIDDLE, FewRows, Inverse
from everhash.learn.rotated_view import Rotated
from everhash.learn.row_memory import FIRST_ROWS, RowMemory
from everhash.learn.served_functions import ServedFunctions
from everhash.learn.sums import on_grid
from everhash.learn.unlabelled import Unlabelled

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

BLOCK = 4096
"""Rows seen at a time. Bounds memory; results do not depend on it."""
SEARCH_AGAIN = 4
"""The penalty is chosen anew when rows have grown by this factor."""
DOUBLED = 2
"""A label that has grown by this factor is solved alone."""


class ExactLearner:
    """Learns by sums, publishes solutions.

    Args:
        words: each label's word; they are handed out elsewhere.
        n_features: of a row.
        options: of the hasher.
        seed: of the view and of the first directions.
    """

    def __init__(
        self, words: GrowingArray[np.int8], n_features: int, options: Options, seed: int
    ) -> None:
        view = Rotated.draw(np.zeros(n_features, np.float32), options.features, seed)
        self.learns_unlabelled = options.learn_unlabelled is True
        self.unlabelled = Unlabelled(n_features) if options.learn_unlabelled == "auto" else None
        self.memory = RowMemory(view)
        self.served = ServedFunctions(words, view, options.labels_per_cycle, seed)
        self.record = Record(options.bits)
        self.lessons = 0
        self.view = view
        """The memory's, as it was at the last publication."""
        self.solved: GrowingArray[np.int64] = GrowingArray((), np.int64)
        """(n_labels,) rows of each label when it was last solved."""
        self.published: GrowingArray[np.int64] = GrowingArray((), np.int64)
        """(n_labels,) and when all were."""
        self.published_rows = 0
        self.searched_rows = 0
        self.penalty = MIDDLE
        self.mean = np.zeros(view.width - 1)
        self.inverse: Inverse | None = None
        self.pool = RIDGE_ALONE
        self.helped_by = 0
        """Rows without a label that had come when all labels were last solved."""
        self._waiting: Waiting = {}

    # What is served

    @property
    def functions(self) -> Floats:
        """(n_cycles, k, w) functions of all cycles."""
        return self.served.functions.rows

    @property
    def updates(self) -> Counts:
        """(n_cycles, k) how often each function has changed."""
        return self.served.updates

    @property
    def n_labels(self) -> int:
        """Labels that have words."""
        return self.served.n_labels

    @property
    def label_counts(self) -> Counts:
        """(n_labels,) rows learned of each label."""
        return self.memory.counts.rows

    @property
    def label_bytes(self) -> int:
        """About how many bytes a label takes: its sum and its classifier."""
        return 8 * self.view.width

    # Labels and cycles

    def open_cycle(self) -> None:
        """Append functions for labels to come: random directions until something is learned."""
        self.served.open_cycle()

    def meet(self, n_labels: int) -> None:
        """Make room for this many labels."""
        self.solved.grow_to(n_labels)
        self.published.grow_to(n_labels)
        self.served.meet(n_labels)
        self.memory.meet(n_labels)
        self.record.grow_to(n_labels)

    # Learning

    @one_thread()
    def learn(self, X: Floats, rows: Counts, labels: Counts, options: Options) -> None:
        """Learn rows in order; `rows` and `labels` pair them with their labels' numbers."""
        counted = np.ones(len(X), np.bool_)
        if not self.learns_unlabelled:
            counted[:] = False
            counted[rows] = True
        start = 0
        while start < len(X):
            later = slice(int(np.searchsorted(rows, start)), None)
            due = until_publication(
                self, counted[start:], rows[later] - start, labels[later], options
            )
            stop = min(start + due, start + BLOCK, len(X))
            inside = slice(*np.searchsorted(rows, (start, stop)))
            mine = counted[start:stop]
            if mine.any():
                numbers = np.cumsum(mine) - 1
                self._take(X[start:stop][mine], numbers[rows[inside] - start], labels[inside])
            if self.unlabelled is not None:
                self.unlabelled.add(X[start:stop][~mine])
            if stop == start + due:
                self._publish_in_time()
            start = stop
        self._solve_waiting()

    def _that_count(self, X: Floats, rows: Counts) -> tuple[Floats, Counts]:
        """Return the rows that are learned from: those with labels, unless all are."""
        if self.learns_unlabelled:
            return X, rows
        labelled, numbered = np.unique(rows, return_inverse=True)
        return (X if len(labelled) == len(X) else X[labelled]), numbered.astype(np.int64)

    def _take(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Learn rows between two publications, some of them scored before."""
        Z = self.view.of(X)
        Q = on_grid(Z, self.view.steps)
        sampled = self.record.pick(np.unique(rows))
        dues = self._count(rows, labels)
        before = np.searchsorted([due.row for due in dues], sampled)
        done = 0
        for here, group in groupby(zip(before.tolist(), sampled.tolist(), strict=True), _first):
            self._waiting |= due_sums(dues[done:here], self.memory, Q, rows, labels)
            self._solve_waiting()
            self._score(Z, np.array([row for _, row in group]), rows, labels)
            done = here
        self._waiting |= due_sums(dues[done:], self.memory, Q, rows, labels)
        self.memory.add(X, Q, rows, labels)
        self.lessons += len(rows)

    def _count(self, rows: Counts, labels: Counts) -> list[Due]:
        """Count labels row by row; return those that are to be solved, and when."""
        counts, solved, dues = self.memory.counts.rows, self.solved.rows, []
        if self.inverse is None:
            np.add.at(counts, labels, 1)
            return []
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            counts[label] = count = int(counts[label]) + 1
            if count >= DOUBLED * solved[label]:
                solved[label] = count
                self.served.count_change(label)
                dues.append(Due(row, label, count))
        return dues

    def _score(self, Z: Floats, sampled: Counts, rows: Counts, labels: Counts) -> None:
        """Score rows by what is served, if any of their labels is known by now."""
        steps = np.flatnonzero(np.isin(rows, sampled))
        steps = steps[self.served.known.rows[labels[steps]]]
        scored, which = np.unique(rows[steps], return_inverse=True)
        if len(scored):
            seen = Z[scored]
            scores = self.served.pooled_scores(seen)
            nearest, distances = self.served.nearest_words(seen, self.served.scores(seen))
            self.record.take(scores, nearest, distances, which.astype(np.int64), labels[steps])

    def _solve_waiting(self) -> None:
        """Solve labels alone; only their own cycles move."""
        waiting, self._waiting = self._waiting, {}
        if self.inverse is None:
            return
        for labels, sums, counts, weights in solved_alone(self, waiting):
            self.served.serve(labels, weights, self.mean)
            self.served.judge(labels, *self.pool.scores(weights, sums, counts, labels), self.mean)

    # Publishing

    @one_thread()
    def publish(self) -> None:
        """Solve all labels now, the penalty chosen afresh: from the sums, not from what was."""
        self._publish(MIDDLE, search=True)

    def _publish_in_time(self) -> None:
        """Solve all labels because rows have grown."""
        grown = self.memory.rows >= SEARCH_AGAIN * self.searched_rows
        if self.memory.few is not None and self.memory.rows >= FIRST_ROWS:
            self._center()
            self.memory.sum_up()
            grown = True
        self._publish(self.penalty, search=grown)

    def _publish(self, start: int, *, search: bool) -> None:
        self._waiting = {}
        self._center()
        memory = self.memory
        moments = memory.moments()
        solution, self.mean = moments.ridge(start, search=search), moments.mean
        self.view, self.published_rows = memory.view, memory.rows
        counts = memory.counts.rows
        known, rest = np.flatnonzero(counts), np.flatnonzero(counts == 0)
        weights = np.zeros((len(self.mean), len(known)))
        self.inverse, self.pool = None, RIDGE_ALONE
        if solution is not None:
            self.inverse, self.penalty = solution.inverse, solution.penalty
            weights = solution.weights
            searched = search or memory.few is not None
            self.searched_rows = memory.rows if searched else self.searched_rows
            others = self.unlabelled
            hints = None if others is None else hints_of(others.rows, memory, moments)
            self.pool = make_pool(moments, weights, self.penalty, counts[known], known, hints)
        self.published.replace(counts.copy())
        self.solved.replace(counts.copy())
        self.helped_by = 0 if self.unlabelled is None else self.unlabelled.met
        scores = self.pool.scores(weights, moments.sums, counts[known], known)
        self.served.publications += 1
        self.served.forget(rest)
        self.served.serve(known, weights, self.mean)
        self.served.judge(known, *scores, self.mean)
        self.record.calibrate(len(known), usual_rows(counts))
        if solution is not None and isinstance(moments, FewRows) and usual_rows(counts) < HELPING:
            some = sample(moments, memory.first_rows, counts[known])
            right = right_without(moments, solution, self.pool, counts[known], known, some)
            self.record.replace_latest(len(some), right)

    def _center(self) -> None:
        """Move the centre of the view to the mean of the rows that are kept, while it may move."""
        if not self.memory.settled and self.memory.rows:
            more = [] if self.unlabelled is None else [self.unlabelled.rows]
            rows = np.concatenate([self.memory.first_rows, *more])
            self.memory.move_to(rows.mean(axis=0, dtype=np.float64).astype(np.float32))

    # Forgetting and merging

    def check_forget(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Refuse to forget what cannot have been learned, before anything has changed.

        Of rows without a label only some may have been kept, so none is refused.
        """
        self.memory.check(*self._that_count(X, rows), labels)

    @one_thread()
    def forget(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Take rows away. Their labels are solved again, alone; the next publication is exact."""
        self.check_forget(X, rows, labels)
        if self.unlabelled is not None:
            self.unlabelled.remove(np.delete(X, rows, axis=0))
        X, rows = self._that_count(X, rows)
        self.memory.take_away(X, rows, labels)
        self.lessons += len(rows)
        if self.memory.few is not None:
            self.publish()
            return
        for label in np.unique(labels).tolist():
            count = int(self.memory.counts.rows[label])
            self.solved.rows[label] = count
            self.served.count_change(label)
            self._waiting[label] = (self.memory.totals[label].copy(), count)
        self._solve_waiting()

    @one_thread()
    def merge(self, other: ExactLearner, numbers: Counts) -> None:
        """Add what another of the same view learned; `numbers` are its labels' here, or GONE."""
        self.memory.merge(other.memory, numbers)
        self.record.merge(other.record, numbers)
        if self.unlabelled is not None and other.unlabelled is not None:
            self.unlabelled.merge(other.unlabelled)
        self.lessons += other.lessons

    def merge_labels(self, one: int, other: int) -> None:
        """Let all rows of one label have the other instead, then publish."""
        self.memory.merge_labels(one, other)
        self.record.merge_labels(one, other)
        self.publish()

    def drop_label(self, label: int) -> None:
        """Let no row have a label any more, then publish."""
        self.memory.drop_label(label, keep_rows=self.learns_unlabelled)
        self.record.drop_label(label)
        self.publish()

    def can_merge(self, other: ExactLearner) -> bool:
        """Whether both see rows alike, and always will."""
        settled = self.memory.settled and other.memory.settled
        return settled and self.memory.view.same_as(other.memory.view)

    def settle(self) -> None:
        """Fix the view from now on."""
        if self.memory.settled:
            return
        if self.memory.rows == 0:
            raise OptionError(
                "the view has no centre yet: no row was learned",
                hint="learn a sample of the stream first, some hundred rows",
            )
        self._center()
        self.memory.settled = True
        self.publish()

    def begin_like(self, other: ExactLearner) -> None:
        """Start with the view of another, which is settled."""
        self.view = self.memory.view = other.view
        self.memory.settled = True


def _first(pair: tuple[int, int]) -> int:
    return pair[0]
