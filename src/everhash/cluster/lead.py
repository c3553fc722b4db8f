"""The rules of the lead: it decides every write, in one order, and sees to it that shards apply it.

    1  ask those shards that know what the write needs; all of them have applied every write before
    2  decide: give it the next number, effects on every shard, and an answer; or refuse it, which
       has a number too and no effects, so that it stays refused if it is sent again
    3  put that on the storage; from here on the write is done, and the client is answered
    4  send the effects to every copy of every shard, again and again until all have applied them

Plain Python without Ray, threads, files or a clock; see `shard` for what whoever runs it must do. A
lead that ends at any moment is replaced by one that starts from the storage.

Files may have been put back from different backups. `misfit` finds out which copies do not fit; a
shard without a copy that fits ends all work, and everybody who asks is told why.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from everhash.cluster.messages import (
    Applied,
    Apply,
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
    next_mark,
)
from everhash.cluster.misfit import misfit
from everhash.cluster.writes import Decider, Decision, Gathering, Handled, Record, Replica
from everhash.errors import EverhashError

RESEND = 0.5
"""Seconds without an answer after which a message is sent again."""
PAUSE = 2.0
"""Seconds that a pause lasts at the most."""
HEARD = 3.0
"""Seconds that a new lead waits for a word of every shard before it tells where entries are."""
AGAIN = 10 * RESEND
"""Seconds after which a copy that does not fit is asked again."""
REMEMBERED = 4096
"""Requests whose answers are remembered, in case that they are sent again."""


class Lead:
    """Decides writes one after the other.

    Args:
        decider: as it was after the last record.
        seq: number of the last write.
        records: those that some shard may not have applied, ascending.
        answers: of the last requests, in order, with the number of each write.
        copies: of each shard.
        mark: of the last write.
    """

    def __init__(
        self,
        decider: Decider,
        seq: int,
        records: Iterable[Record],
        answers: dict[str, tuple[int, Any]],
        copies: int,
        mark: str = "",
    ) -> None:
        self.decider = decider
        self.seq = seq
        self.mark = mark
        self.copies = copies
        self._records = {record.seq: record for record in records}
        self._answers = dict(answers)
        self._applied: dict[Replica, int] = {}
        """How far each copy is known to be; nobody knows at first."""
        self._unfit: dict[Replica, EverhashError] = {}
        """Copies that cannot take part, and why."""
        self._refused: dict[Replica, float] = {}
        """When a copy last said so itself, of its file or of a write."""
        self._probed: dict[Replica, float] = {}
        """When a copy was asked for its number, unless it has said something since."""
        self._sent: dict[Replica, float] = {}
        """When something was last sent to a copy that has to catch up."""
        self._queue: dict[str, tuple[Hashable, Write | Pause]] = {}
        """Requests that wait, in order; one that is sent again keeps its place."""
        self._gathering: Gathering | None = None
        self._paused: tuple[str, float] | None = None
        self._wondering: dict[Hashable, Where] = {}
        """Who has asked where entries are before every shard was heard of."""
        self._begun: float | None = None
        """When the first message came."""

    @property
    def problem(self) -> EverhashError | None:
        """Why nothing goes on: a shard has no copy that fits; None if every shard may have one."""
        for shard in self.decider.table.born:
            copies = [Replica(shard, copy) for copy in range(self.copies)]
            if all(one in self._unfit for one in copies):
                return self._unfit[copies[0]]
        return None

    @property
    def replicas(self) -> list[Replica]:
        """All copies of all shards."""
        return [
            Replica(shard, copy) for shard in self.decider.table.born for copy in range(self.copies)
        ]

    @property
    def trimmable(self) -> int:
        """The last write that every copy has applied: records up to it are of no more use."""
        return min((self._applied.get(replica, 0) for replica in self.replicas), default=0)

    def forget_trimmed(self) -> None:
        """Forget records that the storage has let go of."""
        for seq in [seq for seq in self._records if seq <= self.trimmable]:
            del self._records[seq]

    @property
    def lagging(self) -> list[Replica]:
        """Copies that have not applied every write."""
        return [one for one in self.replicas if self._applied.get(one, -1) < self.seq]

    # Messages

    def handle(self, sender: Hashable, message: Any, now: float) -> Handled:
        """Return what to store and what to send after a message."""
        out = Handled([], [])
        self._begun = now if self._begun is None else self._begun
        match message:
            case Write() | Pause():
                self._enqueue(sender, message, out)
            case Resume(request):
                self._resume(request)
            case Where():
                self._wondering[sender] = message
            case Told() | Behind():
                self._told(sender, message, now, out)
            case Applied() | Unfit():
                assert isinstance(sender, Replica)  # noqa: S101 - nobody else applies anything
                self._note(sender, message, now, out)
        self._go_on(now, out)
        return out

    def tick(self, now: float) -> Handled:
        """Return what to send because time has passed: what was not answered is sent again."""
        out = Handled([], [])
        self._begun = now if self._begun is None else self._begun
        if self._paused is not None and now > self._paused[1]:
            self._paused = None
        for replica in self.lagging:
            wait = AGAIN if replica in self._unfit else RESEND
            if now - self._sent.get(replica, -wait) >= wait:
                self._send_next(replica, now, out)
        waiting = self._gathering
        if waiting is not None and now - waiting.asked >= RESEND:
            self._ask(waiting, now, out, again=True)
        self._go_on(now, out)
        return out

    # Deciding

    def _enqueue(self, client: Hashable, message: Write | Pause, out: Handled) -> None:
        """Take a request, once; one that was answered gets its answer again."""
        if self._paused is not None and self._paused[0] == message.request:
            out.answers.append((client, Paused(message.request, self.seq)))
            return
        if message.request in self._answers:
            self._answer(client, message.request, out)
            return
        if self._gathering is not None and self._gathering.write.request == message.request:
            self._gathering.client = client
            return
        self._queue[message.request] = (client, message)

    def _resume(self, request: str) -> None:
        """End a pause, or let it not begin."""
        self._queue.pop(request, None)
        if self._paused is not None and self._paused[0] == request:
            self._paused = None

    def _go_on(self, now: float, out: Handled) -> None:
        """Begin with the next requests, as far as that is possible."""
        if (problem := self.problem) is not None:
            self._give_up(problem, out)
            return
        if self._wondering and self._has_heard(now):
            here = self.decider.table
            for client, asked in self._wondering.items():
                out.answers.append((client, Here(asked.request, self.seq, here)))
            self._wondering = {}
        while self._queue and self._is_idle():
            client, message = self._queue.pop(next(iter(self._queue)))
            if isinstance(message, Pause):
                self._paused = (message.request, now + PAUSE)
                out.answers.append((client, Paused(message.request, self.seq)))
                return
            questions = self.decider.questions(message.call)
            self._gathering = Gathering(client, message, questions)
            self._ask(self._gathering, now, out)
            self._decide_if_told(now, out)

    def _give_up(self, problem: EverhashError, out: Handled) -> None:
        """Tell everybody who waits why nothing goes on; what was not decided is not going to be."""
        waiting = [client for client, _ in self._queue.values()] + list(self._wondering)
        if self._gathering is not None:
            waiting.append(self._gathering.client)
        self._queue, self._wondering, self._gathering = {}, {}, None
        out.answers.extend((client, problem) for client in waiting)

    def _has_heard(self, now: float) -> bool:
        """Whether a copy of every shard has said how far it is, or was given time to."""
        if self._begun is not None and now - self._begun >= HEARD:
            return True
        return {one.shard for one in self._applied} >= set(self.decider.table.born)

    def _is_idle(self) -> bool:
        """Whether nothing is under way, and some copy of every shard has applied all there is."""
        if self._gathering is not None or self._paused is not None:
            return False
        return all(self._fresh(shard) is not None for shard in self.decider.table.born)

    def _fresh(self, shard: int) -> Replica | None:
        """Return a copy of a shard that has applied every write, if there is one."""
        copies = (Replica(shard, copy) for copy in range(self.copies))
        return next((one for one in copies if self._applied.get(one) == self.seq), None)

    def _ask(self, waiting: Gathering, now: float, out: Handled, *, again: bool = False) -> None:
        """Ask a copy of each shard that has not answered; all of its copies if one was silent."""
        waiting.asked = now
        for shard, question in waiting.questions.items():
            if shard not in waiting.told:
                copies = [Replica(shard, copy) for copy in range(self.copies)]
                asked = copies if again else [self._fresh(shard) or copies[0]]
                message = Ask(waiting.write.request, self.seq, question)
                out.answers.extend((one, message) for one in asked)

    def _told(self, sender: Hashable, message: Told | Behind, now: float, out: Handled) -> None:
        """Take an answer, unless it is for another write: a lead before may have asked for that."""
        assert isinstance(sender, Replica)  # noqa: S101 - only shards are asked
        waiting = self._gathering
        if isinstance(message, Behind) or waiting is None or message.seq != self.seq:
            return
        if message.number == waiting.write.request:
            waiting.told[sender.shard] = message.answer
            self._decide_if_told(now, out)

    def _decide_if_told(self, now: float, out: Handled) -> None:
        waiting = self._gathering
        if waiting is None or len(waiting.told) < len(waiting.questions):
            return
        self._gathering = None
        request, seq = waiting.write.request, self.seq + 1
        try:
            decision = self.decider.decide(waiting.write.call, waiting.told, seq)
        except EverhashError as error:
            decision = Decision(error, {})
        mark = next_mark(self.mark, request)
        record = Record(seq, request, decision.answer, decision.effects, self.mark, mark)
        self.seq, self.mark, self._records[seq] = seq, mark, record
        self._answers[request] = (seq, decision.answer)
        while len(self._answers) > REMEMBERED:
            del self._answers[next(iter(self._answers))]
        out.writes.append(record)
        self._answer(waiting.client, request, out)
        for replica in self.replicas:
            if self._applied.get(replica) == self._before(replica, self.seq):
                self._send_next(replica, now, out)

    def _answer(self, client: Hashable, request: str, out: Handled) -> None:
        """Tell a client what was decided."""
        seq, answer = self._answers[request]
        refused = isinstance(answer, EverhashError)
        reply = Refused(request, answer) if refused else Written(request, seq, answer)
        out.answers.append((client, reply))

    # Delivering

    def _before(self, replica: Replica, seq: int) -> int:
        """Return the number that a copy must have reached to apply write `seq`."""
        return 0 if self.decider.table.born[replica.shard] == seq else seq - 1

    def _note(self, replica: Replica, message: Applied | Unfit, now: float, out: Handled) -> None:
        """Note how far a copy is, and send it what comes next.

        A copy may seem to be behind what it had: the message came late, or its storage was put back
        from an older snapshot. To ask once more does no harm, and tells which.
        """
        known, probed = self._applied.get(replica, -1), self._probed.pop(replica, None)
        if isinstance(message, Unfit):
            problem: EverhashError | None = message.error
            self._refused[replica] = now
        elif now - self._refused.get(replica, -AGAIN) < AGAIN:
            problem = self._unfit.get(replica)  # it would refuse the same write again, without end
        else:
            problem = self._misfit(replica, message, is_late=message.asked != probed)
        if problem is not None:
            is_new = replica not in self._unfit
            self._unfit[replica] = problem
            self._applied.pop(replica, None)
            if is_new:
                self._send_next(replica, now, out)
            return
        assert isinstance(message, Applied)  # noqa: S101 - otherwise there is a problem
        self._unfit.pop(replica, None)
        self._applied[replica] = seq = message.seq
        if seq < self.seq and (seq > known or now - self._sent.get(replica, 0.0) >= RESEND):
            self._send_next(replica, now, out)

    def _misfit(self, replica: Replica, told: Applied, *, is_late: bool) -> EverhashError | None:
        """Return why a copy that has told its number does not fit, if it does not."""
        following = self._records.get(self._following(replica, told.seq))
        expected = None if following is None else following.before if told.seq else ""
        if told.seq == self.seq:
            expected = self.mark
        if expected is None and told.seq < self.seq and is_late:
            return self._unfit.get(replica)  # it proves nothing new
        return misfit(replica, told, self.seq, expected)

    def _following(self, replica: Replica, seq: int) -> int:
        """Return the number of the write that a copy needs after write `seq`."""
        return seq + 1 if seq else self.decider.table.born[replica.shard]

    def _send_next(self, replica: Replica, now: float, out: Handled) -> None:
        """Send a copy the write after those it has; ask for its number where that is unknown."""
        self._sent[replica] = now
        self._probed.pop(replica, None)
        applied, message = self._applied.get(replica), Apply(0, None, asked=now)
        if (problem := self._unfit.get(replica)) is not None:
            out.answers.append((replica, Unfit(problem)))
            return
        record = None if applied is None else self._records.get(self._following(replica, applied))
        if record is None:  # unknown, or `applied` came late, or the copy was put back too far
            self._probed[replica] = now
        else:
            effects = record.effects.get(replica.shard)
            message = Apply(record.seq, effects, record.before, record.mark)
        out.answers.append((replica, message))
