"""Online Supervised Hashing by boosted error-correcting codes (Cakir, Sclaroff, ICIP 2015).

    paper               here
    f_1 ... f_b         functions_      (b, d), a function a row
    c_y                 words_          a random word for each label, as it arrives
    eta                 step
    g_j                 the weight a row has for bit j, after bits 1 ... j - 1

For each row z with target c, bit after bit, with what bits before j have become:
    g_j = exp(-sum_{i<j} c_i w_i·z),   w_j <- w_j + eta g_j exp(-c_j w_j·z) c_j z.

Defaults: step 0.1, as in the authors' release. Functions start as Gaussian directions of unit
length.

Where we differ, on purpose:
  * The exponent has no bound in the release: a row that many bits get wrong overflows, and the
    functions are lost. It is held to at most 0 for the weight g_j (no row counts more than it does
    for the first bit) and to at most 1 for a bit's own loss.
  * Labels keep the word they got. The release forgets its table between rows, so that labels share
    words (its published .12 on CIFAR-10 is that bug, not the method).
  * A row with several labels is one step for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.peers.description import Description
from everhash.peers.method import Counts, Floats, Method
from everhash.peers.options import CenterOption, option, size
from everhash.peers.words import random_word


@dataclass(eq=False, repr=False)
class OSH(Method):
    """Codes that follow random codewords, each bit minding what the bits before it got wrong."""

    about: ClassVar = Description(
        name="osh",
        title="Online Supervised Hashing",
        year=2015,
        citation="F. Cakir, S. Sclaroff: Online Supervised Hashing, IEEE International Conference "
        "on Image Processing, 2015",
    )
    step: float = option(0.1, size)
    center: CenterOption = "warmup"

    def _start(self) -> None:
        self.functions_[:] = self._random_functions()

    def _draw_word(self, number: int) -> NDArray[np.int8]:
        return random_word(self._begun["random_state"], number, self._begun["bits"])

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Move every function for each row; see `kernels.peer_reference.follow_words_boosted`."""
        follow = kernels.load_peers().follow_words_boosted
        follow(Z, labels, self.words_, self.functions_, self._begun["step"])
        self.updates_ += len(Z)
