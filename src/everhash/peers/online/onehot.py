"""The baseline supervised hashing must beat: a linear classifier, and its answer as the code.

Sablayrolles, Douze, Jegou, Usunier (ICASSP 2017) point out that with labels known beforehand the
number of an entry's class, ceil(log2 L) bits, ranked by the query's class scores, does better than
the codes of most methods. So every table here has this row.

    their text          here
    classifier          last_           (L, d) one-vs-rest hinge, one step for each class that errs
    class of an entry   its home cycle: cycle c has one function, the classifier of label c
    class score         the asymmetric distance to it, with its sign turned

As a hasher it is the extreme case of ours: one label a cycle, one bit a cycle. An unlabelled entry
keeps the number of its best class as its home; its one bit there is +1.

Defaults: step 1, and the mean of the iterates is served, as in our own hasher: the same learner, so
that only the codes differ.

Where we differ, on purpose:
  * It learns online, so a label is told apart only from rows that come after its first.
  * What is served is each classifier less the mean of all. That takes the same amount from every
    class score, so no ranking changes, and the best class of a row always scores above 0.
  * There is no option `bits`: labels decide.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.learn.model_format import require
from everhash.learn.options import positive
from everhash.learn.views import margins_by
from everhash.peers.description import Description
from everhash.peers.method import Check, Counts, Floats, Layout, Method


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
    OPTIONS: ClassVar[dict[str, Check]] = {"step": positive}
    bits: ClassVar[int] = 1  # type: ignore[misc]
    last_: Floats
    """(L, d) the newest iterates."""
    mean_: Floats
    """(L, d) the mean of each one's iterates."""
    averaged_: Counts
    """(L,) rounds in that mean."""
    joined_: Counts
    """(L,) the round each label's first row came in, counted from 1; 0 before."""
    rounds_: Counts
    """(1,) rows learned."""

    def __init__(
        self,
        step: float = 1.0,
        center: str | ArrayLike | None = "warmup",
        random_state: int | None = 0,
    ) -> None:
        self.step = step
        self.center = center
        self.random_state = random_state

    def _whole_layout(self) -> Layout:
        d = self.n_features_in_
        return {
            "functions_": (np.float32, (None, d)),
            "updates_": (np.int64, (1,)),
            "last_": (np.float32, (None, d)),
            "mean_": (np.float32, (None, d)),
            "averaged_": (np.int64, (None,)),
            "joined_": (np.int64, (None,)),
            "rounds_": (np.int64, (1,)),
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
            zeros = np.zeros((new, self.n_features_in_), np.float32)
            self.last_ = np.concatenate([self.last_, zeros])
            self.mean_ = np.concatenate([self.mean_, zeros])
            self.averaged_ = np.append(self.averaged_, np.zeros(new, np.int64))
            self.joined_ = np.append(self.joined_, np.zeros(new, np.int64))
            self.updates_ += new
            self._serve()

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Take a hinge step for each classifier that is not sure of its answer."""
        step = np.float32(self._begun["step"])
        for z, label in zip(Z, labels.tolist(), strict=True):
            self._meet(label)
            known = self.joined_ > 0
            right = margins_by(self.last_[None], z[None])[0]
            right[np.arange(len(right)) != label] *= -1
            wrong = np.flatnonzero(known & (right < 1))
            push = np.where(wrong == label, step, -step).astype(np.float32)
            self._replace(wrong, self.last_[wrong] + np.outer(push, z))
            self.rounds_ += 1
            self.updates_ += bool(len(wrong))
        self._serve()

    def _meet(self, label: int) -> None:
        """Note when a label's first row came: its average starts there."""
        if self.joined_[label] == 0:
            self.joined_[label] = self.rounds_[0] + 1

    def _replace(self, wrong: Counts, new: Floats) -> None:
        """Add iterates to their means: old ones for the rounds they lasted, new ones for this."""
        rounds = self.rounds_[0] - self.joined_[wrong] + 2
        lasted = rounds - 1 - self.averaged_[wrong]
        shares = (np.stack([self.averaged_[wrong], lasted]) / rounds).astype(np.float32)
        old = shares[0, :, None] * self.mean_[wrong] + shares[1, :, None] * self.last_[wrong]
        self.mean_[wrong] = old + new / rounds[:, None].astype(np.float32)
        self.averaged_[wrong] = rounds
        self.last_[wrong] = new

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
        n, rounds = len(self._numbers), self.rounds_[0]
        sizes = {len(array) for array in (self.last_, self.mean_, self.averaged_, self.joined_)}
        require(sizes == {n} and len(self.functions_) == max(1, n), f"not {n} classifiers")
        fits = (self.joined_ <= rounds) & (self.averaged_ <= rounds)
        require(bool(fits.all()), "averages of rounds still to come")
