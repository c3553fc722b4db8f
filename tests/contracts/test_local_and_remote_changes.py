"""Entries and labels change behind a service as they change here."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection
from everhash.errors import (
    EverhashError,
    LabelConflictError,
    ReadOnlyError,
    ServiceError,
    UnknownNameError,
)
from tests.contracts.twins import (
    ALL,
    GIF,
    PROBES,
    TRUTH,
    Twins,
    assert_same,
    fill,
    make_twins,
    two_kinds,
)
from tests.unit.serve.serving import serving

__all__ = ["make_twins"]  # pytest finds the fixture by its name here


# Labels and entries that change


@two_kinds
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


@two_kinds
def test_labels_change_only_as_expected_alike(twins: Twins) -> None:
    fill(twins)
    several: list[Any] = [303, 301, 5, 7, 8]
    have: list[Any] = [None, "found", {1, "odd"}, ("pair", 2), b"raw"]
    for expect in (
        *("odd", {1, "odd"}, set(), [], ["never seen"] * 5, object(), [object()] * 5, [[1]] * 5),
        *([None, "found", {1, "odd"}, ("pair", 2), "raw"], [*have[:4], {b"raw", 1}]),
    ):
        assert isinstance(twins.both("label", several, "x", expect=expect), EverhashError)
        assert isinstance(twins.both("unlabel", several, expect=expect), EverhashError)
    conflict = twins.both("label", several, "x", expect=[*have[:4], None])
    assert (type(conflict), conflict.id) == (LabelConflictError, 8)
    twins.both("label", [303, 301], "found", expect=[None, "found"])
    twins.both("label", several, [4, 5, {6, "odd"}, 7, 8], expect=["found", *have[1:]])
    twins.both("unlabel", [303, 301], expect=[4, 5])
    twins.both("unlabel", [303], expect=set())
    for name in ("stats", "labels", "entries"):
        twins.both(name)


@two_kinds
def test_new_labels_are_refused_on_demand_alike(twins: Twins) -> None:
    fill(twins)
    for y in (["fuond"], [{"found", "fuond"}], ["nothing like it"]):
        assert isinstance(twins.both("label", [303], y, new=False), UnknownNameError)
    twins.both("label", [303], ["found"], new=False)
    twins.both("label", [303], ["fuond"])
    for label in ("fuond", "never seen"):
        assert isinstance(twins.both("drop_label", label, unused=True), EverhashError)
    twins.both("unlabel", [303])
    twins.both("drop_label", "fuond", unused=True)
    for name in ("stats", "labels", "entries"):
        twins.both(name)


@two_kinds
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


@two_kinds
def test_ids_are_free_again_alike(twins: Twins) -> None:
    fill(twins)
    assert twins.both("remove", [7, "a"]) == 2
    assert not twins.both("has", [7, "a"]).any()
    assert twins.both("add", ALL[:2], [7, "a"]) == [7, "a"]
    twins.both("get", [7, "a"])
    twins.both("entries")


@two_kinds
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
        for call, options in (("search", {"k": 5}), ("search_radius", {"r": 9})):
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
    opened = threading.Event()
    with everhash.create(None, 64, 16) as col:

        def slowly() -> Collection:
            opened.wait(30)
            return col

        with serving(slowly, wait=False) as served:
            # no time for a second question, however busy the machine is
            monkeypatch.setattr("everhash.client.session.PAUSE", 60)
            with pytest.raises(ServiceError, match="starting"):
                everhash.connect(served.address, timeout=30)
            monkeypatch.setattr("everhash.client.session.PAUSE", 0.02)
            threading.Timer(0.1, opened.set).start()
            with everhash.connect(served.address) as remote:
                assert len(remote) == 0
