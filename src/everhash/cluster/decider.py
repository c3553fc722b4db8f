"""What the lead of a cluster knows, and how it decides a write; see `lead` and `workspace`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from everhash.cluster.answers import written_answer
from everhash.cluster.effects import (
    Common,
    Moved,
    Part,
    Start,
    pack_common,
    pack_effects,
    pack_part,
    pack_start,
    pick,
)
from everhash.cluster.lead import Decision
from everhash.cluster.placement import Table
from everhash.cluster.questions import All, Call, CodedBy, Find, Having, Moving, OwnSums
from everhash.cluster.workspace import NOBODY, Outcome, Workspace
from everhash.collection.collection import Collection
from everhash.collection.formats import Lesson
from everhash.errors import EverhashError, InputError, OptionError
from everhash.index.arrays import Counts
from everhash.index.features import StoredFeatures
from everhash.index.likeness import Likeness
from everhash.learn.exact import ExactLearner
from everhash.learn.following import Publisher, follower_of, learner_of
from everhash.learn.hasher import OnlineHasher
from everhash.learn.split_sums import SplitSums
from everhash.wire.ids import as_ids

LABEL_CALLS = ("merge_labels", "drop_label")
"""Calls that concern all entries with a label."""
MANY = 2**40


@dataclass
class LeadState:
    """What the lead knows of the collection."""

    hasher: OnlineHasher
    coder: Likeness
    table: Table
    seq: int = 0
    """Number of the last write."""
    arrived: int = 0
    next_id: int = 0
    coded: int = 0
    """Entries without labels, on all shards."""
    generation: int = 0
    """Of the mapping that those are coded by."""


@dataclass
class Pending:
    """What the storage has to keep of a write besides its record."""

    lessons: list[Lesson] = field(default_factory=list)
    whole: bool = False
    """Whether the hasher has to be written: lessons could not bring it there."""
    own: bool = False
    """Whether the products that no shard has are new."""


class CollectionDecider:
    """Decides the writes of a collection.

    Args:
        state: as it was after the last write.
        restore: returns that state again, from the storage, if deciding has failed half-way.
    """

    def __init__(self, state: LeadState, restore: Callable[[], LeadState]) -> None:
        self._restore = restore
        self.pending = Pending()
        self._take(state)

    def _take(self, state: LeadState) -> None:
        self.state = state
        self._learner.memory.new_sums = SplitSums
        self._publisher = Publisher(state.hasher)

    @property
    def table(self) -> Table:
        """Which shards there are, and which of them has an entry."""
        return self.state.table

    @property
    def _learner(self) -> ExactLearner:
        return learner_of(self.state.hasher)

    # Asking

    def questions(self, call: Call) -> dict[int, Any]:
        """Return what has to be asked of which shard before a write can be decided."""
        if call.name == "grow":
            return {self.table.shards[0]: CodedBy()}
        if call.name == "move":
            slots = self.table.moving
            givers = np.unique(np.array(self.table.slots)[slots]).tolist()
            return {s: Moving(slots, self.table.frontier, call.arguments[0]) for s in givers}
        asked: dict[int, list[Any]] = {}
        for shard, question in self._entries_asked(call).items():
            asked.setdefault(shard, []).append(question)
        if self._needs_sums(call):
            for shard in self.table.shards:
                asked.setdefault(shard, []).append(OwnSums())
        return {shard: All(tuple(questions)) for shard, questions in asked.items()}

    def _entries_asked(self, call: Call) -> dict[int, Any]:
        """Return the questions for the entries that a write concerns."""
        if call.name in LABEL_CALLS:
            known = self.state.hasher._numbers
            label = _argument(call, "label")
            if not self.state.hasher._knows(label):
                return {}  # deciding refuses it
            return {shard: Having(known[label]) for shard in self.table.shards}
        try:
            ids = _argument(call, "ids")
            wanted = NOBODY if ids is None else as_ids(ids)
        except InputError:
            return {}
        blobs = call.name == "update"
        return {
            shard: Find(pick(wanted, which), blobs)
            for shard, which in self.table.holders(wanted).items()
        }

    def _needs_sums(self, call: Call) -> bool:
        """Whether a write may publish, which takes the products of all rows."""
        if self._learner.memory.sums is None or call.name == "refresh":
            return False
        if call.name in LABEL_CALLS:
            return True
        options = self.state.hasher._read_options(self.state.hasher.n_features_in_, first=False)
        return self._learner.may_publish(_rows_of(call), options)

    # Deciding

    def decide(self, call: Call, told: dict[int, Any], seq: int) -> Decision:
        """Decide write `seq` by the answers, or raise an `EverhashError` and change nothing."""
        self.pending = Pending()
        try:
            return self._decide(call, told, seq)
        finally:
            self.state.seq = seq  # a write that is refused has a number too

    def _decide(self, call: Call, told: dict[int, Any], seq: int) -> Decision:
        for answer in told.values():
            for part in answer if isinstance(answer, list) else [answer]:
                if isinstance(part, EverhashError):
                    raise part
        if call.name == "grow":
            return self._grow(call.arguments[0], next(iter(told.values())), seq)
        if call.name == "move":
            return self._move(told, call.arguments[0])
        if call.name == "refresh":
            return self._decided({}, Outcome.of_nothing(self.state.hasher), refresh=True)
        known, owners = _joined(told, self.state.hasher.n_features_in_)
        summing = self._bring_sums(told)
        workspace = Workspace(self.state.hasher, known, self.state.next_id)
        try:
            outcome = workspace.make(call.name, call.arguments, call.options)
        except BaseException:
            if workspace.begun:
                self._take(self._restore())
            raise
        self._end_sums(summing=summing)
        return self._tell(call, known, owners, outcome, summing=summing)

    def _bring_sums(self, told: dict[int, Any]) -> bool:
        """Add up the products of all shards, if they were asked for; return if rows are summed."""
        sums = self._learner.memory.sums
        if not isinstance(sums, SplitSums):
            return False
        found = [part for answer in told.values() for part in answer if _is_products(part)]
        if found:
            sums.elsewhere = np.sum(found, axis=0)
        return True

    def _end_sums(self, *, summing: bool) -> None:
        """Leave the rows of a write to the shards; before they sum up rows, keep them here."""
        sums = self._learner.memory.sums
        if isinstance(sums, SplitSums):
            if not summing:
                sums.keep_products()
                self.pending.own = True
            sums.decided()

    def _tell(
        self, call: Call, known: Moved, owners: Counts, outcome: Outcome, *, summing: bool
    ) -> Decision:
        """Return what a call that was made does to every shard."""
        parts: dict[int, Part] = {}
        signs = outcome.signs() if summing else np.zeros(outcome.entries.arrived, np.int64)
        columns = {
            "removed": outcome.removed,
            "relabelled": outcome.relabelled,
            "attached": outcome.attached(),
            "summed": np.flatnonzero(signs[: outcome.known]),
        }
        for shard in np.unique(owners).tolist():
            mine = {name: places[owners[places] == shard] for name, places in columns.items()}
            parts[shard] = _part(outcome, mine, signs)
        added, homes = self._added(outcome)
        for shard in np.unique(homes).tolist():
            moved = added.part(np.flatnonzero(homes == shard))
            parts[shard] = parts.get(shard, Part())._replace(added=moved, adds_up=summing)
        self._add_loose(parts, outcome, summing=summing)
        self.state.next_id = outcome.entries.next_id
        return self._decided(parts, outcome, call, known)

    def _added(self, outcome: Outcome) -> tuple[Moved, Counts]:
        """Return the entries that a write adds, and the shards they go to."""
        entries, places = outcome.entries, outcome.added
        ids = entries.ids_at(places)
        arrivals = self.state.arrived + np.arange(len(places))
        if len(places) == 0:
            return Moved.nobody(self.state.hasher.n_features_in_), NOBODY
        stored, labels = entries.stored_at(places), entries.labelling(places)
        return Moved(ids, arrivals, stored, labels, outcome.blobs(places)), self.table.homes(ids)

    def _add_loose(self, parts: dict[int, Part], outcome: Outcome, *, summing: bool) -> None:
        """Give rows that are no entries to one shard, which sums them up."""
        for lesson in outcome.lessons:
            if summing and lesson.places is None and len(lesson.rows):
                rows = lesson.rows[np.unique(lesson.labels.rows)]
                shards = self.table.shards
                shard = shards[(self.state.seq + 1) % len(shards)]
                sign = -1 if lesson.forget else 1
                loose = StoredFeatures.of(rows)
                parts[shard] = parts.get(shard, Part())._replace(loose=loose, sign=sign)

    def _decided(
        self,
        parts: dict[int, Part],
        outcome: Outcome,
        call: Call | None = None,
        known: Moved | None = None,
        *,
        refresh: bool = False,
        starts: dict[int, bytes] | None = None,
    ) -> Decision:
        """Return a decision: parts for some shards, and what all of them have to know."""
        state, changes = self.state, outcome.changes
        before = 0 if known is None else _unlabelled(known)
        after = outcome.unlabelled(np.arange(outcome.entries.arrived))
        joined = outcome.joined()
        rebase = joined > 0 and state.coded - before + after - joined == 0
        state.coded += after - before
        direction = self._meet(outcome)
        generation = state.hasher.generation_
        state.generation = generation if rebase else state.generation
        refresh = refresh or (state.coded > 0 and state.generation != generation)
        state.generation = generation if refresh else state.generation
        state.arrived += len(outcome.added)
        published = self._publisher.published()
        solved = self._publisher.take()
        renamed = changes is not None and changes.whole
        self.pending.lessons = outcome.lessons
        self.pending.whole = renamed or self.pending.own or (published and solved.summing)
        common = pack_common(
            Common(solved, state.arrived, state.table.version, direction, renamed, rebase, refresh)
        )
        effects = {
            shard: pack_effects(common, pack_part(parts[shard]) if shard in parts else b"")
            for shard in state.table.shards
        }
        answer = None if call is None else written_answer(call, outcome.result)
        return Decision(answer, effects | (starts or {}))

    def _meet(self, outcome: Outcome) -> Any:
        """Let the first entries settle the direction of likeness codes; return it if they do."""
        coder, places = self.state.coder, outcome.added
        if len(places) == 0 or coder.settled:
            return None
        return coder.direction if coder.meet(outcome.entries.features_at(places)) else None

    # Growing

    def start(self, mapping: bytes = b"") -> bytes:
        """Return what a new shard begins with."""
        state = self.state
        model = follower_of(state.hasher).to_bytes()
        direction = state.coder.direction
        return pack_start(Start(model, state.arrived, state.table.version, direction, mapping))

    def _grow(self, shards: int, mapping: bytes, seq: int) -> Decision:
        old = self.table.shards
        self.state.table = self.table.grown(shards, seq)
        new = [shard for shard in self.table.shards if shard not in old]
        starts = dict.fromkeys(new, self.start(mapping))
        decision = self._decided({}, Outcome.of_nothing(self.state.hasher), starts=starts)
        return decision._replace(answer={"shards": len(self.table.shards)})

    def _move(self, told: dict[int, Any], limit: int) -> Decision:
        """Move the first entries that have not moved; after the last, the table is settled."""
        if self.table.target is None:
            raise OptionError("nothing moves", hint="{say grow}")
        known, owners = _joined(told, self.state.hasher.n_features_in_)
        first = np.arange(min(limit, len(known)))
        some, owners = known.part(first), owners[first]
        targets = self.table.targets(some.ids)
        parts: dict[int, Part] = {}
        for shard in np.unique(owners).tolist():
            parts[shard] = Part(removed=pick(some.ids, np.flatnonzero(owners == shard)))
        for shard in np.unique(targets).tolist():
            moved = some.part(np.flatnonzero(targets == shard))
            parts[shard] = parts.get(shard, Part())._replace(added=moved)
        done = len(known) < limit
        frontier = int(some.arrivals[-1]) + 1 if len(some) else self.table.frontier
        table = self.table.settled() if done else self.table.moved_to(frontier)
        self.state.table = replace(table)
        decision = self._decided(parts, Outcome.of_nothing(self.state.hasher))
        return decision._replace(answer={"moved": len(some), "done": done})


def _argument(call: Call, name: str) -> Any:
    """Return an argument of a call by its name; None if it has none."""
    bound = inspect.signature(getattr(Collection, call.name)).bind(
        None, *call.arguments, **call.options
    )
    return bound.arguments.get(name)


def _rows_of(call: Call) -> int:
    """Return how many rows a write may teach, at the most."""
    for name in ("X", "ids"):
        values = _argument(call, name)
        if values is not None:
            return _length(values)
    return 0


def _length(values: Any) -> int:
    """Return how many values there are, at the most: many, if that cannot be seen."""
    if isinstance(values, int | np.generic):
        return 1
    try:
        return len(values)
    except TypeError:
        return MANY


def _is_products(answer: Any) -> bool:
    return isinstance(answer, np.ndarray)


def _joined(told: dict[int, Any], n_features: int) -> tuple[Moved, Counts]:
    """Return the entries that shards have told of, in order of arrival, and the shard of each."""
    found = [
        (shard, part)
        for shard, answer in told.items()
        for part in (answer if isinstance(answer, list) else [answer])
        if isinstance(part, Moved) and len(part)
    ]
    if not found:
        return Moved.nobody(n_features), NOBODY
    whole = Moved.joined([part for _, part in found])
    owners = np.concatenate([np.full(len(part), shard) for shard, part in found])
    order = np.argsort(whole.arrivals)
    return whole.part(order), owners[order]


def _unlabelled(known: Moved) -> int:
    return len(known) - len(np.unique(known.labels.rows))


def _part(outcome: Outcome, mine: dict[str, Counts], signs: Counts) -> Part:
    """Return what a call does to entries of one shard."""
    entries = outcome.entries
    return Part(
        summed=entries.ids_at(mine["summed"]),
        signs=signs[mine["summed"]],
        removed=entries.ids_at(mine["removed"]),
        relabelled=entries.ids_at(mine["relabelled"]),
        labels=entries.labelling(mine["relabelled"]),
        attached=entries.ids_at(mine["attached"]),
        blobs=outcome.blobs(mine["attached"]),
    )
