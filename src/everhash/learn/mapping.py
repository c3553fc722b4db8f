"""The mapping: all hash functions, cycle by cycle, their newest iterate and their running mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.learn import seeds
from everhash.learn.growing import GrowingArray

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

    def margins(self, Z: Floats) -> Floats:
        """Return (n, width) values w·z."""
        out = np.empty((len(Z), self.n_cycles * self.bits), np.float32)
        kernels.load().margins_into(Z, self.functions, out)
        return out
