"""What every method promises that needs all its rows at once. A new one is a line in METHODS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Hasher, Index, load_hasher, peers
from everhash.errors import (
    DimensionError,
    InputError,
    LabelError,
    LimitError,
    NotFiniteError,
    NotFittedError,
    NotOnlineError,
)
from everhash.peers.batch_method import BatchMethod
from tests.conftest import Stream

OPTIONS: dict[str, dict[str, Any]] = {
    "lsh": {},
    "sh": {},
    "itq": {},
    "cca-itq": {},
    "ssh": {},
    "sth": {},
    "ldahash": {},
    "bre": {"sweeps": 3},
    "mlh": {"steps": 60},
    "shk": {"anchors": 40},
    "fasthash": {"trees": 5},
    "shecc": {},
    "shecc-tree": {},
}
DRAWS_NOTHING = {"sh", "ldahash", "ssh"}
ROWS = 240
Make = Callable[[], BatchMethod]


@pytest.fixture(params=list(OPTIONS))
def make(request: pytest.FixtureRequest) -> Make:
    def made() -> BatchMethod:
        hasher = peers.get(request.param, 8, **OPTIONS[request.param])
        assert isinstance(hasher, BatchMethod)
        return hasher

    return made


@pytest.fixture(scope="module")
def fitted(digits: Stream) -> dict[str, BatchMethod]:
    """Each method once, for tests that only look."""
    made = {}
    for name, options in OPTIONS.items():
        hasher = peers.get(name, 8, **options).fit(digits.X[:ROWS], digits.y[:ROWS])
        assert isinstance(hasher, BatchMethod)
        made[name] = hasher
    return made


def test_every_batch_method_is_held_to_the_contract() -> None:
    assert set(OPTIONS) == {name for name in peers.names() if not peers.describe(name).online}


@pytest.mark.parametrize("name", OPTIONS)
def test_keeps_the_protocol(name: str, fitted: dict[str, BatchMethod], digits: Stream) -> None:
    hasher = fitted[name]
    assert isinstance(hasher, Hasher)
    codes = hasher.encode(digits.X[:5])
    assert codes.width == hasher.width_ == len(hasher.versions_) == 8
    np.testing.assert_array_equal(codes.unpack(), hasher.transform(digits.X[:5]))
    assert hasher.codewords_.shape == (10, 8)
    assert (hasher.codewords_ != 0).all() == hasher.assigns_codewords


@pytest.mark.parametrize("name", OPTIONS)
def test_rows_of_a_batch_and_alone_get_the_same_bits(
    name: str, fitted: dict[str, BatchMethod], digits: Stream
) -> None:
    margins = fitted[name].margins(digits.X[300:340])
    for row in range(40):
        alone = fitted[name].margins(digits.X[300 + row : 301 + row])
        np.testing.assert_array_equal(alone[0], margins[row])


def test_same_seed_same_bytes_and_another_seed_others(make: Make, digits: Stream) -> None:
    X, y = digits.X[:ROWS], digits.y[:ROWS]
    one, other = (make().fit(X, y) for _ in range(2))
    assert one.to_bytes() == other.to_bytes()
    another = make().set_params(random_state=1).fit(X, y)
    same = np.array_equal(one.margins(digits.X), another.margins(digits.X))
    assert same == (one.method in DRAWS_NOTHING)


def test_a_stream_is_refused_by_an_error_that_says_what_to_do(make: Make, digits: Stream) -> None:
    hasher = make()
    X, y = digits.X[:ROWS], digits.y[:ROWS]
    with pytest.raises(NotOnlineError, match=r"batch method.*fit\(X, y\)"):
        hasher.partial_fit(X, y)
    with pytest.raises(NotOnlineError):
        hasher.begin(64)
    with pytest.raises(NotFittedError):
        hasher.margins(X)


def test_fitting_again_moves_every_version(make: Make, digits: Stream) -> None:
    hasher = make().fit(digits.X[:ROWS], digits.y[:ROWS])
    versions, version, frozen = hasher.versions_, hasher.version_, hasher.freeze()
    before = hasher.margins(digits.X)
    hasher.fit(digits.X[ROWS : 2 * ROWS], digits.y[ROWS : 2 * ROWS])
    assert (hasher.versions_ > versions).all()
    assert hasher.version_ > version
    np.testing.assert_array_equal(frozen.margins(frozen.measure(digits.X)), before)


def test_save_and_load_give_the_same_and_fit_again_alike(
    make: Make, digits: Stream, tmp_path: Path
) -> None:
    hasher = make().fit(digits.X[:ROWS], digits.y[:ROWS])
    hasher.save(tmp_path / "m")
    loaded = load_hasher(tmp_path / "m")
    assert type(loaded) is type(hasher)
    assert loaded.to_bytes() == hasher.to_bytes()
    np.testing.assert_array_equal(loaded.margins(digits.X), hasher.margins(digits.X))
    for one in (hasher, loaded):
        one.fit(digits.X[: ROWS // 2], digits.y[: ROWS // 2])
    assert loaded.to_bytes() == hasher.to_bytes()


def test_progress_rises_to_the_whole(make: Make, digits: Stream) -> None:
    told: list[float] = []
    make().fit(digits.X[:ROWS], digits.y[:ROWS], progress=told.append)
    assert told == sorted(set(told))
    assert told[-1] == 1.0


BAD: dict[str, tuple[Any, Any, type[Exception]]] = {
    "1-d X": (np.ones(64), [1], InputError),
    "no rows": (np.ones((0, 64)), [], InputError),
    "y of another length": (np.ones((2, 64)), [1], LabelError),
    "NaN": (np.full((2, 64), np.nan), [1, 2], NotFiniteError),
}


@pytest.mark.parametrize(("X", "y", "error"), BAD.values(), ids=BAD)
def test_a_bad_call_leaves_the_hasher_as_it_was(
    make: Make, digits: Stream, X: Any, y: Any, error: type[Exception]
) -> None:
    hasher = make().fit(digits.X[:ROWS], digits.y[:ROWS])
    before = hasher.to_bytes()
    with pytest.raises(error):
        hasher.fit(X, y)
    with pytest.raises(DimensionError):
        hasher.margins(np.ones((2, 3)))
    assert hasher.to_bytes() == before


def test_labels_are_asked_for_only_where_they_are_needed(make: Make, digits: Stream) -> None:
    hasher = make()
    if peers.describe(hasher.method).supervised:
        with pytest.raises(LabelError, match="no row has one"):
            hasher.fit(digits.X[:ROWS])
    else:
        blind = make().fit(digits.X[:ROWS])
        seeing = make().fit(digits.X[:ROWS], digits.y[:ROWS])
        np.testing.assert_array_equal(blind.margins(digits.X), seeing.margins(digits.X))


@pytest.mark.parametrize("name", OPTIONS)
def test_sits_in_an_index_and_a_file(
    name: str, fitted: dict[str, BatchMethod], digits: Stream, tmp_path: Path
) -> None:
    index = Index(fitted[name])
    index.add(digits.X[300:400], y=digits.y[300:400])
    index.add(digits.X[400:450])
    found = index.search(digits.X[500:520], 5)
    with everhash.create(tmp_path / "c.ever", hasher=fitted[name]) as col:
        col.add(digits.X[300:400], y=digits.y[300:400])
        col.add(digits.X[400:450])
        with pytest.raises(NotOnlineError):
            col.learn(digits.X[:10], digits.y[:10])
        assert len(col) == 150
    assert everhash.verify(tmp_path / "c.ever").problems == ()
    with everhash.open(tmp_path / "c.ever") as col:
        again = col.search(digits.X[500:520], 5)
        np.testing.assert_array_equal(again.ids, found.ids)
        np.testing.assert_array_equal(again.distances, found.distances)
        assert col.hasher.method == name


@pytest.mark.parametrize("name", OPTIONS)
def test_a_new_label_is_a_name_or_refused(
    name: str, fitted: dict[str, BatchMethod], digits: Stream
) -> None:
    index = Index(fitted[name])
    if fitted[name].assigns_codewords:
        with pytest.raises(LimitError):
            index.add(digits.X[300:301], y=["new"])
    else:
        (added,) = index.add(digits.X[300:301], y=["new"])
        assert index.get([added])[0].labels == ("new",)
