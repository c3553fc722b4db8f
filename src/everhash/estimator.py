"""The scikit-learn estimator interface, without importing scikit-learn until it is needed.

Deriving from `sklearn.base.BaseEstimator` would cost every user a second at start-up.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import NotFittedError, OptionError


class Estimator:
    """Parameters by name, cloning, tags and column names, as scikit-learn defines them.

    A subclass stores each constructor argument under its own name and does nothing else there.
    """

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    """Exists only if the first batch had column names."""

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from rows, in order."""
        raise NotImplementedError

    def transform(self, X: ArrayLike) -> NDArray[np.int8]:
        """Return (n, width) bits of -1 and +1."""
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Forget everything, then learn from X and y."""
        fresh = type(self)(**self.get_params()).partial_fit(X, y)
        self.__dict__.pop("feature_names_in_", None)  # set again if the new data has names
        self.__dict__.update(fresh.__dict__)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None) -> NDArray[np.int8]:
        """Return fit(X, y).transform(X)."""
        return self.fit(X, y).transform(X)

    @classmethod
    @cache
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Return the constructor's arguments as they are now."""
        return {name: vars(self)[name] for name in self._parameter_names()}

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        return {name: each.default for name, each in inspect.signature(cls).parameters.items()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments by name."""
        unknown = sorted(set(params) - set(self._parameter_names()))
        if unknown:
            raise OptionError(
                f"{type(self).__name__} has no option {unknown[0]!r}",
                hint=f"it has {', '.join(self._parameter_names())}",
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
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(sparse=False),
        )

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


def _not_fitted() -> NotFittedError:
    """Return our error; if scikit-learn is loaded, one that is also its own NotFittedError."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError()
    both = type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})
    error: NotFittedError = both()
    return error
