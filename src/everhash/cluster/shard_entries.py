"""The entries of a shard, as the rules of a shard see them; see `shard` and `questions`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from everhash.cluster.effects import Start
from everhash.cluster.effects_reading import HERE, kind_of, read_start
from everhash.cluster.messages import Apply
from everhash.cluster.moved import Labelling, Moved, pick
from everhash.cluster.placement import slots_of
from everhash.cluster.questions import (
    All,
    Call,
    Checked,
    CodedBy,
    Contents,
    Find,
    Found,
    Having,
    LastRefresh,
    Moving,
    Named,
    NamedValues,
    OwnSums,
    PagePart,
    ReadPage,
    Search,
    ShardContents,
)
from everhash.cluster.shard_collection import Effects, ShardCollection
from everhash.collection.attachments import blobs_at
from everhash.collection.formats import pack_mapping, read_mapping
from everhash.collection.part_arrays import require
from everhash.errors import CollectionFileError, EverhashError, InputError, ModelFileError
from everhash.index.arrays import Counts
from everhash.index.columns import REMOVED
from everhash.index.hasher import rows_learned
from everhash.index.refresh import RefreshReport
from everhash.index.relevance import usual_rows
from everhash.learn.following import FollowingLearner
from everhash.learn.hasher import OnlineHasher
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.parts import DAMAGED, unpack
from everhash.wire.ids import as_ids

log = logging.getLogger(__name__)
BY_ESTIMATES = ("relevance", "meaning")
"""Ways of searching that choose among entries of equal probability by estimates of likeness."""


class Ready(NamedTuple):
    """A write that can be carried out."""

    write: Apply
    effects: Start | Effects


class ShardEntries:
    """A shard's collection, opened if it is there, begun with the first write if not.

    Args:
        path: of its file; None keeps it in memory.
        durability: see `everhash.create`.
    """

    def __init__(self, path: Path | None, durability: str = "commit") -> None:
        self._path, self._durability = path, durability
        self.collection: ShardCollection | None = None
        if path is not None and path.exists():
            self.collection = ShardCollection.open_shard(path, durability)

    @property
    def seq(self) -> int:
        """The last write that was applied; 0 before the first."""
        return 0 if self.collection is None else self.collection.state.seq

    @property
    def mark(self) -> str:
        """The mark of that write."""
        return "" if self.collection is None else self.collection.state.mark

    @property
    def table(self) -> int:
        """Version of the table of shards after it."""
        return 0 if self.collection is None else self.collection.state.table

    def begins_with(self, effects: Any) -> bool:
        """Whether an empty shard may begin with these effects."""
        return effects is not None and kind_of(effects) == "start"

    def read(self, write: Apply) -> Ready:
        """Read a write, with everything in it checked; nothing changes.

        Raises:
            CollectionFileError: it cannot be applied.
        """
        if self.collection is None:
            return Ready(write, _read_start(write.effects))
        return Ready(write, self.collection.read(write))

    def carry_out(self, ready: Ready) -> None:
        """Put a write on the storage, and into memory."""
        write, effects = ready
        if isinstance(effects, Start):
            self.collection = ShardCollection.begin(self._path, write, effects, self._durability)
        else:
            assert self.collection is not None  # noqa: S101 - `read` was given by it
            self.collection.apply(effects)

    def close(self) -> None:
        """Close the file."""
        if self.collection is not None:
            self.collection.close()

    # Answering

    def answer(self, question: Any) -> Any:
        """Answer a question; an error that a caller should get is an answer too."""
        assert self.collection is not None  # noqa: S101 - the rules ask only who has begun
        try:
            return _answer(self.collection, question)
        except EverhashError as error:
            return error
        except Exception as error:  # what a client asks must not end the shard
            log.exception("a question fails")
            return InputError(f"{type(error).__name__}: {error!s:.200}")


def _read_start(data: bytes) -> Start:
    """Read what a shard begins with, and check that a shard can."""
    start = read_start(data)
    try:
        hasher = hasher_from_bytes(start.model, "model")
    except ModelFileError as error:
        raise CollectionFileError(f"{HERE}: {error.message_template}", hint=DAMAGED) from None
    follows = isinstance(hasher, OnlineHasher) and isinstance(hasher._learner, FollowingLearner)
    require(follows, HERE, "a shard begins with a model that follows")
    require(len(start.direction) == hasher.n_features_in_, HERE, "its direction does not fit")
    if start.mapping:
        shape = (hasher.bits, hasher.n_features_in_)
        read_mapping(unpack(start.mapping, HERE), HERE, shape)
    return start


def _answer(collection: ShardCollection, question: Any) -> Any:
    return ANSWERS[type(question)](collection, question)


def _all(collection: ShardCollection, question: All) -> list[Any]:
    return [_answer(collection, one) for one in question.questions]


def _call(collection: ShardCollection, question: Call) -> Any:
    return getattr(collection, question.name)(*question.arguments, **question.options)


def _find(collection: ShardCollection, question: Find) -> Moved:
    there = collection.has(question.ids)
    places = collection.find(as_ids(question.ids))[there]
    return _known(collection, np.sort(places), blobs=question.blobs)


def _named(collection: ShardCollection, question: Named) -> NamedValues:
    there = collection.has(question.ids)
    ids = pick(question.ids, np.flatnonzero(there))
    values = [] if question.name == "has" else list(getattr(collection, question.name)(ids))
    return NamedValues(there, values)


def _last_refresh(collection: ShardCollection, _: LastRefresh) -> RefreshReport:
    return collection.index.last_refresh


def _having(collection: ShardCollection, question: Having) -> Moved:
    places = collection.index.places_with(np.array([question.label]))
    return _known(collection, places, blobs=False)


def _moving(collection: ShardCollection, question: Moving) -> Moved:
    first = int(np.searchsorted(collection.arrivals.rows, question.frontier))
    places = first + np.flatnonzero(collection.index.label_column[first:] != REMOVED)
    ids = collection.index.ids_at(places)
    moving = places[np.isin(slots_of(ids), question.slots)][: question.limit]
    return _known(collection, moving, blobs=True)


def _known(collection: ShardCollection, places: Counts, *, blobs: bool) -> Moved:
    """Return entries with all they have, in order of arrival."""
    index = collection.index
    rows, numbers = index.label_pairs(places)
    taught = index.taught_column[places].copy() if len(places) else np.empty(0, np.bool_)
    return Moved(
        index.ids_at(places),
        collection.arrivals.rows[places].copy(),
        collection.stored_at(places),
        Labelling(rows, numbers, taught),
        blobs_at(collection.store, places) if blobs and len(places) else {},
    )


def _products(collection: ShardCollection, _: OwnSums) -> Any:
    hasher = collection.hasher
    assert isinstance(hasher, OnlineHasher)  # noqa: S101 - a shard begins with one
    learner = hasher._learner
    assert isinstance(learner, FollowingLearner)  # noqa: S101 - and that follows
    own = learner.memory.own
    return None if own is None else own.gram


def _coded_by(collection: ShardCollection, _: CodedBy) -> bytes:
    mapping = collection.index.coded_by
    return b"" if mapping is None else pack_mapping(mapping)


def _contents(collection: ShardCollection, _: Contents) -> ShardContents:
    index = collection.index
    removed = index.label_column == REMOVED
    gone = np.flatnonzero(removed)
    return ShardContents(
        _known(collection, np.flatnonzero(~removed), blobs=True),
        index.ids_at(gone),
        collection.arrivals.rows[gone].copy(),
        _products(collection, OwnSums()),
        _coded_by(collection, CodedBy()),
        collection.stats()["last_refresh"],
    )


def _search(collection: ShardCollection, question: Search) -> Found:
    (name, arguments, options), ids = question
    there = None
    if ids is not None:
        there = collection.has(ids)
        options = {**options, "ids": pick(ids, np.flatnonzero(there))}
    matches = getattr(collection, name)(*arguments, **options)
    found = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
    arrivals, estimates = np.full(matches.ids.shape, -1, np.int64), matches.likeness
    if found.any():
        places = np.full(arrivals.shape, -1, np.int64)
        places[found] = collection.find(as_ids(matches.ids[found].tolist()))
        arrivals[found] = collection.arrivals.rows[places[found]]
        if matches.by[0] in BY_ESTIMATES and not options.get("exact"):
            estimates = collection.index.estimates_at(arguments[0], places)
    rows = usual_rows(rows_learned(collection.hasher))
    return Found(matches, arrivals, estimates, there, rows)


def _checked(collection: ShardCollection, question: Checked) -> None:
    collection.index.check_search(question.X, question.labels)


def _page(collection: ShardCollection, question: ReadPage) -> PagePart:
    arrivals = collection.arrivals.rows
    start = int(np.searchsorted(arrivals, question.start))
    stop = None if question.stop is None else int(np.searchsorted(arrivals, question.stop))
    page = collection.page(start, question.limit, stop, **question.options)
    places = collection.find(as_ids([entry.id for entry in page.entries]))
    after = None if page.next is None else int(arrivals[page.next])
    arrived = collection.state.arrived
    return PagePart(page.entries, arrivals[places].tolist(), after, arrived)


ANSWERS: dict[type, Callable[[ShardCollection, Any], Any]] = {
    All: _all,
    Call: _call,
    Checked: _checked,
    CodedBy: _coded_by,
    Contents: _contents,
    Find: _find,
    Having: _having,
    LastRefresh: _last_refresh,
    Moving: _moving,
    Named: _named,
    OwnSums: _products,
    ReadPage: _page,
    Search: _search,
}
"""How each question is answered."""
