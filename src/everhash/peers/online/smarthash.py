"""Smart Hashing Update for Fast Response (Yang, Huang, Zheng, Ling, IJCAI 2013), on KSH.

    paper               here
    H                   codes           (bits, n) what each function says of all rows so far
    S                   +1 for a pair of rows with one label, -1 otherwise
    r                   bits
    z                   relearned       functions learned again with each batch
    KSH                 `everhash.peers.ksh`

Not a way to learn hash functions but to learn few of them again. The first batch teaches all
functions by KSH. With each later batch, over all rows so far:
    select   the z functions k with the least |r S - H_-k H_-k^T|, H without function k: those the
             others miss least ("similarity based selection", the better one of the paper's two)
    relearn  them one after the other by KSH, on the residual r S - sum h h^T of the others
As |R + h h^T|^2 = |R|^2 + 2 h^T R h + n^2 for the residual R of all functions, those with the least
h^T R h are selected. All other functions stand still, and so do their versions.

Cost of a batch, with n rows so far, m anchors and t gradient steps a function (10 to 60):
n m (m + bits) + 2 t z n m. So the cost of a stream grows with the square of its length.

Defaults: z = ceil(log2 bits), 100 rows a batch and 100 to begin with, as Cakir, Bargal and Sclaroff
(2015) run it; 300 anchors as in KSH. Anchors are the first rows of the stream, and nothing is
learned until all have come.

Where we differ, on purpose:
  * Rows seen by anchors have unit length, as everywhere in everhash; in KSH they do not. It hardly
    matters: mAP by mapping of CIFAR-10, 2,000 rows, 32 bits, three seeds, is .298 instead of .301
    on GIST and .848 instead of .852 on CNN features.
  * The sign of a function means nothing to KSH, and is drawn by the seed.
  * All that `everhash.peers.ksh` differs in; it takes no S of all pairs, and fewer steps.
  * A row with several labels counts as one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from everhash.learn import seeds
from everhash.learn.model_format import require
from everhash.peers.anchored import AnchoredMethod, anchor_count
from everhash.peers.batched import BatchedMethod, batch_size
from everhash.peers.description import Description
from everhash.peers.ksh import Residual, codes_of, learn_function
from everhash.peers.method import UNIT, Counts, Floats, Layout
from everhash.peers.options import option, optional, whole


@dataclass(eq=False, repr=False)
class SmartHash(BatchedMethod, AnchoredMethod):
    """Kernel hash functions, of which the few that are missed least are learned again.

    Keeps every labelled row it has seen. Labels have no codewords.
    """

    about: ClassVar = Description(
        name="smarthash",
        title="Smart Hashing Update",
        year=2013,
        citation="Q. Yang, L.-K. Huang, W.-S. Zheng, Y. Ling: Smart Hashing Update for Fast "
        "Response, International Joint Conference on Artificial Intelligence, 2013",
        stores_rows=True,
        codewords=False,
        batch=100,
    )
    batch: int = option(100, batch_size)
    relearned: int | None = option(None, optional(whole(1)))
    anchors: int = option(300, anchor_count)
    rows_: Floats = field(init=False)
    """(n, anchors) all labelled rows of full batches, as they are seen."""
    row_labels_: Counts = field(init=False)
    """(n,) their labels by number."""

    def _layout(self) -> Layout:
        return super()._layout() | {
            "rows_": (np.float32, (None, self._seen_width)),
            "row_labels_": (np.int64, (None,)),
        }

    def _settle(self) -> None:
        """Serve random directions until the first batch is full."""
        self.functions_[:] = self._random_functions()
        self.updates_ += 1

    def _learn_batch(self, Z: Floats, labels: Counts) -> None:
        """Learn functions again on all rows so far: all with the first batch, then a few."""
        first = len(self.rows_) == 0
        self.rows_ = np.concatenate([self.rows_, Z])
        self.row_labels_ = np.append(self.row_labels_, labels)
        bits = self._begun["bits"]
        residual = Residual(self.rows_, self.row_labels_, bits)
        chosen = np.arange(bits) if first else self._choose(residual)
        signs = seeds.generator(self._begun["random_state"], seeds.WEIGHTS).choice([-1, 1], bits)
        for function in chosen:
            learned = learn_function(residual) * np.float32(signs[function])
            residual.add(codes_of(learned[None], self.rows_)[0])
            self.functions_[function] = learned
        self.updates_[chosen] += 1

    def _choose(self, residual: Residual) -> Counts:
        """Select the functions missed least, and leave the others in the residual."""
        codes = codes_of(self.functions_, self.rows_)
        residual.hold(codes)
        missed = [residual.form(code) for code in codes]
        order = np.argsort(missed, kind="stable")
        z = self._begun["relearned"] or max(1, (len(codes) - 1).bit_length())
        residual.hold(codes[np.sort(order[z:])])
        return order[:z]

    def _check_state(self) -> None:
        super()._check_state()
        n = len(self.rows_)
        whole = len(self.row_labels_) == n and n % self._begun["batch"] == 0
        require(whole, f"{n} rows are not a whole number of batches")
        known = self.row_labels_.max(initial=-1) < len(self._numbers)
        require(bool(known), "rows have unknown labels")
        require(bool((np.abs(self.rows_) < UNIT).all()), "rows do not have unit length")
