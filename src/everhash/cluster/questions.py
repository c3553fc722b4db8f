"""What can be asked of a shard, and what it tells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.moved import Moved
from everhash.index.entries import Entry
from everhash.matches import Matches
from everhash.wire.ids import IdList

Counts = NDArray[np.int64]


class Find(NamedTuple):
    """Which of these entries are there, with all they have?"""

    ids: IdList
    blobs: bool = False
    """Whether what they have attached is wanted too."""


class Having(NamedTuple):
    """Which entries have a label, given by its number?"""

    label: int


class Moving(NamedTuple):
    """Which are the first entries of these slots that have not moved?"""

    slots: Counts
    frontier: int
    """They arrived then or later."""
    limit: int


class OwnSums(NamedTuple):
    """What are the products of the rows that the shard has summed up?"""


class CodedBy(NamedTuple):
    """By which mapping are unlabelled entries coded?"""


class Contents(NamedTuple):
    """What does the shard hold?"""


class Call(NamedTuple):
    """What does this call of a collection return?"""

    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class Search(NamedTuple):
    """Which entries does a search find, among those with these ids that the shard has?"""

    call: Call
    ids: IdList | None = None
    """None searches all."""


class Checked(NamedTuple):
    """Can these rows be searched by, and these labels be searched for?"""

    X: Any
    labels: Any


class Named(NamedTuple):
    """What does this call return for those of these entries that the shard has?"""

    name: str
    ids: IdList


class LastRefresh(NamedTuple):
    """What did the last refresh do?"""


class ReadPage(NamedTuple):
    """Which entries come next in order of arrival?"""

    start: int
    limit: int
    stop: int | None
    options: dict[str, Any]


class All(NamedTuple):
    """Several questions."""

    questions: tuple[Any, ...]


# Answers


class Found(NamedTuple):
    """What a shard has found."""

    matches: Matches
    arrivals: Counts
    """(n, k) when each entry arrived, among those of all shards."""
    estimates: NDArray[np.float32]
    """(n, k) the likeness by which entries of equal score were chosen."""
    there: NDArray[np.bool_] | None
    """Which of the ids that were given the shard has, if any were."""
    rows_a_label: float
    """See `everhash.index.relevance.Pairs`."""


class ShardContents(NamedTuple):
    """All that a shard holds."""

    entries: Moved
    gone: IdList
    """Ids of entries that were removed, or have moved to another shard."""
    gone_arrivals: Counts
    products: NDArray[np.float64] | None
    """Of the rows that it has summed up."""
    mapping: bytes
    """That unlabelled entries are coded by; empty if there have been none."""
    refreshed: dict[str, Any] | None
    """What the last refresh did, as stats tell it."""


class NamedValues(NamedTuple):
    """What a shard has of some entries."""

    there: NDArray[np.bool_]
    """Which of the ids the shard has."""
    values: list[Any]
    """Of those that are there, in the order of the ids."""


class PagePart(NamedTuple):
    """Some of a shard's entries in order of arrival."""

    entries: list[Entry]
    arrivals: list[int]
    next: int | None
    """When the one after them arrived; None if there is none."""
    arrived: int
    """Entries that have ever been added, on all shards."""
