"""Label Embedding Online Hashing for Cross-Modal Retrieval (Wang, Luo, Xu, ACM Multimedia 2020).

    authors' code       here
    B, V                codes -1 and +1 of rows, and real codes with balanced bits; of each label in
                        the newest batch here (`_codes`), of old rows kept as sums:
      H3 = L'B          codes_          (labels, bits) sum of each label's codes
      H2, H6 = L'V      latents_        (labels, bits) the same of V
      H1 = V'V          moment_         (bits, bits)
      H5 = B'V          cross_          (bits, bits)
    H8 = X'X            gram_           (d, d)
    H10 = X'B           aims_           (bits, d), see `peers.ridge_sums`
    P, R                label embedding L ~ V P, rotation V R ~ B
    XW                  functions_      (bits, d), a function a row
    r, max_iter         bits, ROUNDS
    alpha, beta         alike, embedding
    gamma, xi           damping, ridge

With S = 1 for a pair of rows of one label and -1 otherwise, and r bits, these updates descend on
    |B - V R|^2 + beta |L - V P|^2 + alpha |r S - V B'|^2,    sum V = 0, V'V = n I,
which is how we read the code; pairs are of new rows with all rows. A batch solves for its B and V,
five times in turn; sums run over old and new rows, n_y is a label's rows in the batch:
    P = (V'V + gamma I)^-1 V'L
    V = `balanced` (B R' + beta P_y + 2 alpha r sum_y B)    for each label y
    R = the rotation for which V R is nearest to B
    B = sgn(2 alpha r sum_y V + V R)
Then W is the ridge fit of all codes so far to all rows so far, from the sums alone.

What we know: the updates and constants are those of the authors' code for the first batch and for
later ones (repository yxinwang/LEMON-MM2020; its training functions as a collection of cross-modal
methods, BMC-SDNU, has them). We have not seen the paper's text: the objective is our reading.

Defaults: alpha, beta, gamma, xi and the five rounds as in the authors' demo. Theirs are batches of
2,000 or 10,000 rows; ours of 500, as for BSODH: a stream of 2,000 rows should be learned before its
end. Neither batch nor ridge matters much, since the fit is to all batches (mAP by mapping, 32 bits,
three seeds, 8,000 entries; streams of `table1` and `table2`):
                            batch 100    250    500   1000      ridge .3      3
    CIFAR-10 GIST                .263   .254   .262   .258          .244   .270
    CIFAR-10 CNN                 .831   .824   .833   .829          .827   .831
    CLINC150                     .504   .500   .503   .496          .500   .497
    Caltech-256 CNN              .314   .308   .308   .309          .302   .313

Where we differ, on purpose:
  * One modality: the features. The authors fit a second matrix, for texts, to the same codes.
  * In form: rows of one label have one B and one V (the terms in which rows differ, B R' and V R,
    are 2 alpha r n_y times smaller than those of their label), so both are worked out by label. The
    "-1" of S is left out: V sums to zero, so it cancels. Row by row, as the authors have it: .266,
    .832, .506, .309 on the sets above, that is the same.
  * Where a batch has fewer labels than bits, V cannot vary in all directions. The authors fill the
    others with random rows; here they are zero. A bit about which V says nothing stays as it was,
    and is drawn for a new label: a batch of one label gives that label one code.
  * Codes are drawn to start from, as by the authors, for every row of every batch; V and R start
    from the sums instead of at random. To start from the bits that the functions give would find
    more of many labels: .609 on CLINC150, .370 on Caltech-256. It is not the published method.
  * The embedding is kept though it hardly counts: beside the pairs its term is about 1 / (2 n r).
    With beta from .001 to 1,000,000 mAP is the same within .001.
  * A row with several labels counts as one row for each; the authors weigh shared labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from everhash.learn.model_format import require
from everhash.peers.description import Description
from everhash.peers.method import Counts, Doubles, Floats, Layout
from everhash.peers.options import CenterOption, option, size
from everhash.peers.ridge_sums import (
    RidgeSumsMethod,
    balanced,
    factor_of,
    label_means,
    solved,
    unless_faint,
)

ROUNDS = 5
"""How often each unknown is solved for in a batch."""


@dataclass(eq=False, repr=False)
class LEMON(RidgeSumsMethod):
    """Codes of labels with balanced bits, which new rows share with old ones; then a ridge fit."""

    about: ClassVar = Description(
        name="lemon",
        title="Label Embedding Online Hashing",
        year=2020,
        citation="Y. Wang, X. Luo, X.-S. Xu: Label Embedding Online Hashing for Cross-Modal "
        "Retrieval, ACM International Conference on Multimedia, 2020",
        codewords=False,
        batch=500,
    )
    alike: float = option(10_000.0, size)
    embedding: float = option(10_000.0, size)
    damping: float = option(0.1, size)
    center: CenterOption = "warmup"
    counts_: Counts = field(init=False)
    """(labels,) rows of each label."""
    codes_: Doubles = field(init=False)
    latents_: Doubles = field(init=False)
    moment_: Doubles = field(init=False)
    cross_: Doubles = field(init=False)

    def _layout(self) -> Layout:
        bits = self._begun["bits"]
        return super()._layout() | {
            "counts_": (np.int64, (None,)),
            "codes_": (np.float64, (None, bits)),
            "latents_": (np.float64, (None, bits)),
            "moment_": (np.float64, (bits, bits)),
            "cross_": (np.float64, (bits, bits)),
        }

    def _learn_batch(self, Z: Floats, labels: Counts) -> None:
        """Solve for the codes of the batch's labels, add to all sums, and fit the functions."""
        self._make_room(int(labels.max()) + 1)
        here, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
        rows = counts.astype(np.float64)
        B, V = self._codes(here, rows, label_means(self._drawn(), which, rows))
        n = rows[:, None]
        self.counts_[here] += counts
        self.codes_[here] += n * B
        self.latents_[here] += n * V
        self.moment_ += V.T @ (n * V)
        self.cross_ += B.T @ (n * V)
        X = Z.astype(np.float64)
        self.gram_ += X.T @ X
        self.aims_ += B[which].T @ X
        self._serve(self._factor())

    def _codes(self, here: Counts, rows: Doubles, drawn: Doubles) -> tuple[Doubles, Doubles]:
        """Return B and V of the labels in the batch: each in turn, what the others ask for."""
        alike, embedding, damping = (self._begun[o] for o in ("alike", "embedding", "damping"))
        alike *= 2 * self._begun["bits"]
        codes, latents, n = self.codes_[here], self.latents_[here], rows[:, None]
        last = unless_faint(codes, np.where(drawn >= 0, 1.0, -1.0))
        B, V, R = drawn, np.zeros_like(drawn), rotation(self.cross_)
        for _ in range(ROUNDS):
            moment = self.moment_ + V.T @ (n * V)
            P = solved(factor_of(moment, damping, self._rows), (latents + n * V).T)
            V = balanced(B @ R.T + embedding * P.T + alike * (codes + n * B), rows)
            R = rotation(self.cross_ + B.T @ (n * V))
            B = np.sign(unless_faint(alike * (latents + n * V) + V @ R, last))
        return B, V

    def _make_room(self, n_labels: int) -> None:
        missing = max(0, n_labels - len(self.counts_))
        zeros = np.zeros((missing, self._begun["bits"]))
        self.codes_ = np.concatenate([self.codes_, zeros])
        self.latents_ = np.concatenate([self.latents_, zeros])
        self.counts_ = np.append(self.counts_, np.zeros(missing, np.int64))

    @property
    def label_bytes_(self) -> int:
        """About how many bytes a new label adds to the hasher."""
        return 17 * self._word_bits + 8

    def _check_state(self) -> None:
        super()._check_state()
        n = len(self.counts_)
        fits = len(self.codes_) == len(self.latents_) == n <= len(self._numbers)
        require(fits, f"sums of codes do not fit {n} labels")
        require(sum(self.counts_.tolist()) == self._rows, "labels and batches differ in their rows")
        rows = self.counts_[:, None]
        self._require_within(rows, "codes_")
        self._require_within(rows * np.sqrt(self._begun["batch"]), "latents_")
        self._require_within(self._rows, "moment_", "cross_")
        self._require_factor(self.moment_, self._begun["damping"])


def rotation(cross: Doubles) -> Doubles:
    """Return the rotation R with the largest tr(R cross), cross being B^T V: V R is nearest to B.

    >>> rotation(np.array([[0.0, 2.0], [1.0, 0.0]])).round(9).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    left, _, right = np.linalg.svd(cross)
    turn: Doubles = right.T @ left.T
    return turn
