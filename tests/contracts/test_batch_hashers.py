"""Every batch method keeps the promises of `everhash.checks`. A new one is a line in OPTIONS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Index, checks, peers
from everhash.errors import LimitError, NotOnlineError
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


@pytest.mark.parametrize("check", [*checks.names("every"), *checks.names("batch")])
def test_keeps_its_promises(make: Make, check: str, digits: Stream) -> None:
    checks.get(check)(make, checks.Stream(digits.X[:ROWS], digits.y[:ROWS]))


def test_another_seed_gives_other_functions_where_a_method_draws_any(
    make: Make, digits: Stream
) -> None:
    X, y = digits.X[:ROWS], digits.y[:ROWS]
    one, another = make().fit(X, y), make().set_params(random_state=1).fit(X, y)
    same = np.array_equal(one.margins(digits.X), another.margins(digits.X))
    assert same == (one.method in DRAWS_NOTHING)


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
        np.testing.assert_array_equal(again.scores, found.scores)
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
