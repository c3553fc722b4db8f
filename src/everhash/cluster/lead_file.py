"""The lead's file: what it knows, and the writes that not all shards have applied yet.

model      i    the hasher, in pieces; of the products of its rows only the diagonal
lesson     i    what was learned and forgotten since it was written
own        0    the products of rows that no shard has
record     n    write n, until all shards have applied it: its effects on each of them
answer     n    what write n was answered, for those who ask again
lead       0    counts, the table of shards, and the direction of likeness codes

A write that publishes needs the products of all shards, which move on; so the model is written with
it. Lessons after that publish nothing, and bring the hasher to where it was.

The file is read as hostile: `lead_formats` checks every part of it, and the lead starts no more
processes than a cluster may have.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Self

from everhash.cluster.decider import CollectionDecider
from everhash.cluster.lead import REMEMBERED, Lead
from everhash.cluster.lead_formats import (
    CODER,
    OWN,
    STATE,
    check_head,
    check_state,
    learn_lessons,
    pack_answer,
    pack_own,
    pack_record,
    pack_state,
    read_answer,
    read_model,
    read_own,
    read_record,
    read_state,
)
from everhash.cluster.lead_state import Begun, LeadState, Pending
from everhash.cluster.placement import Table
from everhash.cluster.writes import Record
from everhash.collection.formats import lesson_bytes, pack_lesson, pack_likeness, read_likeness
from everhash.collection.part_arrays import require
from everhash.collection.pieces import delete_all, pieces_of, write_pieces
from everhash.index.likeness import Likeness
from everhash.learn.following import learner_of
from everhash.learn.hasher import OnlineHasher
from everhash.learn.split_sums import SplitSums
from everhash.learn.sums import Sums
from everhash.store.parts import PartKey
from everhash.store.store import Store
from everhash.store.transaction import Transaction


class LeadFile:
    """Keeps what the lead knows.

    Args:
        store: the open file.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.copies = check_head(store)

    @classmethod
    def create(
        cls,
        path: Path | None,
        hasher: OnlineHasher,
        shards: int,
        copies: int,
        durability: str,
        begun: Begun | None = None,
    ) -> Self:
        """Create the file of a new cluster, with its first write: the shards begin.

        `begun` is where a collection was that goes on here; its hasher is changed.
        """
        state = LeadState(hasher, Likeness.draw(hasher.n_features_in_), Table.of(shards), seq=1)
        if begun is not None:
            state.coder, state.generation = begun.coder, begun.generation
            state.arrived, state.next_id = begun.arrived, begun.next_id
        decider = CollectionDecider(state, lambda: state)
        start = decider.start(b"" if begun is None else begun.mapping)
        memory = state.learner.memory
        # nobody else has this mark, so no other cluster's shards fit
        mark = secrets.token_hex(16)
        record = Record(1, "begin", None, dict.fromkeys(state.table.shards, start), mark=mark)
        parts = {}
        if memory.sums is not None:  # no shard has any of these rows
            memory.sums = SplitSums.of(memory.sums, memory.sums.gram)
            parts[OWN] = pack_own(hasher)
        model = hasher.to_bytes()
        parts |= pieces_of("model", model)
        parts |= {STATE: pack_state(state, mark), CODER: pack_likeness(state.coder)}
        parts[PartKey("record", 1)] = pack_record(record)
        about = {"copies": copies, "model_bytes": len(model), "lesson_bytes": 0, "lessons": 0}
        return cls(Store.create(path, about, parts, durability=durability))

    @classmethod
    def open(cls, path: Path, durability: str) -> Self:
        """Open the file of a cluster."""
        store = Store.open(path, durability=durability)
        try:
            return cls(store)
        except BaseException:
            store.close()
            raise

    @staticmethod
    def copies_in(path: Path) -> int:
        """Return how many copies of each shard a cluster has; its lead may be at work."""
        store = Store.open(path, readonly=True)
        try:
            return check_head(store)
        finally:
            store.close()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # Reading

    def lead(self) -> Lead:
        """Return the lead as it was after the last write."""
        state, mark = self._state()
        decider, store = CollectionDecider(state, self.state), self._store
        numbers = store.starts("record")
        in_order = numbers == list(range(state.seq - len(numbers) + 1, state.seq + 1))
        require(in_order and min(numbers, default=1) >= 1, "record parts", "some are missing")
        answered = store.starts("answer")
        known = min(answered, default=1) >= 1 and max(answered, default=0) <= state.seq
        require(known, "answer parts", "they answer no write of this cluster")
        records, answers = [], {}
        with store.reading():
            for seq in numbers:
                key = PartKey("record", seq)
                records.append(read_record(store.read(key), key, state.table))
            for seq in answered:
                key = PartKey("answer", seq)
                request, answer = read_answer(store.read(key), key)
                answers[request] = (seq, answer)
        marks = [*(record.before for record in records[1:]), mark]
        follow = all(one.mark == after for one, after in zip(records, marks, strict=False))
        require(follow, "record parts", "they are not of one history")
        return Lead(decider, state.seq, records, answers, self.copies, mark)

    def state(self) -> LeadState:
        """Read what the lead knows."""
        return self._state()[0]

    def _state(self) -> tuple[LeadState, str]:
        """Read what the lead knows, and the mark of the last write."""
        store = self._store
        with store.reading():
            hasher = read_model(store)
            self._split(hasher)
            learn_lessons(store, hasher)
            coder = read_likeness(store.read(CODER), CODER, hasher.n_features_in_)
            counts, table, mark = read_state(store.read(STATE))
        state = LeadState(hasher, coder, table, **counts)
        check_state(state)
        return state, mark

    def _split(self, hasher: OnlineHasher) -> None:
        """Let the hasher keep the products of no rows but its own."""
        memory = learner_of(hasher).memory
        memory.new_sums = SplitSums
        if isinstance(memory.sums, Sums):
            own = read_own(self._store, len(memory.sums.total), memory.sums.rows)
            memory.sums = SplitSums.of(memory.sums, own)

    # Writing

    def append(self, record: Record, lead: Lead) -> None:
        """Put a write on the storage; when this returns, it is there."""
        decider = lead.decider
        assert isinstance(decider, CollectionDecider)  # noqa: S101 - made by `lead`
        with self._store.transaction() as change:
            _write_hasher(change, decider)
            change.put(STATE, 0, pack_state(decider.state, record.mark))
            change.put(CODER, 0, pack_likeness(decider.state.coder))
            change.put(PartKey("record", record.seq), 0, pack_record(record))
            change.put(PartKey("answer", record.seq), 0, pack_answer(record))
            for kind, least in (("record", lead.trimmable + 1), ("answer", _oldest(record))):
                for seq in change.parts.starts(kind):
                    if seq >= least:
                        break
                    change.delete(PartKey(kind, seq))
        lead.forget_trimmed()


def _oldest(record: Record) -> int:
    return record.seq - REMEMBERED + 1


def _write_hasher(change: Transaction, decider: CollectionDecider) -> None:
    """Write what was learned: lessons, or the hasher once they take more bytes than it does."""
    about, hasher, pending = change.about, decider.state.hasher, decider.pending
    total = about["lesson_bytes"] + sum(lesson_bytes(one, 0, hasher) for one in pending.lessons)
    if pending.own:
        change.put(OWN, 0, pack_own(hasher))
    if pending.whole or total > about["model_bytes"]:
        delete_all(change, "lesson")
        data = hasher.to_bytes()
        write_pieces(change, "model", data)
        about.update(model_bytes=len(data), lesson_bytes=0, lessons=0)
        return
    _write_lessons(change, pending)
    about["lesson_bytes"] = total


def _write_lessons(change: Transaction, pending: Pending) -> None:
    about = change.about
    for lesson in pending.lessons:
        change.put(PartKey("lesson", about["lessons"]), len(lesson.rows), pack_lesson(lesson))
        about["lessons"] += 1
