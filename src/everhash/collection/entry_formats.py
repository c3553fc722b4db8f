"""What a collection's file holds of entries.

entries    s    the columns and ids of the entries from place s on; see `everhash.index.columns`
change     i    new labels of entries, or their removal, since their entries were written
codes      s    place, home and bits of the unlabelled entries from place s on
features   s    features of entries from place s on, in half precision
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.collection.part_arrays import Counts, array_of, narrowed, require, whole_numbers
from everhash.errors import CollectionFileError
from everhash.index.columns import COLUMNS, SEVERAL, Column
from everhash.index.export import CodeRecords, LabelChange, Records
from everhash.index.features import StoredFeatures
from everhash.store.parts import ABOUT, DAMAGED, Arrays, PartKey, about_of, pack
from everhash.stream import MAX_FEATURE
from everhash.wire.ids import ID_CHARACTERS, Id, as_id

MAX_ENTRIES = 2**31 - 1
"""Entries a collection can have, removed ones included."""
LARGEST_COSINE = 1.01
"""Of a likeness code; rounding may take a cosine a little beyond 1."""
HALF_ONE = np.float16(1).view(np.uint16)


def pack_entries(records: Records, start: int) -> bytes:
    """Return a range of entries as bytes; ids that are their places take none."""
    arrays: Arrays = {name: _packed(column) for name, column in records.columns.items()}
    if len(records.several):
        arrays["several"] = records.several
    ids = records.ids
    if isinstance(ids, list):
        arrays["names"] = np.frombuffer(json.dumps(ids, separators=(",", ":")).encode(), np.uint8)
    elif ids is not None and not np.array_equal(ids, np.arange(start, start + len(ids))):
        arrays["ids"] = ids
    return pack(arrays)


def _packed(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column as it is written: flags as bytes, labels in a narrow type."""
    if column.dtype == np.bool_:
        return column.astype(np.uint8)
    return narrowed(column.astype(np.int64)) if column.dtype.kind == "i" else column


def read_entries(
    arrays: Arrays, key: PartKey, rows: int, n_labels: int, likeness_width: int
) -> Records:
    """Read a range of entries, with likeness codes of so many words, or none."""
    columns = {
        column.name: _column(arrays, column, key, rows, likeness_width)
        for column in COLUMNS
        if column.stored and (likeness_width or not column.likeness)
    }
    labels = columns["labels"]
    several = np.empty((0, 2), np.int64)
    if "several" in arrays:
        several = array_of(arrays, "several", key, np.int64, (None, 2))
    require(labels.max(initial=-1) < n_labels, key, "it names labels that the hasher does not have")
    multiple = key.start + np.flatnonzero(labels == SEVERAL)
    fits = _is_list_of(several, multiple, n_labels)
    require(fits, key, "entries with several labels do not fit their list")
    if "names" in arrays:
        return Records(columns, several, _names(arrays["names"], key, rows))
    ids = array_of(arrays, "ids", key, np.int64, (rows,)) if "ids" in arrays else None
    return Records(columns, several, ids)


def _is_list_of(several: Counts, multiple: Counts, n_labels: int) -> bool:
    """Whether a list has labels for the entries that have several, and for no others."""
    if len(several) == 0:
        return len(multiple) == 0
    places, counts = np.unique(several[:, 0], return_counts=True)
    fits = np.array_equal(places, multiple) and bool(counts.min() > 1)
    numbers = several[:, 1]
    fits = fits and bool(numbers.min() >= 0 and numbers.max() < n_labels)
    return fits and len(np.unique(several, axis=0)) == len(several)


def _column(
    arrays: Arrays, column: Column, key: PartKey, rows: int, likeness_width: int
) -> NDArray[Any]:
    """Read one column of entries."""
    name = column.name
    if np.issubdtype(column.dtype, np.signedinteger):
        return whole_numbers(arrays, name, key, rows, least=SEVERAL).astype(column.dtype)
    if column.dtype is np.bool_:
        if name not in arrays:  # files before version 3
            return np.zeros(rows, np.bool_)
        flags = array_of(arrays, name, key, np.uint8, (rows,))
        require(flags.max(initial=0) <= 1, key, f"{name} are not flags")
        return flags.astype(np.bool_)
    codes = array_of(arrays, name, key, column.dtype, (rows, likeness_width))
    floats = np.ascontiguousarray(codes[:, -1:]).view(np.float32)
    within = bool((np.abs(floats) <= LARGEST_COSINE).all())
    require(within, key, "likeness codes of no row")
    return codes


def _names(text: NDArray[Any], key: PartKey, rows: int) -> list[Id]:
    try:
        listed = json.loads(text.tobytes())
        names = listed if _are_texts(listed) else [as_id(name) for name in listed]
    except (ValueError, TypeError, RecursionError) as error:
        raise CollectionFileError(f"{key}: no ids: {error!s:.80}", hint=DAMAGED) from None
    require(isinstance(listed, list), key, "no ids: not a list")
    require(len(names) == rows, key, f"{len(names)} ids for {rows} entries")
    return names


def _are_texts(listed: Any) -> bool:
    """Whether it is a list of strings, each of which can be an id; False leaves it open."""
    if not isinstance(listed, list) or set(map(type, listed)) != {str}:
        return False
    lengths = set(map(len, listed))
    return min(lengths) >= 1 and max(lengths) <= ID_CHARACTERS


def pack_change(change: LabelChange) -> bytes:
    """Return a change as bytes."""
    columns = {"places": change.places, "rows": change.rows, "numbers": change.numbers}
    about = {"removed": change.removed, "taught": change.taught}
    return pack({name: narrowed(column) for name, column in columns.items()}, about)


def read_change(arrays: Arrays, key: PartKey, n_places: int, n_labels: int) -> LabelChange:
    """Read a change to some of this many entries."""
    places = whole_numbers(arrays, "places", key, None)
    rows = whole_numbers(arrays, "rows", key, None)
    numbers = whole_numbers(arrays, "numbers", key, len(rows))
    known = places.max(initial=-1) < n_places and len(np.unique(places)) == len(places)
    require(bool(known), key, "it changes entries that are not there")
    if ABOUT in arrays:
        about = about_of(arrays, key)
    else:  # files before version 3: no labels, no entry
        about = {"removed": len(rows) == 0, "taught": False}
    flags = isinstance(about, dict) and set(about) == {"removed", "taught"}
    flags = flags and all(type(flag) is bool for flag in about.values())
    everyone = len(rows) == 0 or np.array_equal(np.unique(rows), np.arange(len(places)))
    everyone = everyone and len(np.unique(np.stack([rows, numbers]), axis=1).T) == len(rows)
    fits = flags and everyone and not (about["removed"] and len(rows))
    require(fits and numbers.max(initial=-1) < n_labels, key, "its labels do not fit")
    return LabelChange(places, rows, numbers, **about)


def pack_codes(codes: CodeRecords, start: int) -> bytes:
    """Return codes as bytes."""
    places, homes = narrowed(codes.places - start), narrowed(codes.homes)
    return pack({"places": places, "homes": homes, "words": codes.words})


def read_codes(arrays: Arrays, key: PartKey, rows: int, bits: int, cycles: int) -> CodeRecords:
    """Read codes of `bits` bits, with homes in this many cycles."""
    places = whole_numbers(arrays, "places", key, rows) + key.start
    homes = whole_numbers(arrays, "homes", key, rows)
    words = array_of(arrays, "words", key, np.uint64, (rows, -(-bits // 64)))
    require(bool((np.diff(places) > 0).all()), key, "places do not ascend")
    require(homes.max(initial=-1) < cycles, key, "homes in cycles that are not there")
    beyond = words[:, -1] >> np.uint64((bits - 1) % 64) >> np.uint64(1)
    require(not beyond.any(), key, f"bits beyond the {bits} of a code")
    return CodeRecords(places, homes, words)


def pack_features(places: Counts, stored: StoredFeatures, start: int) -> bytes:
    """Return features as bytes."""
    return pack(
        {"places": narrowed(places - start), "halves": stored.halves, "scales": stored.scales}
    )


def read_features(
    arrays: Arrays, key: PartKey, rows: int, n_features: int
) -> tuple[Counts, StoredFeatures]:
    """Read features, and the places they belong to."""
    places = whole_numbers(arrays, "places", key, rows) + key.start
    halves = array_of(arrays, "halves", key, np.float16, (rows, n_features))
    scales = array_of(arrays, "scales", key, np.float32, (rows,))
    require(bool((np.diff(places) > 0).all()), key, "places do not ascend")
    stored = StoredFeatures(halves, scales)
    check_features(stored, key)
    return places, stored


def check_features(stored: StoredFeatures, key: PartKey) -> None:
    """Raise if features have values that none can have."""
    usable = bool(((stored.scales > 0) & (stored.scales < MAX_FEATURE)).all())
    require(usable, key, "scales beyond the largest, or not above 0")
    # without the sign, halves compare as their bits
    largest = (stored.halves.view(np.uint16) & 0x7FFF).max(initial=0)
    require(largest <= HALF_ONE, key, "features beyond their scales")


def check_coverage(codes: CodeRecords, coded: NDArray[np.bool_]) -> None:
    """Raise if an entry that needs a code has none, or a code belongs to no entry."""
    places = codes.places
    inside = places.min(initial=0) >= 0 and places.max(initial=-1) < len(coded)
    require(inside and bool((np.diff(places) > 0).all()), "codes", "they belong to no entry")
    require(int(coded[codes.places].sum()) == int(coded.sum()), "codes", "some entries have none")
