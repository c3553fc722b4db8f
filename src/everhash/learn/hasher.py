"""Online Supervised Hashing for Ever-Growing Datasets (Cakir, Bargal, Sclaroff, 2015).

Read this file beside the paper. `partial_fit` is Algorithm 1, one method a block, in its order.

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
from collections.abc import Hashable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import limits
from everhash.codes import Codes
from everhash.errors import CodebookWarning, LimitError, OptionError, UnknownNameError
from everhash.estimator import Estimator
from everhash.learn.centering import Center, unit_rows
from everhash.learn.codebook import Codebook
from everhash.learn.growing import GrowingArray
from everhash.learn.mapping import FrozenMapping, Mapping
from everhash.learn.options import Options, read_options, whole_number
from everhash.learn.replay import Memory
from everhash.stream import Labels, as_labels, as_rows

BLOCK = 1024
"""Rows laid out at a time. Bounds memory; results do not depend on it."""


class OnlineHasher(Estimator):
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

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from rows, in order. All or nothing: an error leaves the hasher as it was.

        Args:
            X: (n, d) finite features.
            y: a label for each row: any hashable value, seen before or not; a set of labels, which
                is one update for each of them; None where a row has no label: it teaches nothing.
        """
        first = not self.__sklearn_is_fitted__()
        rows = as_rows(X, None if first else self.n_features_in_, type(self).__name__)
        labels = as_labels(y, len(rows))
        options = self._read_options(rows.shape[1], first)
        self._check_room(labels.values, options, first)
        self._check_columns(X, rows.shape[1], first=first)
        if first:
            self._begin(options)
        self.learn_rows(rows, labels)
        return self

    def begin(self, n_features: int) -> Self:
        """Make the first cycle's functions before any row has come."""
        if self.__sklearn_is_fitted__():
            raise OptionError("learning has begun already", hint="call fit to start again")
        d = whole_number("n_features", n_features, least=1, most=limits.DIMS)
        options = self._read_options(d, first=True)
        self.n_features_in_ = d
        self._begin(options)
        return self

    def unknown(self, labels: Iterable[Hashable]) -> list[Hashable]:
        """Return those labels that have no codeword yet."""
        return [label for label in labels if label not in self._numbers]

    def check_room(self, labels: list[Hashable]) -> None:
        """Refuse labels that would outgrow what is supported, before anything has changed."""
        self._require_fitted()
        options = self._read_options(self.n_features_in_, first=False)
        self._check_room(labels, options, first=False)

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

    def assign(self, labels: Iterable[Any]) -> Self:
        """Give labels their codewords before a row of theirs is learned. Known ones keep theirs."""
        self._require_fitted()
        listed = list(labels)
        values = as_labels(listed, len(listed)).values
        self._check_room(values, self._begun, first=False)
        known = len(self._numbers)
        reused = self._assign_codewords(values)
        for number in range(known, len(self._numbers)):
            self._mapping.restart(number // self._begun.labels_per_cycle)
        self._warn_of(reused)
        return self

    # What was learned

    @property
    def labels_(self) -> list[Hashable]:
        """Labels in order of arrival."""
        self._require_fitted()
        return list(self._numbers)

    def numbers(self, labels: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return each label's place in `labels_`."""
        self._require_fitted()
        try:
            return np.array([self._numbers[label] for label in labels], np.int64)
        except KeyError as error:
            raise UnknownNameError(
                f"label {error.args[0]!r} has not been seen", hint="labels_ lists those that have"
            ) from None

    @property
    def codewords_(self) -> NDArray[np.int8]:
        """(n_labels, width) the code matrix Lambda: -1, +1, and 0 where a bit is inactive."""
        self._require_fitted()
        k, rho = self._begun.bits, self._begun.labels_per_cycle
        matrix = np.zeros((len(self._words), self.n_cycles_, k), np.int8)
        numbers = np.arange(len(self._words))
        matrix[numbers, numbers // rho] = self._words.rows
        return matrix.reshape(len(self._words), self.width_)

    @property
    def words_(self) -> NDArray[np.int8]:
        """(n_labels, k) each label's word on the bits of its own cycle; a view, not to write to."""
        self._require_fitted()
        return self._words.rows

    @property
    def label_cycles_(self) -> NDArray[np.int64]:
        """(n_labels,) the cycle of each label."""
        return np.arange(len(self.words_)) // self._begun.labels_per_cycle

    @property
    def n_cycles_(self) -> int:
        """Cycles opened so far."""
        self._require_fitted()
        return self._mapping.n_cycles

    @property
    def width_(self) -> int:
        """Bits now: k for each cycle."""
        return self.n_cycles_ * self._begun.bits

    @property
    def versions_(self) -> NDArray[np.int64]:
        """(width,) how often each function has changed; an unchanged count means unchanged bits.

        While the running mean still moves, every row changes every function.
        """
        self._require_fitted()
        return self._mapping.updates.rows.reshape(-1) + self._center.moves

    @property
    def version_(self) -> int:
        """One number for the whole mapping; it grows with every change and every new function."""
        return int(self.versions_.sum()) + self.width_

    # Hashing

    def margins(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return (n, width) values w·x of centred unit rows; their signs are the bits."""
        self._require_fitted()
        rows = as_rows(X, self.n_features_in_, type(self).__name__)
        self._check_columns(X, rows.shape[1], first=False)
        return self._mapping.margins(unit_rows(rows, self._center.point))

    def transform(self, X: ArrayLike) -> NDArray[np.int8]:
        """Return (n, width) bits of -1 and +1."""
        return np.where(self.margins(X) > 0, np.int8(1), np.int8(-1))

    def encode(self, X: ArrayLike) -> Codes:
        """Return packed codes stamped with the mapping's version."""
        return Codes.pack(self.transform(X), self.version_)

    def freeze(self) -> FrozenMapping:
        """Return the mapping as it is now; further learning does not move it."""
        self._require_fitted()
        return FrozenMapping(
            functions=self._mapping.functions.copy(),
            center=self._center.point,
            words=self._words.rows.copy(),
            labels_per_cycle=self._begun.labels_per_cycle,
            versions=self.versions_,
            version=self.version_,
        )

    def encode_labels(self) -> Codes:
        """Return the codewords of all labels as codes, inactive bits masked."""
        return Codes.pack(self.codewords_, self.version_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything learned to a safetensors file; `everhash.load_hasher` reads it."""
        from everhash.learn.model_file import save_hasher

        save_hasher(self, path)

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
