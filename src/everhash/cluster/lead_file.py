"""The lead's file: what it knows, and the writes that not all shards have applied yet.

model      i    the hasher, in pieces; of the products of its rows only the diagonal
lesson     i    what was learned and forgotten since it was written
own        0    the products of rows that no shard has
record     n    write n, until all shards have applied it: its effects on each of them
answer     n    what write n was answered, for those who ask again
lead       0    counts, the table of shards, and the direction of likeness codes

A write that publishes needs the products of all shards, which move on; so the model is written with
it. Lessons after that publish nothing, and bring the hasher to where it was.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from everhash.cluster.answers import from_json, to_json
from everhash.cluster.decider import CollectionDecider
from everhash.cluster.lead import REMEMBERED, Lead, Record
from everhash.cluster.lead_state import Begun, LeadState, Pending
from everhash.cluster.placement import Table
from everhash.collection.formats import (
    Lesson,
    lesson_bytes,
    pack_lesson,
    pack_likeness,
    read_lesson,
    read_likeness,
)
from everhash.collection.pieces import delete_all, pieces_of, write_pieces
from everhash.index.likeness import Likeness
from everhash.learn.exact_file import square, triangle
from everhash.learn.following import learner_of
from everhash.learn.hasher import OnlineHasher
from everhash.learn.split_sums import SplitSums
from everhash.learn.sums import Sums
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.parts import Arrays, PartKey, about_of, pack
from everhash.store.store import Store
from everhash.store.transaction import Transaction

STATE, OWN, CODER = PartKey("lead", 0), PartKey("own", 0), PartKey("likeness", 0)
COUNTS = ("seq", "arrived", "next_id", "coded", "generation")


class LeadFile:
    """Keeps what the lead knows.

    Args:
        store: the open file.
        copies: of each shard.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.copies: int = store.about["copies"]

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
        record = Record(1, "begin", None, dict.fromkeys(state.table.shards, start))
        parts = {}
        if memory.sums is not None:  # no shard has any of these rows
            memory.sums = SplitSums.of(memory.sums, memory.sums.gram)
            parts[OWN] = _pack_own(hasher)
        model = hasher.to_bytes()
        parts |= pieces_of("model", model)
        parts |= {STATE: _pack_state(state), CODER: pack_likeness(state.coder)}
        parts[PartKey("record", 1)] = _pack_record(record)
        about = {"copies": copies, "model_bytes": len(model), "lesson_bytes": 0, "lessons": 0}
        return cls(Store.create(path, about, parts, durability=durability))

    @classmethod
    def open(cls, path: Path, durability: str) -> Self:
        """Open the file of a cluster."""
        return cls(Store.open(path, durability=durability))

    @staticmethod
    def copies_in(path: Path) -> int:
        """Return how many copies of each shard a cluster has; its lead may be at work."""
        store = Store.open(path, readonly=True)
        try:
            return int(store.about["copies"])
        finally:
            store.close()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # Reading

    def lead(self) -> Lead:
        """Return the lead as it was after the last write."""
        decider = CollectionDecider(self.state(), self.state)
        store = self._store
        with store.reading():
            records = [self._record(seq) for seq in store.starts("record")]
            answers = [(seq, self._answer(seq)) for seq in store.starts("answer")]
        known = {about["request"]: (seq, from_json(about["answer"])) for seq, about in answers}
        return Lead(decider, decider.state.seq, records, known, self.copies)

    def state(self) -> LeadState:
        """Read what the lead knows."""
        store = self._store
        with store.reading():
            data = b"".join(store.read_bytes(PartKey("model", i)) for i in store.starts("model"))
            hasher = hasher_from_bytes(data, "model")
            assert isinstance(hasher, OnlineHasher)  # noqa: S101 - `create` has written it
            self._split(hasher)
            for start in store.starts("lesson"):
                key = PartKey("lesson", start)
                _learn(hasher, read_lesson(store.read(key), key, hasher.n_features_in_))
            coder = read_likeness(store.read(CODER), CODER, hasher.n_features_in_)
            about: dict[str, Any] = about_of(store.read(STATE), STATE)
        return LeadState(hasher, coder, _read_table(about.pop("table")), **about)

    def _split(self, hasher: OnlineHasher) -> None:
        """Let the hasher keep the products of no rows but its own."""
        memory = learner_of(hasher).memory
        memory.new_sums = SplitSums
        if isinstance(memory.sums, Sums):
            own = self._store.read(OWN)["own"].astype(np.float64)
            memory.sums = SplitSums.of(memory.sums, square(own, len(memory.sums.total)))

    def _record(self, seq: int) -> Record:
        key = PartKey("record", seq)
        arrays = self._store.read(key)
        about = about_of(arrays, key)
        effects = {int(shard): arrays[shard].tobytes() for shard in about["shards"]}
        return Record(seq, about["request"], from_json(about["answer"]), effects)

    def _answer(self, seq: int) -> dict[str, Any]:
        key = PartKey("answer", seq)
        about: dict[str, Any] = about_of(self._store.read(key), key)
        return about

    # Writing

    def append(self, record: Record, lead: Lead) -> None:
        """Put a write on the storage; when this returns, it is there."""
        decider = lead.decider
        assert isinstance(decider, CollectionDecider)  # noqa: S101 - made by `lead`
        with self._store.transaction() as change:
            _write_hasher(change, decider)
            change.put(STATE, 0, _pack_state(decider.state))
            change.put(CODER, 0, pack_likeness(decider.state.coder))
            change.put(PartKey("record", record.seq), 0, _pack_record(record))
            about = {"request": record.request, "answer": to_json(record.answer)}
            change.put(PartKey("answer", record.seq), 0, pack({}, about))
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
        change.put(OWN, 0, _pack_own(hasher))
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


def _learn(hasher: OnlineHasher, lesson: Lesson) -> None:
    """Learn or forget what was learned or forgotten before."""
    rows, labels, forget, _ = lesson
    if len(rows) == 0:
        hasher.assign(labels.values)
    elif forget:
        hasher.forget_rows(rows, labels)
    else:
        hasher.learn_rows(rows, labels)
    sums = learner_of(hasher).memory.sums
    if isinstance(sums, SplitSums):
        sums.decided()


def _pack_own(hasher: OnlineHasher) -> bytes:
    sums = learner_of(hasher).memory.sums
    assert isinstance(sums, SplitSums)  # noqa: S101 - rows are summed up by now
    return pack({"own": triangle(sums.own_products).astype(np.int64)})


def _pack_record(record: Record) -> bytes:
    arrays: Arrays = {
        str(shard): np.frombuffer(effects, np.uint8) for shard, effects in record.effects.items()
    }
    about = {"request": record.request, "answer": to_json(record.answer)}
    return pack(arrays, {**about, "shards": list(arrays)})


def _pack_state(state: LeadState) -> bytes:
    counts = {name: int(getattr(state, name)) for name in COUNTS}
    return pack({}, {**counts, "table": asdict(state.table)})


def _read_table(told: dict[str, Any]) -> Table:
    target = None if told["target"] is None else tuple(told["target"])
    born = {int(shard): seq for shard, seq in told["born"].items()}
    return Table(told["version"], tuple(told["slots"]), target, told["frontier"], born)
