"""A cluster in one process, without Ray: the real lead and the real shards, one call at a time."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from everhash.cluster.asking import Answered, Asker
from everhash.cluster.collection import ClusterCollection
from everhash.cluster.importing import begin_from, send_entries
from everhash.cluster.lead import RESEND
from everhash.cluster.lead_file import LeadFile
from everhash.cluster.messages import Ask, Unfit
from everhash.cluster.processes import LeadProcess, ShardProcess
from everhash.cluster.writes import Replica
from everhash.collection.collection import Collection
from everhash.errors import EverhashError
from everhash.learn.hasher import OnlineHasher


class InProcess:
    """Members that are called directly."""

    def __init__(
        self,
        folder: Path | None,
        hasher: OnlineHasher | None,
        shards: int,
        copies: int = 1,
        like: Collection | None = None,
        durability: str = "none",
    ) -> None:
        """Begin with a hasher, or go on where a collection is; or with neither, where files are."""
        self._folder, self.copies, self._now = folder, copies, 1.0
        self._durability = durability
        path = None if folder is None else folder / "lead.ever"
        if like is not None:
            file = begin_from(like, path, shards, copies, durability)
        elif hasher is not None:
            file = LeadFile.create(path, hasher, shards, copies, durability)
        else:
            assert path is not None
            file = LeadFile.open(path, durability)
        self.lead = LeadProcess(file)
        self.shards: dict[Replica, ShardProcess] = {}
        self._settle()

    @classmethod
    def opened(cls, folder: Path) -> InProcess:
        """Start members from their files."""
        members = cls.__new__(cls)
        members._folder, members._now, members.shards = folder, 1.0, {}
        members._durability = "none"
        members.copies = LeadFile.copies_in(folder / "lead.ever")
        members.restart(close=False)
        return members

    def _shard(self, replica: Replica) -> ShardProcess:
        if replica not in self.shards:
            path = None
            if self._folder is not None:
                path = self._folder / f"shard-{replica.shard}-{replica.copy}.ever"
            self.shards[replica] = ShardProcess(path, self._durability)
        return self.shards[replica]

    def restart(self, *, close: bool = True) -> None:
        """End all members, unless they are closed, and start them from their files."""
        assert self._folder is not None
        if close:
            self.close()
        self.shards = {}
        file = LeadFile.open(self._folder / "lead.ever", self._durability)
        try:
            self.lead = LeadProcess(file)
        except BaseException:
            file.close()
            raise
        self._settle()

    def _settle(self) -> None:
        self._now += RESEND
        self._run(deque(self.lead.tick(self._now)))

    def _run(self, messages: deque[tuple[Any, Any]]) -> Any:
        """Deliver messages until nobody has anything to say; return what the client is told."""
        answer = None
        while messages:
            to, message = messages.popleft()
            if not isinstance(to, Replica):
                answer = message
                continue
            told = self._told(to, message)
            messages.extend(self.lead.handle(to, told, self._now))
        return answer

    def _told(self, replica: Replica, message: Any) -> Any:
        """Return what a shard answers, or why its file cannot be opened."""
        try:
            return self._shard(replica).handle(message, self._now)
        except EverhashError as error:
            return Unfit(error)

    def tell_lead(self, message: Any, seconds: float) -> Any:  # noqa: ARG002 - it answers at once
        """See `Members`."""
        answer = self._run(deque(self.lead.handle("client", message, self._now)))
        self._settle()  # shards that were added begin
        return answer

    def ask(
        self,
        asked: dict[Replica, Ask],
        seconds: float,  # noqa: ARG002 - they answer at once
    ) -> dict[Replica, Answered]:
        """See `Members`."""
        return {one: self._told(one, ask) for one, ask in asked.items()}

    def close(self) -> None:
        """Close all files."""
        self.lead.close()
        for shard in self.shards.values():
            shard.close()


def on_cluster(members: InProcess, patience: float = 20) -> ClusterCollection:
    """Return the collection that members in this process keep."""
    return ClusterCollection(Asker(members, partial=False, patience=patience), "a cluster")


def imported(collection: Collection, folder: Path | None = None, shards: int = 3) -> Any:
    """Return a collection on a cluster in this process that goes on where another one is."""
    cluster = on_cluster(InProcess(folder, None, shards, like=collection))
    for _ in send_entries(collection, cluster):
        pass
    return cluster


def in_process(folder: Path | None = None, shards: int = 3, **options: Any) -> ClusterCollection:
    """Return a new collection on a cluster in this process."""
    hasher = OnlineHasher(**{"bits": 16, "random_state": 0, **options}).begin(64)
    return on_cluster(InProcess(folder, hasher, shards))
