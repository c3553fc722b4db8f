"""When all labels are solved again: at rows of the stream that follow from the rows before alone.

That is when the rows that count have grown by the factor `publish`, by a tenth or a fifth at most
while they are few. While few rows have labels, those without help (see `mixture`), so all labels
are solved again also when such rows have grown by half, or the labels by a twentieth: rows that are
like a new label were taken for others before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from everhash.learn.options import Options
from everhash.learn.pool import HELPING, usual_rows
from everhash.learn.row_memory import FIRST_ROWS
from everhash.learn.unlabelled import MOST

if TYPE_CHECKING:
    from everhash.learn.exact import ExactLearner

Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]

OFTEN = ((300, 1.1), (FIRST_ROWS, 1.2))
"""The factor up to so many rows, at most: solving is cheap then, and every row matters."""
MORE, SOME = 1.5, 32
"""That of rows without a label, from so many on."""
NEWER = 1.05
"""That of labels."""
MANY = 1000
"""From so many labels on solving them all takes longer than learning rows: it waits until there are
two more of each, and new labels alone bring no publication."""


def until_publication(
    learner: ExactLearner, counted: Bools, rows: Counts, labels: Counts, options: Options
) -> int:
    """Return how many of the rows to come are taken before all labels are solved again.

    Args:
        learner: that takes them.
        counted: which rows count; the others have no label, and may help.
        rows: the row of each of its labels.
        labels: and the label's number.
        options: of the hasher.
    """
    n = learner.memory.rows
    few = learner.memory.few is not None and n < FIRST_ROWS
    growth = _growth(learner, options)
    if few:
        growth = min([growth, *(factor for most, factor in OFTEN if learner.published_rows < most)])
    due = max(n + 1, int(np.ceil(learner.published_rows * growth))) - n
    due = _after(counted, min(due, FIRST_ROWS - n) if few else due)
    known = np.flatnonzero(learner.label_counts)
    if learner.unlabelled is not None and _is_helped(learner):
        due = min(due, _after(~counted, max(1, _helped_next(learner) - learner.unlabelled.met)))
        unknown = learner.label_counts[labels] == 0
        new = np.sort(np.unique(labels[unknown], return_index=True)[1])
        more = max(1, _labels_next(learner) - len(known))
        if more <= len(new) and _published_labels(learner) < MANY:
            due = min(due, int(rows[unknown][new[more - 1]]) + 1)
    if learner.inverse is None and len(known) < 2 and len(labels):
        # there was nothing to tell apart; a second label changes that
        others = np.flatnonzero(labels != (known[0] if len(known) else labels[0]))
        due = min(due, int(rows[others[0]]) + 1) if len(others) else due
    return due


def may_publish(learner: ExactLearner, n: int, options: Options) -> bool:
    """Whether learning n rows could publish, so that the products of all rows are needed."""
    if learner.memory.sums is None or learner.inverse is None:
        return True
    if learner.unlabelled is not None and _is_helped(learner):
        known = int(np.count_nonzero(learner.label_counts))
        met = learner.unlabelled.met + n
        if met >= _helped_next(learner) or known + n >= _labels_next(learner):
            return True
    growth = _growth(learner, options)
    return learner.memory.rows + n >= int(np.ceil(learner.published_rows * growth))


def _growth(learner: ExactLearner, options: Options) -> float:
    """Return the factor by which rows grow from one publication to the next."""
    labels = _published_labels(learner)
    if labels < MANY:
        return options.publish
    return max(options.publish, 1 + 2 * labels / learner.published_rows)


def _published_labels(learner: ExactLearner) -> int:
    return int(np.count_nonzero(learner.published.rows))


def _is_helped(learner: ExactLearner) -> bool:
    """Whether, as of the last publication, more rows without a label would help more."""
    few = usual_rows(learner.published.rows) < HELPING
    return few and learner.inverse is not None and learner.helped_by < 2 * MOST


def _helped_next(learner: ExactLearner) -> int:
    """Return the rows without a label at which all labels are solved again."""
    return max(SOME, int(np.ceil(MORE * learner.helped_by)))


def _labels_next(learner: ExactLearner) -> int:
    """Return the labels with rows at which all are solved again."""
    known = _published_labels(learner)
    return max(known + 1, int(np.ceil(NEWER * known)))


def _after(mine: Bools, n: int) -> int:
    """Return how many rows there are up to the n-th of these; more than all if it is not there."""
    places = np.flatnonzero(mine)
    return int(places[n - 1]) + 1 if 0 < n <= len(places) else len(mine) + max(1, n)
