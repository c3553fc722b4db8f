"""Online Supervised Hashing for Ever-Growing Datasets (Cakir, Bargal, Sclaroff, 2015).

Read this file beside the paper. `learn_rows` is Algorithm 1, one method a block, in its order.

    paper               here
    Theta, w_t          _mapping            (n_cycles, k, d) one hash function a row
    Phi(x), f_t(x)      encode, transform   signs of the margins w_t·x
    Lambda, c_y         codewords_          (n_labels, width) of -1, 0, +1
    C                   codebook            where the k-bit words come from
    rho, k              labels_per_cycle, bits
    m, n                n_cycles_, and labels modulo rho
    eta_t               step, schedule
    l                   loss
    init()              Mapping.open_cycle
    find(Lambda, y)     _numbers            label -> row of Lambda

Where we differ, on purpose:
  * Lines 6-11 count the label that opens a cycle as number zero, so cycles after the first would
    hold rho + 1 labels. Here every cycle holds exactly rho.
  * Line 7 appends a rho x k block of zeros, which fits Lambda only at the first growth. Zeros are
    appended to all rows.
  * The caption of Figure 1 swaps two letters: a cycle has rho codewords and k hash functions, and a
    row updates the k functions of its label's cycle.
  * The loss is "suitably selected" in the text. We take the hinge, as the authors' code does, with
    squared hinge and logistic beside it; all three bound the masked Hamming distance from above.
  * w and x are "in homogeneous form" in the text, without a bias in the authors' code. We centre
    instead, and by a mean that never looks ahead (see `centering`).
  * log is to the base 2: the paper's own parameter lists only fit that base.
  * The width is k ceil(L / rho); the paper writes ceil(k L / rho).
  * sign(0) is -1.
  * With codewords drawn without replacement a small k runs out of them; then words repeat, with a
    warning.
Beyond the paper, each switched off by `OnlineHasher.paper`: served weights are the mean of the
iterates (`average`), words are drawn far apart (`codebook="maxmin"`), and a few remembered rows
keep a stream that arrives label by label from forgetting (`replay`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import limits
from everhash.errors import CodebookWarning, LimitError, OptionError
from everhash.learn.centering import Center, unit_rows
from everhash.learn.codebook import Codebook
from everhash.learn.growing import GrowingArray
from everhash.learn.mapping import Mapping
from everhash.learn.options import Options, read_options
from everhash.learn.replay import Memory
from everhash.learn.stream_hasher import StreamHasher
from everhash.learn.views import Centred, View
from everhash.stream import Labels

BLOCK = 1024
"""Rows laid out at a time. Bounds memory; results do not depend on it."""


class OnlineHasher(StreamHasher):
    """Learns hash functions and label codewords from a stream, in one pass.

    Args:
        bits: k, the hash functions of a cycle and the active bits of every codeword.
        labels_per_cycle: rho, the labels that share k functions; "auto" is 4 ceil(log2 k), None
            puts all labels into one cycle.
        step: eta, the step size.
        loss: "hinge", "squared_hinge" or "logistic".
        average: serve the mean of each function's iterates since a label last joined its cycle.
        codebook: "maxmin", "random", "hadamard", or an (n, k) array of -1/+1, handed out in order.
        replay: rows remembered for each label, learned again when the stream has long not sent it.
            0 remembers nothing.
        center: "warmup" follows the running mean for 1,000 rows, then stays; or a point; or None.
        random_state: seed; the same seed and stream give the same bytes. None draws one.
        schedule: "constant", or "sqrt" for step / sqrt(t), t counting the rows its cycle learned.

    >>> X = np.array([[4, 1], [5, 0], [0, 6], [1, 5], [4, 0], [0, 4]], np.float32)
    >>> hasher = OnlineHasher(bits=8).partial_fit(X, ["cat", "cat", "dog", "dog", "cat", "dog"])
    >>> hasher.labels_, hasher.codewords_.shape
    (['cat', 'dog'], (2, 8))
    """

    def __init__(
        self,
        bits: int = 32,
        labels_per_cycle: int | str | None = "auto",
        step: float = 1.0,
        loss: str = "hinge",
        average: bool = True,
        codebook: str | ArrayLike = "maxmin",
        replay: int = 10,
        center: str | ArrayLike | None = "warmup",
        random_state: int | None = 0,
        schedule: str = "constant",
    ) -> None:
        self.bits = bits
        self.labels_per_cycle = labels_per_cycle
        self.step = step
        self.loss = loss
        self.average = average
        self.codebook = codebook
        self.replay = replay
        self.center = center
        self.random_state = random_state
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
        known = len(self._numbers)
        reused = self._assign_codewords(labels.values)
        numbers = np.array([self._numbers[value] for value in labels.values], np.int64)
        for start in range(0, len(rows), BLOCK):
            inside = slice(*np.searchsorted(labels.rows, (start, start + BLOCK)))
            step_rows, step_labels = labels.rows[inside] - start, numbers[labels.which[inside]]
            self._learn(rows[start : start + BLOCK], step_rows, step_labels, known, options)
            known = max(known, int(step_labels.max(initial=-1)) + 1)
        self._warn_of(reused)

    def _begin(self, options: Options) -> None:
        """Line 1: no labels yet, and the first cycle's functions."""
        seed = int.from_bytes(os.urandom(8), "little") if options.seed is None else options.seed
        d = self.n_features_in_
        self._begun = options._replace(seed=seed)
        self._numbers: dict[Hashable, int] = {}
        self._words: GrowingArray[np.int8] = GrowingArray((options.bits,), np.int8)
        self._book = Codebook(options.codebook, bits=options.bits, seed=seed)
        self._mapping = Mapping(options.bits, d, average=options.average, seed=seed)
        self._mapping.open_cycle()
        self._memory = Memory(options.replay, d, seed=seed)
        point = options.center if isinstance(options.center, np.ndarray) else None
        self._center = Center(d, point, follows=isinstance(options.center, str))

    def _assign_codewords(self, labels: list[Hashable]) -> list[Hashable]:
        """Lines 4-17: each new label takes a word on the current cycle's bits, and on no others.

        Returns the labels whose word another label of the cycle already has.
        """
        reused = []
        for label in labels:
            if label in self._numbers:
                continue
            number = len(self._numbers)
            if number and number % self._begun.labels_per_cycle == 0:
                self._mapping.open_cycle()
                self._book.start_cycle(self._words.rows[:0])
            if self._book.exhausted:
                reused.append(label)
            self._words.grow_to(number + 1)
            self._words.rows[number] = self._book.draw(number)
            self._numbers[label] = number
        self._memory.meet(len(self._numbers), self._begun.labels_per_cycle)
        return reused

    def _learn(
        self,
        X: NDArray[np.float32],
        step_rows: NDArray[np.int64],
        step_labels: NDArray[np.int64],
        known: int,
        options: Options,
    ) -> None:
        """Lines 18-20: an update for each label of each row, with remembered rows in between."""
        centers = self._center.follow(X)
        if len(step_rows) == 0:
            return
        rho = self._begun.labels_per_cycle
        lessons = self._memory.weave(X[step_rows], step_labels, rho, known)
        moment = np.minimum(step_rows[lessons.times], len(centers) - 1)
        self._mapping.learn(
            unit_rows(lessons.rows, centers, moment),
            lessons.labels,
            lessons.joins,
            self._words.rows,
            rho,
            options.step,
            options.decays,
            options.loss,
        )

    def _assign_words(self, labels: list[Hashable]) -> None:
        """Give labels their words before a row of theirs is learned. Known ones keep theirs."""
        known = len(self._numbers)
        reused = self._assign_codewords(labels)
        for number in range(known, len(self._numbers)):
            self._mapping.restart(number // self._begun.labels_per_cycle)
        self._warn_of(reused)

    # What was learned

    @property
    def words_(self) -> NDArray[np.int8]:
        """(n_labels, k) each label's word on the bits of its own cycle; a view, not to write to."""
        self._require_fitted()
        return self._words.rows

    @property
    def versions_(self) -> NDArray[np.int64]:
        """(width,) how often each function has changed; an unchanged count means unchanged bits.

        While the running mean still moves, every row changes every function.
        """
        self._require_fitted()
        return self._mapping.updates.rows.reshape(-1) + self._center.moves

    @property
    def lessons_(self) -> int:
        """Rows learned so far, once for each of their labels."""
        self._require_fitted()
        return self._memory.draws

    @property
    def label_bytes_(self) -> int:
        """About how many bytes a new label adds to the hasher."""
        begun = self._begun
        functions = -(-8 * begun.bits * self.n_features_in_ // begun.labels_per_cycle)
        return functions + begun.bits + 8 * begun.replay

    @property
    def _functions(self) -> NDArray[np.float32]:
        return self._mapping.functions

    @property
    def _view(self) -> View:
        return Centred(self._center.point)

    @property
    def _labels_per_cycle(self) -> int:
        return self._begun.labels_per_cycle

    def to_bytes(self) -> bytes:
        """Return what a file of this hasher holds."""
        from everhash.learn.model_file import hasher_to_bytes

        return hasher_to_bytes(self)

    def _read_options(self, n_features: int, first: bool) -> Options:
        options = read_options(self.get_params(), n_features)
        if not first and not options.same_shape_as(self._begun):
            raise OptionError(
                "only step, schedule and loss may change once learning has begun",
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
        known: dict[Hashable, int] = {} if first else self._numbers
        total = len(known) + sum(value not in known for value in labels)
        width = options.bits * max(1, -(-total // options.labels_per_cycle))
        if total > limits.LABELS or width > limits.WIDTH:
            raise LimitError(
                f"{total} labels need {width} bits; at most {limits.LABELS} labels and "
                f"{limits.WIDTH} bits are supported",
                hint="raise labels_per_cycle, or check that y holds labels and not ids",
            )
