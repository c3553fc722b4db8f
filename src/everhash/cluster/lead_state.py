"""What the lead of a cluster knows, and what of it a write has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from everhash.cluster.placement import Table
from everhash.collection.formats import Lesson
from everhash.index.likeness import Likeness
from everhash.learn.exact import ExactLearner
from everhash.learn.following import learner_of
from everhash.learn.hasher import OnlineHasher


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

    @property
    def learner(self) -> ExactLearner:
        """What the hasher learns by."""
        return learner_of(self.hasher)


class Begun(NamedTuple):
    """Where a collection was that goes on in a new cluster, besides its hasher and its entries."""

    coder: Likeness
    mapping: bytes
    """That its unlabelled entries are coded by; empty if there have been none."""
    generation: int
    """Of that mapping."""
    arrived: int
    next_id: int


@dataclass
class Pending:
    """What the storage has to keep of a write besides its record."""

    lessons: list[Lesson] = field(default_factory=list)
    whole: bool = False
    """Whether the hasher has to be written: lessons could not bring it there."""
    own: bool = False
    """Whether the products that no shard has are new."""
