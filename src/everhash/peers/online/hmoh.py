"""Hadamard Matrix Guided Online Hashing (Lin, Ji, Liu, Sun, Chen, Tian, IJCV 2020).

    paper               here
    W^t                 last_           (bits, d) the newest iterate, a function a row
    sum of W^t          functions_      what is served: the mean of the iterates
    target code         words_          a row of a Hadamard matrix
    eta                 1: from W = 0 it scales every function alike and changes no sign

For each row z with target c, the functions with c w·z <= 0 learn: w <- w + c z. Each bit is a
perceptron; what hashes is the sum of its iterates, that is the averaged perceptron.

Defaults: W = 0 at first, no kernel.

Where we differ, on purpose:
  * `classes` and rows of the matrix as in HCOH.
  * The authors divide the sum by the mistakes of each bit, which gives 0 / 0 for a bit that never
    errs. We divide by the rounds. Neither changes a sign.
  * Every row adds an iterate to the sum, so every function would count as changed with every row.
    Here the mean is brought up to date when a function errs, so that one that does not err stands
    still (as in our own hasher): it is the mean up to the function's last mistake.
  * A row with several labels is one step for each; the authors' merged target for such rows has a
    known slip.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from everhash import kernels
from everhash.kernels.reference import PERCEPTRON
from everhash.learn.model_format import require
from everhash.learn.options import ONE_CYCLE
from everhash.peers.description import Description
from everhash.peers.hadamard import HadamardMethod
from everhash.peers.method import Counts, Floats, Layout
from everhash.peers.options import CenterOption


@dataclass(eq=False, repr=False)
class HMOH(HadamardMethod):
    """A perceptron for each bit, taught by the rows of a Hadamard matrix, and averaged."""

    about: ClassVar = Description(
        name="hmoh",
        title="Hadamard Matrix Guided Online Hashing",
        year=2020,
        citation="M. Lin, R. Ji, H. Liu, X. Sun, S. Chen, Q. Tian: Hadamard Matrix Guided Online "
        "Hashing, International Journal of Computer Vision, 2020",
        needs_class_count=True,
    )
    center: CenterOption = "warmup"
    last_: Floats = field(init=False)
    rounds_: Counts = field(init=False)
    """(1,) rows learned."""
    averaged_: Counts = field(init=False)
    """(bits,) rounds in each function's mean."""

    def _layout(self) -> Layout:
        bits = self._begun["bits"]
        return {
            "last_": (np.float32, (bits, self.n_features_in_)),
            "rounds_": (np.int64, (1,)),
            "averaged_": (np.int64, (bits,)),
        }

    def _start(self) -> None:
        """Zeros are where the perceptrons start."""

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Correct the functions that err; see `kernels.reference.learn`, with one cycle."""
        kernels.load().learn(
            Z,
            labels,
            np.zeros(len(Z), np.bool_),
            self.words_,
            ONE_CYCLE,
            self.last_[None],
            self.functions_[None],
            self.updates_[None],
            self.averaged_[None],
            self.rounds_,
            np.zeros(1, np.int64),
            1.0,
            False,
            PERCEPTRON,
        )

    def _check_state(self) -> None:
        super()._check_state()
        require(
            bool((self.averaged_ <= self.rounds_).all()),
            "a mean counts more rounds than there were",
        )
