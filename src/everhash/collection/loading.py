"""From the parts of a file to a hasher and an index, nothing in the file taken on trust."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from everhash.collection.filed import FiledFeatures
from everhash.collection.formats import (
    MOST_PLACES,
    Lesson,
    check_coverage,
    read_change,
    read_codes,
    read_entries,
    read_lesson,
    read_mapping,
    require,
)
from everhash.collection.recorder import Recorder
from everhash.errors import CodebookWarning, CollectionFileError, ModelFileError
from everhash.index.index import CODINGS, UNLABELLED, Index
from everhash.index.records import Change, Codes, Columns, join_codes, restore
from everhash.learn.hasher import OnlineHasher
from everhash.learn.mapping import FrozenMapping
from everhash.learn.model_file import hasher_from_bytes
from everhash.store.parts import Key, unpack
from everhash.store.store import Store

COUNTS = (
    "places",
    "model_bytes",
    "lesson_bytes",
    "lessons",
    "changes",
    "changed",
    "folds",
    "epoch",
)


def fresh_about(options: dict[str, Any]) -> dict[str, Any]:
    """Return the head of a collection that holds nothing."""
    return {"options": options, "refreshed": None, **dict.fromkeys(COUNTS, 0)}


@dataclass
class Loaded:
    """What a collection works with."""

    hasher: OnlineHasher
    index: Index
    recorder: Recorder


def load(store: Store) -> Loaded:
    """Read everything but features, which stay in the file until they are needed."""
    options = _check_about(store.about)
    hasher = load_hasher(store)
    features = FiledFeatures(store, hasher.n_features_in_)
    index = Index(hasher, features=features, **options)
    recorder = Recorder(hasher, index, features)
    columns = load_columns(store, hasher, index, recorder)
    mapping = load_mapping(store, hasher)
    codes = load_codes(store, hasher, mapping, options["coding"])
    check_coverage(codes, columns.labels)
    _count_dead(store, recorder, codes, columns)
    restore(index, columns, mapping, codes)
    recorder.mark()
    return Loaded(hasher, index, recorder)


def _check_about(about: dict[str, Any]) -> dict[str, Any]:
    counts = all(type(about.get(name)) is int and about[name] >= 0 for name in COUNTS)
    options: Any = about.get("options")
    known = isinstance(options, dict) and set(options) == {"coding", "keep_features", "certify"}
    known = known and options["coding"] in CODINGS
    known = known and isinstance(options["keep_features"], bool)
    require(counts and known and isinstance(options["certify"], bool), "head", "it is damaged")
    require(about["places"] <= MOST_PLACES, "head", "it claims more entries than can be")
    return dict(options)


def load_hasher(store: Store) -> OnlineHasher:
    """Read the hasher as it was written, and learn what came after."""
    try:
        hasher = hasher_from_bytes(_pieces(store, "model"), "model")
    except ModelFileError as error:
        raise CollectionFileError(f"{store.name}: {error.message}", hint=error.hint) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodebookWarning)  # given when it happened
        for start in store.starts("lesson"):
            key = Key("lesson", start)
            learn_again(hasher, read_lesson(store.read(key), key, hasher.n_features_in_))
    return hasher


def learn_again(hasher: OnlineHasher, lesson: Lesson) -> None:
    """Learn what was learned before."""
    hasher.check_room(lesson.labels.values)
    if len(lesson.rows):
        hasher.learn_rows(*lesson)
    else:
        hasher.assign(lesson.labels.values)


def _pieces(store: Store, kind: str) -> bytes:
    return b"".join(store.read_bytes(Key(kind, start)) for start in store.starts(kind))


def load_mapping(store: Store, hasher: OnlineHasher) -> FrozenMapping | None:
    """Read the mapping of the unlabelled entries, if there have been any."""
    if not store.starts("mapping"):
        return None
    key = Key("mapping", 0)
    arrays = unpack(_pieces(store, "mapping"), key)
    return read_mapping(arrays, key, (hasher.bits, hasher.n_features_in_))


def load_columns(store: Store, hasher: OnlineHasher, index: Index, recorder: Recorder) -> Columns:
    """Read labels and ids, and what has changed of them since they were written."""
    columns, n_labels, starts = Columns(), len(hasher.words_), store.starts("entries")
    for start in starts:
        key = Key("entries", start)
        require(start == len(index._ids), key, f"expected entries from {len(index._ids)} on")
        columns.extend(read_entries(store.read(key), key, store.parts[key].rows, n_labels), index)
    columns.join()
    require(len(columns.labels) == store.about["places"], "entries", "some are missing")
    for start in store.starts("change"):
        change = load_change(store, start, len(columns.labels), n_labels)
        columns.change(change)
        recorder.touch(starts, change.places)
    return columns


def load_change(store: Store, start: int, n_places: int, n_labels: int) -> Change:
    """Read one change."""
    key = Key("change", start)
    return read_change(store.read(key), key, n_places, n_labels)


def load_codes(
    store: Store, hasher: OnlineHasher, mapping: FrozenMapping | None, coding: str
) -> Codes:
    """Read the codes of all unlabelled entries."""
    cycles = len(mapping.functions) if mapping is not None else 0
    bits = hasher.bits if coding == "home" else max(1, hasher.bits * cycles)
    parts = []
    for start in store.starts("codes"):
        key = Key("codes", start)
        homes = cycles if coding == "home" else min(cycles, 1)
        parts.append(read_codes(store.read(key), key, store.parts[key].rows, bits, homes))
    return join_codes(parts)


def _count_dead(store: Store, recorder: Recorder, codes: Codes, columns: Columns) -> None:
    """Count for each block the entries that have left it but still take space there."""
    starts = store.starts("codes")
    living = codes.places[columns.labels[codes.places] == UNLABELLED]
    counts = np.diff(np.append(np.searchsorted(living, starts), len(living)))
    for start, alive in zip(starts, counts.tolist(), strict=True):
        rows = store.parts.get(Key("features", start), store.parts[Key("codes", start)]).rows
        recorder.lose(start, rows - alive)
