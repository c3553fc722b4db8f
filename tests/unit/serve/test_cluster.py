"""A service of a cluster: the same routes, the same answers, and it says what is missing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import everhash
from everhash.cluster.collection import ClusterCollection
from everhash.cluster.serving import ServedCluster
from everhash.collection.collection import Collection
from everhash.learn.hasher import OnlineHasher
from everhash.matches import Matches
from tests.cluster.in_process import InProcess, on_cluster
from tests.unit.serve.serving import ARROW, DIM, Served, filled, rows, serving, until


class OneAtATime(InProcess):
    """Members that several threads may call."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        super().__init__(None, OnlineHasher(16, random_state=0).begin(DIM), shards=3)

    def tell_lead(self, message: Any, seconds: float) -> Any:
        """See `Members`."""
        with self._lock:
            return super().tell_lead(message, seconds)

    def ask(self, asked: Any, seconds: float) -> Any:
        """See `Members`."""
        with self._lock:
            return super().ask(asked, seconds)


def fill(collection: ClusterCollection) -> None:
    """Do what `filled` does."""
    X, y = rows(60)
    collection.ingest(X[:40], y[:40])
    collection.add(X[40:])


@pytest.fixture
def cluster() -> Iterator[ServedCluster]:
    with ServedCluster(on_cluster(OneAtATime()), Path("/data/shop")) as collection:
        fill(collection)
        yield collection


@pytest.fixture
def on_shards(cluster: ServedCluster) -> Iterator[Served]:
    with serving(lambda: cluster) as served:
        served.service.path = None  # that folder is not there
        yield served


@pytest.fixture
def twin() -> Iterator[Collection]:
    with filled() as collection:
        yield collection


QUERIES = rows(5, seed=1)[0].tolist()
READS: list[tuple[str, Any]] = [
    ("/search", {"rows": QUERIES[:1], "k": 3}),
    ("/search", {"rows": QUERIES, "k": 3, "labels": ["ant"], "payloads": True}),
    ("/search", {"like": [3, 4], "by": "likeness"}),
    ("/radius", {"rows": QUERIES, "r": 4, "explain": True}),
    ("/predict", {"rows": QUERIES}),
    ("/get", {"ids": [1, 45]}),
    ("/has", {"ids": [1, 99]}),
    ("/entries?limit=7", None),
    ("/entries?label=bee", None),
    ("/entries?unlabelled=true&codes=true", None),
    ("/labels", None),
    ("/search", {"rows": [[1, 2]]}),
    ("/entries?label=nobody", None),
]
WRITES: list[tuple[str, Any]] = [
    ("/ingest", {"rows": QUERIES, "labels": ["ant", "dog", None, "bee", "dog"]}),
    ("/learn", {"rows": QUERIES, "labels": ["ant"] * 5}),
    ("/label", {"ids": [44, 45], "labels": ["dog", "emu"], "new": True}),
    ("/labels/rename", {"label": "emu", "to": "fox"}),
    ("/attach", {"ids": [1], "payloads": [{"a": 1}]}),
    ("/remove", {"ids": [2]}),
    ("/remove", {"ids": [2]}),
]


def ask(served: Served, path: str, body: Any) -> tuple[int, Any]:
    answer = served.get(path) if body is None else served.post(path, body)
    return answer.status_code, answer.json()


def test_a_cluster_answers_as_a_file_does(on_shards: Served, twin: Collection) -> None:
    with serving(twin) as local:
        for path, body in [*READS, *WRITES, *READS]:
            assert ask(on_shards, path, body) == ask(local, path, body), (path, body)


def test_stats_of_a_cluster_have_those_of_a_file_and_its_shards(
    on_shards: Served, twin: Collection
) -> None:
    with serving(twin) as local:
        told, expected = on_shards.get("/stats").json(), local.get("/stats").json()
    assert set(expected) <= set(told)
    for name in ("entries", "labels", "cycles", "width", "dim", "bits", "learned"):
        assert told[name] == expected[name], name
    assert (told["name"], told["shards"], told["missing"]) == ("shop", 3, [])


def test_a_cluster_is_refreshed_by_a_job(on_shards: Served) -> None:
    assert on_shards.post("/refresh", params={"dry_run": True}).json()["dry_run"] is True
    job = on_shards.post("/refresh").json()["job"]
    until(lambda: on_shards.get(f"/jobs/{job}").json()["state"] == "done")


def test_the_page_and_the_events_are_there(on_shards: Served, cluster: ServedCluster) -> None:
    assert "<title>" in on_shards.get("/").text
    assert on_shards.get("/ready").json() == {"ready": True, "readonly": False}
    with httpx.stream("GET", f"{on_shards.address}/events", timeout=30) as events:
        lines = events.iter_lines()
        assert next(lines) == "event: stats"
        cluster.ingest(QUERIES, ["new"] * 5)  # by another client
        assert any('"entries":65' in line or '"entries": 65' in line for line in lines)


def test_a_search_that_is_not_complete_says_so(
    on_shards: Served, cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = cluster.search

    def without_two(*arguments: Any, **options: Any) -> Matches:
        return replace(whole(*arguments, **options), missing=[0, 2])

    with everhash.connect(on_shards.address) as remote:
        assert remote.search(QUERIES).missing == []
        assert "missing" not in on_shards.post("/search", {"rows": QUERIES}).json()
        monkeypatch.setattr(cluster, "search", without_two)
        for queries in (QUERIES[:1], QUERIES):
            assert on_shards.post("/search", {"rows": queries}).json()["missing"] == [0, 2]
            assert remote.search(queries).missing == [0, 2]
        table = on_shards.post("/search", {"rows": QUERIES}, headers={"Accept": ARROW})
        assert b'"missing": [0, 2]' in table.content
    described = on_shards.get("/openapi.json").json()["components"]["schemas"]["SearchAnswer"]
    assert "missing" in described["properties"]
