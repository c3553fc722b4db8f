"""The hasher is a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from everhash import OnlineHasher
from everhash.errors import OptionError
from tests.conftest import Stream


def checks() -> list[tuple[OnlineHasher, Any]]:
    """All of scikit-learn's checks but one, which needs SciPy's array API switched on at start."""
    found = []
    with warnings.catch_warnings():
        # we keep scikit-learn's protocol without its base class, which takes a second to import
        warnings.filterwarnings("ignore", message=".*does not inherit from")
        for hasher in (OnlineHasher(bits=8), OnlineHasher.paper(8)):
            found += list(estimator_checks_generator(hasher))
    return [(hasher, check) for hasher, check in found if name_of(check) != "check_array_api_input"]


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


CHECKS = checks()


@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKS,
    ids=[f"{hasher!r}-{name_of(check)}" for hasher, check in CHECKS],
)
def test_passes_check_estimator(estimator: OnlineHasher, check: Any) -> None:
    check(estimator)


def test_works_in_a_pipeline_and_a_grid_search(digits: Stream) -> None:
    pipeline = make_pipeline(
        StandardScaler(), OnlineHasher(bits=16), KNeighborsClassifier(metric="hamming")
    )
    search = GridSearchCV(pipeline, {"onlinehasher__bits": [2, 32]}, cv=2)
    search.fit(digits.X[:600], digits.y[:600])
    assert search.best_params_ == {"onlinehasher__bits": 32}
    assert search.score(digits.X[600:], digits.y[600:]) > 0.8
    assert "OnlineHasher" in pipeline._repr_html_()


def test_clone_and_repr_show_what_was_changed() -> None:
    hasher = OnlineHasher(bits=8, codebook=np.array([[1, -1] * 4]))
    twin = clone(hasher)
    assert twin is not hasher
    assert repr(OnlineHasher(bits=8, publish=2.0)) == "OnlineHasher(bits=8, publish=2.0)"
    assert repr(twin) == repr(hasher)


def test_unknown_parameter_is_a_typed_error() -> None:
    with pytest.raises(OptionError, match="no option 'bytes'"):
        OnlineHasher().set_params(bytes=8)


def test_fit_forgets_and_a_failed_fit_does_not(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8).fit(digits.X[:100], digits.y[:100])
    again = (
        OnlineHasher(bits=8).fit(digits.X[100:], digits.y[100:]).fit(digits.X[:100], digits.y[:100])
    )
    np.testing.assert_array_equal(hasher.margins(digits.X), again.margins(digits.X))
    with pytest.raises(ValueError, match="row 0"):
        hasher.fit(np.full((3, 64), np.nan), [1, 2, 3])
    np.testing.assert_array_equal(hasher.margins(digits.X), again.margins(digits.X))


def test_column_names_must_be_those_of_the_first_batch(digits: Stream) -> None:
    names = [f"pixel{i}" for i in range(64)]
    frame = pd.DataFrame(digits.X, columns=names)
    hasher = OnlineHasher(bits=8).partial_fit(frame, pd.Series(digits.y))
    assert hasher.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        hasher.transform(frame[names[::-1]])
