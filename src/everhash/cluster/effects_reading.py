"""Reading what a decided write does to a shard. It comes out of a file: every value is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.effects import Common, Part, Start
from everhash.cluster.moved import Counts, Labelling, Moved
from everhash.collection.attachments import KINDS, Blobs
from everhash.collection.entry_formats import check_features
from everhash.collection.part_arrays import array_of, require, whole_numbers
from everhash.errors import CollectionFileError, IdError, ModelFileError
from everhash.index.features import StoredFeatures
from everhash.learn.following_file import read_solved
from everhash.learn.hasher import OnlineHasher
from everhash.store.parts import DAMAGED, Arrays, PartKey, about_of, unpack
from everhash.wire.ids import IdList, as_ids

HERE = PartKey("effects", 0)
MOST = 2**62
"""Counts in a file stay below this, so that adding to them cannot overflow."""
FLAGS = ("renamed", "rebase", "refresh")
NAMED = ("summed", "removed", "relabelled", "attached")


def is_count(value: Any) -> bool:
    """Whether a value is a number of things."""
    return type(value) is int and 0 <= value <= MOST


def kind_of(data: bytes) -> str:
    """Return whether effects are those of a "start" or of a "write"."""
    kind = _about(unpack(data, HERE)).get("kind")
    require(kind in ("start", "write"), HERE, "they are of an unknown kind")
    return str(kind)


def read_effects(data: bytes) -> tuple[bytes, bytes]:
    """Return both parts of effects; the second is empty if no entry of the shard is concerned."""
    arrays = unpack(data, HERE)
    require(_about(arrays) == {"kind": "write"}, HERE, "they are of an unknown kind")
    return _bytes(arrays, "common"), _bytes(arrays, "part")


def read_start(data: bytes) -> Start:
    """Read what a shard begins with."""
    arrays = unpack(data, HERE)
    about = _about(arrays)
    known = set(about) == {"kind", "arrived", "table"} and about["kind"] == "start"
    require(known and is_count(about["arrived"]) and is_count(about["table"]), HERE, "no start")
    direction = array_of(arrays, "direction", HERE, np.float32, (None,))
    _check_direction(direction)
    model, mapping = _bytes(arrays, "model"), _bytes(arrays, "mapping")
    return Start(model, about["arrived"], about["table"], direction, mapping)


def read_common(data: bytes, hasher: OnlineHasher) -> Common:
    """Read what a write does to every shard, by the follower that it is for."""
    arrays = unpack(data, HERE)
    about = _about(arrays)
    known = set(about) == {"kind", "solved", "arrived", "table", *FLAGS}
    known = known and about["kind"] == "write" and isinstance(about["solved"], dict)
    known = known and is_count(about["arrived"]) and is_count(about["table"])
    known = known and all(isinstance(about[name], bool) for name in FLAGS)
    require(known, HERE, "its counts are damaged")
    direction = None
    if "direction" in arrays:
        direction = array_of(arrays, "direction", HERE, np.float32, (hasher.n_features_in_,))
        _check_direction(direction)
    try:
        solved = read_solved(arrays, dict(about["solved"]), hasher)
    except (ModelFileError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CollectionFileError(f"{HERE}: {error!s:.80}", hint=DAMAGED) from None
    counts = {name: about[name] for name in ("arrived", "table", *FLAGS)}
    return Common(solved=solved, direction=direction, **counts)


def read_part(data: bytes, n_features: int) -> Part:
    """Read what a write does to one shard."""
    arrays = unpack(data, HERE)
    about = _about(arrays)
    sign: Any = about.get("sign")
    adds_up: Any = about.get("adds_up")
    require(type(sign) is int and sign in (-1, 1), HERE, "its sign is none")
    require(isinstance(adds_up, bool), HERE, "it does not say whether rows are summed up")
    ids = {name: _read_ids(name, arrays, about) for name in NAMED}
    signs = array_of(arrays, "signs", HERE, np.int64, (len(ids["summed"]),))
    require(bool(np.isin(signs, (-1, 1)).all()), HERE, "signs are not those of sums")
    loose = None
    if "loose_halves" in arrays:
        loose = _read_stored("loose_", arrays, None, n_features)
    return Part(
        **ids,
        signs=signs,
        labels=_read_labels("labels", arrays, len(ids["relabelled"])),
        blobs=_read_blobs("blobs", arrays, len(ids["attached"])),
        added=_read_moved(arrays, about, n_features) if "arrivals" in arrays else None,
        adds_up=adds_up,
        loose=loose,
        sign=sign,
    )


def _read_moved(arrays: Arrays, about: dict[str, Any], n_features: int) -> Moved:
    ids = _read_ids("ids", arrays, about)
    arrivals = array_of(arrays, "arrivals", HERE, np.int64, (len(ids),))
    check_arrivals(arrivals, HERE)
    return Moved(
        ids,
        arrivals,
        _read_stored("", arrays, len(ids), n_features),
        _read_labels("added", arrays, len(ids)),
        _read_blobs("carried", arrays, len(ids)),
    )


def check_arrivals(arrivals: Counts, key: PartKey) -> None:
    """Raise unless numbers of arrival are counts that ascend."""
    fits = arrivals.min(initial=0) >= 0 and arrivals.max(initial=0) <= MOST
    require(fits and bool((np.diff(arrivals) > 0).all()), key, "arrivals do not ascend")


def _about(arrays: Arrays) -> dict[str, Any]:
    about = about_of(arrays, HERE)
    require(isinstance(about, dict), HERE, "its counts are damaged")
    return dict(about)


def _bytes(arrays: Arrays, name: str) -> bytes:
    return array_of(arrays, name, HERE, np.uint8, (None,)).tobytes()


def _check_direction(direction: NDArray[np.float32]) -> None:
    """Raise unless this has length 1, or is zero while it is not settled."""
    length = float(np.sqrt((direction.astype(np.float64) ** 2).sum()))
    require(not length or abs(length - 1) < 1e-3, HERE, f"a direction of length {length:g}")


def _read_ids(name: str, arrays: Arrays, about: dict[str, Any]) -> IdList:
    key = f"{name}_ids"
    if key in arrays:
        ids: IdList = array_of(arrays, key, HERE, np.int64, (None,))
    else:
        require(isinstance(about.get(key), list), HERE, f"{key} are missing")
        try:
            ids = as_ids(about[key])
        except IdError as error:
            raise CollectionFileError(f"{HERE}: {error!s:.80}", hint=DAMAGED) from None
    distinct = len(np.unique(ids)) if isinstance(ids, np.ndarray) else len(set(ids))
    require(distinct == len(ids), HERE, f"an id is among {key} twice")
    return ids


def _read_stored(name: str, arrays: Arrays, n: int | None, n_features: int) -> StoredFeatures:
    halves = array_of(arrays, f"{name}halves", HERE, np.float16, (n, n_features))
    scales = array_of(arrays, f"{name}scales", HERE, np.float32, (len(halves),))
    stored = StoredFeatures(halves, scales)
    check_features(stored, HERE)
    return stored


def _read_labels(name: str, arrays: Arrays, n: int) -> Labelling:
    taught = array_of(arrays, f"{name}_taught", HERE, np.uint8, (n,))
    rows = whole_numbers(arrays, f"{name}_rows", HERE, None)
    numbers = whole_numbers(arrays, f"{name}_numbers", HERE, len(rows))
    fits = taught.max(initial=0) <= 1 and rows.max(initial=-1) < n
    fits = fits and bool((np.diff(rows) >= 0).all())
    fits = fits and len(np.unique(np.stack([rows, numbers]), axis=1).T) == len(rows)
    require(fits, HERE, f"{name} do not belong to its entries")
    return Labelling(rows, numbers, taught.astype(np.bool_))


def _read_blobs(name: str, arrays: Arrays, n: int) -> Blobs:
    """Read blobs, one after the other; what has length -1 is deleted."""
    whole = _bytes(arrays, f"{name}_bytes")
    numbers = array_of(arrays, f"{name}_numbers", HERE, np.int64, (None,))
    lengths = array_of(arrays, f"{name}_lengths", HERE, np.int64, (len(numbers),))
    fits = numbers.min(initial=0) >= 0 and numbers.max(initial=-1) < KINDS * n
    fits = fits and len(np.unique(numbers)) == len(numbers)
    fits = fits and lengths.min(initial=0) >= -1 and lengths.max(initial=0) <= len(whole)
    fits = fits and sum(max(0, length) for length in lengths.tolist()) == len(whole)
    require(bool(fits), HERE, f"{name} do not belong to its entries")
    start, blobs = 0, {}
    for number, length in zip(numbers.tolist(), lengths.tolist(), strict=True):
        blobs[number] = None if length < 0 else whole[start : start + length]
        start += max(0, length)
    return blobs
