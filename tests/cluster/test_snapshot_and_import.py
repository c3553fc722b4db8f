"""A cluster becomes a file, and a file a cluster; both go on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash.cluster.importing import begin_from
from everhash.errors import OptionError
from everhash.wire.options import WAYS
from tests.cluster.in_process import imported
from tests.conftest import slowly
from tests.contracts.twins import (
    ALL,
    GIF,
    OF_ITS_OWN,
    PROBES,
    TRUTH,
    Twins,
    assert_same,
    fill,
    outcome,
)


def assert_same_collections(mine: Any, theirs: Any) -> None:
    """Entries, attachments, labels, stats, and what searches find."""
    ids = [entry.id for entry in mine.entries()]
    for name in ("entries", "labels", "stats", "__len__"):
        same(mine, theirs, name)
    for start in (0, 7, 300):
        same(mine, theirs, "page", start, 50)
        same(mine, theirs, "page", start, 50, unlabelled=True)
    for name in ("attachments", "features", "get"):
        same(mine, theirs, name, ids)
    for by in WAYS:
        same(mine, theirs, "search", PROBES, 9, by)
        same(mine, theirs, "search", PROBES, 9, by, unlabelled=True, explain=True)


def same(mine: Any, theirs: Any, name: str, *arguments: Any, **options: Any) -> None:
    told = [outcome(each, name, *arguments, **options) for each in (mine, theirs)]
    if name == "stats":
        # a new cluster has never been refreshed
        own = (*OF_ITS_OWN, "last_refresh")
        told = [{name: one[name] for name in one if name not in own} for one in told]
    assert_same(*told)


def go_on(*collections: Any) -> None:
    """Let collections learn, forget, change labels and get entries, all in the same way."""
    for name, *arguments in (
        ("ingest", ALL[700:1400], TRUTH[700:1400]),
        ("add", ALL[1400:1430]),
        ("label", [701, 303], ["new", 4]),
        ("unlabel", [20, 21, 800]),
        ("update", [22, 304], ALL[90:92]),
        ("upsert", ALL[:3], [30, "fresh", 31], [1, None, "x"]),
        ("remove", [40, 410]),
        ("forget", ALL[710:740], TRUTH[710:740]),
        ("drop_label", 5),
        ("refresh",),
    ):
        first, *others = (outcome(each, name, *arguments) for each in collections)
        for other in others:
            assert_same(first, other)


def filled(n: int, folder: Path | None = None) -> Twins:
    """Return a collection and a cluster with n entries more than `fill` gives them."""
    twins = Twins(shards=3, labels_per_cycle=4, folder=folder)
    fill(twins)
    if n:
        twins.both("ingest", ALL[:n], TRUTH[:n])
    twins.both("attach", [1, 303, 304], payloads=["a", {"b": 1}, None], thumbnails=[GIF, None, GIF])
    twins.both("update", [1, 305], ALL[800:802])
    return twins


@pytest.mark.parametrize("n", [1000, *slowly(0)], ids=["rows are summed up", "rows are kept"])
def test_a_snapshot_goes_on_as_if_it_had_never_been_a_cluster(n: int, tmp_path: Path) -> None:
    twins = filled(n)
    twins.remote.snapshot(tmp_path / "copy.ever")
    assert everhash.verify(tmp_path / "copy.ever").problems == ()
    with everhash.open(tmp_path / "copy.ever") as copy:
        assert copy.hasher.to_bytes() == twins.here.hasher.to_bytes()
        assert_same_collections(twins.here, copy)
        go_on(twins.here, copy)
        assert copy.hasher.to_bytes() == twins.here.hasher.to_bytes()
        assert_same_collections(twins.here, copy)
        assert copy.add(ALL[:2]) == twins.here.add(ALL[:2])
    twins.close()


def test_a_snapshot_is_taken_while_entries_move(tmp_path: Path) -> None:
    twins = filled(1000)
    moving = twins.remote.grow(5)
    moving = twins.remote.rebalance(100)
    next(moving)
    twins.both("remove", [2, 3, 4])
    next(moving)
    twins.remote.snapshot(tmp_path / "copy.ever")
    with everhash.open(tmp_path / "copy.ever", readonly=True) as copy:
        assert_same_collections(twins.here, copy)
    twins.close()


@pytest.mark.parametrize("n", [0, 3, 20])
def test_a_snapshot_of_few_entries_opens(n: int, tmp_path: Path) -> None:
    twins = Twins(shards=3)
    if n:
        twins.both("add", ALL[:n])
        twins.both("remove", [1])
    twins.remote.snapshot(tmp_path / "copy.ever")
    assert everhash.verify(tmp_path / "copy.ever").problems == ()
    with everhash.open(tmp_path / "copy.ever") as copy:
        for each in (twins.here, copy):
            each.ingest(ALL[100:150], TRUTH[100:150])
        same(twins.here, copy, "entries")
        for by in WAYS:
            same(twins.here, copy, "search", PROBES, 9, by)
    twins.close()


@pytest.mark.parametrize("n", [1000, *slowly(0)], ids=["rows are summed up", "rows are kept"])
def test_a_cluster_from_a_file_goes_on_where_the_file_was(n: int, tmp_path: Path) -> None:
    twins = filled(n)
    (tmp_path / "members").mkdir()
    cluster = imported(twins.here, tmp_path / "members")
    assert_same_collections(twins.here, cluster)
    cluster._cluster.members.restart()
    go_on(twins.here, cluster)
    assert_same_collections(twins.here, cluster)
    cluster.snapshot(tmp_path / "back.ever")
    with everhash.open(tmp_path / "back.ever") as back:
        assert back.hasher.to_bytes() == twins.here.hasher.to_bytes()
        assert [entry.id for entry in back.entries()] == [entry.id for entry in cluster.entries()]
    cluster.close()
    twins.close()


@pytest.mark.parametrize("n", [0, 3])
def test_a_cluster_from_a_file_of_few_entries_is_the_same(n: int) -> None:
    with everhash.create(None, 64, 16) as here:
        if n:
            here.add(ALL[:n])
        cluster = imported(here)
        for each in (here, cluster):
            each.ingest(ALL[100:150], TRUTH[100:150])
        for by in WAYS:
            same(here, cluster, "search", PROBES, 9, by)
        cluster.close()


@pytest.mark.parametrize(
    "options",
    [
        {"coding": "full"},
        {"keep_features": "unlabelled"},
        {"likeness": False},
        {"method": "everhash-sgd"},
        {"method": "mihash"},
        {"hasher": everhash.OnlineHasher(16, learn_unlabelled=True)},
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_what_a_cluster_cannot_hold_is_refused(options: dict[str, Any]) -> None:
    with everhash.create(None, 64, 16, **options) as here:
        here.ingest(np.abs(ALL[:20]), TRUTH[:20])
        with pytest.raises(OptionError, match="a cluster"):
            begin_from(here, None, 3, 1, "none")
