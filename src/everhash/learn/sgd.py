"""The paper's learner: stochastic gradient descent, one step for each label of each row.

Beyond the paper, each switched off by `OnlineHasher.paper`: served weights are the mean of the
iterates (`average`), and a few remembered rows keep a stream that arrives label by label from
forgetting (`replay`). Rows are centred by a mean that never looks ahead (see `centering`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.learn.centering import Center, unit_rows
from everhash.learn.growing import GrowingArray
from everhash.learn.mapping import Mapping
from everhash.learn.options import Options
from everhash.learn.replay import Memory
from everhash.learn.views import Centred

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]

BLOCK = 1024
"""Rows laid out at a time. Bounds memory; results do not depend on it."""


class SgdLearner:
    """Functions that move a step with every row."""

    def __init__(
        self, words: GrowingArray[np.int8], n_features: int, options: Options, seed: int
    ) -> None:
        self._words, self._rho = words, options.labels_per_cycle
        self.mapping = Mapping(options.bits, n_features, average=options.average, seed=seed)
        self.memory = Memory(options.replay, n_features, seed=seed)
        point = options.center if isinstance(options.center, np.ndarray) else None
        self.center = Center(n_features, point, follows=isinstance(options.center, str))
        self.known = 0
        """Labels that have joined their cycles."""

    @property
    def functions(self) -> Floats:
        """(n_cycles, k, d) functions of all cycles."""
        return self.mapping.functions

    @property
    def view(self) -> Centred:
        """How the functions see a row."""
        return Centred(self.center.point)

    @property
    def updates(self) -> Counts:
        """(n_cycles, k) how often each function has changed.

        While the running mean still moves, every row changes every function.
        """
        return self.mapping.updates.rows + self.center.moves

    @property
    def lessons(self) -> int:
        """Rows learned so far, once for each of their labels."""
        return self.memory.draws

    @property
    def label_counts(self) -> Counts | None:
        """(n_labels,) rows learned of each label: the memory counts them, if there is one."""
        return self.memory.seen.rows if self.memory.keep else None

    @property
    def label_bytes(self) -> int:
        """About how many bytes a label takes: its share of a cycle's functions, and its memory."""
        functions = -(-8 * self.mapping.bits * self.mapping.n_features // self._rho)
        return functions + 8 * self.memory.keep

    @property
    def n_labels(self) -> int:
        """Labels that have words."""
        return len(self._words)

    def open_cycle(self) -> None:
        """Append k functions (`init()` in Algorithm 1)."""
        self.mapping.open_cycle()

    def meet(self, n_labels: int) -> None:
        """Make room for this many labels."""
        self.memory.meet(n_labels, self._rho)

    def join(self, n_labels: int) -> None:
        """Let labels up to this many join their cycles before a row of theirs is learned."""
        for label in range(self.known, n_labels):
            self.mapping.restart(label // self._rho)
        self.known = n_labels

    def learn(self, X: Floats, rows: Counts, labels: Counts, options: Options) -> None:
        """Lines 18-20: an update for each label of each row, with remembered rows in between.

        Args:
            X: (n, d) rows in order.
            rows: the row of each label, ascending.
            labels: the label's number.
            options: step, schedule and loss may change from call to call.
        """
        for start in range(0, len(X), BLOCK):
            inside = slice(*np.searchsorted(rows, (start, start + BLOCK)))
            self._learn(X[start : start + BLOCK], rows[inside] - start, labels[inside], options)
            self.known = max(self.known, int(labels[inside].max(initial=-1)) + 1)

    def _learn(self, X: Floats, rows: Counts, labels: Counts, options: Options) -> None:
        centers = self.center.follow(X)
        if len(rows) == 0:
            return
        lessons = self.memory.weave(X[rows], labels, self._rho, self.known)
        moment = np.minimum(rows[lessons.times], len(centers) - 1)
        self.mapping.learn(
            unit_rows(lessons.rows, centers, moment),
            lessons.labels,
            lessons.joins,
            self._words.rows,
            self._rho,
            options.step,
            options.decays,
            options.loss,
        )
