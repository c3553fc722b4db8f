"""The baseline supervised hashing must beat: a linear classifier, and its answer as the code.

Sablayrolles, Douze, Jegou, Usunier (ICASSP 2017) point out that with labels known beforehand the
number of an entry's class, ceil(log2 L) bits, ranked by the query's class scores, does better than
the codes of most methods. So every table here has this row.

    their text          here
    classifier          last_           (L, d) one-vs-rest hinge, a step for each class that errs
    class of an entry   its home cycle: cycle c has one function, the classifier of label c
    class score         the asymmetric distance to it, with its sign turned

As a hasher it is the extreme case of ours: one label a cycle, one bit a cycle. An unlabelled entry
keeps the number of its best class as its home; its one bit there is +1.

Defaults: step 1, and the mean of the iterates since a label last joined is served, as in our own
hasher: the same learner, so that only the codes differ.

Where we differ, on purpose:
  * It learns online, so a label is told apart only from rows that come after its first.
  * What is served is each classifier less the mean of all. That takes the same amount from every
    class score, so no ranking changes, and the best class of a row always scores above 0.
  * There is no option `bits`: labels decide.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.kernels.reference import HINGE
from everhash.learn.model_format import require
from everhash.learn.options import ONE_CYCLE
from everhash.peers.description import Description
from everhash.peers.method import Counts, Floats, Layout, Method
from everhash.peers.options import CenterOption, option, size


@dataclass(eq=False, repr=False)
class OneHot(Method):
    """An online one-vs-rest linear classifier whose answer, a class, is the code.

    It draws nothing, so `random_state` has no effect; it is there because every method has one.
    """

    about: ClassVar = Description(
        name="onehot",
        title="one-hot linear classifier",
        year=2017,
        citation="A. Sablayrolles, M. Douze, H. Jegou, N. Usunier: How Should We Evaluate "
        "Supervised Hashing?, IEEE International Conference on Acoustics, Speech and Signal "
        "Processing, 2017",
    )
    step: float = option(1.0, size)
    center: CenterOption = "warmup"
    bits: ClassVar[int] = 1  # type: ignore[misc]
    last_: Floats = field(init=False)
    """(L, d) the newest iterates."""
    mean_: Floats = field(init=False)
    """(L, d) the mean of each one's iterates since a label last joined."""
    changes_: Counts = field(init=False)
    """(L,) how often each has changed."""
    averaged_: Counts = field(init=False)
    """(L,) rounds in each mean."""
    rounds_: Counts = field(init=False)
    """(1,) rows learned."""
    restarts_: Counts = field(init=False)
    """(1,) the round after which averages started again."""
    known_: Counts = field(init=False)
    """(1,) labels of which a row has come."""

    def _whole_layout(self) -> Layout:
        d = self.n_features_in_
        return {
            "functions_": (np.float32, (None, d)),
            "updates_": (np.int64, (1,)),
            "last_": (np.float32, (None, d)),
            "mean_": (np.float32, (None, d)),
            "changes_": (np.int64, (None,)),
            "averaged_": (np.int64, (None,)),
            "rounds_": (np.int64, (1,)),
            "restarts_": (np.int64, (1,)),
            "known_": (np.int64, (1,)),
        }

    def _start(self) -> None:
        self._serve()

    def _serve(self) -> None:
        """Bring what is served up to date with what was learned."""
        if len(self.mean_) == 0:
            self.functions_ = np.zeros((1, self.n_features_in_), np.float32)
        else:
            middle = self.mean_.mean(axis=0, dtype=np.float64).astype(np.float32)
            self.functions_ = self.mean_ - middle

    def _draw_word(self, number: int) -> NDArray[np.int8]:  # noqa: ARG002 - all alike
        return np.ones(1, np.int8)

    def _assign_words(self, labels: list[Hashable]) -> None:
        """Make room for new labels: classifiers of zeros."""
        new = len(self.unknown(labels))
        super()._assign_words(labels)
        if new:
            for name in ("last_", "mean_", "changes_", "averaged_"):
                before = getattr(self, name)
                zeros = np.zeros((new, *before.shape[1:]), before.dtype)
                setattr(self, name, np.concatenate([before, zeros]))
            self.updates_ += new
            self._serve()

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Take the rows between two arrivals of labels at a time: only known classes learn."""
        known = np.maximum.accumulate(np.append(self.known_, labels + 1))
        arrivals = np.flatnonzero(labels >= known[:-1]).tolist()
        for start, stop in pairwise([*sorted({0, *arrivals}), len(Z)]):
            self.known_[0] = known[start + 1]
            self._learn_known(Z[start:stop], labels[start:stop], joined=start in arrivals)
        self._serve()

    def _learn_known(self, Z: Floats, labels: Counts, *, joined: bool) -> None:
        """Take a hinge step for each class that is not sure of its answer.

        See `kernels.reference.learn`: one cycle, whose words are +1 for the class itself and -1 for
        all others. Averages start again where a class has joined with the first row.
        """
        known, joins = int(self.known_[0]), np.zeros(len(Z), np.bool_)
        joins[0] = joined
        words = (2 * np.eye(known, dtype=np.int8) - 1).astype(np.int8)
        before = self.changes_[:known].sum()
        kernels.load().learn(
            Z,
            labels,
            joins,
            words,
            ONE_CYCLE,
            self.last_[None, :known],
            self.mean_[None, :known],
            self.changes_[None, :known],
            self.averaged_[None, :known],
            self.rounds_,
            self.restarts_,
            self._begun["step"],
            False,
            HINGE,
        )
        self.updates_ += self.changes_[:known].sum() - before

    @property
    def versions_(self) -> Counts:
        """(L,) how often the classifier has changed: a change of one class moves every score."""
        self._require_fitted()
        return np.full(len(self.functions_), self.updates_[0] + self._center.moves)

    @property
    def label_bytes_(self) -> int:
        """About how many bytes a new label adds to the hasher."""
        return 12 * self.n_features_in_ + 17

    @property
    def _functions(self) -> Floats:
        return self.functions_[:, None]

    @property
    def _labels_per_cycle(self) -> int:
        return 1

    def _check_state(self) -> None:
        super()._check_state()
        n = len(self._numbers)
        sizes = {len(array) for array in (self.last_, self.mean_, self.changes_, self.averaged_)}
        require(sizes == {n} and len(self.functions_) == max(1, n), f"expected {n} classifiers")
        require(bool(self.known_[0] <= n), "more labels were learned than are known")
        rounds = self.rounds_ - self.restarts_
        fits = bool(rounds[0] >= 0) and bool((self.averaged_ <= rounds).all())
        require(fits, "a mean counts more rounds than there were")
