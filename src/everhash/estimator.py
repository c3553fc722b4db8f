"""The scikit-learn estimator interface; scikit-learn itself joins when somebody may need it.

Importing `sklearn.base` takes more than a second of CPU, which the command line, the service and a
program that only opens a collection would all pay for nothing. So hashers keep the interface on
their own, and `join_sklearn` puts scikit-learn's `TransformerMixin` and `BaseEstimator` under them:
at once where scikit-learn is loaded already, and otherwise on the first use of
`everhash.OnlineHasher`, `everhash.load_hasher` or `everhash.peers.get`, or of `set_output`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import NotFittedError, OptionError


class _Place:
    """Holds the place of scikit-learn's base classes until they join."""


class Estimator(_Place):
    """Parameters by name, cloning, tags and column names, as scikit-learn defines them.

    A subclass stores each constructor argument under its own name and does nothing else there.
    """

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    """Exists only if the first batch had column names."""

    @property
    def width_(self) -> int:
        """Bits now."""
        raise NotImplementedError

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from rows, in order."""
        raise NotImplementedError

    def transform(self, X: ArrayLike) -> Any:
        """Return (n, width) bits of -1 and +1."""
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Forget everything, then learn from X and y."""
        return self._become(type(self)(**self.get_params()).partial_fit(X, y))

    def _become(self, fresh: Self) -> Self:
        """Take over what another has learned, and nothing of what was learned before."""
        self.__dict__.pop("feature_names_in_", None)  # set again if the new data has names
        self.__dict__.update(fresh.__dict__)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Any:
        """Return fit(X, y).transform(X)."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002 - scikit-learn's
        """Return the names of the columns of `transform`: onlinehasher0, onlinehasher1, ..."""
        self._require_fitted()
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{bit}" for bit in range(self.width_)], object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `transform` return "pandas" or "polars" frames, or "default" arrays."""
        join_sklearn()
        super().set_output(transform=transform)  # type: ignore[misc]
        return self

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        return {name: each.default for name, each in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Return the constructor's arguments as they are now."""
        return {name: vars(self)[name] for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments by name."""
        unknown = sorted(set(params) - set(self._defaults()))
        if unknown:
            raise OptionError(
                f"{type(self).__name__} has no option {unknown[0]!r}",
                hint=f"it has {', '.join(self._defaults())}",
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name])
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        join_sklearn()
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "transformer"
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()

    def _check_columns(self, X: Any, n_features: int, *, first: bool) -> None:
        """Check that a data frame has the column names of the first batch."""
        if hasattr(X, "columns") or hasattr(self, "feature_names_in_"):
            from sklearn.utils.validation import validate_data

            validate_data(self, X, reset=first, skip_check_array=True)
        elif first:
            self.n_features_in_ = n_features


def join_sklearn() -> None:
    """Make every hasher a scikit-learn estimator, from now on and including those that exist."""
    from sklearn.base import BaseEstimator, TransformerMixin

    if _Place in Estimator.__bases__:
        Estimator.__bases__ = (TransformerMixin, BaseEstimator)
        for each in _subclasses(Estimator):  # as Python does for classes that come later
            super(Estimator, each).__init_subclass__()


def _subclasses(parent: type[Estimator]) -> Iterator[type[Estimator]]:
    yield parent
    for child in parent.__subclasses__():
        yield from _subclasses(child)


def _not_fitted() -> NotFittedError:
    """Return our error; if scikit-learn is loaded, one that is also its own NotFittedError."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError()
    both = type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})
    error: NotFittedError = both()
    return error


if "sklearn.base" in sys.modules:
    join_sklearn()
