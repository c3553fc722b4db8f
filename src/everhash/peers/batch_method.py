"""What a method that needs all its rows at once has in common with a hasher of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import LabelError, NotOnlineError, OptionError
from everhash.learn.blas import one_thread
from everhash.learn.centering import unit_rows
from everhash.learn.model_format import require
from everhash.learn.views import Centred, Homogeneous, View
from everhash.peers.method import Counts, Floats, Layout, Method
from everhash.stream import MAX_FEATURE, Labels, as_labels, as_rows

Report = Callable[[float], None]
"""Is called with the share of the work that is done, from time to time."""


class BatchMethod(Method):
    """A method that learns by `fit`, and by `fit` again when there are more rows.

    A subclass learns all functions from rows and labels (`_fit`). Each `fit` starts from nothing
    and counts as a change of every function.
    """

    direction_a_bit: ClassVar[bool] = False
    """Functions are directions at right angles, so that there are at most as many as features."""
    mean_: Floats
    """(d,) the centre: the mean of all rows."""

    def _read_options(self, n_features: int, first: bool) -> dict[str, Any]:
        options = super()._read_options(n_features, first)
        if self.direction_a_bit and options["bits"] > n_features:
            raise OptionError(
                f"bits must be at most {n_features}, the features, got {options['bits']}"
            )
        return options

    def _layout(self) -> Layout:
        return super()._layout() | {"mean_": (np.float32, (self.n_features_in_,))}

    @property
    def _view(self) -> View:
        return Centred(self.mean_)

    def fit(self, X: ArrayLike, y: Any = None, *, progress: Report | None = None) -> Self:
        """Forget everything, then learn from X and y. An error leaves the hasher as it was.

        Args:
            X: (n, d) finite features.
            y: a label for each row, a set of labels, or None where a row has no label.
            progress: is called with the share of the work that is done.
        """
        rows = as_rows(X)
        labels = as_labels(y, len(rows))
        fresh = type(self)(**self.get_params())
        options = fresh._read_options(rows.shape[1], first=True)
        fresh._check_room(labels.values, options, first=True)
        fresh._check_columns(X, rows.shape[1], first=True)
        fresh._begin(options)
        fresh._assign_words(labels.values)
        reporter = _Progress(progress)
        with one_thread():
            fresh._fit_rows(rows, labels, reporter)
        reporter(1.0)
        fresh._lessons = len(rows)
        before = self.updates_.max() if self.__sklearn_is_fitted__() else 0
        fresh.updates_ = np.full(len(fresh.updates_), before + 1)
        return self._become(fresh)

    def _fit_rows(self, rows: Floats, labels: Labels, report: Report) -> None:
        """Centre rows at their mean, and learn from those that have labels, or from all."""
        self.mean_ = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        if not self.about.supervised:
            self._fit(unit_rows(rows, self.mean_), np.empty(0, np.int64), report)
            return
        if len(labels.rows) == 0:
            raise LabelError(
                f"{self.method} learns from labels, and no row has one", hint="give rows labels"
            )
        numbers = self.numbers(labels.values)[labels.which]
        self._fit(unit_rows(rows[labels.rows], self.mean_), numbers, report)

    def _fit(self, Z: Floats, labels: Counts, report: Report) -> None:
        """Learn from centred unit rows and their labels by number (none if unsupervised)."""
        raise NotImplementedError

    def _start(self) -> None:
        """Nothing: `fit` makes the functions."""

    def _room(self, options: dict[str, Any]) -> int:
        """Return how many labels there may be: a codeword means nothing that was not fitted."""
        known = self.assigns_codewords and self.__sklearn_is_fitted__()
        return len(self._numbers) if known else super()._room(options)

    def _hint_of_room(self, options: dict[str, Any]) -> str:
        if self.__sklearn_is_fitted__():
            return "call fit again, with rows of the new labels among the others"
        return super()._hint_of_room(options)

    @property
    def partial_fit(self) -> Any:
        """Not offered, and not an attribute either: scikit-learn asks whether there is one."""
        raise NotOnlineError(self.method)

    def begin(self, n_features: int) -> Self:  # noqa: ARG002
        """Not offered: without rows there are no functions."""
        raise NotOnlineError(self.method)

    def learn_rows(self, rows: NDArray[np.float32], labels: Labels) -> None:  # noqa: ARG002
        """Not offered: the method needs all its rows at once."""
        raise NotOnlineError(self.method)

    def _check_state(self) -> None:
        super()._check_state()
        usable = bool((np.abs(self.mean_) < MAX_FEATURE).all())
        require(usable, "the mean is out of range")


class ThresholdMethod(BatchMethod):
    """A batch method whose functions have a threshold each: the weight of a constant feature."""

    @property
    def _seen_width(self) -> int:
        return self.n_features_in_ + 1

    @property
    def _view(self) -> View:
        return Homogeneous(self.mean_)


class _Progress:
    """Reports shares that are new, the last of them once."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self._share = 0.0

    def __call__(self, share: float) -> None:
        if self._report is not None and share > self._share:
            self._share = share
            self._report(share)
