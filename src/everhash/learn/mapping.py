"""The mapping: all hash functions, cycle by cycle, their newest iterate and their running mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.learn import seeds
from everhash.learn.growing import GrowingArray
from everhash.learn.views import View, margins_by

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class Mapping:
    """k hash functions a cycle, each a direction w; its bit is the sign of w·z."""

    def __init__(self, bits: int, n_features: int, *, average: bool, seed: int) -> None:
        self.bits = bits
        self.n_features = n_features
        self.average = average
        self._seed = seed
        self.last: GrowingArray[np.float32] = GrowingArray((bits, n_features), np.float32)
        self.mean: GrowingArray[np.float32] = GrowingArray((bits, n_features), np.float32)
        self.updates: GrowingArray[np.int64] = GrowingArray((bits,), np.int64)
        self.averaged: GrowingArray[np.int64] = GrowingArray((bits,), np.int64)
        self.rounds: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.restarts: GrowingArray[np.int64] = GrowingArray((), np.int64)

    @property
    def n_cycles(self) -> int:
        """How many cycles are open."""
        return len(self.last)

    def restart(self, cycle: int) -> None:
        """Start a cycle's averages again: a label has joined it."""
        self.averaged.rows[cycle] = 0
        self.restarts.rows[cycle] = self.rounds.rows[cycle]

    def open_cycle(self) -> None:
        """Append k functions: random directions of unit length (`init()` in Algorithm 1)."""
        cycle = self.n_cycles
        rng = seeds.generator(self._seed, seeds.WEIGHTS, cycle)
        directions = rng.standard_normal((self.bits, self.n_features))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        for array in (self.last, self.mean) if self.average else (self.last,):
            array.grow_to(cycle + 1)
            array.rows[cycle] = directions
        for counts in (self.updates, self.averaged, self.rounds, self.restarts):
            counts.grow_to(cycle + 1)

    def learn(
        self,
        Z: Floats,
        labels: Counts,
        joins: NDArray[np.bool_],
        codewords: NDArray[np.int8],
        labels_per_cycle: int,
        step: float,
        decays: bool,
        loss: int,
    ) -> None:
        """Line 20 of Algorithm 1 for each row of Z; see `kernels.reference.learn`."""
        kernels.load().learn(
            Z,
            labels,
            joins,
            codewords,
            labels_per_cycle,
            self.last.rows,
            self.mean.rows,
            self.updates.rows,
            self.averaged.rows,
            self.rounds.rows,
            self.restarts.rows,
            step,
            decays,
            loss,
        )

    @property
    def functions(self) -> Floats:
        """(n_cycles, k, d) what is served: the mean of the iterates, or the last one."""
        return self.mean.rows if self.average else self.last.rows


@dataclass(frozen=True, eq=False)
class FrozenMapping:
    """A mapping that no longer moves: what stored codes were made with."""

    functions: Floats
    """(n_cycles, k, w)"""
    view: View
    words: NDArray[np.int8]
    """(n_labels, k) each label's word on its own cycle."""
    labels_per_cycle: int
    versions: Counts
    """(n_cycles * k,) changes of each function up to now."""
    version: int
    generation: int = -1
    """How often all functions had been solved as a whole; -1 if that is unknown."""

    @property
    def label_cycles(self) -> Counts:
        """(n_labels,) the cycle of each label."""
        return np.arange(len(self.words)) // self.labels_per_cycle

    @cached_property
    def scorers(self) -> Floats:
        """(n_labels, d) a direction for each label: u·z is minus its asymmetric distance to z."""
        out = np.empty((len(self.words), self.functions.shape[2]), np.float32)
        for cycle in range(len(self.functions)):
            first = cycle * self.labels_per_cycle
            words = self.words[first : first + self.labels_per_cycle]
            out[first : first + len(words)] = words.astype(np.float32) @ self.functions[cycle]
        return out

    def measure(self, X: Floats) -> Floats:
        """Return rows as the functions see them, at unit length."""
        return self.view.of(X)

    def margins(self, Z: Floats) -> Floats:
        """Return (n, n_cycles * k) values w·z of measured rows."""
        return margins_by(self.functions, Z)

    def scores(self, Z: Floats) -> Floats:
        """Return (n, n_labels) values u·z of measured rows."""
        return margins_by(self.scorers[None], Z)
