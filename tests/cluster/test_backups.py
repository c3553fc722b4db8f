"""Files that were put back from different backups are noticed, and whoever asks is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everhash.cluster.collection import ClusterCollection
from everhash.errors import CollectionFileError
from everhash.learn.hasher import OnlineHasher
from tests.cluster.in_process import InProcess, on_cluster
from tests.contracts.twins import ALL, GIF, PROBES, TRUTH, assert_same


class Stored:
    """A cluster in a folder whose files can be kept and put back while it is stopped."""

    def __init__(self, folder: Path, copies: int = 1) -> None:
        self.folder, self.kept = folder / "storage", folder / "kept"
        self.folder.mkdir(parents=True)
        self.members = InProcess(self.folder, OnlineHasher(16).begin(64), 2, copies)
        self.collection = on_cluster(self.members)

    def write(self, start: int, n: int = 10) -> None:
        rows = slice(start, start + n)
        self.collection.ingest(ALL[rows], TRUTH[rows].tolist())

    def keep(self) -> None:
        """Copy all files, while nobody has them open."""
        self.members.close()
        shutil.copytree(self.folder, self.kept)
        self.members.restart(close=False)

    def put_back(self, *names: str, of: Path | None = None) -> None:
        """Put files back, and start from them."""
        self.members.close()
        for name in names:
            for left in self.folder.glob(f"{name}*"):
                left.unlink()
            shutil.copy((of or self.kept) / name, self.folder / name)
        self.members.restart(close=False)
        self.collection = on_cluster(self.members)


CALLS: dict[str, Callable[[ClusterCollection], Any]] = {
    "opening": lambda collection: collection._cluster.table(),
    "search": lambda collection: collection.search(PROBES, 3),
    "stats": lambda collection: collection.stats(),
    "add": lambda collection: collection.add(ALL[500:501]),
    "snapshot": lambda collection: collection.snapshot("never.ever"),
}


def refused(stored: Stored, says: str) -> None:
    """Every call ends at once and says why."""
    for call in CALLS.values():
        with pytest.raises(CollectionFileError, match=says) as caught:
            call(stored.collection)
        assert "from one backup" in caught.value.hint


def test_an_older_lead_is_told_of(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.keep()
    stored.write(10)
    stored.put_back("lead.ever")
    refused(stored, r"copy 0 of shard 0 has the writes up to 3, the lead only up to 2")


def test_an_older_shard_is_told_of(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.keep()
    for start in (10, 20, 30):
        stored.write(start)
    stored.put_back("shard-1-0.ever")
    refused(stored, "copy 0 of shard 1 has the writes up to 2 of 5, and the lead no longer has")


def test_a_missing_shard_is_told_of(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.write(10)
    stored.members.close()
    (stored.folder / "shard-0-0.ever").unlink()
    stored.members.restart(close=False)
    refused(stored, "copy 0 of shard 0 has the writes up to 0 of 3")


def test_a_shard_behind_by_what_the_lead_still_has_catches_up(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.keep()
    stored.write(10)
    expected = stored.collection.search(PROBES, 5)
    stored.put_back("shard-1-0.ever")
    assert_same(stored.collection.search(PROBES, 5), expected)
    stored.write(20)
    assert len(stored.collection) == 30


def test_a_shard_of_another_cluster_is_told_of(tmp_path: Path) -> None:
    stored, other = Stored(tmp_path / "one"), Stored(tmp_path / "other")
    for one in (stored, other):
        one.write(0)
    other.members.close()
    stored.put_back("shard-0-0.ever", of=other.folder)
    refused(stored, "copy 0 of shard 0 has other writes than the lead: its file is of another")


def test_a_shard_that_went_on_from_another_backup_is_told_of(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.keep()
    stored.write(10)
    gone = tmp_path / "gone"
    stored.members.close()
    shutil.copytree(stored.folder, gone)
    stored.members.restart(close=False)
    stored.put_back("lead.ever", "shard-0-0.ever", "shard-1-0.ever")
    stored.write(20)
    stored.put_back("shard-0-0.ever", of=gone)  # as many writes, and another one among them
    refused(stored, "has other writes than the lead")


def test_files_of_one_backup_go_on(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.keep()
    expected = stored.collection.search(PROBES, 5)
    stored.write(10)
    old = stored.collection
    stored.put_back("lead.ever", "shard-0-0.ever", "shard-1-0.ever")
    assert_same(stored.collection.search(PROBES, 5), expected)
    with pytest.raises(CollectionFileError, match="this client has the writes up to 3"):
        next(old.rebalance())
    stored.write(20)
    assert len(stored.collection) == 20


def test_a_copy_that_does_not_fit_answers_nobody_while_another_does(tmp_path: Path) -> None:
    stored = Stored(tmp_path, copies=2)
    stored.write(0)
    stored.keep()
    stored.write(10)
    names = [f"shard-{shard}-{copy}.ever" for shard in (0, 1) for copy in (0, 1)]
    stored.put_back("lead.ever", *names[:3])  # one copy has a write that nobody else has
    for start in range(20, 60, 10):
        stored.write(start)
        assert len(stored.collection) == start
        stored.collection.search(PROBES, 5)


def test_a_client_that_is_open_is_told_that_shards_are_ahead(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.write(0)
    stored.keep()
    stored.write(10)
    client = stored.collection
    stored.put_back("lead.ever")
    with pytest.raises(CollectionFileError, match="the lead only up to 2"):
        client.search(PROBES, 3)


def test_thumbnails_may_be_views_of_memory(tmp_path: Path) -> None:
    import pickle

    stored = Stored(tmp_path)
    tell = stored.members.tell_lead
    stored.members.tell_lead = lambda message, seconds: tell(  # type: ignore[method-assign]
        pickle.loads(pickle.dumps(message)),  # noqa: S301 - as Ray sends it
        seconds,
    )
    view: Any = memoryview(GIF)
    ids = stored.collection.add(ALL[:2], thumbnails=[view, None])
    stored.collection.attach(ids[1:], thumbnails=iter([view]))
    assert [one.thumbnail for one in stored.collection.attachments(ids)] == [GIF, GIF]
