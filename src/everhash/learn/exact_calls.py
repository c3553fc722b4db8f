"""What only the exact learner can do: publish, forget, fork, merge, and say how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import LabelError, OptionError
from everhash.learn.classifying import Classifying
from everhash.learn.exact import ExactLearner
from everhash.learn.options import Options
from everhash.learn.posterior import Posterior, nothing_learned, softmax_in_place
from everhash.learn.record import Accuracy
from everhash.learn.sgd import SgdLearner
from everhash.learn.sums import GONE
from everhash.stream import Labels, as_label


class ExactCalls(Classifying):
    """Calls that another learner refuses; `OnlineHasher` has labels, cycles and words."""

    _begun: Options
    _learner: ExactLearner | SgdLearner

    def _assign_codewords(self, labels: list[Hashable]) -> list[Hashable]:
        """Give new labels their words; return those whose word another label has too."""
        raise NotImplementedError

    def _warn_of(self, reused: list[Hashable]) -> None:
        """Warn of labels that share a word."""
        raise NotImplementedError

    @property
    def publish(self) -> Callable[[], Self]:
        """Solve for all functions now, from all that was learned. Exact learner only.

        `publish` is also the option that says when this happens by itself; `get_params` returns it.
        """
        return self._publish_now

    @publish.setter
    def publish(self, growth: float) -> None:
        vars(self)["publish"] = growth

    def _publish_now(self) -> Self:
        self._exact("publish").publish()
        return self

    def forget(self, X: ArrayLike, y: Any) -> Self:
        """Take back rows that were learned, given as they were. Exact learner only.

        All or nothing. Their labels are solved again at once; after `publish`, or the next
        publication, it is as if the rows had never come, but for the centre of the view, which
        stays where the first 1,000 rows have put it. To correct a label, forget the row with the
        wrong one and learn it with the right one.
        """
        return super().forget(X, y)

    def forget_rows(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Take back rows that `as_rows` and `as_labels` have checked."""
        learner = self._exact("forget")
        learner.forget(rows, labels.rows, self.numbers(labels.values)[labels.which])

    def check_forget(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Refuse rows that cannot be taken back, before anything has changed."""
        learner = self._exact("forget")
        learner.check_forget(rows, labels.rows, self.numbers(labels.values)[labels.which])

    def fork(self) -> Self:
        """Return a hasher with the same view, labels and words that has learned nothing.

        It can learn elsewhere, in parallel, and be merged afterwards. From now on the centre of the
        view, the mean of the rows so far, is fixed: learn a sample of the stream first.
        Exact learner only.
        """
        learner = self._exact("fork")
        learner.settle()
        other = type(self)(**self.get_params()).begin(self.n_features_in_)
        if isinstance(names := getattr(self, "feature_names_in_", None), np.ndarray):
            other.feature_names_in_ = names
        other._begin(self._begun)
        other._exact("fork").begin_like(learner)
        other._assign_codewords(self._names)
        return other

    def merge(self, *others: ExactCalls) -> Self:
        """Add what forks of this hasher, or hashers forked from the same one, have learned.

        Sums and counts add up, labels that are new here get words, and all functions are solved
        again: each label has the classifier that one hasher would have learned from all the rows.
        The others stay as they are. Exact learner only; all or nothing.
        """
        mine = self._exact("merge")
        theirs = [other._exact("merge") for other in others]
        new = [name for other in others for name in other._names if name is not None]
        if len({id(learner) for learner in (mine, *theirs)}) <= len(theirs):
            raise OptionError("a hasher cannot be merged twice", hint="give each fork once")
        for learner in theirs:
            if not mine.can_merge(learner):
                raise OptionError(
                    "only hashers that see rows alike can be merged",
                    hint="let them start as forks of one hasher",
                )
        self.check_room(new)
        self._warn_of(self._assign_codewords(new))
        for other, learner in zip(others, theirs, strict=True):
            numbers = [self._numbers.get(name, GONE) for name in other._names]
            mine.merge(learner, np.array(numbers, np.int64))
        mine.publish()
        return self

    def merge_labels(self, label: Any, into: Any) -> Self:
        """Let all rows of a label have another one instead, and publish. Exact learner only.

        It is as if they had been learned so. But once rows are summed up, nobody knows which had
        both labels: such a row then counts twice. The label is gone; see `labels_`.
        """
        learner = self._exact("merge labels")
        label, into = as_label(label), as_label(into)
        one, other = self.numbers([label, into]).tolist()
        if one == other:
            raise LabelError(f"cannot merge {label!r} into itself", hint="give another label")
        learner.merge_labels(one, other)
        self._remove_name(label)
        return self

    def drop_label(self, label: Any) -> Self:
        """Forget what was learned of a label, and publish. Exact learner only.

        While rows are kept those without another label are forgotten too; once they are summed up,
        they stay as rows that have none. The label is gone; see `labels_`.
        """
        learner = self._exact("drop labels")
        label = as_label(label)
        learner.drop_label(int(self.numbers([label])[0]))
        self._remove_name(label)
        return self

    def _exact(self, what: str) -> ExactLearner:
        """Return the learner, if it is the exact one."""
        self._require_fitted()
        if not isinstance(self._learner, ExactLearner):
            raise OptionError(
                f"the {self._begun.learner} learner cannot {what}",
                hint='{option learner="exact"} can',
            )
        return self._learner

    @property
    def accuracy_(self) -> Accuracy | None:
        """How often rows were right before they were learned; None where that is not counted."""
        self._require_fitted()
        learner = self._learner
        return learner.record.accuracy if isinstance(learner, ExactLearner) else None

    @property
    def label_accuracies_(self) -> list[float | None] | None:
        """The same for each label; None for one of which no row was scored yet."""
        self._require_fitted()
        learner = self._learner
        return learner.record.label_accuracies if isinstance(learner, ExactLearner) else None

    @property
    def rows_(self) -> int | None:
        """Rows learned and not forgotten; None where they are not counted."""
        self._require_fitted()
        learner = self._learner
        return learner.memory.rows if isinstance(learner, ExactLearner) else None

    @property
    def published_rows_(self) -> int | None:
        """Rows there were when all functions were last solved; None where none is solved."""
        self._require_fitted()
        learner = self._learner
        return learner.published_rows if isinstance(learner, ExactLearner) else None

    def posterior(self, rows: NDArray[np.float32]) -> Posterior:
        """Return how likely each label is for rows that `as_rows` has checked.

        The exact learner asks class means and the labels' own classifiers (see `pool`).
        Probabilities and novelty are calibrated on rows that were scored before they were learned.
        """
        learner = self._learner
        if not isinstance(learner, ExactLearner):
            return super().posterior(rows)
        if len(learner.served.unknown) == learner.n_labels:
            return nothing_learned(len(rows), learner.n_labels)
        scores = learner.served.pooled_scores(learner.view.of(rows))
        best = softmax_in_place(scores, learner.record.inverse_temperature)
        return Posterior(scores, learner.record.best_scores.novelty(best))

    @property
    def trust_(self) -> NDArray[np.float32]:
        """(bits + 1,) how often a word at each distance from the nearest codeword has its label.

        Counted on rows before they were learned; with the sgd learner a guess. Not to write to.
        """
        self._require_fitted()
        learner = self._learner
        return learner.record.trust.table if isinstance(learner, ExactLearner) else super().trust_

    @property
    def helping_rows_(self) -> int:
        """Rows without a label that have come to help, less those that were forgotten."""
        learner = self._learner
        if not isinstance(learner, ExactLearner) or learner.unlabelled is None:
            return 0
        return learner.unlabelled.met

    @property
    def generation_(self) -> int:
        """How often all functions were solved together; see `publish`."""
        self._require_fitted()
        learner = self._learner
        return (
            learner.served.publications
            if isinstance(learner, ExactLearner)
            else super().generation_
        )
