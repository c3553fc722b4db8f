"""The contents of the parts of a collection's file, read back with every number checked.

model      i    the hasher as its own file would hold it, in pieces
lesson     i    rows learned or forgotten since the model was written, or new labels
mapping    i    the mapping that unlabelled entries were encoded with, in pieces
entries    s    label number and id of the entries from place s on
change     i    new labels of entries, or their removal, since their entries were written
codes      s    place, home and bits of the unlabelled entries from place s on
features   s    their features, in half precision
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import CollectionFileError
from everhash.index.features import StoredFeatures
from everhash.index.labels import SEVERAL
from everhash.index.records import CodeRecords, LabelChange, Records
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher
from everhash.learn.views import View
from everhash.peers.views import VIEWS
from everhash.store.parts import DAMAGED, Arrays, PartKey, about_of, pack
from everhash.stream import MAX_FEATURE, Labels, as_label
from everhash.wire.ids import Id, as_id
from everhash.wire.labels import label_from_json, label_to_json

MAX_ENTRIES = 2**31 - 1
"""Entries a collection can have, removed ones included."""
LABEL_BYTES = 64
"""Bytes that a label's name is taken to need."""
HALF_ONE = np.float16(1).view(np.uint16)
NARROW = [np.dtype(name) for name in ("u1", "i1", "u2", "i2", "u4", "i4")]
Counts = NDArray[np.int64]


class Lesson(NamedTuple):
    """Rows that were learned or forgotten; without rows, labels that were given codewords."""

    rows: NDArray[np.float32]
    labels: Labels
    forget: bool = False


def lesson_bytes(lesson: Lesson, new: int, hasher: StreamHasher) -> int:
    """Return about how many bytes a lesson adds to a file or, with new labels, to the hasher."""
    return lesson.rows.nbytes + new * (hasher.label_bytes_ + LABEL_BYTES)


def require(condition: bool, key: PartKey | str, problem: str) -> None:
    """Raise if a part cannot have been written by this library."""
    if not condition:
        raise CollectionFileError(f"{key}: {problem}", hint=DAMAGED)


def _array(
    arrays: Arrays, name: str, key: PartKey, dtype: type, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    array = arrays.get(name)
    require(array is not None, key, f"{name} is missing")
    assert array is not None  # noqa: S101 - for the type checker; `require` has raised
    fits = array.dtype == dtype and array.ndim == len(shape)
    fits = fits and all(s in (None, g) for s, g in zip(shape, array.shape, strict=True))
    require(fits, key, f"{name} is {array.dtype} {array.shape}")
    return array


def _whole(arrays: Arrays, name: str, key: PartKey, rows: int | None, least: int = 0) -> Counts:
    """Return a column of whole numbers, whatever narrow type it was written in."""
    dtype = arrays[name].dtype if name in arrays else None
    require(dtype in NARROW, key, f"{name} is missing, or no column of numbers")
    numbers = _array(arrays, name, key, arrays[name].dtype.type, (rows,)).astype(np.int64)
    require(numbers.min(initial=0) >= least, key, f"{name} holds numbers below {least}")
    return numbers


def _narrow(numbers: Counts) -> NDArray[Any]:
    """Return numbers in the narrowest type that holds them all."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    fits = (d for d in NARROW if np.iinfo(d).min <= low and high <= np.iinfo(d).max)
    return numbers.astype(next(fits))


def pack_lesson(lesson: Lesson) -> bytes:
    """Return a lesson as bytes."""
    rows, labels, forget = lesson
    names = [label_to_json(label) for label in labels.values]
    about = {"forget": names} if forget else names
    return pack(
        {"rows": rows, "steps": _narrow(labels.rows), "which": _narrow(labels.which)}, about
    )


def read_lesson(arrays: Arrays, key: PartKey, n_features: int) -> Lesson:
    """Read a lesson."""
    rows = _array(arrays, "rows", key, np.float32, (None, n_features))
    steps = _whole(arrays, "steps", key, None)
    which = _whole(arrays, "which", key, len(steps))
    require(
        bool((np.abs(rows) < MAX_FEATURE).all()), key, "rows have values that cannot be learned"
    )
    names = about_of(arrays, key)
    forget = isinstance(names, dict) and set(names) == {"forget"}
    names = names["forget"] if forget else names
    require(isinstance(names, list), key, "labels are not a list")
    require(len(names) <= limits.LABELS, key, f"it names more than {limits.LABELS} labels")
    values = [_label(name, key) for name in names]
    require(len(set(values)) == len(values), key, "a label is there twice")
    ascending = bool((np.diff(steps) >= 0).all()) and steps.max(initial=-1) < len(rows)
    require(
        ascending and which.max(initial=-1) < len(values), key, "labels do not belong to its rows"
    )
    once = len(np.unique(steps * max(1, len(values)) + which)) == len(steps)
    require(once, key, "a row has a label twice")
    return Lesson(rows, Labels(values, steps, which), forget)


def _label(name: Any, key: PartKey) -> Hashable:
    try:
        return as_label(label_from_json(name))
    except (ValueError, TypeError, RecursionError) as error:
        raise CollectionFileError(f"{key}: no label: {error!s:.80}", hint=DAMAGED) from None


def pack_mapping(mapping: FrozenMapping) -> bytes:
    """Return a mapping as bytes."""
    arrays = {name: getattr(mapping, name) for name in ("functions", "words", "versions")}
    about = {"labels_per_cycle": mapping.labels_per_cycle, "version": mapping.version}
    return pack(arrays | mapping.view.arrays(), about | {"view": mapping.view.kind})


def read_mapping(arrays: Arrays, key: PartKey, shape: tuple[int, int]) -> FrozenMapping:
    """Read a mapping with `shape` bits a cycle and features."""
    bits, n_features = shape
    about = about_of(arrays, key)
    known = isinstance(about, dict) and set(about) <= {"labels_per_cycle", "version", "view"}
    require(known, key, "its counts are damaged")
    view = _read_view(arrays, key, about.pop("view", None), n_features)
    functions = _array(arrays, "functions", key, np.float32, (None, bits, view.width))
    words = _array(arrays, "words", key, np.int8, (None, bits))
    cycles = len(functions)
    versions = _array(arrays, "versions", key, np.int64, (cycles * bits,))
    counts = len(about) == 2 and all(type(n) is int and 0 < n <= 2**62 for n in about.values())
    counts = counts and versions.min(initial=0) >= 0
    require(counts, key, "its counts are damaged")
    fits = cycles == max(1, -(-len(words) // about["labels_per_cycle"]))
    require(fits, key, f"{len(words)} labels do not need {cycles} cycles")
    usable = bool(np.isfinite(functions).all()) and bool(np.isin(words, (-1, 0, 1)).all())
    require(usable, key, "its values are not those of a mapping")
    return FrozenMapping(functions, view, words, versions=versions, **about)


def _read_view(arrays: Arrays, key: PartKey, kind: Any, n_features: int) -> View:
    """Read the view of a mapping; the oldest files do not name it."""
    found = VIEWS.get("centred" if kind is None else kind) if isinstance(kind, str | None) else None
    require(found is not None, key, f"unknown view {kind!r:.40} (known: {', '.join(VIEWS)})")
    view = None if found is None else found.read(arrays)
    fits = view is not None and view.n_features == n_features
    require(fits, key, "its view does not fit its arrays")
    assert view is not None  # noqa: S101 - for the type checker; `require` has raised
    return view


def pack_entries(records: Records, start: int) -> bytes:
    """Return a range of entries as bytes; ids that are their places take none."""
    arrays: Arrays = {"labels": _narrow(records.labels.astype(np.int64))}
    if len(records.several):
        arrays["several"] = records.several
    ids = records.ids
    if isinstance(ids, list):
        arrays["names"] = np.frombuffer(json.dumps(ids, separators=(",", ":")).encode(), np.uint8)
    elif ids is not None and not np.array_equal(ids, np.arange(start, start + len(ids))):
        arrays["ids"] = ids
    return pack(arrays)


def read_entries(arrays: Arrays, key: PartKey, rows: int, n_labels: int) -> Records:
    """Read a range of entries."""
    labels = _whole(arrays, "labels", key, rows, least=SEVERAL)
    several = np.empty((0, 2), np.int64)
    if "several" in arrays:
        several = _array(arrays, "several", key, np.int64, (None, 2))
    require(labels.max(initial=-1) < n_labels, key, "it names labels that the hasher does not have")
    places, counts = np.unique(several[:, 0], return_counts=True)
    multiple = key.start + np.flatnonzero(labels == SEVERAL)
    fits = np.array_equal(places, multiple) and counts.min(initial=2) > 1
    numbers = several[:, 1]
    fits = fits and numbers.min(initial=0) >= 0 and numbers.max(initial=-1) < n_labels
    fits = fits and len(np.unique(several, axis=0)) == len(several)
    require(fits, key, "entries with several labels do not fit their list")
    if "names" in arrays:
        return Records(labels.astype(np.int32), several, _names(arrays["names"], key, rows))
    ids = _array(arrays, "ids", key, np.int64, (rows,)) if "ids" in arrays else None
    return Records(labels.astype(np.int32), several, ids)


def _names(text: NDArray[Any], key: PartKey, rows: int) -> list[Id]:
    try:
        listed = json.loads(text.tobytes())
        names = [as_id(name) for name in listed]
    except (ValueError, TypeError, RecursionError) as error:
        raise CollectionFileError(f"{key}: no ids: {error!s:.80}", hint=DAMAGED) from None
    require(isinstance(listed, list), key, "no ids: not a list")
    require(len(names) == rows, key, f"{len(names)} ids for {rows} entries")
    return names


def pack_change(change: LabelChange) -> bytes:
    """Return a change as bytes."""
    return pack({name: _narrow(column) for name, column in change._asdict().items()})


def read_change(arrays: Arrays, key: PartKey, n_places: int, n_labels: int) -> LabelChange:
    """Read a change to some of this many entries."""
    places = _whole(arrays, "places", key, None)
    rows = _whole(arrays, "rows", key, None)
    numbers = _whole(arrays, "numbers", key, len(rows))
    known = places.max(initial=-1) < n_places and len(np.unique(places)) == len(places)
    require(bool(known), key, "it changes entries that are not there")
    everyone = len(rows) == 0 or np.array_equal(np.unique(rows), np.arange(len(places)))
    everyone = everyone and len(np.unique(np.stack([rows, numbers]), axis=1).T) == len(rows)
    require(everyone and numbers.max(initial=-1) < n_labels, key, "its labels do not fit")
    return LabelChange(places, rows, numbers)


def pack_codes(codes: CodeRecords, start: int) -> bytes:
    """Return codes as bytes."""
    places, homes = _narrow(codes.places - start), _narrow(codes.homes)
    return pack({"places": places, "homes": homes, "words": codes.words})


def read_codes(arrays: Arrays, key: PartKey, rows: int, bits: int, cycles: int) -> CodeRecords:
    """Read codes of `bits` bits, with homes in this many cycles."""
    places = _whole(arrays, "places", key, rows) + key.start
    homes = _whole(arrays, "homes", key, rows)
    words = _array(arrays, "words", key, np.uint64, (rows, -(-bits // 64)))
    require(bool((np.diff(places) > 0).all()), key, "places do not ascend")
    require(homes.max(initial=-1) < cycles, key, "homes in cycles that are not there")
    beyond = words[:, -1] >> np.uint64((bits - 1) % 64) >> np.uint64(1)
    require(not beyond.any(), key, f"bits beyond the {bits} of a code")
    return CodeRecords(places, homes, words)


def pack_features(places: Counts, stored: StoredFeatures, start: int) -> bytes:
    """Return features as bytes."""
    return pack(
        {"places": _narrow(places - start), "halves": stored.halves, "scales": stored.scales}
    )


def read_features(
    arrays: Arrays, key: PartKey, rows: int, n_features: int
) -> tuple[Counts, StoredFeatures]:
    """Read features, and the places they belong to."""
    places = _whole(arrays, "places", key, rows) + key.start
    halves = _array(arrays, "halves", key, np.float16, (rows, n_features))
    scales = _array(arrays, "scales", key, np.float32, (rows,))
    require(bool((np.diff(places) > 0).all()), key, "places do not ascend")
    usable = bool(((scales > 0) & (scales < MAX_FEATURE)).all())
    require(usable, key, "scales beyond the largest, or not above 0")
    largest = (halves.view(np.uint16) & 0x7FFF).max(
        initial=0
    )  # without the sign, halves compare as their bits
    require(largest <= HALF_ONE, key, "features beyond their scales")
    return places, StoredFeatures(halves, scales)


def check_coverage(codes: CodeRecords, coded: NDArray[np.bool_]) -> None:
    """Raise if an entry that needs a code has none, or a code belongs to no entry."""
    places = codes.places
    inside = places.min(initial=0) >= 0 and places.max(initial=-1) < len(coded)
    require(inside and bool((np.diff(places) > 0).all()), "codes", "they belong to no entry")
    require(int(coded[codes.places].sum()) == int(coded.sum()), "codes", "some entries have none")
