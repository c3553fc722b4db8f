"""Two collections with one history, held against each other: one here, and one somewhere else.

The other one is behind a service, or on a cluster in this process.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import everhash
from everhash import Collection, peers
from everhash.errors import EverhashError
from everhash.learn.hasher import OnlineHasher
from tests.cluster.in_process import InProcess, on_cluster
from tests.conftest import slowly
from tests.unit.serve.serving import serving

ALL, TRUTH = load_digits(return_X_y=True)
ALL = ALL.astype(np.float32)
PROBES = ALL[1500:1540]
GIF = b"GIF89a" + bytes(20)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)
KINDS: dict[str, dict[str, Any]] = {
    "home": {"labels_per_cycle": 4},
    "full": {"labels_per_cycle": 4, "coding": "full"},
    "codes only": {"labels_per_cycle": 4, "keep_features": "none", "likeness": False},
    "unlabelled features": {"labels_per_cycle": 4, "keep_features": "unlabelled"},
    "gradient steps": {"method": "everhash-sgd", "labels_per_cycle": 4},
    "no codewords": {"method": "mihash"},
    "on a cluster": {"labels_per_cycle": 4, "shards": 3},
}
HERE_ONLY = {"hasher", "catch_up", "features", "held", "wait", "compact", "compact_if_worth_it"}
"""What has no place on the other side: the hasher, a reader's state, stored features, a lock, a
refresh in the background, which `stats` tells of, and what becomes of the file."""
CLUSTER = "on a cluster"
OF_ITS_OWN = ("path", "commit", "bytes", "shards", "moving", "missing")
"""What stats of a cluster say otherwise, or more."""
FORGETTING = {"home", "full", "codes only", "unlabelled features", CLUSTER}
"""Kinds whose learner takes rows back."""


def create(
    method: str = "everhash", labels_per_cycle: int | str = "auto", seed: int = 0, **options: Any
) -> Collection:
    """Return a collection; its hasher has few features: what is sent and answered is the same."""
    few: dict[str, Any] = {"features": 100} if method == "everhash" else {}
    if labels_per_cycle != "auto":
        few["labels_per_cycle"] = labels_per_cycle
    hasher = peers.get(method, 16, random_state=seed, **few)
    return everhash.create(None, 64, hasher=hasher, **options)


class Twins:
    """Two collections with one history: one here, and one behind a service or on a cluster.

    Args:
        shards: of the cluster; 0 is a service.
        folder: for the files of the cluster; None keeps it in memory.
        options: of `everhash.create`.
    """

    def __init__(self, *, shards: int = 0, folder: Path | None = None, **options: Any) -> None:
        self._ended = ExitStack()
        self.here = self._ended.enter_context(create(**options))
        self.cluster: InProcess | None = None
        self.remote: Any
        if shards:
            other = create(**options).hasher
            assert isinstance(other, OnlineHasher)
            self.cluster = InProcess(folder, other, shards)
            self.remote = self._ended.enter_context(on_cluster(self.cluster))
            return
        self.there = self._ended.enter_context(create(**options))
        self.served = self._ended.enter_context(serving(self.there))
        self.remote = self._ended.enter_context(everhash.connect(self.served.address))

    def both(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Make a call on both; return what both of them gave."""
        mine, theirs = (
            outcome(collection, name, *arguments, **options)
            for collection in (self.here, self.remote)
        )
        if name == "stats" and self.cluster is not None:
            mine, theirs = map(_without_what_differs, (mine, theirs))
        assert_same(mine, theirs)
        return theirs

    def close(self) -> None:
        self._ended.close()


def outcome(collection: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """Return what a call returns, or the error it raises."""
    result: Any
    try:
        result = getattr(collection, name)(*arguments, **options)
        result = list(result) if inspect.isgenerator(result) else result
    except EverhashError as error:
        return error
    if name == "stats":
        result.pop("path", None)
        result["last_refresh"] = sorted(result["last_refresh"] or {})  # when it was differs
    return result


def _without_what_differs(stats: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stats.items() if name not in OF_ITS_OWN}


def assert_same(mine: Any, theirs: Any) -> None:
    """Values, types of values, types of arrays, errors with all they carry."""
    assert type(mine) is type(theirs), (mine, theirs)
    if isinstance(mine, np.ndarray):
        # a table of no ids has the type that entries added before gave it
        assert mine.dtype == theirs.dtype or mine.size == 0
        assert mine.shape == theirs.shape
        np.testing.assert_array_equal(mine, theirs)
        assert [*map(type, mine.flat)] == [*map(type, theirs.flat)]
    elif isinstance(mine, EverhashError):
        mine, theirs = mine.told("python"), theirs.told("python")
        assert (vars(mine), mine.args, str(mine)) == (vars(theirs), theirs.args, str(theirs))
    elif isinstance(mine, everhash.RefreshReport):
        assert replace(mine, seconds=0) == replace(theirs, seconds=0)
    elif is_dataclass(mine):
        for field in fields(mine):
            assert_same(getattr(mine, field.name), getattr(theirs, field.name))
    elif isinstance(mine, list | tuple):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(mine, dict):
        assert list(mine) == list(theirs)
        assert_same(list(mine.values()), list(theirs.values()))
    else:
        assert mine == theirs


@pytest.fixture(name="twins", params=["home", *slowly(CLUSTER)])
def make_twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    pair = Twins(**KINDS[request.param])
    yield pair
    pair.close()


def kinds(*quick: str) -> list[Any]:
    """Return all kinds of collections, those beyond the quick ones marked slow."""
    return [*quick, *slowly(*(kind for kind in KINDS if kind not in quick))]


every_kind = pytest.mark.parametrize("twins", KINDS, indirect=True)
"""For what is read, which depends on what is kept."""
two_kinds = pytest.mark.parametrize(
    "twins", kinds("home", "no codewords", "on a cluster"), indirect=True
)
"""For what is written: a learner that takes rows back and one that does not; slowly all kinds."""
on_cluster_only = pytest.mark.parametrize("twins", [CLUSTER], indirect=True)
"""For what a service looks at in another order."""
over_http = pytest.mark.parametrize("twins", ["home"], indirect=True)
"""For what only a service has."""


def fill(twins: Twins) -> None:
    """Labelled, unlabelled, relabelled and removed entries; both types of ids; stale bits."""
    labels: list[Any] = [int(label) for label in TRUTH[:300]]
    labels[5], labels[6], labels[7] = {1, "odd"}, None, ("pair", 2)
    labels[8], labels[9], labels[10] = b"raw", 2.5, True
    twins.both("ingest", ALL[:300], labels)
    twins.both("add", ALL[300:500])
    twins.both("add", ALL[500:505], [f"text {i} é" for i in range(5)], [3, None, "x", {4, 5}, None])
    twins.both("add", ALL[505:530], [*range(-20, 0), *"abcde"], [None] * 20 + list("vwxyz"))
    twins.both("learn", ALL[530:700], TRUTH[530:700])
    twins.both("forget", ALL[530:560], TRUTH[530:560])
    twins.both("forget", ALL[4:9], labels[4:9])
    twins.both("label", [301, "text 1 é"], ["found", {8, "two"}], teach=False)
    assert twins.both("remove", [0, 302, "text 0 é", 302]) == 3
