"""What all hashers of a stream have in common: labels by number, rows through a mapping to codes.

The index and the file work with any `StreamHasher`. How it learns is its own affair.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import limits
from everhash.codes import Codes
from everhash.errors import ModelFileError, OptionError
from everhash.learn.labelled import Labelled
from everhash.learn.mapping import FrozenMapping
from everhash.learn.options import whole_number
from everhash.learn.posterior import Posterior, nothing_learned, softmax_in_place
from everhash.learn.trust import prior_trust
from everhash.learn.views import View, margins_by, word_scores
from everhash.stream import Labels, as_label, as_labels, as_rows

UNCALIBRATED = 10.0
"""What a score by codewords, the mean margin towards a word, is multiplied with."""


class StreamHasher(Labelled):
    """Hash functions that learn from a stream, and labels in their order of arrival.

    A subclass makes the first functions (`_begin`), learns (`learn_rows`) and gives labels their
    words (`_assign_words`).
    """

    assigns_codewords: ClassVar[bool] = True
    """Whether a label has a word of its own. Where none has, labels are names and nothing more."""

    bits: int

    @property
    def method(self) -> str:
        """Its name among the methods; see `everhash.peers`."""
        return "everhash"

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from rows, in order. All or nothing: an error leaves the hasher as it was.

        Args:
            X: (n, d) finite features.
            y: a label for each row: any hashable value, seen before or not; a set of labels, which
                is one lesson for each of them; None where a row has no label.
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
        """Make the first functions before any row has come."""
        if self.__sklearn_is_fitted__():
            raise OptionError("learning has begun already", hint="call fit to start again")
        d = whole_number("n_features", n_features, least=1, most=limits.DIMS)
        options = self._read_options(d, first=True)
        self.n_features_in_ = d
        self._begin(options)
        return self

    def learn_rows(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Learn rows that `as_rows` and `as_labels` have checked."""
        raise NotImplementedError

    def forget(self, X: ArrayLike, y: Any) -> Self:
        """Take back rows that were learned, given as they were. All or nothing."""
        self._require_fitted()
        rows = as_rows(X, self.n_features_in_, type(self).__name__)
        self.forget_rows(rows, as_labels(y, len(rows)))
        return self

    def forget_rows(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Take back rows that `as_rows` and `as_labels` have checked."""
        self.check_forget(rows, labels)

    def check_forget(self, rows: NDArray[np.float32], labels: Labels) -> None:
        """Refuse rows that cannot be taken back, before anything has changed."""
        raise OptionError(
            f"the method {self.method} cannot forget {len(rows)} rows "
            f"of {len(labels.values)} labels",
            hint="the method `everhash` can",
        )

    def merge_labels(self, label: Any, into: Any) -> Self:
        """Let all rows of a label have another one instead; the label is gone."""
        raise OptionError(
            f"the method {self.method} cannot merge {label!r} into {into!r}",
            hint="the method `everhash` can",
        )

    def drop_label(self, label: Any) -> Self:
        """Forget what was learned of a label; the label is gone."""
        raise OptionError(
            f"the method {self.method} cannot drop {label!r}", hint="the method `everhash` can"
        )

    def check_room(self, labels: list[Hashable]) -> None:
        """Refuse labels that would outgrow what is supported, before anything has changed."""
        self._require_fitted()
        options = self._read_options(self.n_features_in_, first=False)
        self._check_room(labels, options, first=False)

    def assign(self, labels: Iterable[Any]) -> Self:
        """Number labels before a row of theirs is learned, and give them words."""
        self._require_fitted()
        values = list(dict.fromkeys(as_label(label) for label in labels))
        self.check_room(values)
        self._assign_words(values)
        return self

    def _begin(self, options: Any) -> None:
        raise NotImplementedError

    def _assign_words(self, labels: list[Hashable]) -> None:
        raise NotImplementedError

    def _read_options(self, n_features: int, first: bool) -> Any:
        raise NotImplementedError

    def _check_room(self, labels: list[Hashable], options: Any, first: bool) -> None:
        raise NotImplementedError

    # What was learned

    @property
    def words_(self) -> NDArray[np.int8]:
        """(n_labels, k) each label's word on the bits of its own cycle; a view, not to write to.

        Zero, that is inactive, where the method has no codewords.
        """
        raise NotImplementedError

    @property
    def codewords_(self) -> NDArray[np.int8]:
        """(n_labels, width) the code matrix Lambda: -1, +1, and 0 where a bit is inactive."""
        words = self.words_
        matrix = np.zeros((len(words), self.n_cycles_, words.shape[1]), np.int8)
        matrix[np.arange(len(words)), self.label_cycles_] = words
        return matrix.reshape(len(words), self.width_)

    @property
    def label_cycles_(self) -> NDArray[np.int64]:
        """(n_labels,) the cycle of each label."""
        return np.arange(len(self.words_)) // self._labels_per_cycle

    @property
    def n_cycles_(self) -> int:
        """Cycles opened so far."""
        self._require_fitted()
        return len(self._functions)

    @property
    def width_(self) -> int:
        """Bits now: k for each cycle."""
        self._require_fitted()
        cycles, k, _ = self._functions.shape
        return int(cycles * k)

    @property
    def versions_(self) -> NDArray[np.int64]:
        """(width,) how often each function has changed; an unchanged count means unchanged bits."""
        raise NotImplementedError

    @property
    def version_(self) -> int:
        """One number for the whole mapping; it grows with every change and every new function."""
        return int(self.versions_.sum()) + self.width_

    @property
    def lessons_(self) -> int:
        """How often the hasher was taught; it grows even where no function has changed yet."""
        raise NotImplementedError

    @property
    def label_bytes_(self) -> int:
        """About how many bytes a new label adds to the hasher."""
        raise NotImplementedError

    @property
    def _functions(self) -> NDArray[np.float32]:
        """(n_cycles, k, w) what is served."""
        raise NotImplementedError

    @property
    def _view(self) -> View:
        """How the functions see a row."""
        raise NotImplementedError

    @property
    def _labels_per_cycle(self) -> int:
        raise NotImplementedError

    # Meaning

    def posterior(self, rows: NDArray[np.float32]) -> Posterior:
        """Return how likely each label is for rows that `as_rows` has checked.

        By how far their margins point towards each codeword; zeros for a method without codewords.
        Such probabilities are not calibrated, and novelty is what the likeliest label lacks.
        """
        words = self.words_
        if not self.assigns_codewords or len(words) == 0:
            return nothing_learned(len(rows), len(words))
        margins = margins_by(self._functions, self._view.of(rows))
        scores = word_scores(margins, words, self._labels_per_cycle)
        softmax_in_place(scores, UNCALIBRATED / words.shape[1])
        return Posterior(scores, 1 - scores.max(axis=1, initial=0))

    @property
    def trust_(self) -> NDArray[np.float32]:
        """(bits + 1,) how often a word at each distance from the nearest codeword has its label.

        A guess that never changes where the method does not count that; not to write to.
        """
        return prior_trust(self.words_.shape[1])

    @property
    def generation_(self) -> int:
        """How often what was learned has changed as a whole: lessons have grown by half."""
        return int(math.log1p(self.lessons_) / math.log(1.5))

    # Hashing

    def margins(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return (n, width) values w·z of seen rows; their signs are the bits."""
        self._require_fitted()
        rows = as_rows(X, self.n_features_in_, type(self).__name__)
        self._check_columns(X, rows.shape[1], first=False)
        return margins_by(self._functions, self._view.of(rows))

    def transform(self, X: ArrayLike) -> Any:
        """Return (n, width) bits of -1 and +1: int8, or the frame `set_output` asks for."""
        return self._signs(X)

    def _signs(self, X: ArrayLike) -> NDArray[np.int8]:
        return np.where(self.margins(X) > 0, np.int8(1), np.int8(-1))

    def encode(self, X: ArrayLike) -> Codes:
        """Return packed codes stamped with the mapping's version."""
        return Codes.pack(self._signs(X), self.version_)

    def encode_labels(self) -> Codes:
        """Return the codewords of all labels as codes, inactive bits masked."""
        return Codes.pack(self.codewords_, self.version_)

    def freeze(self) -> FrozenMapping:
        """Return the mapping as it is now; further learning does not move it."""
        self._require_fitted()
        return FrozenMapping(
            functions=self._functions.copy(),
            view=self._view,
            words=self.words_.copy(),
            labels_per_cycle=self._labels_per_cycle,
            versions=self.versions_,
            version=self.version_,
            generation=self.generation_,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything learned to a safetensors file; `load` reads it."""
        from everhash.learn.model_format import write_model

        write_model(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a hasher of this method that `save` wrote; it goes on as if it had never stopped.

        `everhash.load_hasher` reads one of any method.
        """
        from everhash.learn.model_file import read_state, rebuild
        from everhash.learn.model_format import read_model

        state, arrays = read_state(read_model(path), str(path))
        if not cls._wrote(state):
            raise ModelFileError(
                f"{path} holds no {cls.__name__}: its method is {state.get('method', 'everhash')}",
                hint="{call load_hasher} reads a hasher of any method",
            )
        return rebuild(cls._restore, state, arrays, str(path))

    @classmethod
    def _wrote(cls, state: dict[str, Any]) -> bool:
        """Whether a file's state is one of this class."""
        raise NotImplementedError

    @classmethod
    def _restore(cls, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Build a hasher from its file."""
        raise NotImplementedError

    def to_bytes(self) -> bytes:
        """Return what a file of this hasher holds."""
        raise NotImplementedError
