"""On three nodes of Ray a collection answers as on one machine, whatever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
import everhash.cluster
from everhash.cluster.collection import ClusterCollection
from everhash.cluster.writes import Replica
from everhash.collection.api import CollectionApi
from everhash.errors import OptionError, ServiceError, StoreError
from everhash.learn.following import learner_of
from everhash.learn.hasher import OnlineHasher
from tests.cluster.kills import Trial
from tests.cluster.on_ray import Nodes, kill, pid_of
from tests.contracts.twins import ALL, PROBES, TRUTH, assert_same, fill, outcome

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        ("search", (PROBES, 7, by), {"explain": True})
        for by in ("meaning", "likeness", "relevance")
    ],
    *[("search", (PROBES, 7, by), {"unlabelled": True}) for by in ("asymmetric", "hamming")],
    ("search", (PROBES, 5), {"labels": [1, 2, "odd"], "payloads": True}),
    ("search", (PROBES, 5), {"ids": [1, 2, "text 1 é", 400], "exact": True}),
    *[("search", (PROBES, 5, by), {"recall": 0.9}) for by in ("likeness", "relevance")],
    ("search", (PROBES, 5), {"recall": 2}),
    ("search_like", ([1, "text 1 é", 303], 5), {"recall": 1}),
    ("search_radius", (PROBES[:5], 2.0), {}),
    ("predict", (PROBES,), {}),
    ("get", ([1, "text 1 é", 303],), {}),
    ("attachments", ([1, 2],), {}),
    ("has", ([1, "nobody", 302],), {}),
    ("labels", (), {}),
    ("page", (0, 50), {}),
    ("page", (3, 500), {"text": "text"}),
    ("entries", (500,), {}),
    ("__len__", (), {}),
    ("refresh", (), {"dry_run": True}),
    ("refresh", (), {}),
    ("search", (PROBES[:, :5],), {}),
    ("get", (["nobody"],), {}),
    ("add", (ALL[:1], [1]), {}),
    ("label", ([400, 401], ["new one", "odd"]), {}),
    ("unlabel", ([400, 10],), {}),
    ("update", ([14, 15], ALL[100:102]), {}),
    ("upsert", (ALL[:3], [10, "new", 13], [1, None, 5]), {}),
    ("attach", ([1],), {"payloads": [{"a": 1}]}),
    ("rename_label", ("odd", "even"), {}),
    ("merge_labels", (3, 4), {}),
    ("drop_label", (5,), {}),
    ("ingest", (ALL[700:1500], TRUTH[700:1500].tolist()), {}),
    *[("search", (PROBES, 7, by), {}) for by in ("meaning", "likeness", "relevance", "hamming")],
]


class OnRay:
    """A collection here, and one with the same history on a cluster."""

    def __init__(self, storage: Path, **options: Any) -> None:
        self.storage = storage.absolute()
        self.here = everhash.create(None, 64, 16, labels_per_cycle=4)
        self.there = everhash.cluster.create(
            "auto", storage, 64, 16, labels_per_cycle=4, durability="none", **options
        )

    def both(self, name: str, *arguments: Any, **options: Any) -> Any:
        mine = outcome(self.here, name, *arguments, **options)
        theirs = outcome(self.there, name, *arguments, **options)
        assert_same(mine, theirs)
        return theirs

    def close(self) -> None:
        everhash.cluster.stop("auto", self.storage)


@pytest.fixture
def pair(nodes: Nodes, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OnRay]:
    pair = OnRay(tmp_path, **getattr(request, "param", {"shards": 3}))
    yield pair
    pair.close()


def test_every_call_answers_as_on_one_machine(pair: OnRay) -> None:
    assert isinstance(pair.there, CollectionApi)
    fill(pair)  # type: ignore[arg-type]
    for name, arguments, options in CALLS:
        pair.both(name, *arguments, **options)
    stats, local = pair.there.stats(), pair.here.stats()
    apart = {"path", "bytes", "commit", "last_refresh"}
    assert {name: stats[name] for name in local if name not in apart} == {
        name: value for name, value in local.items() if name not in apart
    }


@pytest.mark.slow
def test_the_mapping_equals_that_of_one_machine(pair: OnRay) -> None:
    for start in range(0, 1600, 200):
        pair.both("ingest", ALL[start : start + 200], TRUTH[start : start + 200].tolist())
    hasher = pair.here.hasher
    assert isinstance(hasher, OnlineHasher)
    mine = learner_of(hasher).served.classifiers.rows
    snapshot = pair.storage / "copy.ever"
    pair.there.snapshot(snapshot)
    with everhash.open(snapshot, readonly=True) as copy:
        assert isinstance(copy.hasher, OnlineHasher)
        theirs = learner_of(copy.hasher).served.classifiers.rows
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(mine, theirs)  # in fact to the last bit


@pytest.mark.slow
@pytest.mark.parametrize("pair", [{"shards": 2, "replicas": 2}], indirect=True)
def test_searches_survive_the_loss_of_a_copy(pair: OnRay) -> None:
    pair.both("ingest", ALL[:300], TRUTH[:300].tolist())
    for shard in range(2):
        kill(pid_of(pair.storage, Replica(shard, 0)))
        pair.both("search", PROBES, 5)
        pair.both("ingest", ALL[300 + shard : 301 + shard], [1])
    pair.both("search", PROBES, 5)


@pytest.mark.slow
def test_a_partial_search_names_the_shards_that_are_missing(pair: OnRay) -> None:
    pair.both("ingest", ALL[:300], TRUTH[:300].tolist())
    stalled = pid_of(pair.storage, Replica(1, 0))
    os.kill(stalled, signal.SIGSTOP)
    try:
        with everhash.cluster.open("auto", pair.storage, partial=True, patience=4) as some:
            found = some.search(PROBES, 5)
        with (
            everhash.cluster.open("auto", pair.storage, patience=4) as whole,
            pytest.raises(ServiceError, match="shards 1 did not answer"),
        ):
            whole.search(PROBES, 5)
    finally:
        os.kill(stalled, signal.SIGCONT)
    assert found.missing == [1]
    assert (found.counts == 5).all()
    pair.both("search", PROBES, 5)


@pytest.mark.slow
def test_a_cluster_that_was_stopped_goes_on_from_its_files(pair: OnRay) -> None:
    fill(pair)  # type: ignore[arg-type]
    assert everhash.cluster.stop("auto", pair.storage) == 4
    pair.there = everhash.cluster.open("auto", pair.storage, durability="none")
    pair.both("search", PROBES, 7)
    pair.both("ingest", ALL[700:900], TRUTH[700:900].tolist())
    pair.both("search", PROBES, 7)


def test_what_cannot_be_opened_says_why(nodes: Nodes, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no cluster in"):
        everhash.cluster.open("auto", tmp_path)
    with pytest.raises(OptionError, match="not a folder"):
        everhash.cluster.create("auto", "s3://bucket/shop", 64)
    with pytest.raises(OptionError, match="shards"):
        everhash.cluster.create("auto", tmp_path, 64, shards=0)


@pytest.mark.slow
def test_many_kills_of_actors_and_nodes_lose_nothing(nodes: Nodes, tmp_path: Path) -> None:
    trial = Trial(nodes, tmp_path, seed=1)
    try:
        trial.run(12)
    finally:
        trial.close()


@pytest.mark.slow
def test_growing_under_load_fails_no_search(pair: OnRay) -> None:
    import threading

    pair.both("ingest", ALL[:900], TRUTH[:900].tolist())
    expected, wrong, ended = pair.here.search(PROBES, 5), [], threading.Event()

    def search() -> None:
        with everhash.cluster.open("auto", pair.storage) as other:
            while not ended.is_set():
                try:
                    assert_same(other.search(PROBES, 5), expected)
                except Exception as error:  # whatever it is, the test tells
                    wrong.append(error)

    searching = threading.Thread(target=search)
    searching.start()
    assert isinstance(pair.there, ClusterCollection)
    pair.there.grow(5)
    moved = [*pair.there.rebalance(100)]
    ended.set()
    searching.join()
    assert wrong == []
    assert moved[-1] > 200
    assert len(pair.there) == 900
    pair.both("ingest", ALL[900:1000], TRUTH[900:1000].tolist())
    pair.both("search", PROBES, 5)
    pair.both("page", 0, 2000)
