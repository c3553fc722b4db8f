"""A new cluster from a collection's file: what was learned, and all entries as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from everhash import limits
from everhash.cluster import opening
from everhash.cluster.collection import ClusterCollection
from everhash.cluster.connecting import connect
from everhash.cluster.lead_file import LeadFile
from everhash.cluster.lead_state import Begun
from everhash.cluster.moved import Counts, Labelling, Moved
from everhash.cluster.shard_collection import OPTIONS
from everhash.collection.attachments import blobs_at
from everhash.collection.collection import Collection
from everhash.collection.formats import pack_likeness, pack_mapping, read_likeness
from everhash.collection.opening import open as open_file
from everhash.errors import OptionError
from everhash.index.columns import REMOVED
from everhash.index.index import Index
from everhash.index.likeness import Likeness
from everhash.learn.exact import ExactLearner
from everhash.learn.hasher import OnlineHasher
from everhash.learn.options import whole_number
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.parts import PartKey, unpack

STEP = 4096
"""Entries that are sent at a time."""
NEW = "create a cluster, and ingest the rows there"


def import_file(
    address: str | None,
    storage: str | os.PathLike[str],
    file: str | os.PathLike[str],
    *,
    shards: int = 8,
    replicas: int = 1,
    durability: str = "commit",
) -> ClusterCollection:
    """Create a cluster on Ray that goes on where a collection's file is; the file stays as it is.

    Should it end half-way, delete the folder and begin anew.

    Args:
        address: of the Ray cluster; see `everhash.cluster.create`.
        storage: a folder that all nodes reach by the same path.
        file: of the collection.
        shards: parts that entries are spread over.
        replicas: copies of each shard.
        durability: "commit", "interval:100ms" or "none": when a write reaches the disk.
    """
    folder = opening._folder(storage)
    whole_number("shards", shards, least=1, most=limits.SHARDS)
    whole_number("replicas", replicas, least=1, most=limits.COPIES)
    with open_file(file, readonly=True) as collection, collection.held():  # all of one state
        _check(collection)
        folder.mkdir(parents=True, exist_ok=True)
        connect(address)
        from everhash.cluster.actors import lead_path

        begin_from(collection, lead_path(folder), shards, replicas, durability).close()
        cluster = opening._opened(folder, replicas, durability, partial=False, patience=60.0)
        for _ in send_entries(collection, cluster):
            pass
        return cluster


def begin_from(
    collection: Collection, path: Path | None, shards: int, copies: int, durability: str
) -> LeadFile:
    """Create the lead's file of a cluster that goes on where a collection is."""
    _check(collection)
    with collection._in_file(), collection._in_memory() as state:
        hasher, index = hasher_from_bytes(state.hasher.to_bytes(), "model"), state.index
        mapping = index.coded_by
        begun = Begun(
            coder=_copied(index.coder, hasher.n_features_in_),
            mapping=b"" if mapping is None else pack_mapping(mapping),
            generation=0 if mapping is None else mapping.generation,
            arrived=index.arrived,
            next_id=index.next_id,
        )
    assert isinstance(hasher, OnlineHasher)  # noqa: S101 - `_check` has looked
    return LeadFile.create(path, hasher, shards, copies, durability, begun)


def send_entries(collection: Collection, cluster: ClusterCollection) -> Iterator[int]:
    """Send all entries of a collection to a cluster that has begun from it; yield how many."""
    with collection._in_memory() as state:
        places = np.flatnonzero(state.index.label_column != REMOVED)
    for start in range(0, len(places), STEP):
        some = places[start : start + STEP]
        cluster._write("import", _entries(collection, some))
        yield start + len(some)


def _check(collection: Collection) -> None:
    """Refuse a collection that a cluster cannot hold."""
    stats, hasher = collection.stats(), collection.hasher
    if not (isinstance(hasher, OnlineHasher) and isinstance(hasher._learner, ExactLearner)):
        raise OptionError(
            f"a cluster learns by the method everhash, this collection by {hasher.method}", hint=NEW
        )
    if hasher._learner.learns_unlabelled:
        raise OptionError("a cluster does not learn from rows without labels", hint=NEW)
    for option in ("coding", "keep_features", "likeness"):
        if stats[option] != OPTIONS[option]:
            raise OptionError(
                f"a cluster has {option}={OPTIONS[option]!r}, this collection {stats[option]!r}",
                hint=NEW,
            )


def _entries(collection: Collection, places: Counts) -> Moved:
    """Return entries with all they have; they arrived in the order of their places."""
    with collection._in_file(), collection._in_memory() as state:
        index: Index = state.index
        labels = Labelling(*index.label_pairs(places), index.taught_column[places].copy())
        ids, stored = index._ids.at(places), index._features.read(places)
        return Moved(ids, places, stored, labels, blobs_at(collection._store, places))


def _copied(coder: Likeness | None, n_features: int) -> Likeness:
    """Return what makes likeness codes, for a lead that changes it."""
    if coder is None:
        return Likeness.draw(n_features)
    key = PartKey("likeness", 0)
    return read_likeness(unpack(pack_likeness(coder), key), key, n_features)
