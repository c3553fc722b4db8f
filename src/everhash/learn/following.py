"""Learning in shards: each sums up its own rows, one lead solves, and all serve what it solved.

A lead is an ordinary hasher with the exact learner. It sees every row, since a row may change what
is served (see `exact`), but leaves the costly part to the shards: the products of all rows, D^2
numbers a row, which only a publication needs (`split_sums`). A follower is a hasher that learns
nothing by itself: rows that it is given are added to its own sums, and what it serves it takes over
from the lead (`Solved`). Sums are whole numbers, so those of all shards add up to exactly what one
machine would have.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.learn.exact import ExactLearner
from everhash.learn.hasher import OnlineHasher
from everhash.learn.options import Options
from everhash.learn.row_memory import RowMemory
from everhash.learn.sums import Sums

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

LATEST = ("latest_rows", "latest_right")
FIGURES = (
    *("lessons", "rows", "published_rows", "publications", "scored", "right", "loss"),
    *LATEST,
)
"""Counts of a lead that its followers tell too."""


class Solved(NamedTuple):
    """What a lead serves now and did not serve before."""

    names: list[tuple[int, Hashable]]
    """Labels that are new or have another name, by number; None for one that is gone."""
    labels: Counts
    """(m,) labels with other classifiers."""
    classifiers: Floats
    """(m, w)"""
    pooled: Floats
    """(m, w) what says how likely they are."""
    counted: Counts
    """(c,) labels with other counts."""
    counts: Counts
    """(c, 3) rows learned, rows scored, and how many of those were right."""
    changes: Counts
    """(n_cycles,) how often labels of a cycle were solved alone."""
    center: Floats
    """(d,) of the view."""
    trust: Counts
    """(2, bits + 1) rows by their distance from a codeword, and those with its label."""
    best_scores: Counts
    """Rows by the score of their best label."""
    figures: dict[str, int]
    """See `FIGURES`."""
    inverse_temperature: float
    summing: bool
    """Whether rows are summed up from now on; until then the lead keeps them."""


class Publisher:
    """Tells what a lead's hasher serves that it did not serve when it was last asked."""

    def __init__(self, hasher: OnlineHasher) -> None:
        self._hasher = hasher
        self._names = list(hasher._names)
        self._counts = _counts(learner_of(hasher))
        self._publications = learner_of(hasher).served.publications
        learner_of(hasher).served.take_moved()

    def published(self) -> bool:
        """Whether all labels were solved together since the last call of `take`."""
        return learner_of(self._hasher).served.publications != self._publications

    def take(self) -> Solved:
        """Return what is new since the last call."""
        learner, names = learner_of(self._hasher), self._hasher._names
        known, counts = len(self._names), _counts(learner)
        before = np.zeros_like(counts)
        before[: len(self._counts)] = self._counts
        counted = np.flatnonzero((counts != before).any(axis=1))
        renamed = [
            (number, name)
            for number, name in enumerate(names)
            if number >= known or self._names[number] != name
        ]
        self._names, self._counts = list(names), counts
        self._publications = learner.served.publications
        return _solved(learner, renamed, learner.served.take_moved(), counted)


def everything(hasher: OnlineHasher) -> Solved:
    """Return all that a hasher serves."""
    learner, numbers = learner_of(hasher), np.arange(len(hasher._names))
    return _solved(learner, list(enumerate(hasher._names)), numbers, numbers)


def _solved(
    learner: ExactLearner, names: list[tuple[int, Hashable]], labels: Counts, counted: Counts
) -> Solved:
    record, memory = learner.record, learner.memory
    own = memory.own if isinstance(memory, OwnRows) else memory.sums
    return Solved(
        names=names,
        labels=labels,
        classifiers=learner.served.classifiers.rows[labels],
        pooled=learner.served.pooled.rows[labels],
        counted=counted,
        counts=_counts(learner)[counted],
        changes=learner.served.changes.rows.copy(),
        center=learner.view.center,
        trust=np.stack([record.trust.rows, record.trust.right]),
        best_scores=record.best_scores.rows,
        figures={name: _figure(learner, name) for name in FIGURES},
        inverse_temperature=record.inverse_temperature,
        summing=own is not None,
    )


def learner_of(hasher: OnlineHasher) -> ExactLearner:
    """Return the exact learner of a hasher that leads or follows."""
    return hasher._exact("lead or follow")


def _counts(learner: ExactLearner) -> Counts:
    """Return (n_labels, 3) what `Solved.counts` has."""
    record = learner.record
    columns = (learner.label_counts, record.label_rows.rows, record.label_right.rows)
    return np.stack(columns, axis=1)


def _figure(learner: ExactLearner, name: str) -> int:
    if name in ("right", "loss"):
        return int(getattr(learner.record, name))
    if name in LATEST:
        return int(learner.record.latest[LATEST.index(name)])
    if name == "scored":
        return learner.record.rows
    if name == "publications":
        return learner.served.publications
    return int(learner.memory.rows if name == "rows" else getattr(learner, name))


class OwnRows(RowMemory):
    """The rows of a shard, as sums; how many rows there are elsewhere is told by the lead."""

    all_rows = 0
    own: Sums | None = None
    """Of the shard's rows; labels do not count there, since only the lead solves."""

    @property
    def rows(self) -> int:
        """Rows that the lead has learned."""
        return self.all_rows


class FollowingLearner(ExactLearner):
    """Adds rows to its own sums, and serves what a lead has solved."""

    memory: OwnRows

    def __init__(self, words: Any, n_features: int, options: Options, seed: int) -> None:
        super().__init__(words, n_features, options, seed)
        self.memory = OwnRows(self.view)
        self.unlabelled = None  # the lead has them

    def learn(self, X: Floats, rows: Counts, labels: Counts, options: Options) -> None:  # noqa: ARG002
        """Add rows to the sums; those that are not learned from stay out of them."""
        self.sum(self._that_count(X, rows)[0], 1)

    def forget(self, X: Floats, rows: Counts, labels: Counts) -> None:  # noqa: ARG002
        """Take rows away from the sums; another shard may have added them."""
        self.sum(self._that_count(X, rows)[0], -1)

    def check_forget(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Do nothing: the lead has looked."""

    def sum(self, X: Floats, sign: int) -> None:
        """Add rows to the sums, or take them away."""
        assert self.memory.own is not None  # noqa: S101 - the lead keeps rows until it is there
        nobody = np.empty(0, np.int64)
        self.memory.own.add(self.memory.on_grid(X), nobody, nobody, sign)

    def publish(self) -> None:
        """Refuse: a follower does not have all rows."""
        raise OptionError(
            "a shard solves nothing by itself", hint="write to the cluster that it belongs to"
        )

    def follow(self, solved: Solved) -> None:
        """Serve what the lead serves; labels have got their words."""
        memory, record, figures = self.memory, self.record, solved.figures
        if not np.array_equal(solved.center, self.view.center):
            self.view = memory.view = memory.view.moved_to(solved.center)
        if solved.summing and memory.own is None:
            memory.own = Sums(self.view.width - 1)
        memory.counts.rows[solved.counted] = solved.counts[:, 0]
        record.label_rows.rows[solved.counted] = solved.counts[:, 1]
        record.label_right.rows[solved.counted] = solved.counts[:, 2]
        record.rows, record.right, record.loss = (
            figures[name] for name in ("scored", "right", "loss")
        )
        record.latest = np.array([figures[name] for name in LATEST])
        record.offered = max(record.offered, record.rows)
        record.inverse_temperature = solved.inverse_temperature
        record.trust.replace(*solved.trust)
        record.best_scores.replace(solved.best_scores)
        memory.all_rows, self.lessons = figures["rows"], figures["lessons"]
        self.published_rows = figures["published_rows"]
        self.served.take_over(
            *(solved.labels, solved.classifiers, solved.pooled, solved.changes),
            figures["publications"],
        )


def follower_of(hasher: OnlineHasher) -> OnlineHasher:
    """Return a hasher that serves what this one does, and has no rows of its own."""
    other = type(hasher)(**hasher.get_params())
    other.n_features_in_ = hasher.n_features_in_
    begin_to_follow(other, hasher._begun)
    follow(other, everything(hasher))
    return other


def begin_to_follow(hasher: OnlineHasher, options: Options) -> None:
    """Let a hasher that knows nothing yet become a follower."""
    hasher._begin(options, FollowingLearner)


def follow(hasher: OnlineHasher, solved: Solved) -> None:
    """Let a follower take over what its lead serves."""
    learner = learner_of(hasher)
    assert isinstance(learner, FollowingLearner)  # noqa: S101 - nobody else follows
    known = len(hasher._names)
    for number, _ in solved.names:
        if number < known and hasher._names[number] is not None:
            hasher._remove_name(hasher._names[number])
    hasher._assign_codewords([name for number, name in solved.names if number >= known])
    for number, name in solved.names:
        if number < known and name is not None:
            hasher._names[number], hasher._numbers[name] = name, number
    learner.follow(solved)
