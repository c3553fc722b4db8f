"""A collection behind a service gives what a collection here gives, call by call."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection, RemoteCollection
from everhash.cluster.collection import ClusterCollection
from everhash.collection.api import CollectionApi
from everhash.errors import EverhashError
from everhash.index.refresh import report_of
from everhash.index.ways.query import EntryQuery, Query
from everhash.wire.options import RECALL, WAYS
from tests.contracts.twins import (
    ALL,
    CLUSTER,
    FORGETTING,
    GIF,
    HERE_ONLY,
    PNG,
    PROBES,
    TRUTH,
    Twins,
    assert_same,
    every_kind,
    fill,
    make_twins,
    on_cluster_only,
    over_http,
    two_kinds,
)

__all__ = ["make_twins"]  # pytest finds the fixture by its name here


# What there is


def test_every_public_call_is_on_both_sides() -> None:
    here = {name for name in dir(Collection) if not name.startswith("_")}
    there = {name for name in dir(RemoteCollection) if not name.startswith("_")}
    assert here - HERE_ONLY == there
    for name in there | {"__len__", "__contains__", "__enter__", "__exit__"}:
        mine, theirs = (
            inspect.signature(getattr(kind, name)) for kind in (Collection, RemoteCollection)
        )
        assert mine == theirs, name


def test_every_public_call_is_on_a_cluster() -> None:
    here = {name for name in dir(Collection) if not name.startswith("_")}
    there = {name for name in dir(ClusterCollection) if not name.startswith("_")}
    assert (here - HERE_ONLY) | {"features"} == there - {"grow", "rebalance", "dim"}
    for name in there & here | {"__len__", "__contains__", "__enter__", "__exit__"}:
        mine, theirs = (
            inspect.signature(getattr(kind, name)) for kind in (Collection, ClusterCollection)
        )
        assert mine == theirs, name


def test_both_sides_have_the_calls_of_the_protocol() -> None:
    calls = [name for name, value in vars(CollectionApi).items() if inspect.isfunction(value)]
    for name in set(calls) - {"__init__", "__subclasshook__"}:
        wanted, *both = (
            [
                (parameter.name, parameter.kind, parameter.default)
                for parameter in inspect.signature(getattr(kind, name)).parameters.values()
            ]
            for kind in (CollectionApi, Collection, RemoteCollection, ClusterCollection)
        )
        assert both == [wanted] * 3, name


def test_both_sides_are_what_the_protocol_says(twins: Twins) -> None:
    assert isinstance(twins.here, CollectionApi)
    assert isinstance(twins.remote, CollectionApi)


# All is well


@every_kind
def test_any_history_looks_the_same(twins: Twins) -> None:
    fill(twins)
    for name in ("stats", "labels", "entries", "__len__"):
        twins.both(name)
    for ids in ([1, 2, 301, 303], ["text 1 é", -5, "a"], [], [5, 5], np.array([7, 8, 9, 10])):
        twins.both("get", ids)
        twins.both("has", ids)
    twins.both("has", [0, 302, 999, "text 0 é", "nobody"])
    for one in (0, 1, 999, "a", "nobody"):
        twins.both("__contains__", one)
    twins.both("refresh", dry_run=True)
    twins.both("refresh")
    twins.both("stats")
    twins.both("entries")
    for some in ((0, 5), (298, 310), (520,), (7, 7), (9, 3), (9999,), (-1,)):
        twins.both("entries", *some)
        twins.both("labels", *some)
    for start, limit, stop in ((0, 7, None), (3, 2000, None), (290, 20, 400), (9, 1, 3), (0, 0, 1)):
        twins.both("page", start, limit, stop)
        twins.both("page", start, limit, stop, unlabelled=True)
        for wanted in ({"text": "1"}, {"label": 3}, {"text": "1", "label": 3, "unlabelled": True}):
            twins.both("page", start, limit, stop, **wanted)


def test_listings_that_find_look_the_same(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.serve.entries.LOOKS", 70)
    monkeypatch.setattr("everhash.collection.finding.LOOKS", 30)
    fill(twins)
    ids = range(10, 200, 3)
    twins.both("attach", ids, payloads=[{"title": f"Red {i} \u00e9\\"} for i in ids])
    for text in ("red", "RED 1", "\u00c9\\", "a", "-5", "text", "", "title", "nothing", None):
        for label in (None, 3, "x", ("pair", 2), b"raw", 2.5, "nobody", [1]):
            twins.both("entries", 5, text=text, label=label)
            for limit in (1, 7, 2000):
                twins.both("page", 3, limit, 450, text=text, label=label)
    for wrong in ({"text": 7}, {"text": "\ud800"}, {"text": "x" * 257}, {"text": "x", "label": 99}):
        assert isinstance(twins.both("page", **wrong), EverhashError)
        twins.both("entries", **wrong)


@two_kinds
def test_a_refresh_in_steps_ends_the_same(twins: Twins) -> None:
    fill(twins)
    mine, theirs = (report_of(each.refresh_steps()) for each in (twins.here, twins.remote))
    assert_same(mine, theirs)
    twins.both("entries")


@two_kinds
def test_rows_are_forgotten_alike(twins: Twins, request: pytest.FixtureRequest) -> None:
    can = request.node.callspec.params["twins"] in FORGETTING
    for n in (3, 30):  # as JSON, as a table
        labels: list[Any] = [int(label) for label in TRUTH[:n]]
        labels[0], labels[1], labels[2] = {1, "odd"}, None, ("pair", 2)
        twins.both("learn", ALL[:50], TRUTH[:50])
        twins.both("learn", ALL[:n], labels)
        before = twins.both("stats")["learned"]
        for rows, y in ((ALL[:n], labels), (ALL[1:2], [None])):
            assert (twins.both("forget", rows, y) is None) == can
        after = twins.both("stats")["learned"]
        assert not can or after["rows"] == before["rows"] - n + 1  # one has no label
        for rows, y in (
            (ALL[:n], labels),  # once more
            (ALL[60 : 60 + n], TRUTH[60 : 60 + n]),
            (ALL[:n], ["nobody"] * n),
            (ALL[:51], TRUTH[:51]),
        ):
            assert isinstance(twins.both("forget", rows, y), EverhashError)
        assert twins.both("stats")["learned"] == after
        twins.both("labels")
        twins.both("search", PROBES, 5)


@over_http
def test_stats_are_those_of_the_collection(twins: Twins) -> None:
    for _ in range(2):
        expected = twins.there.stats()
        del expected["path"]
        assert_same(expected, twins.remote.stats())
        twins.both("learn", ALL[:10], TRUTH[:10])
        twins.both("ingest", ALL[:10], TRUTH[:10])


@every_kind
def test_searches_find_the_same(twins: Twins) -> None:
    twins.both("search", PROBES[:2], 3)  # nothing there yet
    twins.both("add", ALL[:5])
    twins.both("search", PROBES[:2], 3)  # no label yet
    twins.both("search", PROBES, 7, "hamming")  # fewer than wanted
    fill(twins)
    for by in WAYS:
        for rows in (PROBES[:1], PROBES[:3], PROBES):
            twins.both("search", rows, 10, by)
            twins.both("search", rows, by=by, labels=[3, "x", ("pair", 2), b"raw"])
            twins.both("search", rows, 4, by, ids=[10, 301, 303, "text 1 é", "c", -3])
            twins.both("search", rows, np.int64(3), by, ids=[11, 12, 303], labels=[1, 4])
            twins.both("search", rows, 5, by, unlabelled=True)
            twins.both("search", rows, 5, by, exact=True)
            twins.both("search", rows, 5, by, recall=0.5, ids=[10, 301, 303])
            twins.both("search", rows, 5, by, recall=np.float32(1))
            twins.both("search", rows, 2, by, explain=True)
    twins.both("search", PROBES[:2].astype(np.float64), 1000)
    twins.both("search", PROBES.tolist(), ids=[])


@on_cluster_only
def test_codes_find_the_same(twins: Twins) -> None:
    fill(twins)
    codes = twins.here.hasher.encode(PROBES)
    for by in WAYS:
        twins.both("search", codes, 5, by)
        twins.both("search_radius", codes, 2, by, ids=[1, 303])
    twins.both("learn", ALL[700:800], TRUTH[700:800])
    assert isinstance(twins.both("search", codes, 5, "hamming"), EverhashError)


@every_kind
def test_searches_by_entries_find_the_same(twins: Twins) -> None:
    fill(twins)
    known = [entry.id for entry in twins.here.entries()]
    for names in ([1], [303, "text 1 é", 7], known[::5], [*known, *known[:600]], [], [1, 9999]):
        twins.both("search_like", names, 7)
    twins.both("search_like", [303, 4], 5, explain=True, labels=[1, 2], ids=None)
    for by in WAYS:
        twins.both("search_like", [], 5, by)
        twins.both("search_like", [303, 4], 5, by, ids=[1, 2, 303])
        twins.both("search_like", [303, 4], 5, by, unlabelled=True)
        twins.both("search_like", [303, 4], 5, by, exact=True)
        twins.both("search_like", [303, 4], 5, by, recall=0.5)
    for options in ({"by": "hamming"}, {"by": "cosine"}, {"k": 0}, {"k": 1.5}, {"recall": 0}):
        twins.both("search_like", [304, 305], **options)
        twins.both("search_like", [1, 304], **options)


@pytest.mark.parametrize("twins", ["home", CLUSTER], indirect=True)
def test_the_recall_arrives_where_entries_are(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: set[float] = set()

    def listen(kind: type[Query]) -> None:
        make = kind.__init__

        def made(self: Query, *arguments: Any, **options: Any) -> None:
            told.add(options["recall"])
            make(self, *arguments, **options)

        monkeypatch.setattr(kind, "__init__", made)

    fill(twins)
    listen(Query)
    listen(EntryQuery)
    asked: list[tuple[str, Any]] = [("search", PROBES[:n]) for n in (1, 3, 40)]
    for name, queries in [*asked, ("search_like", [303, 4])]:
        for by in WAYS:
            for options in ({}, {"recall": 0.75}, {"recall": 1, "labels": [1, 4]}):
                told.clear()
                getattr(twins.remote, name)(queries, 5, by, **options)
                assert told == {options.get("recall", RECALL)}
    told.clear()
    twins.both("search_radius", PROBES[:3], 0.5, "relevance")
    assert told == {1}


@every_kind
def test_searches_within_a_radius_find_the_same(twins: Twins) -> None:
    fill(twins)
    for r in (0, 1.5, np.float32(2), True):
        twins.both("search_radius", PROBES[:3], r)
    for rows in (PROBES[:1], PROBES):
        twins.both("search_radius", rows, 1)
        twins.both("search_radius", rows, -5.0, "asymmetric")
        for by in ("relevance", "meaning", "likeness"):
            twins.both("search_radius", rows, 0.7, by)
            twins.both("search_radius", rows, 0.2, by, labels=[3, "x"])
            twins.both("search_radius", rows, 0.2, by, unlabelled=True)
            twins.both("search_radius", rows, 0.2, by, ids=[10, 301, "c"], exact=True)
    twins.both("search_radius", PROBES[:2], float("inf"))
    twins.both("search_radius", PROBES[:1], 1, explain=True)


@two_kinds
def test_labels_are_predicted_alike(twins: Twins) -> None:
    assert isinstance(twins.both("predict", PROBES), EverhashError)
    twins.both("learn", ALL[:100], TRUTH[:100])
    for rows in (PROBES[:1], PROBES, np.concatenate([ALL, ALL])[:1050]):
        twins.both("predict", rows)
    twins.both("learn", ALL[:10], [f"name {i}" for i in range(10)])
    twins.both("predict", PROBES)


def test_names_are_predicted_alike(twins: Twins) -> None:
    twins.both("learn", ALL[:100], [f"digit {i}" for i in TRUTH[:100]])
    assert twins.both("predict", PROBES).dtype.kind == "U"


def test_more_queries_than_a_request_may_have_find_the_same(twins: Twins) -> None:
    fill(twins)
    many = np.concatenate([ALL, ALL])[:2100]
    twins.both("search", many, 3)
    twins.both("search", many[:1001], 2, labels=[1, 2])
    twins.both("search", many[:1001], 1, explain=True)
    twins.both("search_radius", many[:1001], 1)


def test_attachments_are_the_same(twins: Twins) -> None:
    payloads: list[Any] = [
        None,
        {"a": [1, 2.5, None, "é"]},
        "text",
        7,
        False,
        [],
        {},
        0.1,
        10**20,
        "x",
        1,
    ]
    thumbnails = [GIF, None, PNG, *[None] * 8]
    twins.both("add", ALL[:2], ["p", "q"], payloads=payloads[:2], thumbnails=thumbnails[:2])
    twins.both("ingest", ALL[:11], TRUTH[:11], payloads=payloads, thumbnails=thumbnails)
    everyone = ["p", "q", *range(11)]
    twins.both("attachments", everyone)
    twins.both("attach", ["q", 3], payloads=["new", None])
    twins.both("attach", [0, 2], thumbnails=[None, bytearray(GIF)])
    twins.both("attach", [1], payloads=(1,), thumbnails=[PNG])
    twins.both("attach", [1])
    twins.both("attachments", everyone)
    twins.both("attachments", [])


def test_a_snapshot_is_the_same_collection(twins: Twins, tmp_path: Path) -> None:
    fill(twins)
    twins.remote.snapshot(tmp_path / "copy.ever")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.ever"]
    assert everhash.verify(tmp_path / "copy.ever").problems == ()
    with everhash.open(tmp_path / "copy.ever", readonly=True) as copy:
        assert_same(list(twins.here.entries()), list(copy.entries()))
        assert_same(twins.here.search(PROBES), copy.search(PROBES))
    twins.both("snapshot", tmp_path / "copy.ever")
    twins.both("snapshot", tmp_path / "no" / "such" / "folder.ever")


def test_threads_get_what_one_would(twins: Twins) -> None:
    fill(twins)
    expected = [twins.here.search(PROBES[i : i + 1]) for i in range(len(PROBES))]
    wrong: list[int] = []

    def ask(start: int) -> None:
        for i in range(start, len(PROBES), 4):
            try:
                assert_same(expected[i], twins.remote.search(PROBES[i : i + 1]))
            except AssertionError:
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=[start]) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
