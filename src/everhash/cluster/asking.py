"""A client's side of a cluster: writes that are sent until they are answered, reads of one number.

Nothing is kept here that would be missed: any number of clients come and go.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, NamedTuple, Protocol

from everhash.cluster.lead_contents import AskLead, LeadContents
from everhash.cluster.messages import (
    Ask,
    Behind,
    Here,
    Pause,
    Paused,
    Refused,
    Resume,
    Told,
    Unfit,
    Where,
    Write,
    Written,
)
from everhash.cluster.misfit import ahead
from everhash.cluster.placement import Table
from everhash.cluster.questions import Call
from everhash.cluster.reading import Reading
from everhash.cluster.writes import Replica
from everhash.errors import EverhashError, ServiceError

WAIT = 0.02
"""Seconds before a shard that was behind, or silent, is asked again; twice as long each time."""
LONGEST_WAIT = 0.5
GIVE_UP = 2.0
"""Seconds after which a copy of a shard that is silent is asked beside another one."""
Answered = Told | Behind | Unfit
"""What a shard says to a question."""


class Members(Protocol):
    """The lead and the shards, wherever they are."""

    def tell_lead(self, message: Any, seconds: float) -> Any:
        """Return what the lead answers; None if it does not within so many seconds."""
        ...

    def ask(self, asked: dict[Replica, Ask], seconds: float) -> dict[Replica, Answered]:
        """Return what shards answer; those that do not within so many seconds are not there."""
        ...

    @property
    def copies(self) -> int:
        """Of each shard."""
        ...

    def close(self) -> None:
        """Let go of them; they go on."""
        ...


class Answers(NamedTuple):
    """What shards have told, by what all of them had after one write."""

    table: Table
    seq: int
    """The number of that write."""
    by_shard: dict[int, Any]
    missing: list[int]
    """Shards that did not answer in time; none unless a partial answer was allowed."""


class Asker:
    """Writes to a cluster and reads from it.

    Args:
        members: the lead and the shards.
        partial: answer by the shards that can be reached if others cannot within `patience`.
        patience: seconds that a call may take before it fails or is answered in part.
    """

    def __init__(self, members: Members, *, partial: bool, patience: float) -> None:
        self.members, self.partial, self.patience = members, partial, patience
        self._seq = 0
        self._table: Table | None = None
        self._numbers = count()
        self._silent: dict[Replica, float] = {}
        """Copies that did not answer, and until when others are asked instead."""

    # Writing

    def write(self, call: Call) -> Any:
        """Make a call that changes something; it is made once, however often it is sent."""
        request = secrets.token_hex(16)
        answer = self._tell_lead(Write(request, call))
        if isinstance(answer, Refused):
            raise answer.error
        assert isinstance(answer, Written)  # noqa: S101 - there is no other answer
        self._seq = max(self._seq, answer.seq)
        return answer.answer

    def _tell_lead(self, message: Any) -> Any:
        """Send a message to the lead until it answers."""
        end, wait = time.monotonic() + self.patience, WAIT
        while (left := end - time.monotonic()) > 0:
            answer = self.members.tell_lead(message, min(left, max(GIVE_UP, left / 2)))
            if isinstance(answer, EverhashError):  # its storage cannot be opened
                raise answer
            if answer is not None:
                return answer
            time.sleep(min(wait, max(0.0, left)))
            wait = min(2 * wait, LONGEST_WAIT)
        raise ServiceError(
            f"the lead of the cluster did not answer within {self.patience:g} s",
            hint="a write may have been made, once; look, or wait until Ray has restarted the lead",
        )

    # Reading

    @property
    def seq(self) -> int:
        """The newest write that this client knows of."""
        return self._seq

    def table(self) -> Table:
        """Return which shards there are."""
        table = self._table  # another thread may forget it
        if table is None:
            table = self._table = self._where().table
        return table

    def newest(self) -> int:
        """Return the number of the last write of anybody."""
        return self._where().seq

    def _where(self) -> Here:
        seen = self._seq
        here = self._tell_lead(Where(secrets.token_hex(8)))
        assert isinstance(here, Here)  # noqa: S101 - there is no other answer
        if here.seq < seen:
            raise ahead("this client", seen, here.seq)
        self._seq = max(self._seq, here.seq)  # who opens a cluster sees what others have written
        return here

    def forget_table(self) -> None:
        """Ask the lead again which shards there are."""
        self._table = None

    def read(self, questions: Callable[[Table], dict[int, Any]]) -> Answers:
        """Ask shards what a function says, given the table; all of them answer by one write.

        Raises the first error that a shard tells.
        """
        end = time.monotonic() + self.patience
        while True:
            table = self.table()
            asked = questions(table)
            reading = Reading(list(asked), table.version, self._seq)
            self._go_round(reading, asked, end)
            if reading.outdated:
                self._table = None
                continue
            self._seq = max(self._seq, reading.seq)
            told = {shard: reading.told[shard].answer for shard in asked if shard in reading.told}
            for answer in told.values():
                if isinstance(answer, EverhashError):
                    raise answer
            return Answers(table, reading.seq, told, reading.missing)

    def _go_round(self, reading: Reading, asked: dict[int, Any], end: float) -> None:
        """Ask until all shards have answered by one write, or time is up."""
        wait, is_paused = WAIT, False
        with ExitStack() as pause:
            while not reading.complete and not reading.outdated:
                left = end - time.monotonic()
                if left <= 0:
                    self._give_up(reading)
                    return
                if reading.wants_pause and not is_paused:
                    pause.enter_context(self.paused())
                    is_paused = True
                if not self._ask_once(reading, asked, left):
                    self._ask_why(reading, wait)
                    time.sleep(min(wait, left))
                    wait = min(2 * wait, LONGEST_WAIT)

    def _ask_why(self, reading: Reading, seconds: float) -> None:
        """Let the lead say why shards do not answer; one that was started again needs a call.

        Raises its error, or that shards have what it has never heard of.
        """
        told = reading.seq
        here = self.members.tell_lead(Where(secrets.token_hex(8)), seconds)
        if isinstance(here, EverhashError):
            raise here
        if isinstance(here, Here) and here.seq < told:
            raise ahead("a shard", told, here.seq)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let no write begin for a moment; see `lead.PAUSE`."""
        request = secrets.token_hex(8)
        answer = self._tell_lead(Pause(request))
        assert isinstance(answer, Paused)  # noqa: S101 - there is no other answer
        try:
            yield
        finally:
            self.members.tell_lead(Resume(request), WAIT)

    def lead_contents(self) -> LeadContents:
        """Return what the lead knows."""
        contents = self._tell_lead(AskLead(secrets.token_hex(8)))
        assert isinstance(contents, LeadContents)  # noqa: S101 - there is no other answer
        return contents

    def _ask_once(self, reading: Reading, asked: dict[int, Any], left: float) -> bool:
        """Ask the shards that are missing once; return whether any of them has answered."""
        number = next(self._numbers)
        chosen = {
            self._copy_of(shard): Ask(number, reading.seq, asked[shard]) for shard in reading.ask()
        }
        told = self.members.ask(chosen, min(left, max(GIVE_UP, left / 2)))
        now = time.monotonic()
        for replica in chosen:
            if isinstance(answer := told.get(replica), Told):
                self._silent.pop(replica, None)
                reading.take(replica.shard, answer)
            else:
                self._silent[replica] = now + GIVE_UP
        return any(isinstance(answer, Told) for answer in told.values())

    def _copy_of(self, shard: int) -> Replica:
        """Return the copy to ask: one that was not silent lately, each in its turn."""
        copies = [Replica(shard, copy) for copy in range(self.members.copies)]
        now = time.monotonic()
        heard = [one for one in copies if self._silent.get(one, 0.0) < now]
        order = sorted(heard or copies, key=lambda one: self._silent.get(one, 0.0))
        return order[next(self._numbers) % len(order)] if heard else order[0]

    def _give_up(self, reading: Reading) -> None:
        """Raise because shards are missing, unless a partial answer is allowed and there is one."""
        if self.partial and reading.told:
            return
        missing = ", ".join(map(str, reading.missing))
        raise ServiceError(
            f"shards {missing} did not answer within {self.patience:g} s",
            hint="wait until Ray has restarted them, or take {option partial=True}",
        )

    def close(self) -> None:
        """Let go of the cluster, which goes on."""
        self.members.close()
