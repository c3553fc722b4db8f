"""Killing shards, leads and whole nodes of Ray while a cluster works, and looking at what is left.

    python -m tests.cluster.kills --kills 100

Each round makes one call on the cluster and, a random moment after its start, kills something with
SIGKILL. The call has to end well, since it is sent until it is answered. Then everything must be
there once, and searches must equal those of a collection on this machine with the same history.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import everhash
import everhash.cluster
from everhash.cluster.writes import Replica
from tests.cluster.on_ray import WATCHFUL, Nodes, kill, pid_of, ray_nodes
from tests.contracts.twins import ALL, PROBES, TRUTH, assert_same

SHARDS = 3
PUBLISHING = 450
"""Rows that are enough for a publication, with some thousand learned before."""


class Trial:
    """A cluster and a collection here with the same history."""

    def __init__(self, nodes: Nodes, storage: Path, seed: int) -> None:
        self._nodes, self._storage = nodes, storage.absolute()
        self._random, self._rng = random.Random(seed), np.random.default_rng(seed)
        self.here = everhash.create(None, 64, 16, labels_per_cycle=4)
        self.there = everhash.cluster.create(
            "auto", storage, 64, 16, shards=SHARDS, labels_per_cycle=4, patience=120
        )
        self.seconds: dict[str, list[float]] = {}
        self.killed: Counter[str] = Counter()
        self._n = 0
        self._both("ingest", 900)

    def close(self) -> None:
        """End the cluster."""
        everhash.cluster.stop("auto", self._storage)

    def run(self, kills: int) -> None:
        """Kill so many times, each in the middle of something."""
        for number in range(kills):
            victim = ("shard", "node", "shard", "lead")[number % 4]
            self.round(victim, ("ingest", "publication", "search")[number % 3])

    def round(self, victim: str, call: str) -> None:
        """Make a call, kill something meanwhile, and look at everything."""
        working = threading.Thread(target=self._work, args=(call,))
        strike = self._aimed(victim)
        working.start()
        time.sleep(self._random.uniform(0, 0.15))
        start = time.monotonic()
        strike()
        self.there.search(PROBES[:1])  # complete, or it would raise
        self.seconds.setdefault(victim, []).append(time.monotonic() - start)
        self.killed[f"{victim} in mid-{call}"] += 1
        self._nodes.complete()
        working.join()
        self.check()

    def _aimed(self, victim: str) -> Any:
        """Return what kills a victim; finding it takes a while, so that is done before."""
        if victim == "node":
            which = self._random.randrange(2)
            return lambda: self._nodes.lose(which)
        replica = None if victim == "lead" else Replica(self._random.randrange(SHARDS), 0)
        pid = pid_of(self._storage, replica)
        return lambda: kill(pid)

    def _work(self, call: str) -> None:
        if call == "search":
            for _ in range(20):
                assert_same(self.there.search(PROBES, 5), self.here.search(PROBES, 5))
        else:
            self._both("ingest", PUBLISHING if call == "publication" else 40)

    def _both(self, name: str, n: int) -> None:
        """Make one call on the cluster, then the same here."""
        rows = self._rng.integers(0, 1500, n)
        labels = [int(TRUTH[row]) if row % 5 else None for row in rows]
        ids = [f"e{self._n + i}" for i in range(n)]
        self._n += n
        getattr(self.there, name)(ALL[rows], labels, ids)
        getattr(self.here, name)(ALL[rows], labels, ids)

    def check(self) -> None:
        """Everything acknowledged is there once, and answers are those of one machine."""
        assert len(self.there) == len(self.here) == self._n
        assert self.there.has([f"e{i}" for i in range(self._n)]).all()
        assert [entry.id for entry in self.there.entries()] == [f"e{i}" for i in range(self._n)]
        for by in ("meaning", "likeness", "hamming"):
            assert_same(self.here.search(PROBES, 7, by), self.there.search(PROBES, 7, by))
        assert self.there.stats()["learned"] == self.here.stats()["learned"]


def main() -> None:
    """Kill as often as the command line says, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ray_nodes(settings=WATCHFUL) as nodes:
        trial = Trial(nodes, Path(folder), options.seed)
        for number in range(options.kills):
            victim = ("shard", "node", "shard", "lead")[number % 4]
            trial.round(victim, ("ingest", "publication", "search")[number % 3])
            last = trial.seconds[victim][-1]
            print(f"{number + 1}: {victim}, complete again after {last:.1f} s", flush=True)  # noqa: T201
        trial.close()
    for what, times in trial.seconds.items():
        half, most = np.median(times), max(times)
        print(f"{what}: {len(times)} killed, complete again after {half:.1f} s, at most {most:.1f}")  # noqa: T201
    print(dict(trial.killed))  # noqa: T201


if __name__ == "__main__":
    main()
