"""What a lead and its shards read from their files is what they had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash.cluster.lead_file import LeadFile
from everhash.cluster.lead_state import LeadState
from everhash.cluster.shard_collection import ShardCollection
from everhash.collection.formats import pack_likeness, pack_mapping
from everhash.errors import UnknownIdError
from everhash.learn.hasher import OnlineHasher
from everhash.learn.split_sums import SplitSums
from tests.cluster.in_process import InProcess, on_cluster
from tests.contracts.twins import ALL, GIF, PROBES, TRUTH, assert_same


class Members:
    """A cluster in a folder, and the collection on it."""

    def __init__(self, folder: Path, shards: int = 3) -> None:
        hasher = OnlineHasher(16, labels_per_cycle=4, features=60).begin(64)
        self.cluster = InProcess(folder, hasher, shards)
        self.collection = on_cluster(self.cluster)

    def assert_files_are_complete(self) -> None:
        """Hold what the files say against what the members know."""
        decider: Any = self.cluster.lead.lead.decider
        assert lead_contents(self.cluster.lead.file.state()) == lead_contents(decider.state)
        for process in self.cluster.shards.values():
            shard = process.entries.collection
            assert shard is not None
            assert_same(shard_contents(ShardCollection(shard.store)), shard_contents(shard))


def lead_contents(state: LeadState) -> Any:
    sums = state.learner.memory.sums
    own = None if not isinstance(sums, SplitSums) else np.tril(sums.own_products).tobytes()
    counts = (state.seq, state.arrived, state.next_id, state.coded, state.generation)
    return state.hasher.to_bytes(), own, counts, state.table, pack_likeness(state.coder)


def shard_contents(shard: ShardCollection) -> list[Any]:
    index = shard.index
    records, codes = index.export(0, index.arrived), index.export_codes(0, index.arrived)
    mapping = b"" if index.coded_by is None else pack_mapping(index.coded_by)
    living = [entry.id for entry in shard.entries()]
    return [
        *[records.columns[name] for name in sorted(records.columns)],
        records.several,
        *codes,
        mapping,
        shard.hasher.to_bytes(),
        list(shard.state),
        shard.arrivals.rows,
        shard.features(living),
        shard.attachments(living),
    ]


def test_files_are_complete_while_entries_are_few(tmp_path: Path) -> None:
    members = Members(tmp_path)
    for n in (1, 3, 20):
        members.collection.add(ALL[:n])
        members.assert_files_are_complete()
        before = members.collection.search(PROBES, 5, "likeness")
        members.cluster.restart()
        assert_same(members.collection.search(PROBES, 5, "likeness"), before)
        members.assert_files_are_complete()
    members.collection.close()


def test_files_are_complete_after_each_write(tmp_path: Path) -> None:
    members = Members(tmp_path)
    calls: list[tuple[Any, ...]] = [
        ("ingest", ALL[:30], TRUTH[:30]),
        ("learn", ALL[30:60], TRUTH[30:60]),
        ("forget", ALL[30:40], TRUTH[30:40]),
        ("ingest", ALL[100:1000], TRUTH[100:1000]),
        ("ingest", ALL[1000:1100], TRUTH[1000:1100]),  # rows are summed up from here on
        ("learn", ALL[1100:1105], TRUTH[1100:1105]),
        ("add", ALL[1200:1230]),
        ("ingest", ALL[1100:1400], TRUTH[1100:1400]),  # publishes
        ("label", [930, 931, 1], ["new", "new", "other"]),
        ("unlabel", [5, 940]),
        ("update", [6, 1031], ALL[:2]),
        ("upsert", ALL[:2], [7, "text"], [None, 3]),
        ("forget", ALL[1100:1103], TRUTH[1100:1103]),
        ("attach", [8, "text"], ["payload", None], [GIF, None]),
        ("remove", [9, 10]),
        ("rename_label", 3, "three"),
        ("merge_labels", 4, "three"),
        ("drop_label", 5),
        ("refresh",),
    ]
    for name, *arguments in calls:
        if name == "attach":
            ids, payloads, thumbnails = arguments
            members.collection.attach(ids, payloads=payloads, thumbnails=thumbnails)
        else:
            getattr(members.collection, name)(*arguments)
        members.assert_files_are_complete()
    members.collection.close()


def test_files_are_complete_after_a_refusal_and_while_entries_move(tmp_path: Path) -> None:
    members = Members(tmp_path)
    members.collection.ingest(ALL[:50], TRUTH[:50])
    with pytest.raises(UnknownIdError):
        members.collection.remove(["nobody"])
    members.assert_files_are_complete()
    members.collection.grow(5)
    for _ in members.collection.rebalance(20):
        members.assert_files_are_complete()
        members.cluster.restart()
        members.assert_files_are_complete()
    assert len(members.collection) == 50
    members.collection.close()


def test_a_call_that_fails_half_way_leaves_the_lead_as_it_was(tmp_path: Path) -> None:
    members = Members(tmp_path)
    members.collection.ingest(ALL[:50], TRUTH[:50])
    decider: Any = members.cluster.lead.lead.decider

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("half-way")

    before = lead_contents(decider.state)
    ended, decider._end_sums = decider._end_sums, fails
    with pytest.raises(ValueError, match="half-way"):
        members.collection.ingest(ALL[50:90], TRUTH[50:90])
    decider._end_sums = ended
    after = lead_contents(decider.state)
    assert (after[0], after[1], after[3:]) == (before[0], before[1], before[3:])
    assert decider.state.seq == before[2][0] + 1
    assert members.collection.ingest(ALL[50:90], TRUTH[50:90]) == list(range(50, 90))
    members.assert_files_are_complete()
    members.collection.close()


def test_a_cluster_says_how_many_copies_it_has(tmp_path: Path) -> None:
    hasher = OnlineHasher(16).begin(64)
    LeadFile.create(tmp_path / "lead.ever", hasher, 3, 2, "none").close()
    assert LeadFile.copies_in(tmp_path / "lead.ever") == 2
