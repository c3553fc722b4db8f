"""What a decided write does to a shard, as bytes: in the lead's storage, and on the way there.

Entries are named by their ids. Every number of arrival, label and feature is decided by the lead,
so that all copies of a shard, and a shard that applies a write again after a crash, end alike.
`effects_reading` reads them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.moved import NOBODY, Counts, Labelling, Moved
from everhash.collection.attachments import Blobs
from everhash.collection.part_arrays import narrowed
from everhash.index.features import StoredFeatures
from everhash.learn.following import Solved
from everhash.learn.following_file import solved_to_arrays
from everhash.store.parts import Arrays, pack
from everhash.wire.ids import IdList, plain_ids


class Part(NamedTuple):
    """What a write does to the entries of one shard, in this order."""

    summed: IdList = NOBODY
    """Entries whose rows enter the shard's sums, or leave them."""
    signs: Counts = NOBODY
    """+1 or -1 for each of them."""
    removed: IdList = NOBODY
    relabelled: IdList = NOBODY
    labels: Labelling = Labelling(NOBODY, NOBODY, np.empty(0, np.bool_))
    """Of those; who has none there has none from now on."""
    attached: IdList = NOBODY
    blobs: Blobs = {}  # noqa: RUF012 - nobody writes to it
    """What those get, as if their places were 0, 1, 2, …"""
    added: Moved | None = None
    adds_up: bool = False
    """Whether rows of added entries that were taught enter the shard's sums."""
    loose: StoredFeatures | None = None
    """Rows that are no entries and enter the sums, or leave them."""
    sign: int = 1


class Common(NamedTuple):
    """What a write does to every shard."""

    solved: Solved
    arrived: int
    """Entries that have ever been added, on all shards."""
    table: int
    """Version of the table of shards."""
    direction: NDArray[np.float32] | None = None
    """Of likeness codes, when it is settled."""
    renamed: bool = False
    """Whether entries have to be grouped anew: labels have other names, or are gone."""
    rebase: bool = False
    """Whether unlabelled entries, of which there are none, are coded by the newest mapping."""
    refresh: bool = False
    """Whether unlabelled entries are brought up to date with the newest mapping."""


class Start(NamedTuple):
    """What a new shard begins with."""

    model: bytes
    """A follower's file."""
    arrived: int
    table: int
    direction: NDArray[np.float32]
    """Zeros while it is not settled."""
    mapping: bytes
    """That unlabelled entries are coded by; empty if there have been none."""


# As bytes


def pack_start(start: Start) -> bytes:
    """Return what a shard begins with as bytes."""
    arrays: Arrays = {
        "model": np.frombuffer(start.model, np.uint8),
        "mapping": np.frombuffer(start.mapping, np.uint8),
        "direction": start.direction,
    }
    return pack(arrays, {"kind": "start", "arrived": start.arrived, "table": start.table})


def pack_common(common: Common) -> bytes:
    """Return what a write does to every shard as bytes."""
    arrays, solved = solved_to_arrays(common.solved)
    about = common._asdict() | {"kind": "write", "solved": solved}
    del about["direction"]
    if common.direction is not None:
        arrays["direction"] = common.direction
    return pack(arrays, about)


def pack_part(part: Part) -> bytes:
    """Return what a write does to one shard as bytes."""
    arrays: Arrays = {"signs": part.signs}
    about: dict[str, Any] = {"adds_up": part.adds_up, "sign": part.sign}
    for name in ("summed", "removed", "relabelled", "attached"):
        _pack_ids(name, getattr(part, name), arrays, about)
    _pack_labels("labels", part.labels, arrays)
    _pack_blobs("blobs", part.blobs, arrays)
    if part.loose is not None:
        arrays |= {"loose_halves": part.loose.halves, "loose_scales": part.loose.scales}
    if part.added is not None:
        _pack_moved(part.added, arrays, about)
    return pack(arrays, about)


def _pack_moved(moved: Moved, arrays: Arrays, about: dict[str, Any]) -> None:
    _pack_ids("ids", moved.ids, arrays, about)
    _pack_labels("added", moved.labels, arrays)
    _pack_blobs("carried", moved.blobs, arrays)
    arrays |= {"arrivals": moved.arrivals}
    arrays |= {"halves": moved.stored.halves, "scales": moved.stored.scales}


def _pack_ids(name: str, ids: IdList, arrays: Arrays, about: dict[str, Any]) -> None:
    if isinstance(ids, np.ndarray):
        arrays[f"{name}_ids"] = ids
    else:
        about[f"{name}_ids"] = plain_ids(ids)


def _pack_labels(name: str, labels: Labelling, arrays: Arrays) -> None:
    arrays[f"{name}_rows"] = narrowed(labels.rows)
    arrays[f"{name}_numbers"] = narrowed(labels.numbers)
    arrays[f"{name}_taught"] = labels.taught.astype(np.uint8)


def _pack_blobs(name: str, blobs: Blobs, arrays: Arrays) -> None:
    """Pack blobs one after the other; what has length -1 is deleted."""
    lengths = [-1 if data is None else len(data) for data in blobs.values()]
    arrays[f"{name}_numbers"] = np.array(list(blobs), np.int64)
    arrays[f"{name}_lengths"] = np.array(lengths, np.int64)
    whole = b"".join(data for data in blobs.values() if data is not None)
    arrays[f"{name}_bytes"] = np.frombuffer(whole, np.uint8)


def pack_effects(common: bytes, part: bytes) -> bytes:
    """Return both parts of what a write does to a shard as one."""
    arrays: Arrays = {
        "common": np.frombuffer(common, np.uint8),
        "part": np.frombuffer(part, np.uint8),
    }
    return pack(arrays, {"kind": "write"})
