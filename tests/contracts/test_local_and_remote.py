"""A collection behind a service gives what a collection here gives, call by call."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from sklearn.datasets import load_digits

import everhash
from everhash import Collection, RemoteCollection
from everhash.collection.api import CollectionApi
from everhash.errors import EverhashError, ReadOnlyError, ServiceError
from everhash.index.refresh import report_of
from everhash.wire.options import WAYS
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
}
HERE_ONLY = {"hasher", "catch_up", "features", "held", "wait"}
"""What has no place on the other side: the hasher, a reader's state, stored features, a lock, and a
refresh in the background, which `stats` tells of."""
FORGETTING = {"home", "full", "codes only", "unlabelled features"}
"""Kinds whose learner takes rows back."""


class Twins:
    """Two collections with one history: one here, one behind a service."""

    def __init__(self, **options: Any) -> None:
        self._ended = ExitStack()
        self.here = self._ended.enter_context(everhash.create(None, 64, 16, **options))
        self.there = self._ended.enter_context(everhash.create(None, 64, 16, **options))
        self.served = self._ended.enter_context(serving(self.there))
        self.remote = self._ended.enter_context(everhash.connect(self.served.address))

    def both(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Make a call on both; return what both of them gave."""
        mine, theirs = (
            outcome(collection, name, *arguments, **options)
            for collection in (self.here, self.remote)
        )
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


@pytest.fixture
def twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    pair = Twins(**KINDS[getattr(request, "param", "home")])
    yield pair
    pair.close()


every_kind = pytest.mark.parametrize("twins", KINDS, indirect=True)


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


def test_both_sides_have_the_calls_of_the_protocol() -> None:
    calls = [name for name, value in vars(CollectionApi).items() if inspect.isfunction(value)]
    for name in set(calls) - {"__init__", "__subclasshook__"}:
        wanted, *both = (
            [
                (parameter.name, parameter.kind, parameter.default)
                for parameter in inspect.signature(getattr(kind, name)).parameters.values()
            ]
            for kind in (CollectionApi, Collection, RemoteCollection)
        )
        assert both == [wanted, wanted], name


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


@every_kind
def test_a_refresh_in_steps_ends_the_same(twins: Twins) -> None:
    fill(twins)
    mine, theirs = (report_of(each.refresh_steps()) for each in (twins.here, twins.remote))
    assert_same(mine, theirs)
    twins.both("entries")


@every_kind
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
            twins.both("search", rows, 2, by, explain=True)
    twins.both("search", PROBES[:2].astype(np.float64), 1000)
    twins.both("search", PROBES.tolist(), ids=[])


@every_kind
def test_searches_by_entries_find_the_same(twins: Twins) -> None:
    fill(twins)
    known = [entry.id for entry in twins.here.entries()]
    for names in ([1], [303, "text 1 é", 7], known[::5], [*known, *known[:600]], [], [1, 9999]):
        twins.both("search_like", names, 7)
    twins.both("search_like", [303, 4], 5, explain=True, labels=[1, 2], ids=None)
    for by in WAYS:
        twins.both("search_like", [303, 4], 5, by, ids=[1, 2, 303])
        twins.both("search_like", [303, 4], 5, by, unlabelled=True)
        twins.both("search_like", [303, 4], 5, by, exact=True)
    for options in ({"by": "hamming"}, {"by": "cosine"}, {"k": 0}, {"k": 1.5}):
        twins.both("search_like", [304, 305], **options)
        twins.both("search_like", [1, 304], **options)


@every_kind
def test_searches_within_a_radius_find_the_same(twins: Twins) -> None:
    fill(twins)
    for r in (0, 1.5, np.float32(2), True):
        twins.both("search_radius", PROBES[:3], r)
    for rows in (PROBES[:1], PROBES):
        twins.both("search_radius", rows, 1)
        twins.both("search_radius", rows, -5.0, "asymmetric")
        for by in ("meaning", "likeness", "auto"):
            twins.both("search_radius", rows, 0.7, by)
            twins.both("search_radius", rows, 0.2, by, labels=[3, "x"])
            twins.both("search_radius", rows, 0.2, by, unlabelled=True)
            twins.both("search_radius", rows, 0.2, by, ids=[10, 301, "c"], exact=True)
    twins.both("search_radius", PROBES[:2], float("inf"))
    twins.both("search_radius", PROBES[:1], 1, explain=True)


@every_kind
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


# Labels and entries that change


@every_kind
@pytest.mark.parametrize("teach", [True, False])
def test_labels_are_given_and_taken_alike(twins: Twins, teach: bool) -> None:
    fill(twins)
    for ids, y in (
        ([303, 304], ["zero", "zeros"]),
        ([305, 1, "a"], [{1, "zeroes"}, "zeros", b"raw"]),
        ([301, 310], [("pair", 2), 7]),
    ):
        twins.both("label", ids, y, teach=teach)
    twins.both("unlabel", [303, 1, 400], teach=teach)
    twins.both("unlabel", [2, 3], teach=not teach)
    twins.both("unlabel", [], teach=teach)
    for name in ("stats", "labels", "entries"):
        twins.both(name)
    twins.both("search", PROBES, 5)


@every_kind
@pytest.mark.parametrize("teach", [True, False])
def test_entries_are_replaced_alike(twins: Twins, teach: bool) -> None:
    fill(twins)
    twins.both("attach", [1, 303], payloads=["kept", {"n": 3}], thumbnails=[GIF, None])
    twins.both("update", [1, 303, "a"], ALL[800:803], teach=teach)
    twins.both("update", list(range(310, 340)), ALL[800:830], teach=teach)
    twins.both("attachments", [1, 303])
    several: list[Any] = [f"new {i}" for i in range(28)]
    for ids in ([1, 304, "new"], [2, 305, *several]):
        y = [3, None, "brand new", *[4] * (len(ids) - 3)]
        payloads = [f"of {one}" for one in ids]
        twins.both("upsert", ALL[900 : 900 + len(ids)], ids, y, payloads=payloads, teach=teach)
        twins.both("upsert", ALL[901 : 901 + len(ids)], ids, teach=teach)
    for name in ("stats", "labels", "entries"):
        twins.both(name)
    twins.both("attachments", [1, 2, "new"])
    twins.both("search", PROBES, 5)


@every_kind
def test_ids_are_free_again_alike(twins: Twins) -> None:
    fill(twins)
    assert twins.both("remove", [7, "a"]) == 2
    assert not twins.both("has", [7, "a"]).any()
    assert twins.both("add", ALL[:2], [7, "a"]) == [7, "a"]
    twins.both("get", [7, "a"])
    twins.both("entries")


@every_kind
def test_labels_themselves_change_alike(twins: Twins) -> None:
    fill(twins)
    twins.both("rename_label", 3, "three")
    twins.both("rename_label", ("pair", 2), (b"pair", 2))
    twins.both("merge_labels", "x", "three")
    twins.both("merge_labels", "odd", 1)
    twins.both("drop_label", "y")
    twins.both("drop_label", 4)
    for name in ("stats", "labels", "entries"):
        twins.both(name)
    for some in ((0, 3), (2, 9), (9,), (99,)):
        twins.both("labels", *some)
    twins.both("search", PROBES, 5, labels=["three", 1])
    twins.both("search", PROBES[:2], labels=[4])
    twins.both("predict", PROBES)
    twins.both("ingest", ALL[:3], [4, "y", "fresh"])
    twins.both("labels")


def test_changes_of_labels_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    for label in ("nobody", 999, None, [1], float("nan"), object(), ("no", "body")):
        assert isinstance(twins.both("rename_label", label, "new name"), EverhashError)
        assert isinstance(twins.both("merge_labels", label, 1), EverhashError)
        assert isinstance(twins.both("merge_labels", 1, label), EverhashError)
        assert isinstance(twins.both("drop_label", label), EverhashError)
    for label in (None, [1], float("nan"), object(), frozenset()):
        assert isinstance(twins.both("rename_label", 3, label), EverhashError)
    assert isinstance(twins.both("rename_label", 3, 1), EverhashError)
    assert isinstance(twins.both("merge_labels", 1, 1), EverhashError)
    for name in ("labels", "stats"):
        twins.both(name)


def test_replacements_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    for ids in ([0], ["nobody"], [1.5], "ab", [None], [2**63], [""], [1, 2]):
        assert isinstance(twins.both("update", ids, ALL[:1]), EverhashError)
    assert isinstance(twins.both("update", [1, 1], ALL[:2]), EverhashError)
    for rows in BAD_ROWS:
        n = len(rows) if isinstance(rows, list | np.ndarray) else 1
        assert isinstance(twins.both("update", list(range(1, 1 + n)), rows), EverhashError)
        assert isinstance(twins.both("upsert", rows, list(range(1, 1 + n))), EverhashError)
        assert isinstance(twins.both("predict", rows), EverhashError)
    for bad in ([1], [1, 1], "ab", [1.5, 2], [None, 1], ["", "b"]):
        assert isinstance(twins.both("upsert", ALL[:2], bad), EverhashError)
    for labels in BAD_LABELS:
        assert isinstance(twins.both("upsert", ALL[:2], [1, 2], labels), EverhashError)
    for ids in ([0], ["nobody"], [1.5], "ab", [1, 1]):
        assert isinstance(twins.both("unlabel", ids), EverhashError)
    twins.both("stats")


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


# Nothing is


NAN = np.full((1, 64), np.nan)
BAD_ROWS: list[Any] = [
    [],
    np.zeros((0, 64)),
    np.zeros((2, 0)),
    np.zeros(64),
    np.zeros((1, 1, 64)),
    np.zeros((1, 63)),
    np.zeros((20, 65)),
    np.zeros((1, 20_000)),
    NAN,
    np.full((20, 64), 1e38),
    [["a"] * 64],
    [[1, 2], [3]],
    np.zeros((1, 64), complex),
    np.array([["2020-01-01"] * 64], "M8[D]"),
    None,
    "rows",
]


def test_rows_that_cannot_be_used_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    for rows in BAD_ROWS:
        for name in ("learn", "add", "ingest", "search"):
            assert isinstance(twins.both(name, rows), EverhashError)
        assert isinstance(twins.both("forget", rows, None), EverhashError)
        assert isinstance(twins.both("search_radius", rows, 2), EverhashError)
    twins.both("stats")


BAD_LABELS: list[Any] = [
    ["only one"],
    "ab",
    {1, 2},
    7,
    [1, [2]],
    [1, {2, float("nan")}],
    [float("inf"), 1],
    np.zeros((2, 2)),
    np.array([1.0, np.inf]),
    [1, {"a": 1}],
    [1, frozenset({frozenset()})],
]
BAD_IDS: list[Any] = [
    "ab",
    b"ab",
    [1],
    [1, 1],
    [5, 2000],
    [1, 2001],
    ["text 1 é", 2002],
    [1.5, 2],
    [True, 2003],
    ["", "b"],
    ["x" * 65, "b"],
    [2**63, 1],
    [None, 1],
]


def test_labels_and_ids_that_cannot_be_used_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    for n in (2, 20):  # as JSON, as a table
        for labels in BAD_LABELS:
            several = labels * (n // 2) if isinstance(labels, list) and len(labels) > 1 else labels
            assert isinstance(twins.both("learn", ALL[:n], several), EverhashError)
            assert isinstance(twins.both("forget", ALL[:n], several), EverhashError)
            assert isinstance(twins.both("add", ALL[:n], None, several), EverhashError)
            assert isinstance(twins.both("ingest", ALL[:n], several), EverhashError)
        for ids in BAD_IDS:
            more = ids + list(range(3000, 2998 + n)) if isinstance(ids, list) else ids
            assert isinstance(twins.both("add", ALL[:n], more), EverhashError)
            assert isinstance(twins.both("ingest", ALL[:n], None, more), EverhashError)
    twins.both("stats")


def test_calls_about_entries_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    for ids in ([0], [1, 999], ["nobody"], ["text 0 é"], [1.5], "ab", [None], [2**63], [""]):
        for name in ("get", "remove", "attachments"):
            assert isinstance(twins.both(name, ids), EverhashError)
        assert isinstance(twins.both("attach", ids, payloads=[1] * len(ids)), EverhashError)
        assert isinstance(twins.both("label", ids, [1] * len(ids)), EverhashError)
        assert isinstance(twins.both("search", PROBES[:1], ids=ids), EverhashError)
        assert isinstance(twins.both("search", PROBES, ids=ids), EverhashError)
    for ids in ([1.5], "ab", [None], [2**63], [""]):
        assert isinstance(twins.both("has", ids), EverhashError)
    for labels in ([None], [1, 2], [], "x", {1}, [[1]], [float("nan")]):
        assert isinstance(twins.both("label", [1], labels), EverhashError)
    assert isinstance(twins.both("label", [1, 1], [2, 3]), EverhashError)
    assert isinstance(twins.both("attach", [1, 1], payloads=[2, 3]), EverhashError)
    twins.both("stats")


BAD_PAYLOADS: list[Any] = [
    [1, 2],
    "x",
    {"a": 1},
    7,
    [object()],
    [{1: 2}],
    [(1, 2)],
    [float("nan")],
    ["x" * 5000],
    ["\ud800"],
]
BAD_THUMBNAILS: list[Any] = [[GIF, GIF], GIF, ["x"], [b"<svg>"], [GIF + bytes(40_000)], [1]]


def test_attachments_that_cannot_be_kept_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    for payloads in [*BAD_PAYLOADS, [deep]]:
        assert isinstance(twins.both("attach", [1], payloads=payloads), EverhashError)
        assert isinstance(twins.both("add", ALL[:1], payloads=payloads), EverhashError)
    for thumbnails in BAD_THUMBNAILS:
        assert isinstance(twins.both("attach", [1], thumbnails=thumbnails), EverhashError)
        assert isinstance(twins.both("ingest", ALL[:1], thumbnails=thumbnails), EverhashError)
    assert isinstance(twins.both("add", ALL[:20], payloads=[*[1] * 19, "x" * 5000]), EverhashError)
    twins.both("stats")


def test_options_that_cannot_be_used_are_refused_alike(twins: Twins) -> None:
    fill(twins)
    for rows in (PROBES[:1], PROBES):
        for k in (0, -1, 1.5, "3", None, True, 1001, 10**30, np.float32(2)):
            assert isinstance(twins.both("search", rows, k), EverhashError)
        for by in ("cosine", "", None, 3):
            assert isinstance(twins.both("search", rows, 3, by), EverhashError)
            assert isinstance(twins.both("search_radius", rows, 3, by), EverhashError)
        for r in ("3", None, float("nan")):
            assert isinstance(twins.both("search_radius", rows, r), EverhashError)
        for labels in ([999], ["nobody"], [1, None], [("no", "body")], "x y"):
            assert isinstance(twins.both("search", rows, labels=labels), EverhashError)


# What only a service has


def test_more_rows_than_a_request_may_have_are_written_in_several(twins: Twins) -> None:
    rows = np.random.default_rng(0).normal(size=(10_003, 64)).astype(np.float32)
    assert twins.both("add", rows) == list(range(10_003))
    twins.both("attach", range(10_003), payloads=[None, 7] * 5001 + [None])
    assert twins.both("remove", range(0, 10_003, 4000)) == 3
    assert len(twins.both("get", [1, 3, 10_002])) == 3
    many = [name for name in range(10_003) if name % 4000]
    rows = rows[: len(many)]
    assert len(twins.both("upsert", rows, [*many[1:], "new"], teach=False)) == len(many)
    twins.both("update", [*many[1:], "new"], rows[::-1], teach=False)
    assert twins.both("label", many, ["one"] * len(many), teach=False).labelled == len(many)
    for ids in ([*many, many[0]], [*many[1:], many[-1], "new"]):
        assert isinstance(twins.both("unlabel", ids), EverhashError)
        assert isinstance(twins.both("label", ids, [1] * len(ids)), EverhashError)
    assert twins.both("unlabel", [*many[1:]], teach=False) == len(many) - 1


def test_payloads_come_with_matches(twins: Twins) -> None:
    payloads = [{"n": n} if n % 3 else None for n in range(40)]
    twins.both("ingest", ALL[:40], TRUTH[:40], payloads=payloads)
    for n in (1, 30):  # as JSON, and as a table
        for call, options in (("search", {"k": 5}), ("search_radius", {"r": 4})):
            found = twins.both(call, PROBES[:1].repeat(n, axis=0), payloads=True, **options)
            assert [len(row) for row in found.payloads] == found.counts.tolist()
            assert found.payloads[0][0] == payloads[found.ids[0][0]]
    assert twins.both("search_like", [1, 2], payloads=True).payloads[0][0] is not None


def test_a_service_for_reading_refuses_writes(tmp_path: Path) -> None:
    with everhash.create(tmp_path / "a.ever", 64, 16) as col:
        col.ingest(ALL[:20], TRUTH[:20])
    with (
        everhash.open(tmp_path / "a.ever", readonly=True) as reader,
        serving(reader, readonly=True) as served,
        everhash.connect(served.address) as remote,
    ):
        assert_same(reader.search(PROBES), remote.search(PROBES))
        for call in (remote.add, remote.learn, remote.ingest):
            with pytest.raises(ReadOnlyError):
                call(ALL[:1])
        with pytest.raises(ReadOnlyError):
            remote.forget(ALL[:1], TRUTH[:1])
        with pytest.raises(ReadOnlyError):
            remote.refresh()


def test_keys_are_asked_for() -> None:
    from everhash.serve.keys import Keys, make_key

    secrets = {role: make_key(role) for role in ("read", "write", "admin")}
    keys = Keys([key for _, key in secrets.values()])
    with everhash.create(None, 64, 16) as col, serving(col, keys=keys) as served:
        url = served.address
        for wrong in (None, "eh_wrong"):
            with pytest.raises(ServiceError):
                everhash.connect(url, wrong)
        with everhash.connect(url, secrets["read"][0]) as reader:
            assert len(reader) == 0
            with pytest.raises(ServiceError, match="may only read"):
                reader.add(ALL[:1])
        with everhash.connect(url, secrets["write"][0]) as writer:
            assert writer.add(ALL[:1]) == [0]


def test_connect_waits_for_a_service_that_is_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.client.session.PAUSE", 0.02)
    opened = threading.Event()
    with everhash.create(None, 64, 16) as col:

        def slowly() -> Collection:
            opened.wait(30)
            return col

        with serving(slowly, wait=False) as served:
            with pytest.raises(ServiceError, match="starting"):
                everhash.connect(served.address, timeout=0.1)
            threading.Timer(0.1, opened.set).start()
            with everhash.connect(served.address) as remote:
                assert len(remote) == 0


# Any history


NAMES: list[Any] = [1, 3, "new", "news", ("a", 1), "other"]


class Histories(RuleBasedStateMachine):
    """Calls in any order, on both sides."""

    twins: Twins | None = None

    @initialize(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 99))
    def start(self, kind: str, seed: int) -> None:
        self.twins = Twins(**KINDS[kind], random_state=seed)
        self.rng = np.random.default_rng(seed)
        self.forgets = kind in FORGETTING
        self.ids: list[Any] = []
        self.free: list[Any] = []
        self.learned: list[tuple[int, int]] = []
        self.named = 0

    def teardown(self) -> None:
        if self.twins is not None:
            self.twins.close()

    def rows(self, n: int) -> Any:
        return self.rng.integers(0, len(ALL), n)

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        assert self.twins is not None
        return self.twins.both(name, *arguments, **options)

    @rule(n=st.integers(1, 30), named=st.booleans(), learn=st.booleans(), share=st.floats(0, 1))
    def add(self, n: int, named: bool, learn: bool, share: float) -> None:
        rows, known = self.rows(n), self.rng.random(n) < share
        labels = [
            int(TRUTH[row]) if there else None for row, there in zip(rows, known, strict=True)
        ]
        ids = self.new_ids(n) if named else None
        if learn:
            self.added(self.call("ingest", ALL[rows], labels, ids))
        else:
            self.added(self.call("add", ALL[rows], ids, labels))

    def new_ids(self, n: int) -> list[Any]:
        """Return ids that no entry has; some of them had been removed."""
        again, self.free = self.free[:n], self.free[n:]
        fresh = [f"{self.named + i}" for i in range(n - len(again))]
        self.named += n
        return [*again, *fresh]

    def added(self, ids: Any) -> None:
        self.ids += [one for one in ids if one not in self.ids]

    @rule(n=st.integers(1, 30))
    def learn(self, n: int) -> None:
        rows = self.rows(n)
        self.call("learn", ALL[rows], TRUTH[rows])
        self.learned += [(int(row), int(TRUTH[row])) for row in rows]

    @precondition(lambda self: self.learned)
    @rule(n=st.integers(1, 30))
    def forget(self, n: int) -> None:
        gone = self.learned[:n]
        rows, labels = zip(*gone, strict=True)
        error = self.call("forget", ALL[list(rows)], list(labels))
        assert (error is None) == self.forgets
        if self.forgets:
            self.learned = self.learned[n:]

    @rule(n=st.sampled_from([1, 20]), label=st.sampled_from([3, "stranger"]))
    def forget_strangers(self, n: int, label: Any) -> None:
        rows = self.rng.normal(size=(n, 64)).astype(np.float32)
        assert isinstance(self.call("forget", rows, [label] * n), EverhashError)

    @precondition(lambda self: self.ids)
    @rule(
        n=st.integers(1, 5),
        label=st.sampled_from(["new", ("a", 1), {2, "b"}, "news"]),
        teach=st.booleans(),
    )
    def label(self, n: int, label: Any, teach: bool) -> None:
        some = self.some(n)
        self.call("label", some, [label] * len(some), teach=teach)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 5), teach=st.booleans())
    def unlabel(self, n: int, teach: bool) -> None:
        self.call("unlabel", self.some(n), teach=teach)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 12), named=st.integers(0, 4), teach=st.booleans())
    def upsert(self, n: int, named: int, teach: bool) -> None:
        ids = [*self.some(n), *self.new_ids(named)]
        rows = self.rows(len(ids))
        labels = [int(label) if label % 2 else None for label in TRUTH[rows]]
        done = self.call("upsert", ALL[rows], ids, labels, teach=teach)
        if isinstance(done, EverhashError):
            self.free += ids[len(ids) - named :]
        else:
            self.added(done)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 12), teach=st.booleans())
    def update(self, n: int, teach: bool) -> None:
        some = self.some(n)
        self.call("update", some, ALL[self.rows(len(some))], teach=teach)

    @rule(label=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def change_labels(self, label: Any, other: Any) -> None:
        self.call("rename_label", label, other)

    @rule(label=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def merge(self, label: Any, other: Any) -> None:
        self.call("merge_labels", label, other)

    @rule(label=st.sampled_from(NAMES))
    def drop(self, label: Any) -> None:
        self.call("drop_label", label)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(1, 5))
    def remove(self, n: int) -> None:
        gone, self.ids = self.ids[:n], self.ids[n:]
        self.call("remove", gone)
        self.free += gone

    def some(self, n: int) -> list[Any]:
        """Return ids of some entries, each once."""
        order = self.rng.permutation(len(self.ids))[:n]
        return [self.ids[i] for i in order]

    @rule()
    def refresh(self) -> None:
        self.call("refresh")

    @rule(n=st.sampled_from([1, 3, 20]), k=st.integers(1, 50), r=st.floats(-50, 50))
    def search(self, n: int, k: int, r: float) -> None:
        rows = ALL[self.rows(n)]
        for by in WAYS:
            self.call("search", rows, k, by)
        self.call("search_radius", rows, r, "asymmetric")
        self.call("predict", rows)

    @rule()
    def look(self) -> None:
        for name in ("stats", "entries", "labels"):
            self.call(name)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=6, stateful_step_count=8, deadline=None)
