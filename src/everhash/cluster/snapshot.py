"""A whole cluster as one file of a collection, as it was after one write."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import numpy as np

from everhash.cluster.asking import Asker
from everhash.cluster.lead_contents import LeadContents
from everhash.cluster.merging import merge_refreshed
from everhash.cluster.moved import Counts, Labelling, Moved, pick
from everhash.cluster.questions import Contents, ShardContents
from everhash.cluster.shard_collection import OPTIONS
from everhash.cluster.shard_index import ShardIndex
from everhash.collection.attachments import at_places
from everhash.collection.changeset import Changeset
from everhash.collection.collection import Collection
from everhash.collection.formats import read_likeness
from everhash.collection.loading import fresh_about
from everhash.collection.pieces import pieces_of
from everhash.errors import ServiceError
from everhash.index.export import LabelChange
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.index.likeness import Likeness
from everhash.learn.following import learner_of
from everhash.learn.hasher import OnlineHasher
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.connection import check_free
from everhash.store.lock import WriterLock
from everhash.store.parts import PartKey, unpack
from everhash.store.store import Store
from everhash.wire.ids import IdList, plain_ids

STEP = 8192
"""Entries that are written at a time."""


class Whole(NamedTuple):
    """All that a cluster holds."""

    lead: LeadContents
    shards: list[ShardContents]


def take_snapshot(asker: Asker, path: Path) -> None:
    """Write a cluster to a new file, which appears whole or not at all."""
    check_free(path)
    WriterLock(path).release()  # a place that cannot be written to is refused before the work
    whole = _read(asker)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        copy = Copy.create(Path(folder) / "copy.ever", whole)
        with copy:
            copy.fill(_entries(whole))
            copy.snapshot(path)


def _read(asker: Asker) -> Whole:
    """Read what all members hold after one write; others wait for a moment."""
    end = time.monotonic() + asker.patience
    while time.monotonic() < end:
        with asker.paused():
            lead = asker.lead_contents()
            answers = asker.read(lambda table: dict.fromkeys(table.shards, Contents()))
        if answers.missing:
            break
        if answers.seq == lead.seq:
            return Whole(lead, list(answers.by_shard.values()))
    raise ServiceError(
        f"the cluster could not be read as a whole within {asker.patience:g} s",
        hint="wait until all shards are there and fewer writes come, then try again",
    )


# The hasher and the entries


def _hasher(whole: Whole) -> OnlineHasher:
    """Return the lead's hasher with the products of all rows, wherever they are."""
    hasher = hasher_from_bytes(whole.lead.model, "model")
    assert isinstance(hasher, OnlineHasher)  # noqa: S101 - a lead has no other
    sums = learner_of(hasher).memory.sums
    if sums is not None:
        found = [whole.lead.products, *(shard.products for shard in whole.shards)]
        sums.gram = np.asfortranarray(np.sum([one for one in found if one is not None], axis=0))
    return hasher


class Ordered(NamedTuple):
    """Entries in order of arrival, at the places that a file has them at."""

    living: Moved
    places: Counts
    """Of those."""
    gone: IdList
    """Ids of entries that were removed, which keep their places."""
    gone_places: Counts
    arrivals: Counts
    """Of all."""
    coder: Likeness


def _entries(whole: Whole) -> Ordered:
    """Return the entries of all shards; one that has moved is gone where it was, and not here."""
    living = Moved.joined([shard.entries for shard in whole.shards])
    living = living.part(np.argsort(living.arrivals))
    ids = [one for shard in whole.shards for one in plain_ids(shard.gone)]
    when = np.concatenate([shard.gone_arrivals for shard in whole.shards])
    once, first = np.unique(when, return_index=True)
    removed = ~np.isin(once, living.arrivals)
    arrivals = np.union1d(living.arrivals, once)
    key = PartKey("likeness", 0)
    coder = read_likeness(unpack(whole.lead.coder, key), key, living.stored.halves.shape[1])
    if not coder.settled:
        coder.first = coder.first[arrivals]
    return Ordered(
        living,
        np.searchsorted(arrivals, living.arrivals),
        pick(ids, first[removed]),
        np.searchsorted(arrivals, once[removed]),
        arrivals,
        coder,
    )


# The file


class Copy(Collection):
    """A collection that takes entries in as they were elsewhere, and learns nothing from them."""

    _make_index: ClassVar[type[Index]] = ShardIndex

    @classmethod
    def create(cls, path: Path, whole: Whole) -> Copy:
        """Create the file, with the hasher and without entries."""
        model, mapping = _hasher(whole).to_bytes(), max(shard.mapping for shard in whole.shards)
        about: dict[str, Any] = {**fresh_about(dict(OPTIONS)), "model_bytes": len(model)}
        about["refreshed"] = merge_refreshed([shard.refreshed for shard in whole.shards])
        about["next_id"] = whole.lead.next_id
        parts = pieces_of("model", model) | pieces_of("mapping", mapping)
        return cls(Store.create(path, about, parts, durability="none"), auto_refresh=False)

    def fill(self, entries: Ordered) -> None:
        """Add all entries, then remove those that are gone: they keep their places."""
        for start in range(0, max(1, len(entries.arrivals)), STEP):
            stop = min(start + STEP, len(entries.arrivals))
            with self._writing(refreshing=True) as call:
                changes, index = call.begin(), call.state.index
                assert isinstance(index, ShardIndex)  # noqa: S101 - made by `_make_index`
                if start == 0:
                    index.take_coder(entries.coder)
                self._add_some(changes, index, _between(entries, start, stop, index))
        if len(entries.gone_places):
            with self._writing(refreshing=True) as call:
                changes, index, places = call.begin(), call.state.index, entries.gone_places
                changes.codes_lost = index.coded_among(places)
                changes.changes.append(LabelChange.removal(places))
                index.forget(places)

    def _add_some(self, changes: Changeset, index: Index, moved: Moved) -> None:
        if len(moved):
            places = index.arrived + np.arange(len(moved))
            index.add_checked(moved.checked(index.hasher.labels_), taught=moved.labels.taught)
            changes.attached |= at_places(moved.blobs, places)


def _between(entries: Ordered, start: int, stop: int, index: Index) -> Moved:
    """Return the entries at places from start to stop; those that are gone as if they were there.

    They have some label, where there is one, so that they need no codes of their own.
    """
    first, last = np.searchsorted(entries.places, [start, stop]).tolist()
    living = entries.living.part(np.arange(first, last))
    chosen = np.flatnonzero((entries.gone_places >= start) & (entries.gone_places < stop))
    places, n = entries.gone_places[chosen], len(chosen)
    rows = np.zeros((n, index.hasher.n_features_in_), np.float32)
    if len(entries.coder.first):  # whose codes have to be there until the direction is settled
        rows = entries.coder.first[places]
    some = [number for number, name in enumerate(index.hasher.labels_) if name is not None][:1]
    labelled = np.arange(n if some else 0)
    labels = Labelling(
        labelled, np.repeat(np.array(some, np.int64), len(labelled)), np.zeros(n, np.bool_)
    )
    gone = Moved(pick(entries.gone, chosen), places, StoredFeatures.of(rows), labels, {})
    both = Moved.joined([replace(living, arrivals=entries.places[first:last]), gone])
    return both.part(np.argsort(both.arrivals))
