"""What a published method needs around its learning rule to be a hasher like ours.

A method is one file: its options, the arrays that make up its state, and its rule. Options are
checked here, rows are centred here, labels are numbered here, and state is saved as it is declared,
so that a method's file holds nothing but the method.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import LimitError, OptionError
from everhash.learn import seeds
from everhash.learn.blas import one_thread
from everhash.learn.centering import Center, unit_rows
from everhash.learn.growing import GrowingArray, copied
from everhash.learn.model_format import require
from everhash.learn.options import ONE_CYCLE, bits_of, center_of, seed_of
from everhash.learn.stream_hasher import StreamHasher
from everhash.learn.views import Centred, View
from everhash.peers.description import Description
from everhash.peers.options import checks_of
from everhash.stream import Labels

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
Shape = tuple[int | None, ...]
Layout = dict[str, tuple[type[np.generic], Shape]]
"""The arrays of a method's state, by attribute: type and shape, None where rows are appended."""

MAX_WEIGHT = 1e30
"""No learning gets there; margins of larger functions could overflow."""
UNIT = 1.001
"""Length that a row of unit length stays below, rounding included."""
BLOCK = 1024
"""Rows laid out at a time. Bounds memory; results do not depend on it."""


@dataclass(eq=False, repr=False)
class Method(StreamHasher):
    """A method of the literature: one cycle of `bits` functions, unless it says otherwise.

    A subclass declares its options (see `peers.options`), lays out its arrays (`_layout`), fills
    them (`_start`), and learns (`_learn`). Where it has codewords it draws them (`_draw_word`).
    """

    about: ClassVar[Description]
    bits: int = 32
    random_state: int | None = field(default=0, kw_only=True)
    functions_: Floats = field(init=False)
    """(bits, w) what is served, a function a row."""
    updates_: Counts = field(init=False)
    """(bits,) how often each has changed, for any reason but a moving centre."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "about" in vars(cls):
            cls.assigns_codewords = cls.about.codewords

    @property
    def method(self) -> str:
        """Its name among the methods."""
        return self.about.name

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    def _layout(self) -> Layout:
        """Return the arrays of the method's state besides `functions_` and `updates_`."""
        return {}

    def _start(self) -> None:
        """Fill the arrays, which hold zeros, before the first row."""
        raise NotImplementedError

    def _learn(self, Z: Floats, labels: Counts) -> None:
        """Learn seen rows in order, each with the number of its label."""
        raise NotImplementedError

    def _draw_word(self, number: int) -> NDArray[np.int8]:
        """Return the word of the label with this number, of -1 and +1."""
        raise NotImplementedError

    # Learning

    def learn_rows(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Learn rows that `as_rows` and `as_labels` have checked."""
        self._read_options(rows.shape[1], first=False)
        self._assign_words(labels.values)
        numbers = self.numbers(labels.values)
        with one_thread():
            for start in range(0, len(rows), BLOCK):
                inside = slice(*np.searchsorted(labels.rows, (start, start + BLOCK)))
                step_rows, step_labels = labels.rows[inside] - start, numbers[labels.which[inside]]
                self._take(rows[start : start + BLOCK], step_rows, step_labels)
                self._lessons += min(BLOCK, len(rows) - start)

    def _take(self, X: Floats, step_rows: Counts, step_labels: Counts) -> None:
        """Centre rows by what has come so far, and learn those that have labels."""
        centers = self._center.follow(X)
        if len(step_rows):
            moment = np.minimum(step_rows, len(centers) - 1)
            self._learn(unit_rows(X[step_rows], centers, moment), step_labels)

    def _begin(self, options: dict[str, Any]) -> None:
        self._prepare(options)
        for name, (dtype, shape) in self._whole_layout().items():
            setattr(self, name, np.zeros([size or 0 for size in shape], dtype))
        self._start()

    def _prepare(self, options: dict[str, Any]) -> None:
        """Set up everything but the arrays of the state."""
        seed = options["random_state"]
        seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        self._begun = {**options, "random_state": seed}
        self._take_names([])
        self._lessons = 0
        self._words: GrowingArray[np.int8] = GrowingArray((self._word_bits,), np.int8)
        given = options.get("center")
        point = given if isinstance(given, np.ndarray) else None
        self._center = Center(self.n_features_in_, point, follows=isinstance(given, str))

    @property
    def _word_bits(self) -> int:
        return int(self._begun["bits"])

    def _whole_layout(self) -> Layout:
        bits, width = self._begun["bits"], self._seen_width
        served: Layout = {
            "functions_": (np.float32, (bits, width)),
            "updates_": (np.int64, (bits,)),
        }
        return served | self._layout()

    @property
    def _seen_width(self) -> int:
        """Numbers of a row as the functions see it."""
        return self.n_features_in_

    def _assign_words(self, labels: list[Hashable]) -> None:
        for label in self.unknown(labels):
            number = len(self._names)
            self._words.grow_to(number + 1)
            if self.assigns_codewords:
                self._words.rows[number] = self._draw_word(number)
            self._add_name(label)

    def _read_options(self, n_features: int, first: bool) -> dict[str, Any]:
        params = self.get_params()
        options = {name: check(name, params[name]) for name, check in checks_of(self).items()}
        options["bits"] = bits_of(params.get("bits", 1))
        options["random_state"] = seed_of(params["random_state"])
        if "center" in params:
            options["center"] = center_of(params["center"], n_features)
        given = {name for name in options if name != "random_state"}
        if not first and not all(np.array_equal(options[n], self._begun[n]) for n in given):
            raise OptionError(
                "options cannot change once learning has begun", hint="call fit to start again"
            )
        return options

    def _check_room(self, labels: list[Hashable], options: dict[str, Any], first: bool) -> None:
        known = {} if first else self._numbers
        total = len(known) + sum(value not in known for value in labels)
        if total > self._room(options):
            raise LimitError(
                f"{total} labels, but this {type(self).__name__} can know {self._room(options)}",
                hint=self._hint_of_room(options),
            )

    def _hint_of_room(self, options: dict[str, Any]) -> str:
        """Say what to do about one label too many."""
        first = "start anew with a larger {option classes}, or " if "classes" in options else ""
        return f"{first}check that these are labels and not ids"

    def _room(self, options: dict[str, Any]) -> int:  # noqa: ARG002 - a few methods look at them
        """Return how many labels the method can ever know."""
        return limits.LABELS

    def _random_functions(self) -> Floats:
        """Return directions of unit length, as our own hasher starts with."""
        rng = seeds.generator(self._begun["random_state"], seeds.WEIGHTS)
        directions = rng.standard_normal(self.functions_.shape)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return directions.astype(np.float32)

    # What was learned

    @property
    def words_(self) -> NDArray[np.int8]:
        """(n_labels, k) each label's word; zero where the method has no codewords."""
        self._require_fitted()
        return self._words.rows

    @property
    def versions_(self) -> Counts:
        """(width,) how often each function has changed; an unchanged count means unchanged bits."""
        self._require_fitted()
        return self.updates_ + self._center.moves

    @property
    def lessons_(self) -> int:
        """Rows taken in so far."""
        self._require_fitted()
        return self._lessons

    @property
    def label_bytes_(self) -> int:
        """About how many bytes a new label adds to the hasher."""
        return self._word_bits

    @property
    def _functions(self) -> Floats:
        return self.functions_[None]

    @property
    def _view(self) -> View:
        return Centred(self._center.point)

    @property
    def _labels_per_cycle(self) -> int:
        return ONE_CYCLE

    def to_bytes(self) -> bytes:
        """Return what a file of this hasher holds."""
        from everhash.peers.model_file import method_to_bytes

        return method_to_bytes(self)

    @classmethod
    def _wrote(cls, state: dict[str, Any]) -> bool:
        return state.get("method") == cls.about.name

    @classmethod
    def _restore(cls, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        from everhash.peers.model_file import restore_method

        return restore_method(state, arrays, cls)

    def _check_state(self) -> None:
        """Refuse a state read from a file whose arrays do not fit each other."""
        usable = bool((np.abs(self.functions_) < MAX_WEIGHT).all())
        require(usable, "function weights are out of range")
