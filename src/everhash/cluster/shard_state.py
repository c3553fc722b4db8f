"""What a shard knows besides its entries, and whether a write fits what it has."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from everhash.cluster.effects import Common, Part
from everhash.cluster.effects_reading import HERE, is_count
from everhash.collection.part_arrays import require
from everhash.index.arrays import Counts
from everhash.learn.growing import GrowingArray
from everhash.learn.hasher import OnlineHasher
from everhash.store.parts import Arrays, PartKey, about_of, pack
from everhash.wire.ids import IdList, plain_ids

STATE = PartKey("shard", 0)
MARK = 64
"""Characters of a mark at the most."""


class ShardState(NamedTuple):
    """What a shard knows besides its entries."""

    seq: int = 0
    table: int = 0
    arrived: int = 0
    refreshed: int = 0
    """The last write that brought unlabelled entries up to date; older files do not say."""
    mark: str = ""
    """Of write `seq`; see `messages`. Older files have none."""


def pack_state(state: ShardState) -> bytes:
    """Return the state as bytes."""
    return pack({}, state._asdict())


def read_state(arrays: Arrays) -> ShardState:
    """Read the state."""
    about = about_of(arrays, STATE)
    known = isinstance(about, dict) and {"seq", "table", "arrived"} <= set(about)
    require(known and set(about) <= set(ShardState._fields), STATE, "its counts are damaged")
    state = ShardState(**about)
    require(all(map(is_count, state[:4])), STATE, "its counts are damaged")
    require(is_mark(state.mark), STATE, "its mark is damaged")
    require(state.seq >= 1 and state.refreshed <= state.seq, STATE, "its counts are damaged")
    return state


def is_mark(value: object) -> bool:
    """Whether a value may be the mark of a write."""
    return isinstance(value, str) and len(value) <= MARK


class Holder(Protocol):
    """What a write is checked against."""

    state: ShardState
    arrivals: GrowingArray[np.int64]

    def find(self, ids: IdList) -> Counts:
        """Return the place of each id, -1 if no entry has it."""
        ...

    @property
    def _follower(self) -> OnlineHasher: ...


def check_effects(part: Part, common: Common, shard: Holder) -> None:
    """Raise if a write does not fit what a shard has: it would be applied by half."""
    hasher, last = shard._follower, int(shard.arrivals.rows.max(initial=-1))
    for ids in (part.summed, part.removed, part.relabelled, part.attached):
        if len(ids):
            require(bool((shard.find(ids) >= 0).all()), HERE, "they concern entries of nobody")
    gone = set(plain_ids(part.removed))
    kept = not gone & {*plain_ids(part.relabelled), *plain_ids(part.attached)}
    require(kept, HERE, "they change an entry that they remove")
    require(common.arrived >= shard.state.arrived, HERE, "fewer entries than have arrived")
    numbers = [part.labels.numbers]
    if part.added is not None:
        numbers.append(part.added.labels.numbers)
        there = [one for one in plain_ids(part.added.ids) if one not in gone]
        free = not there or bool((shard.find(there) < 0).all())
        require(free, HERE, "they add an entry that is there")
        arrivals = part.added.arrivals
        in_order = not len(arrivals) or last < arrivals[0] <= arrivals[-1] < common.arrived
        require(bool(in_order), HERE, "entries do not arrive in order")
    names = dict(enumerate(hasher.labels_)) | dict(common.solved.names)
    used = np.unique(np.concatenate(numbers)).tolist()
    require(all(names.get(n) is not None for n in used), HERE, "labels that are not there")
    sums = len(part.summed) or part.loose is not None or part.adds_up
    known = any(name is not None for name in names.values())
    require(known or not sums, HERE, "they sum up rows although there is no label")
