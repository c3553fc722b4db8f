"""Hashers are scikit-learn estimators, and scikit-learn is loaded only when it is needed."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from everhash import OnlineHasher, load_hasher, peers
from everhash.errors import ModelFileError, NotFittedError, NotOnlineError, OptionError
from everhash.learn.stream_hasher import StreamHasher
from tests.conftest import Stream, slowly

SLOW = {"mlh", "fasthash"}
ONE_OF_A_KIND = ["everhash", "everhash-sgd", "okh", "adapthash", "sketchhash", "mihash", "hcoh"]
ONE_OF_A_KIND += ["onehot", "itq", "ldahash"]
"""A method of each class that others are made from; the others are checked slowly."""
CHECK = """
import sys
from sklearn.utils.estimator_checks import check_estimator
from everhash import peers
for name in sys.argv[1:]:
    bits = 8 if peers.describe(name).codewords else 1  # some have at most one a feature
    check_estimator(peers.get(name, bits))
"""
LIGHT = """
import sys
import numpy as np
import everhash
X = np.eye(4, dtype=np.float32)
with everhash.create(None, dim=4, bits=8) as shop:
    shop.ingest(X, list("abab"))
    shop.search(X, k=2)
    assert "sklearn" not in sys.modules
    hasher = shop.hasher
    everhash.OnlineHasher
    from sklearn.base import BaseEstimator
    assert isinstance(hasher, BaseEstimator)
    assert list(hasher.set_output(transform="pandas").transform(X).columns)[0] == "onlinehasher0"
    shop.search(X, k=2)
"""


def run(code: str, *arguments: str, **env: str) -> None:
    """Run code in a fresh interpreter where every warning is an error."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    ran = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "names",
    [
        ONE_OF_A_KIND,
        *slowly([name for name in peers.names() if name not in {*SLOW, *ONE_OF_A_KIND}]),
        *slowly(*([name] for name in sorted(SLOW))),
    ],
    ids=lambda names: names[0],
)
def test_every_method_passes_check_estimator_without_a_warning(names: list[str]) -> None:
    # SciPy's array API, which one check needs, can be switched on at start only
    run(CHECK, *names, SCIPY_ARRAY_API="1")


def test_a_collection_loads_no_scikit_learn_and_its_hasher_joins_when_that_comes() -> None:
    run(LIGHT)


@pytest.mark.parametrize("name", ["everhash", "everhash-sgd", "paper", "mihash", "itq"])
def test_a_hasher_is_an_estimator_with_named_columns(name: str, digits: Stream) -> None:
    hasher = peers.get(name, bits=8)
    assert isinstance(hasher, BaseEstimator)
    assert isinstance(hasher, TransformerMixin)
    with pytest.raises(NotFittedError):
        hasher.get_feature_names_out()
    hasher.fit(digits.X[:300], digits.y[:300])
    names = hasher.get_feature_names_out().tolist()
    prefix = type(hasher).__name__.lower()
    assert names == [f"{prefix}{bit}" for bit in range(hasher.width_)]
    assert "estimator" in hasher._repr_html_()


@pytest.mark.parametrize("name", ["everhash", "mihash", "itq"])
def test_set_output_gives_frames_that_hold_the_same_bits(name: str, digits: Stream) -> None:
    hasher = peers.get(name, bits=8).fit(digits.X[:300], digits.y[:300])
    bits, codes = hasher.transform(digits.X[:9]), hasher.encode(digits.X[:9])
    assert isinstance(bits, np.ndarray)
    given = pd.DataFrame(digits.X[:9], index=list("abcdefghi"))
    with config_context(transform_output="pandas"):
        assert isinstance(hasher.transform(digits.X[:9]), pd.DataFrame)
    frame = hasher.set_output(transform="pandas").transform(given.to_numpy())
    assert isinstance(frame, pd.DataFrame)
    np.testing.assert_array_equal(frame.to_numpy(), bits)
    assert frame.columns.tolist() == hasher.get_feature_names_out().tolist()
    np.testing.assert_array_equal(hasher.encode(digits.X[:9]).words, codes.words)
    assert isinstance(hasher.set_output(transform="default").transform(digits.X[:9]), np.ndarray)


def test_fit_transform_of_a_frame_keeps_its_index(digits: Stream) -> None:
    frame = pd.DataFrame(digits.X[:50], columns=[f"pixel{i}" for i in range(64)])
    frame.index = frame.index + 100
    bits = OnlineHasher(bits=8).set_output(transform="pandas").fit_transform(frame, digits.y[:50])
    assert bits.index.tolist() == frame.index.tolist()


def test_works_in_a_pipeline_and_a_grid_search(digits: Stream) -> None:
    pipeline = make_pipeline(
        StandardScaler(), OnlineHasher(bits=16), KNeighborsClassifier(metric="hamming")
    )
    search = GridSearchCV(pipeline, {"onlinehasher__bits": [2, 32]}, cv=2)
    search.fit(digits.X[:600], digits.y[:600])
    assert search.best_params_ == {"onlinehasher__bits": 32}
    assert search.score(digits.X[600:], digits.y[600:]) > 0.8
    assert "OnlineHasher" in pipeline._repr_html_()


def test_a_classifier_may_follow_and_names_the_bits(digits: Stream) -> None:
    pipeline = make_pipeline(OnlineHasher(bits=32), LogisticRegression())
    pipeline.set_output(transform="pandas").fit(digits.X[:600], digits.y[:600])
    assert pipeline.score(digits.X[600:], digits.y[600:]) > 0.8
    assert pipeline[-1].feature_names_in_[0] == "onlinehasher0"


def test_a_pipeline_that_ends_in_a_hasher_predicts(digits: Stream) -> None:
    pipeline = make_pipeline(StandardScaler(), OnlineHasher(bits=32))
    pipeline.fit(digits.X[:600], digits.y[:600])
    guesses = pipeline.predict(digits.X[600:])
    shares = pipeline.predict_proba(digits.X[600:])
    assert pipeline.classes_.tolist() == list(range(10))
    np.testing.assert_array_equal(pipeline.classes_[shares.argmax(axis=1)], guesses)
    accuracy = (guesses == digits.y[600:]).mean()
    assert pipeline.score(digits.X[600:], digits.y[600:]) == accuracy > 0.9


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_hasher_is_tuned_by_its_own_score_in_parallel(digits: Stream, backend: str) -> None:
    folds = StratifiedKFold(2)
    with joblib.parallel_config(backend, n_jobs=2):
        search = GridSearchCV(OnlineHasher(), {"features": [0, 500]}, cv=folds)
        search.fit(digits.X[:600], digits.y[:600])
        scores = cross_val_score(
            search.best_estimator_, digits.X[:600], digits.y[:600], cv=folds, scoring="accuracy"
        )
    assert search.best_params_ == {"features": 500}
    assert search.best_score_ == pytest.approx(scores.mean())


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a", "b", "c"], ["a", "b", "c"]),
        ([3, 1, 3, 2], [1, 2, 3]),
        (["b", 1, ("x", 2), "a"], ["b", 1, ("x", 2), "a"]),
    ],
)
def test_classes_are_sorted_where_they_can_be(labels: list[Any], classes: list[Any]) -> None:
    hasher = OnlineHasher(bits=8).fit(np.eye(4), labels)
    assert hasher.classes_.tolist() == classes
    shares = hasher.predict_proba(np.eye(4))
    assert shares.shape == (4, len(classes))
    assert hasher.predict(np.eye(4)).tolist() == [classes[place] for place in shares.argmax(axis=1)]


def go_round(hasher: StreamHasher, way: str, folder: Path) -> Any:
    if way == "pickle":
        return pickle.loads(pickle.dumps(hasher))  # noqa: S301 - what joblib does
    if way == "deepcopy":
        return copy.deepcopy(hasher)
    if way == "joblib":
        joblib.dump(hasher, folder / "shared")
        return joblib.load(folder / "shared", mmap_mode="r")  # as joblib hands it to processes
    hasher.save(folder / "saved")
    return type(hasher).load(folder / "saved")


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "joblib", "load"])
@pytest.mark.parametrize("name", ["everhash", "everhash-sgd", "mihash", "hcoh", "itq", "shk"])
def test_a_copy_hashes_alike_and_goes_on_learning(
    name: str, way: str, digits: Stream, tmp_path: Path
) -> None:
    hasher = peers.get(name, bits=16).fit(digits.X[:200], digits.y[:200])
    twin = go_round(hasher, way, tmp_path)
    assert type(twin) is type(hasher)
    np.testing.assert_array_equal(twin.margins(digits.X), hasher.margins(digits.X))
    if hasattr(hasher, "partial_fit"):
        hasher.partial_fit(digits.X[200:300], digits.y[200:300])
        twin.partial_fit(digits.X[200:300], digits.y[200:300])
        np.testing.assert_array_equal(twin.margins(digits.X), hasher.margins(digits.X))


def test_load_refuses_a_file_of_another_method_and_says_what_reads_it(
    digits: Stream, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    OnlineHasher(bits=8).fit(digits.X[:50], digits.y[:50]).save(ours)
    peer = peers.get("mihash", bits=8).fit(digits.X[:50], digits.y[:50])
    peer.save(theirs)
    with pytest.raises(ModelFileError, match=r"its method is mihash \(load_hasher\(\) reads"):
        OnlineHasher.load(theirs)
    with pytest.raises(ModelFileError, match=r"its method is everhash \(load_hasher\(\) reads"):
        type(peer).load(ours)
    assert type(load_hasher(theirs)) is type(peer)


def test_a_batch_method_has_no_partial_fit_and_says_why() -> None:
    hasher = peers.get("itq", bits=8)
    assert not hasattr(hasher, "partial_fit")
    with pytest.raises(NotOnlineError, match="itq is a batch method"):
        hasher.partial_fit(np.eye(8), list(range(8)))


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
