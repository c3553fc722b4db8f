"""Entries with all they have, on their way: from a shard to the lead, and on to a shard."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import KINDS, Blobs
from everhash.index.features import StoredFeatures
from everhash.index.stored import CheckedEntries
from everhash.stream import Labels
from everhash.wire.ids import IdList, plain_ids

Counts = NDArray[np.int64]

NOBODY: Counts = np.empty(0, np.int64)


class Labelling(NamedTuple):
    """The labels of some entries: which entry has which, by number."""

    rows: Counts
    numbers: Counts
    taught: NDArray[np.bool_]
    """Whether the hasher has learned each entry with its labels."""

    def part(self, chosen: Counts) -> Labelling:
        """Return the labels of some of the entries, which are numbered anew."""
        position = np.full(len(self.taught), -1)
        position[chosen] = np.arange(len(chosen))
        mine = np.flatnonzero(position[self.rows] >= 0)
        mine = mine[np.argsort(position[self.rows[mine]], kind="stable")]
        return Labelling(position[self.rows[mine]], self.numbers[mine], self.taught[chosen])

    def named(self, names: list[Hashable]) -> Labels:
        """Return the labels by name, as if they were given."""
        distinct, which = np.unique(self.numbers, return_inverse=True)
        values = [names[number] for number in distinct.tolist()]
        return Labels(values, self.rows, which.astype(np.int64))


@dataclass(frozen=True)
class Moved:
    """Entries with all they have."""

    ids: IdList
    arrivals: Counts
    stored: StoredFeatures
    labels: Labelling
    blobs: Blobs
    """What each has attached, as if their places were 0, 1, 2, …"""

    def __len__(self) -> int:
        return len(self.arrivals)

    @classmethod
    def nobody(cls, n_features: int) -> Moved:
        """Return no entries."""
        empty = StoredFeatures.room_for((0, n_features))
        return cls(NOBODY, NOBODY, empty, Labelling(NOBODY, NOBODY, NOBODY.astype(np.bool_)), {})

    @classmethod
    def joined(cls, parts: list[Moved]) -> Moved:
        """Return the entries of several parts, one after the other."""
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])]).tolist()
        pairs = list(zip(parts, starts, strict=True))
        ids: IdList = [one for part in parts for one in plain_ids(part.ids)]
        if all(isinstance(part.ids, np.ndarray) for part in parts):
            ids = np.array(ids, np.int64)
        return cls(
            ids,
            np.concatenate([part.arrivals for part in parts]),
            StoredFeatures(
                np.concatenate([part.stored.halves for part in parts]),
                np.concatenate([part.stored.scales for part in parts]),
            ),
            Labelling(
                np.concatenate([part.labels.rows + start for part, start in pairs]),
                np.concatenate([part.labels.numbers for part in parts]),
                np.concatenate([part.labels.taught for part in parts]),
            ),
            {
                number + KINDS * start: data
                for part, start in pairs
                for number, data in part.blobs.items()
            },
        )

    def checked(self, names: list[Hashable]) -> CheckedEntries:
        """Return them as an index takes them in."""
        labels = self.labels.named(names)
        return CheckedEntries(self.stored.rows, self.stored, labels, self.ids, NOBODY)

    def part(self, chosen: Counts) -> Moved:
        """Return some of the entries."""
        where = {place: i for i, place in enumerate(chosen.tolist())}
        ids = self.ids[chosen] if isinstance(self.ids, np.ndarray) else pick(self.ids, chosen)
        stored = StoredFeatures(self.stored.halves[chosen], self.stored.scales[chosen])
        blobs = {
            KINDS * where[n // KINDS] + n % KINDS: data
            for n, data in self.blobs.items()
            if n // KINDS in where
        }
        return Moved(ids, self.arrivals[chosen], stored, self.labels.part(chosen), blobs)


def pick(ids: IdList, chosen: Counts) -> IdList:
    """Return some of the ids."""
    if isinstance(ids, np.ndarray):
        return ids[chosen]
    return [ids[place] for place in chosen.tolist()]
