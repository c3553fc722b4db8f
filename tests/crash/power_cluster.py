"""A cluster whose lead and shards are on one machine, which loses its power."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import everhash
from everhash import OnlineHasher
from everhash.cluster.collection import ClusterCollection
from tests.cluster.in_process import InProcess, on_cluster
from tests.crash.losing import ABSENT
from tests.crash.recording import Recorder
from tests.crash.script import Call

DIM, SHARDS = 8, 2
ROWS = np.random.default_rng(4).integers(0, 9, (24, DIM)).astype(np.float32)
CALLS = (
    Call("ingest", {"X": ROWS[:8], "y": list("abcdabcd"), "ids": list(range(8))}),
    Call("add", {"X": ROWS[8:12], "ids": list(range(8, 12)), "payloads": ["p"] * 4}),
    Call("label", {"ids": [8, 9], "y": ["a", "e"]}),
    Call("remove", {"ids": [1, 10]}),
    Call("ingest", {"X": ROWS[12:18], "y": list("efefef"), "ids": list(range(12, 18))}),
)


class Cluster:
    """Begins a cluster and writes to it: state n of the model is that after n writes.

    What a loss leaves is started again. The lead sends what shards have lost, or never got.
    """

    setting = "commit"

    def __init__(self) -> None:
        self._states: list[str] = []

    def prepare(self, folder: Path) -> None:
        pass

    def run(self, recorder: Recorder, folder: Path) -> None:
        recorder.begin(0, "begin a cluster")
        hasher = OnlineHasher(8, 2, features=10).begin(DIM)
        members = InProcess(folder, hasher, SHARDS, durability="commit")
        recorder.promise(0)
        cluster = on_cluster(members)
        self._states.append(shown(cluster))
        for number, call in enumerate(CALLS, 1):
            recorder.begin(number, "write to a cluster")
            getattr(cluster, call.method)(**call.arguments)
            recorder.promise(number)
            self._states.append(shown(cluster))
        recorder.begin(len(CALLS), "close a cluster")
        members.close()

    def look(self, folder: Path, *, full: bool) -> int:
        if not (folder / "lead.ever").exists():
            return ABSENT
        members = InProcess(folder, None, SHARDS, durability="commit")
        try:
            cluster = on_cluster(members)
            found = self._which(cluster)
            if full and found < len(CALLS):
                getattr(cluster, CALLS[found].method)(**CALLS[found].arguments)
                assert self._which(cluster) == found + 1, "the next write"
        finally:
            members.close()
        for shard in folder.glob("shard-*.ever") if full else ():
            assert not everhash.verify(shard).problems
        return found

    def _which(self, cluster: ClusterCollection) -> int:
        state = shown(cluster)
        assert state in self._states, "not the state after any write"
        return self._states.index(state)


def shown(cluster: ClusterCollection) -> str:
    """Return what a cluster shows of itself."""
    entries = [(entry.id, sorted(map(str, entry.labels))) for entry in cluster.entries()]
    ids = [one for one, _ in entries]
    carried = [one.payload for one in cluster.attachments(ids)] if ids else []
    found = cluster.search(ROWS[18:], 5)
    return repr((sorted(entries), carried, found.ids.tolist(), found.scores.tolist()))
