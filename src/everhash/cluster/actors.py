"""The lead and the shards as Ray actors: thin shells around `processes`.

Ray starts them, restarts them where they or their node have died, and carries messages. It may
raise an error although a call was made, and makes no call twice; so whatever has no answer is sent
again, and the rules (`lead`, `shard`) see to it that nothing is applied twice. An actor whose
storage fails ends: the next one starts from what the storage has.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from everhash.cluster.asking import Answered, Members
from everhash.cluster.lead_file import LeadFile
from everhash.cluster.messages import Ask, Resume, Unfit
from everhash.cluster.processes import LeadProcess, ShardProcess
from everhash.cluster.writes import Replica
from everhash.errors import EverhashError, LockedError

NAMESPACE = "everhash"
TICK = 0.1
"""Seconds between two looks of the lead at what was not answered."""
DELIVERY = 30.0
"""Seconds that a shard may take for a write before it is sent again."""
LARGE = 100_000
"""Bytes of rows from which on a question is stored once for all shards."""

log = logging.getLogger(__name__)


def cluster_name(storage: Path) -> str:
    """Return what actors of the cluster at a place are called; one place, one cluster."""
    digest = hashlib.blake2b(str(storage).encode(), digest_size=6).hexdigest()
    return f"everhash-{digest}"


def lead_name(storage: Path) -> str:
    """Return the name of the lead's actor."""
    return f"{cluster_name(storage)}-lead"


def shard_name(storage: Path, replica: Replica) -> str:
    """Return the name of a shard's actor."""
    return f"{cluster_name(storage)}-shard-{replica.shard}-{replica.copy}"


def lead_path(storage: Path) -> Path:
    """Return where the lead's file is."""
    return storage / "lead.ever"


def shard_path(storage: Path, replica: Replica) -> Path:
    """Return where the file of a copy of a shard is."""
    return storage / f"shard-{replica.shard}-{replica.copy}.ever"


class ShardActor:
    """One copy of a shard. Its file is opened with the first call, which may come too early."""

    def __init__(self, path: str, durability: str) -> None:
        self._path, self._durability = Path(path), durability
        self._process: ShardProcess | None = None

    def handle(self, message: Any) -> Any:
        """Return the answer to a message, or why the file cannot be opened."""
        try:
            if self._process is None:
                self._process = ShardProcess(self._path, self._durability)
        except LockedError:  # by one before it that has not ended yet
            raise
        except EverhashError as error:
            log.warning("a shard's file cannot be opened: %s", error)
            return Unfit(error)
        try:
            return self._process.handle(message, time.monotonic())
        except Exception:
            log.exception("a shard ends")
            os._exit(1)  # memory may be ahead of the file; Ray starts another one from the file

    def pid(self) -> int:
        """Return the number of the process."""
        return os.getpid()


class LeadActor:
    """The lead. It sends messages to shards, and starts those that are not there."""

    def __init__(self, storage: str, durability: str) -> None:
        self._storage, self._durability = Path(storage), durability
        self._process: LeadProcess | None = None
        self._waiting: dict[Hashable, asyncio.Future[Any]] = {}
        self._shards: dict[Replica, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, message: Any) -> Any:
        """Return the answer to a client's message, or why the storage cannot be opened."""
        try:
            self._open()
        except EverhashError as error:
            return error
        future = asyncio.get_running_loop().create_future()
        before = self._waiting.get(message.request)
        if before is not None and not before.done():
            before.set_result(None)  # who sent it before has given up
        self._waiting[message.request] = future
        self._feed(message.request, message)
        return None if isinstance(message, Resume) else await future

    async def pid(self) -> int:
        """Return the number of the process."""
        return os.getpid()

    def _open(self) -> None:
        if self._process is None:
            file = LeadFile.open(lead_path(self._storage), self._durability)
            try:
                self._process = LeadProcess(file)
            except BaseException:
                file.close()
                raise
            self._start(self._tick())

    async def _tick(self) -> None:
        while True:
            assert self._process is not None  # noqa: S101 - it is open
            try:
                answers = self._process.tick(time.monotonic())
            except Exception:
                log.exception("the lead ends")
                os._exit(1)
            self._send(answers)
            await asyncio.sleep(TICK)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _feed(self, sender: Hashable, message: Any) -> None:
        """Let the rules handle a message, and send what follows from it."""
        assert self._process is not None  # noqa: S101 - it is open
        try:
            answers = self._process.handle(sender, message, time.monotonic())
        except Exception:
            log.exception("the lead ends")
            os._exit(1)  # memory may be ahead of the file; Ray starts another one from the file
        self._send(answers)

    def _send(self, answers: list[tuple[Hashable, Any]]) -> None:
        for to, message in answers:
            if isinstance(to, Replica):
                self._start(self._deliver(to, message))
            elif (future := self._waiting.pop(to, None)) is not None and not future.done():
                future.set_result(message)

    async def _deliver(self, replica: Replica, message: Any) -> None:
        """Send a message to a shard; without an answer it counts as lost."""
        try:
            actor = self._shards.get(replica) or start_shard(
                self._storage, replica, self._durability
            )
            self._shards[replica] = actor
            answer = await asyncio.wait_for(actor.handle.remote(message), DELIVERY)
        except (RayError, TimeoutError, ValueError) as error:
            log.info("shard %s did not answer: %s", replica, error)
            self._shards.pop(replica, None)
            return
        self._feed(replica, answer)


def start_shard(storage: Path, replica: Replica, durability: str) -> Any:
    """Return the actor of a copy of a shard, which is started if it is not there."""
    kind = ray.remote(ShardActor).options(
        name=shard_name(storage, replica),
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_task_retries=0,
        num_cpus=0,
        scheduling_strategy="SPREAD",
    )
    return kind.remote(str(shard_path(storage, replica)), durability)


def start_lead(storage: Path, durability: str) -> Any:
    """Return the lead's actor, which is started if it is not there."""
    kind = ray.remote(LeadActor).options(
        name=lead_name(storage),
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_task_retries=0,
        num_cpus=0,
        max_concurrency=1000,
    )
    return kind.remote(str(storage), durability)


class RayMembers(Members):
    """The lead and the shards as a client reaches them."""

    def __init__(self, storage: Path, copies: int, durability: str) -> None:
        self._storage, self._copies, self._durability = storage, copies, durability
        self._lead: Any = None
        self._shards: dict[Replica, Any] = {}

    @property
    def copies(self) -> int:
        """Of each shard."""
        return self._copies

    def tell_lead(self, message: Any, seconds: float) -> Any:
        """See `Members`."""
        try:
            if self._lead is None:
                self._lead = start_lead(self._storage, self._durability)
            answer = ray.get(self._lead.handle.remote(message), timeout=seconds)
        except (RayError, GetTimeoutError, ValueError) as error:
            log.info("the lead did not answer: %s", error)
            self._lead = None
            return None
        return None if isinstance(answer, LockedError) else answer

    def ask(self, asked: dict[Replica, Ask], seconds: float) -> dict[Replica, Answered]:
        """See `Members`."""
        refs: dict[Any, Replica] = {}
        stored: dict[int, Any] = {}
        for replica, message in asked.items():
            actor = self._actor(replica)
            if actor is not None:
                refs[actor.handle.remote(self._once(message, stored, len(asked)))] = replica
        told: dict[Replica, Answered] = {}
        if not refs:
            return told
        ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=seconds)
        for ref in ready:
            try:
                told[refs[ref]] = ray.get(ref)
            except RayError as error:
                log.info("shard %s did not answer: %s", refs[ref], error)
                self._shards.pop(refs[ref], None)
        return told

    def _once(self, message: Ask, stored: dict[int, Any], n: int) -> Any:
        """Store a large question once, if several shards are asked the same."""
        if n == 1 or _bytes_of(message.question) < LARGE:
            return message
        key = id(message.question)
        if key not in stored:
            stored[key] = ray.put(message)
        return stored[key]

    def _actor(self, replica: Replica) -> Any:
        if replica not in self._shards:
            try:
                self._shards[replica] = start_shard(self._storage, replica, self._durability)
            except (ValueError, RayError):
                return None
        return self._shards[replica]

    def close(self) -> None:
        """Let go of the actors, which go on."""
        self._lead, self._shards = None, {}


def _bytes_of(question: Any) -> int:
    """Return about how many bytes of rows a question has."""
    arrays = getattr(getattr(question, "call", question), "arguments", ())
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays)
