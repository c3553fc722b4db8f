"""Hadamard Codebook based Online Hashing (Lin, Ji, Liu, Wu, ACM Multimedia 2018).

    paper               here
    W                   functions_      (bits, d), a function a row
    c                   words_          target code of a label, a row of a Hadamard matrix
    r*                  order           of that matrix: the power of two >= max(bits, classes)
    W~ (projection)     _projection     (order, bits) Gaussian, where order and bits differ
    eta                 step
    tanh                the stand-in of the sign while learning

For each row z with target c, and f = tanh(W z):  W <- W - eta ((f - c) (1 - f^2)) z^T.

Defaults: step 0.2 and one row a step, as the authors use on CIFAR-10. W starts with Gaussian
columns of unit length.

Where we differ, on purpose:
  * The order needs the number of classes beforehand. `classes` says it; without it there are as
    many as the power of two >= bits, and one label more is an error.
  * Rows are handed out as labels arrive, in a random order, the constant row last: it separates no
    class from the others by a bit of its own.
  * A word that the projection gives twice is drawn from a new projection, while words last.
  * A row with several labels is one step for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from everhash import kernels
from everhash.peers.description import Description
from everhash.peers.hadamard import HadamardMethod
from everhash.peers.method import Counts, Floats
from everhash.peers.options import CenterOption, option, size


@dataclass(eq=False, repr=False)
class HCOH(HadamardMethod):
    """Codes that follow the rows of a Hadamard matrix, by gradient descent on a squared loss."""

    about: ClassVar = Description(
        name="hcoh",
        title="Hadamard Codebook based Online Hashing",
        year=2018,
        citation="M. Lin, R. Ji, H. Liu, Y. Wu: Supervised Online Hashing via Hadamard Codebook "
        "Learning, ACM Multimedia, 2018",
        needs_class_count=True,
    )
    step: float = option(0.2, size)
    center: CenterOption = "warmup"

    def _start(self) -> None:
        self.functions_[:] = self._random_functions()

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Take one gradient step a row; see `kernels.peer_reference.follow_words`."""
        follow = kernels.load_peers().follow_words
        follow(Z, labels, self.words_, self.functions_, self._begun["step"])
        self.updates_ += len(Z)
