"""How the lead of a cluster decides a write; see `lead` and `workspace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from everhash.cluster.answers import written_answer
from everhash.cluster.effects import (
    Common,
    Part,
    Start,
    pack_common,
    pack_effects,
    pack_part,
    pack_start,
)
from everhash.cluster.lead_state import LeadState, Pending
from everhash.cluster.moved import NOBODY, Moved, pick
from everhash.cluster.needs import questions_for
from everhash.cluster.placement import Table
from everhash.cluster.questions import Call
from everhash.cluster.workspace import Outcome, Workspace
from everhash.cluster.writes import Decision
from everhash.errors import DuplicateIdError, EverhashError, InputError, OptionError
from everhash.index.arrays import Counts
from everhash.index.features import StoredFeatures
from everhash.learn.following import Publisher, follower_of
from everhash.learn.split_sums import SplitSums
from everhash.wire.ids import plain_ids


class CollectionDecider:
    """Decides the writes of a collection.

    Args:
        state: as it was after the last write.
        restore: returns that state again, from the storage, if deciding has failed half-way.
    """

    def __init__(self, state: LeadState, restore: Callable[[], LeadState]) -> None:
        self._restore = restore
        self.pending = Pending()
        self._workspace: Workspace | None = None
        self._take(state)

    def _take(self, state: LeadState) -> None:
        self.state = state
        self.state.learner.memory.new_sums = SplitSums
        self._publisher = Publisher(state.hasher)

    @property
    def table(self) -> Table:
        """Which shards there are, and which of them has an entry."""
        return self.state.table

    def questions(self, call: Call) -> dict[int, Any]:
        """Return what has to be asked of which shard before a write can be decided."""
        return questions_for(call, self.state)

    def decide(self, call: Call, told: dict[int, Any], seq: int) -> Decision:
        """Decide write `seq` by the answers, or raise an `EverhashError` and change nothing."""
        self.pending = Pending()
        self._workspace = None
        try:
            return self._decide(call, told, seq)
        except Exception as error:
            if self._is_half_way():
                self._take(self._restore())
            if isinstance(error, EverhashError):
                raise
            # what a client has sent must not end the lead, again and again
            raise InputError(f"{type(error).__name__}: {error!s:.200}") from error
        finally:
            self.state.seq = seq  # a write that is refused has a number too

    def _is_half_way(self) -> bool:
        return self._workspace is not None and self._workspace.begun

    def _decide(self, call: Call, told: dict[int, Any], seq: int) -> Decision:
        for part in _parts(told):
            if isinstance(part, EverhashError):
                raise part
        if call.name == "grow":
            return self._grow(call.arguments[0], next(iter(told.values())), seq)
        known, owners = joined(told, self.state.hasher.n_features_in_)
        if call.name == "move":
            return self._move(known, owners, call.arguments[0])
        if call.name == "import":
            return self._import(call.arguments[0], known)
        if call.name == "refresh":
            self.state.generation = self.state.hasher.generation_
            return Decision(None, self._effects({}, refresh=True))
        summing = self._bring_sums(told)
        self._workspace = Workspace(self.state.hasher, known, self.state.next_id)
        outcome = self._workspace.make(call.name, call.arguments, call.options)
        self._end_sums(summing=summing)
        parts = self._entry_parts(outcome, owners, summing=summing)
        self._add_loose(parts, outcome, summing=summing)
        return Decision(written_answer(call, outcome.result), self._told(parts, outcome, known))

    def _bring_sums(self, told: dict[int, Any]) -> bool:
        """Add up the products of all shards, if they were asked for; return if rows are summed."""
        sums = self.state.learner.memory.sums
        if not isinstance(sums, SplitSums):
            return False
        found = [part for part in _parts(told) if isinstance(part, np.ndarray)]
        if found:
            sums.elsewhere = np.sum(found, axis=0)
        return True

    def _end_sums(self, *, summing: bool) -> None:
        """Leave the rows of a write to the shards; before they sum up rows, keep them here."""
        sums = self.state.learner.memory.sums
        if isinstance(sums, SplitSums):
            if not summing:
                sums.keep_products()
                self.pending.own = True
            sums.decided()

    def _entry_parts(self, outcome: Outcome, owners: Counts, *, summing: bool) -> dict[int, Part]:
        """Return what a call that was made does to entries, by shard."""
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
        return parts

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

    def _told(self, parts: dict[int, Part], outcome: Outcome, known: Moved) -> dict[int, bytes]:
        """Note what a call that was made has changed; return its effects on all shards."""
        state, changes, joined = self.state, outcome.changes, outcome.joined()
        before, after = _unlabelled(known), outcome.unlabelled(np.arange(outcome.entries.arrived))
        rebase = joined > 0 and state.coded - before + after - joined == 0
        state.coded += after - before
        state.arrived += len(outcome.added)
        state.next_id = outcome.entries.next_id
        if rebase and outcome.entries.coded_at is not None:
            state.generation = outcome.entries.coded_at
        self.pending.lessons = outcome.lessons
        renamed = changes is not None and changes.whole
        refresh = self._refreshes()
        direction = self._meet(outcome)
        return self._effects(parts, direction, renamed=renamed, rebase=rebase, refresh=refresh)

    def _refreshes(self) -> bool:
        """Whether entries without labels have to be coded anew; from now on they are."""
        state, newest = self.state, self.state.hasher.generation_
        due = state.coded > 0 and state.generation != newest
        state.generation = newest if due else state.generation
        return due

    def _effects(
        self,
        parts: dict[int, Part],
        direction: Any = None,
        *,
        renamed: bool = False,
        rebase: bool = False,
        refresh: bool = False,
    ) -> dict[int, bytes]:
        """Return effects as bytes: parts for some shards, and what all of them have to know."""
        state, published = self.state, self._publisher.published()
        solved = self._publisher.take()
        self.pending.whole = renamed or self.pending.own or (published and solved.summing)
        common = pack_common(
            Common(solved, state.arrived, state.table.version, direction, renamed, rebase, refresh)
        )
        return {
            shard: pack_effects(common, pack_part(parts[shard]) if shard in parts else b"")
            for shard in state.table.shards
        }

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
        effects = self._effects({}, refresh=self._refreshes())
        return Decision({"shards": len(self.table.shards)}, effects | starts)

    def _move(self, known: Moved, owners: Counts, limit: int) -> Decision:
        """Move the first entries that have not moved; after the last, the table is settled."""
        first, done = np.arange(min(limit, len(known))), len(known) < limit
        some, table = known.part(first), self.table
        parts = moving_parts(table, some, owners[first])
        frontier = int(some.arrivals[-1]) + 1 if len(some) else table.frontier
        self.state.table = table.settled() if done else table.moved_to(frontier)
        effects = self._effects(parts, refresh=self._refreshes())
        return Decision({"moved": len(some), "done": done}, effects)

    def _import(self, moved: Moved, known: Moved) -> Decision:
        """Add entries as they were elsewhere; the lead has begun with what they have taught."""
        if len(known):
            raise DuplicateIdError(plain_ids(known.ids)[0])
        self.state.coded += _unlabelled(moved)
        homes = self.table.homes(moved.ids)
        parts = {
            shard: Part(added=moved.part(np.flatnonzero(homes == shard)))
            for shard in np.unique(homes).tolist()
        }
        return Decision({"entries": len(moved)}, self._effects(parts))


def moving_parts(table: Table, moved: Moved, owners: Counts) -> dict[int, Part]:
    """Return what it does to shards that entries move to where the table wants them."""
    if table.target is None:
        raise OptionError("nothing moves", hint="{say grow}")
    targets, parts = table.targets(moved.ids), {}
    for shard in np.unique(owners).tolist():
        parts[shard] = Part(removed=pick(moved.ids, np.flatnonzero(owners == shard)))
    for shard in np.unique(targets).tolist():
        mine = moved.part(np.flatnonzero(targets == shard))
        parts[shard] = parts.get(shard, Part())._replace(added=mine)
    return parts


def _parts(told: dict[int, Any]) -> list[Any]:
    """Return all that shards have told; who was asked several questions has told a list."""
    return [part for answer in told.values() for part in _listed(answer)]


def _listed(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else [answer]


def joined(told: dict[int, Any], n_features: int) -> tuple[Moved, Counts]:
    """Return the entries that shards have told of, in order of arrival, and the shard of each."""
    found = [
        (shard, part)
        for shard, answer in told.items()
        for part in _listed(answer)
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
