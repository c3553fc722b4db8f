"""A collection behind a service refuses what a collection here refuses, in the same words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from everhash.errors import EverhashError, OptionError, UnknownIdError
from tests.contracts.twins import (
    ALL,
    GIF,
    PROBES,
    Twins,
    fill,
    make_twins,
    on_cluster_only,
)

__all__ = ["make_twins"]  # pytest finds the fixture by its name here


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
    for ids in ([0], [1, 999], ["nobody"], ["text 0 é"], [1.5], [None], [2**63], [""]):
        for name in ("get", "remove", "attachments"):
            assert isinstance(twins.both(name, ids), EverhashError)
        assert isinstance(twins.both("attach", ids, payloads=[1] * len(ids)), EverhashError)
        assert isinstance(twins.both("label", ids, [1] * len(ids)), EverhashError)
        assert isinstance(twins.both("search", PROBES[:1], ids=ids), EverhashError)
        assert isinstance(twins.both("search", PROBES, ids=ids), EverhashError)
    bad: list[Any] = [[1.5], 1.5, [None], [2**63], [""]]
    for name in bad:
        assert isinstance(twins.both("has", name), EverhashError)
    for labels in ([None], [1, 2], [], {1}, [[1]], [float("nan")]):
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
    [{1, 2}],
    [float("inf")],
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
        for recall in (0, -0.5, 1.01, 10**400, "1", None, True, float("nan"), [0.5]):
            assert isinstance(twins.both("search", rows, recall=recall), OptionError)
            assert isinstance(twins.both("search_like", [1, 2], recall=recall), OptionError)
        for r in ("3", None, float("nan")):
            assert isinstance(twins.both("search_radius", rows, r), EverhashError)
        for labels in ([999], ["nobody"], [1, None], [("no", "body")], "x y"):
            assert isinstance(twins.both("search", rows, labels=labels), EverhashError)


@on_cluster_only
def test_what_is_wrong_first_is_told_first(twins: Twins) -> None:
    fill(twins)
    bad: dict[str, list[Any]] = {
        "X": [PROBES[:2], NAN, np.zeros((1, 63))],
        "k": [3, 0],
        "by": ["meaning", "relevance", "auto"],
        "labels": [None, ["nobody"], [None]],
        "ids": [None, [1, 2], ["never", 0], [0, "never"], [1.5]],
    }
    for values in itertools.product(*bad.values()):
        options = dict(zip(bad, values, strict=True))
        X, k, by = options.pop("X"), options.pop("k"), options.pop("by")
        twins.both("search", X, k, by, **options)
        twins.both("search_radius", X, k, by, **options)
        twins.both("search_like", options["ids"] or [1], k, by, **options)
    for rows, k, ids in itertools.product(bad["X"], bad["k"], bad["ids"]):
        twins.both("search", rows, k, ids=ids, recall=0)
        twins.both("search_like", ids or [1], k, recall=0)


def test_the_first_id_that_no_entry_has_is_named(twins: Twins) -> None:
    fill(twins)
    for ids in ([1, 0, "never"], [1, "never", 0], [302, 0, "never"]):
        for name, more in (("get", []), ("remove", []), ("unlabel", []), ("label", ["x"])):
            error = twins.both(name, ids, *more)
            assert isinstance(error, UnknownIdError)
            assert error.id == next(one for one in ids if one != 1)


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
