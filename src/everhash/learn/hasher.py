"""Online Supervised Hashing for Ever-Growing Datasets (Cakir, Bargal, Sclaroff, 2015).

Read this file beside the paper. `learn_rows` is Algorithm 1, one method a block, in its order.

    paper               here
    Theta, w_t          _learner.functions  (n_cycles, k, w) one hash function a row
    Phi(x), f_t(x)      encode, transform   signs of the margins w_t·x
    Lambda, c_y         codewords_          (n_labels, width) of -1, 0, +1
    C                   codebook            where the k-bit words come from
    rho, k              labels_per_cycle, bits
    m, n                n_cycles_, and labels modulo rho
    eta_t               step, schedule      with learner="sgd"; see `sgd`
    l                   loss
    init()              open_cycle
    find(Lambda, y)     _numbers            label -> row of Lambda

Where we differ, on purpose:
  * Lines 6-11 count the label that opens a cycle as number zero, so cycles after the first would
    hold rho + 1 labels. Here every cycle holds exactly rho.
  * Line 7 appends a rho x k block of zeros, which fits Lambda only at the first growth. Zeros are
    appended to all rows.
  * The caption of Figure 1 swaps two letters: a cycle has rho codewords and k hash functions, and a
    row updates the k functions of its label's cycle.
  * The loss is "suitably selected" in the text. `paper` takes the hinge, as the authors' code does;
    squared hinge and logistic are beside it, and all three bound the masked Hamming distance from
    above. By default we take the squared loss, which has an exact solution in one pass (`exact`).
  * w and x are "in homogeneous form" in the text, without a bias in the authors' code. We centre
    instead, and by a mean that never looks ahead (see `centering`).
  * log is to the base 2: the paper's own parameter lists only fit that base.
  * The width is k ceil(L / rho); the paper writes ceil(k L / rho).
  * sign(0) is -1.
  * With codewords drawn without replacement a small k runs out of them; then words repeat, with a
    warning.
How line 20 learns is the learner's affair, one file each: `exact` by default, `sgd` for the paper's
own. Labels, cycles and words are here, and the same for both.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import limits
from everhash.errors import CodebookWarning, LimitError, OptionError
from everhash.learn.codebook import Codebook
from everhash.learn.exact import ExactLearner
from everhash.learn.exact_calls import ExactCalls
from everhash.learn.growing import GrowingArray
from everhash.learn.options import (
    MAY_CHANGE,
    Options,
    check_weights,
    read_options,
    refuse_foreign,
)
from everhash.learn.sgd import SgdLearner
from everhash.learn.views import View
from everhash.stream import Labels

Learner = type[ExactLearner] | type[SgdLearner]


class OnlineHasher(ExactCalls):
    """Learns hash functions and label codewords from a stream, in one pass.

    Args:
        bits: k, the hash functions of a cycle and the active bits of every codeword.
        labels_per_cycle: rho, the labels that share k functions; "auto" is 4 ceil(log2 k), for the
            exact learner at most k; None puts all labels into one cycle.
        learner: "exact" solves for the functions from sums: the same in any order, able to forget
            and to merge. "sgd" takes the paper's gradient steps.
        features: exact learner: random features beside the rows' own. 0 is linear.
        publish: exact learner: solve all labels again when rows have grown by this factor, among
            the first 1,000 by a tenth or a fifth at most.
        learn_unlabelled: exact learner: "auto" lets rows without a label help to say how likely
            labels are, while few rows have one; True lets them count as having none of the labels;
            False ignores them.
        codebook: "orthogonal", "maxmin", "random", "hadamard", or an (n, k) array of -1/+1, handed
            out in order; "auto" is orthogonal for the exact learner, maxmin for the other.
        random_state: seed; the same seed and stream give the same bytes. None draws one.
        step: sgd learner: eta, the step size.
        loss: sgd learner: "hinge", "squared_hinge" or "logistic".
        average: sgd learner: serve the mean of each function's iterates since a label last joined
            its cycle.
        replay: sgd learner: rows remembered for each label, learned again when the stream has long
            not sent it. 0 remembers nothing.
        center: sgd learner: "warmup" follows the running mean for 1,000 rows, then stays; or a
            point; or None.
        schedule: sgd learner: "constant", or "sqrt" for step / sqrt(t), t counting the rows its
            cycle learned.

    >>> X = np.array([[4, 1], [5, 0], [0, 6], [1, 5], [4, 0], [0, 4]], np.float32)
    >>> hasher = OnlineHasher(bits=8).partial_fit(X, ["cat", "cat", "dog", "dog", "cat", "dog"])
    >>> hasher.labels_, hasher.codewords_.shape
    (['cat', 'dog'], (2, 8))
    """

    def __init__(
        self,
        bits: int = 32,
        labels_per_cycle: int | str | None = "auto",
        *,
        learner: str = "exact",
        features: int = 1000,
        publish: float = 1.2,
        learn_unlabelled: bool | str = "auto",
        codebook: str | ArrayLike = "auto",
        random_state: int | None = 0,
        step: float = 1.0,
        loss: str = "hinge",
        average: bool = True,
        replay: int = 10,
        center: str | ArrayLike | None = "warmup",
        schedule: str = "constant",
    ) -> None:
        self.bits = bits
        self.labels_per_cycle = labels_per_cycle
        self.learner = learner
        self.features = features
        self.publish = publish
        self.learn_unlabelled = learn_unlabelled
        self.codebook = codebook
        self.random_state = random_state
        self.step = step
        self.loss = loss
        self.average = average
        self.replay = replay
        self.center = center
        self.schedule = schedule

    @classmethod
    def paper(
        cls,
        bits: int = 32,
        labels_per_cycle: int | str | None = None,
        step: float = 1.0,
        random_state: int | None = 0,
    ) -> Self:
        """Return the paper's own setting: hinge, last iterate, random codebook, no memory."""
        return cls(
            bits=bits,
            labels_per_cycle=labels_per_cycle,
            learner="sgd",
            step=step,
            average=False,
            codebook="random",
            replay=0,
            random_state=random_state,
        )

    # Algorithm 1

    def learn_rows(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Learn rows that `as_rows` and `as_labels` have checked."""
        options = self._read_options(rows.shape[1], first=False)
        reused = self._assign_codewords(labels.values)
        steps = self.numbers(labels.values)[labels.which]
        self._learner.learn(rows, labels.rows, steps, options)
        self._warn_of(reused)

    def _begin(self, options: Options, make: Learner | None = None) -> None:
        """Line 1: no labels yet, and the first cycle's functions."""
        seed = int.from_bytes(os.urandom(8), "little") if options.seed is None else options.seed
        self._begun = options._replace(seed=seed)
        self._take_names([])
        self._words: GrowingArray[np.int8] = GrowingArray((options.bits,), np.int8)
        self._book = Codebook(options.codebook, bits=options.bits, seed=seed)
        make = make or (ExactLearner if options.learner == "exact" else SgdLearner)
        self._learner: ExactLearner | SgdLearner
        self._learner = make(self._words, self.n_features_in_, options, seed)
        self._learner.open_cycle()

    def _assign_codewords(self, labels: list[Hashable]) -> list[Hashable]:
        """Lines 4-17: each new label takes a word on the current cycle's bits, and on no others.

        None is a label that is gone, and takes a word as it did. Returns the labels whose word
        another label of the cycle already has.
        """
        reused = []
        for label in labels:
            if label in self._numbers:
                continue
            number = len(self._names)
            if number and number % self._begun.labels_per_cycle == 0:
                self._learner.open_cycle()
                self._book.start_cycle(self._words.rows[:0])
            if self._book.exhausted:
                reused.append(label)
            self._words.grow_to(number + 1)
            self._words.rows[number] = self._book.draw(number)
            self._add_name(label)
        self._learner.meet(len(self._names))
        return reused

    def _assign_words(self, labels: list[Hashable]) -> None:
        """Give labels their words before a row of theirs is learned. Known ones keep theirs."""
        reused = self._assign_codewords(labels)
        if isinstance(self._learner, SgdLearner):
            self._learner.join(len(self._names))
        self._warn_of(reused)

    # What was learned

    @property
    def method(self) -> str:
        """Its name among the methods; see `everhash.peers`."""
        return "everhash" if self.learner == "exact" else "everhash-sgd"

    @property
    def words_(self) -> NDArray[np.int8]:
        """(n_labels, k) each label's word on the bits of its own cycle; a view, not to write to."""
        self._require_fitted()
        return self._words.rows

    @property
    def versions_(self) -> NDArray[np.int64]:
        """(width,) how often each function has changed; an unchanged count means unchanged bits."""
        self._require_fitted()
        return self._learner.updates.reshape(-1)

    @property
    def lessons_(self) -> int:
        """Rows learned so far, once for each of their labels."""
        self._require_fitted()
        return self._learner.lessons

    @property
    def label_counts_(self) -> NDArray[np.int64] | None:
        """(n_labels,) rows learned of each label; None where they are not counted."""
        self._require_fitted()
        return self._learner.label_counts

    @property
    def label_bytes_(self) -> int:
        """About how many bytes a new label adds to the hasher."""
        return self._learner.label_bytes + self._begun.bits

    @property
    def _functions(self) -> NDArray[np.float32]:
        return self._learner.functions

    @property
    def _view(self) -> View:
        return self._learner.view

    @property
    def _labels_per_cycle(self) -> int:
        return self._begun.labels_per_cycle

    def to_bytes(self) -> bytes:
        """Return what a file of this hasher holds."""
        from everhash.learn.model_file import hasher_to_bytes

        return hasher_to_bytes(self)

    @classmethod
    def _wrote(cls, state: dict[str, Any]) -> bool:
        return "method" not in state

    @classmethod
    def _restore(cls, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        from everhash.learn.model_file import restore_hasher

        return restore_hasher(state, arrays, cls)

    def _read_options(self, n_features: int, first: bool) -> Options:
        params = self.get_params()
        refuse_foreign(params, self._defaults())
        options = read_options(params, n_features)
        check_weights(options, n_features, 0)
        if not first and not options.same_shape_as(self._begun):
            raise OptionError(
                f"only {MAY_CHANGE[options.learner]} may change once learning has begun",
                hint="call fit to start again",
            )
        return options

    def _warn_of(self, reused: list[Hashable]) -> None:
        if reused:
            warnings.warn(
                f"every word of {self.bits} bits is taken in its cycle: {len(reused)} labels, "
                f"{reused[0]!r} first, share a word with another label; use more bits or fewer "
                "labels_per_cycle",
                CodebookWarning,
                stacklevel=4,
            )

    def _check_room(self, labels: list[Hashable], options: Options, first: bool) -> None:
        """Refuse a batch whose new labels would outgrow what is supported."""
        total = len(labels) if first else len(self._names) + len(self.unknown(labels))
        width = options.width_of(total)
        if total > limits.LABELS or width > limits.WIDTH:
            raise LimitError(
                f"{total} labels need {width} bits; at most {limits.LABELS} labels and "
                f"{limits.WIDTH} bits are supported",
                hint="let more labels share a cycle, or check that these are labels and not ids",
            )
        if not first:
            check_weights(options, self.n_features_in_, total)
