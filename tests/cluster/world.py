"""What a simulated cluster runs on: virtual time, an unreliable network, processes with disks."""

from __future__ import annotations

import copy
import heapq
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from everhash.cluster.lead import Lead
from everhash.cluster.messages import Apply
from everhash.cluster.shard import Shard
from everhash.cluster.writes import Record, Replica
from tests.cluster.plan import LEAD, Crash, Cut, Noise, Stall
from tests.cluster.planted import Rules
from tests.cluster.toy import ToyDecider, ToyEntries

TICK = 0.2
"""Seconds between two ticks of the lead."""
LATE = 3.0
"""Seconds by which a message comes late at the most."""


class Member(Protocol):
    """Who gets messages."""

    def receive(self, sender: Hashable, message: Any) -> None: ...


class World:
    """Time and the network; everything random in a run comes from here."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.members: dict[Hashable, Member] = {}
        self.cuts: list[Cut] = []
        self.noises: list[Noise] = []
        self.stalls: list[Stall] = []
        self.trace: list[str] = []
        self._traced = traced
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0

    def after(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen later."""
        self._scheduled += 1
        heapq.heappush(self._events, (self.now + seconds, self._scheduled, event))

    def run(self, until: float, is_quiet: Callable[[], bool]) -> None:
        """Let everything happen up to a time, or until nothing is left to do."""
        while self._events and self._events[0][0] <= until and not is_quiet():
            self.now, _, event = heapq.heappop(self._events)
            event()

    def say(self, what: str) -> None:
        """Add a line to the trace."""
        if self._traced:
            self.trace.append(f"{self.now:8.3f}  {what}")

    def send(self, sender: Hashable, receiver: Hashable, message: Any) -> None:
        """Send a message: it comes after a while, and never, late or twice while there is noise."""
        lost = any(self.rng.random() < noise.lost for noise in self.noises)
        if lost or self._is_cut(sender, receiver):
            self.say(f"{_name(sender)} -> {_name(receiver)}  LOST  {message}")
            return
        times = 1 + any(self.rng.random() < noise.twice for noise in self.noises)
        for _ in range(times):
            delay = 0.001 + 0.01 * self.rng.random()
            if any(self.rng.random() < noise.late for noise in self.noises):
                delay += LATE * self.rng.random() ** 4  # mostly a little
            self.after(delay, partial(self._deliver, sender, receiver, message))

    def _deliver(self, sender: Hashable, receiver: Hashable, message: Any) -> None:
        stalled = [one for one in self.stalls if one.member == receiver]
        if stalled:
            end = max(one.time + one.lasts for one in stalled)
            self.after(end - self.now, partial(self._deliver, sender, receiver, message))
        elif not self._is_cut(sender, receiver):
            self.say(f"{_name(sender)} -> {_name(receiver)}  {message}")
            self.members[receiver].receive(sender, message)

    def _is_cut(self, sender: Hashable, receiver: Hashable) -> bool:
        return any((sender in cut.members) != (receiver in cut.members) for cut in self.cuts)


def _name(member: Hashable) -> str:
    return f"shard {member.shard}.{member.copy}" if isinstance(member, Replica) else str(member)


class Process:
    """A member that crashes: its memory is lost, its disk is not."""

    acknowledges_first = False

    def __init__(self, world: World, name: Hashable, rules: Rules) -> None:
        self.world, self.name, self.rules = world, name, rules
        self.up = False
        self.healed = False
        self.armed: Crash | None = None
        """Ends the process in the middle of the next message that makes it write."""

    def start(self) -> None:
        if not self.up:
            self.world.say(f"{_name(self.name)} starts")
            self.up = True
            self.load()

    def load(self) -> None:
        """Make the memory from what is on the disk."""
        raise NotImplementedError

    def store(self, write: Any) -> None:
        """Put a write on the disk."""
        raise NotImplementedError

    def crash(self, crash: Crash) -> None:
        """End the process, now or while it writes."""
        if crash.writing:
            self.armed = crash
        else:
            self._end(crash)

    def _end(self, crash: Crash) -> None:
        if self.up and not self.healed:
            self.world.say(f"{_name(self.name)} CRASHES")
            self.up = False
            self.world.after(crash.down, self.start)

    def heal(self) -> None:
        """Crash no more."""
        self.healed, self.armed = True, None
        self.start()

    def carry_out(self, writes: list[Any], answers: list[tuple[Hashable, Any]]) -> None:
        """Put the writes on the disk, then send the answers; crash in between if that is due."""
        steps = [partial(self.store, write) for write in writes]
        sends = [partial(self.world.send, self.name, *answer) for answer in answers]
        steps = sends + steps if self.acknowledges_first else steps + sends
        crash = self.armed if writes else None
        if crash is not None:
            self.armed = None
            steps = steps[: int(crash.done * len(steps))]
        for step in steps:
            step()
        if crash is not None:
            self._end(crash)


@dataclass
class LeadDisk:
    """What the storage of the lead holds; a write changes all of it at once."""

    decider: ToyDecider
    seq: int = 0
    mark: str = ""
    records: dict[int, Record] = field(default_factory=dict)
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)


class LeadProcess(Process):
    """Runs the rules of the lead."""

    def __init__(self, world: World, rules: Rules, decider: ToyDecider, copies: int) -> None:
        super().__init__(world, LEAD, rules)
        self.acknowledges_first = rules.lead_acknowledges_first
        self.copies = copies
        self.disk = LeadDisk(copy.copy(decider))
        self.history: list[Record] = []
        """All records that were ever on the disk."""
        self.lead: Lead
        self._deciding = decider
        self.store(Record(1, "begin", None, decider.begin(), mark="begun"))
        world.after(TICK, self._tick)

    def load(self) -> None:
        disk = self.disk
        self._deciding = copy.copy(disk.decider)
        answers = disk.answers if self.rules.keeps_answers else {}
        self.lead = self.rules.lead(
            self._deciding, disk.seq, disk.records.values(), answers, self.copies, disk.mark
        )

    def store(self, write: Record) -> None:
        disk = self.disk
        disk.seq, disk.mark, disk.decider = write.seq, write.mark, copy.copy(self._deciding)
        disk.records[write.seq] = write
        disk.answers[write.request] = (write.seq, write.answer)
        self.history.append(write)

    def receive(self, sender: Hashable, message: Any) -> None:
        if self.up:
            handled = self.lead.handle(sender, message, self.world.now)
            self.carry_out(handled.writes, handled.answers)

    def _tick(self) -> None:
        self.world.after(TICK, self._tick)
        if self.up:
            handled = self.lead.tick(self.world.now)
            self.carry_out(handled.writes, handled.answers)
        if self.up and self.world.rng.random() < 0.5:
            self._trim()

    def _trim(self) -> None:
        last = self.lead.seq if self.rules.trims_early else self.lead.trimmable
        for seq in [seq for seq in self.disk.records if seq <= last]:
            del self.disk.records[seq]
        self.lead.forget_trimmed()


class ReplicaProcess(Process):
    """Runs the rules of one copy of a shard; its disk is the list of the writes it has applied."""

    def __init__(self, world: World, name: Replica, rules: Rules) -> None:
        super().__init__(world, name, rules)
        self.acknowledges_first = rules.shard_acknowledges_first
        self.disk: list[Apply] = []
        self.entries: ToyEntries
        self.shard: Shard

    def load(self) -> None:
        self.entries = ToyEntries()
        for write in self.disk:
            self.entries.apply(write)
        self.shard = self.rules.shard(self.entries)

    def store(self, write: Apply) -> None:
        self.disk.append(write)
        self.entries.apply(write)

    def receive(self, sender: Hashable, message: Any) -> None:
        if self.up:
            handled = self.shard.handle(message, self.world.now)
            self.carry_out(handled.writes, [(sender, answer) for answer in handled.answers])
