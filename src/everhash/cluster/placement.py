"""Which shard has an entry: by its id, over slots that shards share.

An id belongs to one of `SLOTS` slots for ever; a slot belongs to a shard. A cluster grows by new,
empty shards that take slots over from the others. Until all entries of those slots have moved, both
the old and the new shard may have one of them: both are asked, and new entries go to the old one.
Entries move in their order of arrival, so that every shard has its own in that order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import OptionError
from everhash.wire.ids import IdList

Counts = NDArray[np.int64]

SLOTS = limits.SHARDS
"""Slots that shards share, for ever; so many shards at the most."""


def slots_of(ids: IdList) -> Counts:
    """Return the slot of each id.

    >>> slots_of(np.array([7, 8])).tolist() == slots_of([7, "a", 8])[[0, 2]].tolist()
    True
    """
    if isinstance(ids, np.ndarray):
        mixed = ids.astype(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(SLOTS)).astype(np.int64)
    found = np.empty(len(ids), np.int64)
    for place, one in enumerate(ids):
        if isinstance(one, str):
            digest = hashlib.blake2b(one.encode(errors="surrogatepass"), digest_size=8).digest()
            found[place] = int.from_bytes(digest, "little") % SLOTS
        else:
            found[place] = slots_of(np.array([one], np.int64))[0]
    return found


@dataclass(frozen=True)
class Table:
    """The shards, and the slots of each; a value that writes replace."""

    version: int
    """Grows with every change."""
    slots: tuple[int, ...] = field(repr=False)
    """The shard of each slot, which gets its new entries."""
    target: tuple[int, ...] | None = field(repr=False)
    """The shard that each slot moves to; None while nothing moves."""
    frontier: int
    """Entries of moving slots with a smaller number of arrival have moved."""
    born: dict[int, int]
    """The shards there are, each with the number of the write that it begins with."""

    @classmethod
    def of(cls, shards: int) -> Table:
        """Return the table of a new cluster; its shards begin with write 1."""
        _check(shards)
        slots = tuple(slot * shards // SLOTS for slot in range(SLOTS))
        return cls(1, slots, None, 0, dict.fromkeys(range(shards), 1))

    @property
    def shards(self) -> list[int]:
        """Numbers of all shards."""
        return list(self.born)

    def grown(self, shards: int, seq: int) -> Table:
        """Return the table after write `seq` has added shards, up to so many, and begun to move."""
        _check(shards)
        if self.target is not None:
            raise OptionError(
                "the cluster grows already", hint="wait until that is done, then grow it again"
            )
        if shards <= len(self.born):
            raise OptionError(
                f"the cluster has {len(self.born)} shards already, and cannot have {shards}",
                hint="shards are only added; ask for more of them",
            )
        slots: list[list[int]] = [[] for _ in range(shards)]
        for slot, shard in enumerate(self.slots):
            slots[shard].append(slot)
        while len(most := max(slots, key=len)) - len(least := min(slots, key=len)) > 1:
            least.append(most.pop())
        shard_of = {slot: shard for shard, some in enumerate(slots) for slot in some}
        born = self.born | dict.fromkeys(range(len(self.born), shards), seq)
        target = tuple(shard_of[slot] for slot in range(SLOTS))
        return Table(self.version + 1, self.slots, target, 0, born)

    def moved_to(self, frontier: int) -> Table:
        """Return the table after all moving entries that arrived before `frontier` have moved."""
        return replace(self, frontier=frontier)

    def settled(self) -> Table:
        """Return the table after all entries have moved."""
        assert self.target is not None  # noqa: S101 - something moves
        return Table(self.version + 1, self.target, None, 0, self.born)

    @property
    def moving(self) -> Counts:
        """The slots that move to another shard."""
        if self.target is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(np.array(self.slots) != np.array(self.target))

    def homes(self, ids: IdList) -> Counts:
        """Return the shard that each new entry goes to."""
        return np.array(self.slots)[slots_of(ids)]

    def targets(self, ids: IdList) -> Counts:
        """Return the shard that each entry goes to when it moves."""
        return np.array(self.slots if self.target is None else self.target)[slots_of(ids)]

    def holders(self, ids: IdList) -> dict[int, Counts]:
        """Return which of these ids each shard may have: their positions, ascending."""
        first, second = self.homes(ids), self.targets(ids)
        places = {
            shard: np.flatnonzero((first == shard) | (second == shard)) for shard in self.born
        }
        return {shard: which for shard, which in places.items() if len(which)}


def _check(shards: int) -> None:
    if not 1 <= shards <= SLOTS:
        raise OptionError(
            f"a cluster of {shards} shards is not possible", hint=f"choose from 1 to {SLOTS}"
        )
