"""A simulated client: it does one operation after the other, and asks again until it is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from everhash.cluster.messages import (
    Ask,
    Here,
    Pause,
    Paused,
    Refused,
    Resume,
    Told,
    Where,
    Write,
    Written,
)
from everhash.cluster.placement import Table
from everhash.cluster.reading import Reading
from everhash.cluster.writes import Replica
from tests.cluster.plan import LEAD, Get, Operation, Search
from tests.cluster.planted import Rules
from tests.cluster.toy import Answer, Call, Question
from tests.cluster.world import World

AGAIN = 0.25
"""Seconds after which a client asks again."""
PATIENCE = 2
"""Rounds after which a client takes a part of an answer, if it may."""


@dataclass(frozen=True)
class Read:
    """What a client has read."""

    request: str
    ids: tuple[int, ...] | None
    """Those asked for; None for everything."""
    floor: int
    """Number of the last write that the client knew of."""
    seq: int
    told: dict[int, Answer]
    """The answer of each shard."""
    missing: list[int]


@dataclass
class History:
    """What clients have done and were told."""

    calls: dict[str, Call] = field(default_factory=dict)
    outcomes: dict[str, Written | Refused] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)


class Client:
    """Does its operations in their order; knows the number it has seen, and where entries are."""

    def __init__(
        self,
        world: World,
        name: str,
        operations: Iterable[Operation],
        rules: Rules,
        history: History,
        copies: int,
    ) -> None:
        self.world, self.name, self.rules, self.history = world, name, rules, history
        self.copies = copies
        self.operations = deque(operations)
        self.operation: Operation | None = None
        self._begun = 0
        self._forget()
        self._rest()

    @property
    def done(self) -> bool:
        return self.operation is None and not self.operations

    @property
    def request(self) -> str:
        return f"{self.name}, operation {self._begun}"

    def add(self, what: Call | Search | Get) -> None:
        """Give the client one more thing to do."""
        idle = self.done
        self.operations.append(Operation(-1, 0.0, what))
        if idle:
            self._rest()

    def leave(self) -> None:
        """End, whatever is under way; a new client goes on with the next operation."""
        if self.operation is not None:
            self.world.say(f"{self.name} GIVES UP {self.request}")
            self._forget()
            self._rest()

    def _forget(self) -> None:
        self.seq = 0
        self.table: Table | None = None

    def _rest(self) -> None:
        self.operation = None
        self._begun += 1
        if self.operations:
            self.operation = self.operations.popleft()
            self.world.after(self.operation.rest, partial(self._begin, self._begun))

    def _begin(self, begun: int) -> None:
        if begun != self._begun or self.operation is None:
            return
        what = self.operation.what
        self.world.say(f"{self.name} BEGINS {what}")
        self.floor = self.seq
        self.rounds = 0
        self.asked_to_pause = False
        self.reading: Reading | None = None
        if not isinstance(what, Search | Get):
            self.history.calls[self.request] = what
        elif self.table is not None:
            self._start_reading(what, self.table)
        self._ask_again(begun)

    def _ask_again(self, begun: int) -> None:
        """Ask for what is missing, now and every moment until the operation is done."""
        if begun == self._begun and self.operation is not None:
            self._ask(self.operation.what)
            self.world.after(AGAIN, partial(self._ask_again, begun))

    def _ask(self, what: Call | Search | Get) -> None:
        if not isinstance(what, Search | Get):
            self._send(LEAD, Write(self.request, what))
        elif self.reading is None:
            self._send(LEAD, Where(self.request))
        else:
            self.rounds += 1
            if what.partial and self.rounds > PATIENCE and self.reading.told:
                self._finish_reading(self.reading, what)
                return
            if self.reading.wants_pause:
                self.asked_to_pause = True
                self._send(LEAD, Pause(self.request))
            for shard in self.reading.ask():
                copy = self.world.rng.randrange(self.copies)
                self._send(Replica(shard, copy), Ask(self.request, self.reading.seq, self.question))

    def _send(self, receiver: Hashable, message: Any) -> None:
        self.world.send(self.name, receiver, message)

    def _start_reading(self, what: Search | Get, table: Table) -> None:
        ids = what.ids if isinstance(what, Get) else None
        shards = table.shards if ids is None else self.rules.holders(table, np.array(ids))
        self.table, self.question = table, Question(ids)
        self.reading = self.rules.reading(shards, table.version, self.seq)

    # Answers

    def receive(self, sender: Hashable, message: Any) -> None:
        if self.operation is None:
            return
        what = self.operation.what
        match message:
            case Written(request) | Refused(request) if request == self.request:
                self.history.outcomes[request] = message
                if isinstance(message, Written):
                    self.seq = max(self.seq, message.seq)
                self._rest()
            case Here(request, _, table) if request == self.request:
                if isinstance(what, Search | Get) and self.reading is None:
                    self._start_reading(what, table)
                    self._ask(what)
            case Told(request) if request == self.request:
                if isinstance(what, Search | Get) and self.reading is not None:
                    assert isinstance(sender, Replica)
                    self._take(what, self.reading, sender.shard, message)
            case Paused(request) if request == self.request:
                self._ask(what)

    def _take(self, what: Search | Get, reading: Reading, shard: int, told: Told) -> None:
        reading.take(shard, told)
        if reading.outdated:
            self.reading = self.table = None
            self._ask(what)
        elif reading.complete:
            self._finish_reading(reading, what)

    def _finish_reading(self, reading: Reading, what: Search | Get) -> None:
        if self.asked_to_pause:
            self._send(LEAD, Resume(self.request))
        ids = what.ids if isinstance(what, Get) else None
        told = {shard: told.answer for shard, told in reading.told.items()}
        read = Read(self.request, ids, self.floor, reading.seq, told, reading.missing)
        self.world.say(f"{self.name} READS {read}")
        self.history.reads.append(read)
        self.seq = max(self.seq, reading.seq)
        self._rest()
