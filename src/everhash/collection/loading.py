"""Reading hasher and index from the parts of a file, with everything in it checked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import check_numbers
from everhash.collection.cell_parts import load_cell_numbers, load_cells
from everhash.collection.entry_formats import (
    MAX_ENTRIES,
    check_coverage,
    read_change,
    read_codes,
    read_entries,
)
from everhash.collection.formats import (
    OLD_OPTIONS,
    Lesson,
    current_options,
    lesson_bytes,
    read_lesson,
    read_lesson_solved,
    read_likeness,
    read_mapping,
)
from everhash.collection.part_arrays import require
from everhash.collection.pieces import covering
from everhash.collection.recorder import Recorder
from everhash.collection.stored_features import FeatureStore
from everhash.errors import (
    CodebookWarning,
    CollectionFileError,
    InputError,
    ModelFileError,
    UnknownNameError,
)
from everhash.index.columns import REMOVED
from everhash.index.export import CodeRecords, LabelChange, Records, RecordTable
from everhash.index.hasher import Hasher
from everhash.index.index import CODINGS, Index
from everhash.index.likeness import Likeness
from everhash.index.refresh import RefreshReport
from everhash.index.state import KEEPING
from everhash.learn.following import follow
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.parts import DAMAGED, PartKey, unpack
from everhash.store.store import Store

KINDS = {
    *("model", "lesson", "mapping", "likeness", "centroids"),
    *("entries", "change", "codes", "features", "cells"),
}
SHARD = {"shard", "arrivals"}
"""What the file of a shard has besides; see `everhash.cluster`."""
OUTGROWN = "it outgrows what the head counts"
MAX_COUNT = 2**62
"""Counts in a head stay below this, so that adding to them cannot overflow."""
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

REPORTED = tuple(field.name for field in fields(RefreshReport))


def fresh_about(options: dict[str, Any]) -> dict[str, Any]:
    """Return the head of an empty collection."""
    return {"options": options, "refreshed": None, **dict.fromkeys(COUNTS, 0)}


@dataclass
class Loaded:
    """A collection in memory."""

    hasher: StreamHasher
    index: Index
    recorder: Recorder
    features: FeatureStore


def load(store: Store, make_index: type[Index] = Index) -> Loaded:
    """Read everything but features, which stay in the file until they are needed."""
    options = check_head(store)
    hasher = load_hasher(store)
    features = FeatureStore(store, hasher.n_features_in_)
    index = make_index(hasher, features=features, **options)
    recorder = Recorder(hasher, index, features)
    records = load_records(store, hasher, index, recorder)
    mapping = load_mapping(store, hasher)
    codes = load_codes(store, hasher, mapping, options["coding"])
    coded = index.has_code(records.labels)
    check_coverage(codes, coded)
    coder = _load_likeness(store, hasher.n_features_in_, options)
    index.restore(records, codes, mapping, coder)
    if (cells := load_cells(store, index)) is not None:
        index.list_cells(cells, load_cell_numbers(store, index, cells))
    require(index.ids_are_distinct(), "entries", "two have one id")
    require(index.first_rows_fit(), "likeness", "its rows are not those of the first entries")
    index.continue_ids(store.about.get("next_id", 0))
    _count_lost(store, recorder, coded, index.keeps_features())
    recorder.mark_saved()
    return Loaded(hasher, index, recorder, features)


def check_head(store: Store) -> dict[str, Any]:
    """Check that the head is consistent and fits the list of parts; return the options in it."""
    options = _check_about(store.about)
    _check_listing(store)
    check_numbers(store)
    return options


def _check_about(about: dict[str, Any]) -> dict[str, Any]:
    counts = all(type(about.get(name)) is int and 0 <= about[name] <= MAX_COUNT for name in COUNTS)
    options: Any = about.get("options")
    known = isinstance(options, dict) and set(options) in (OLD_OPTIONS, OLD_OPTIONS | {"likeness"})
    if known and set(options) == OLD_OPTIONS:
        known = isinstance(options["keep_features"], bool)
    options = current_options(options) if known else {}
    known = known and options["coding"] in CODINGS and options["keep_features"] in KEEPING
    known = known and isinstance(options["certify"], bool) and isinstance(options["likeness"], bool)
    known = known and "refreshed" in about and _is_report(about["refreshed"])
    next_id = about.get("next_id", 0)
    known = known and type(next_id) is int and 0 <= next_id <= 2**63
    require(counts and known, "head", "it is damaged")
    require(
        about["places"] <= MAX_ENTRIES, "head", "it claims more entries than a collection can have"
    )
    return dict(options)


def _is_report(refreshed: Any) -> bool:
    """Whether it says when the last refresh was and what it did, or that there was none."""
    if refreshed is None:
        return True
    if not isinstance(refreshed, dict) or set(refreshed) != {"at", *REPORTED}:
        return False
    numbers = [refreshed[name] for name in REPORTED if name != "dry_run"]
    counted = all(type(n) in (int, float) and 0 <= n <= MAX_COUNT for n in numbers)
    return counted and isinstance(refreshed["at"], str) and type(refreshed["dry_run"]) is bool


def _check_listing(store: Store) -> None:
    """Check that the names of the parts fit each other and the counts in the head."""
    about, parts = store.about, store.parts
    require({key.kind for key in parts} <= KINDS | SHARD, "head", "parts of an unknown kind")
    starts = {kind: store.starts(kind) for kind in KINDS}
    counts = {"lesson": about["lessons"], "change": about["changes"]}
    for kind in ("model", "mapping", "lesson", "change", "likeness", "centroids"):
        found = len(starts[kind])
        numbered = starts[kind] == list(range(found)) and found == counts.get(kind, found)
        require(numbered, f"{kind} parts", "some are missing, or more than the head counts")
    changed = sum(parts[PartKey("change", start)].rows for start in starts["change"])
    require(changed == about["changed"], "change parts", f"{changed} changed entries")
    begins = [*starts["codes"], *starts["features"]]
    fits = min(begins, default=0) >= 0 and max(begins, default=0) <= about["places"]
    require(fits, "codes and features", "they do not start where they should")
    newest = max((part.written for part in parts.values()), default=0)
    require(newest <= store.commit <= MAX_COUNT, "head", "its commit is before that of a part")


def load_hasher(store: Store) -> StreamHasher:
    """Read the hasher as it was written, and learn what came after."""
    model = _pieces(store, "model")
    require(len(model) == store.about["model_bytes"], "model", "some of it is missing")
    require(store.about["lesson_bytes"] <= len(model), "lesson parts", "they outgrew the model")
    try:
        hasher = hasher_from_bytes(model, "model")
    except ModelFileError as error:
        message = f"{store.name}: {error.message_template}"
        raise CollectionFileError(message, hint=error.hint_template) from None
    learn_lessons(store, hasher, 0)
    return hasher


def learn_lessons(store: Store, hasher: StreamHasher, known: int) -> None:
    """Learn the lessons from number `known` on; together they take no more bytes than the model."""
    total = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodebookWarning)  # it was given when the rows were learned
        for start in store.starts("lesson")[known:]:
            key = PartKey("lesson", start)
            arrays = store.read(key)
            if (solved := read_lesson_solved(arrays, key, hasher)) is not None:
                total += lesson_bytes(solved, 0, hasher)
                require(total <= store.about["lesson_bytes"], key, OUTGROWN)
                follow(hasher, solved)  # type: ignore[arg-type]
                continue
            lesson = read_lesson(arrays, key, hasher.n_features_in_)
            require(len(lesson.rows) == store.parts[key].rows, key, f"{len(lesson.rows)} rows")
            total += lesson_bytes(lesson, len(hasher.unknown(lesson.labels.values)), hasher)
            require(total <= store.about["lesson_bytes"], key, OUTGROWN)
            _learn_lesson(hasher, lesson)


def _learn_lesson(hasher: StreamHasher, lesson: Lesson) -> None:
    rows, labels, forget, _ = lesson
    try:
        hasher.check_room(labels.values)
        if forget:
            hasher.forget_rows(rows, labels)
    except (InputError, UnknownNameError) as error:
        raise CollectionFileError(f"lesson: {error.message_template}", hint=DAMAGED) from None
    if len(rows) == 0:
        hasher.assign(labels.values)
    elif not forget:
        hasher.learn_rows(rows, labels)


def _pieces(store: Store, kind: str) -> bytes:
    return b"".join(store.read_bytes(PartKey(kind, start)) for start in store.starts(kind))


def load_mapping(store: Store, hasher: StreamHasher) -> FrozenMapping | None:
    """Read the mapping of the unlabelled entries, if there have been any."""
    if not store.starts("mapping"):
        return None
    key = PartKey("mapping", 0)
    arrays = unpack(_pieces(store, "mapping"), key)
    mapping = read_mapping(arrays, key, (hasher.bits, hasher.n_features_in_))
    known = len(mapping.words)
    fits = np.array_equal(mapping.words, hasher.words_[:known])
    fits = fits and np.array_equal(mapping.label_cycles, hasher.label_cycles_[:known])
    require(fits, key, "its labels are not the hasher's")
    return mapping


def _load_likeness(store: Store, n_features: int, options: dict[str, Any]) -> Likeness | None:
    """Read what makes likeness codes; None while no entry has come."""
    key, places = PartKey("likeness", 0), store.about["places"]
    of_shard = PartKey("shard", 0) in store.parts  # whose lead keeps the first rows
    if key not in store.parts:
        require(of_shard or not (options["likeness"] and places), key, "it is missing")
        return None
    coder = read_likeness(store.read(key), key, n_features)
    # until the direction is settled, the first rows are those of all entries
    fits = of_shard or coder.settled or len(coder.first) == places
    require(fits, key, f"{len(coder.first)} first rows for {places} entries")
    return coder


def load_records(
    store: Store, hasher: StreamHasher, index: Index, recorder: Recorder
) -> RecordTable:
    """Read columns and ids, and apply the changes since they were written."""
    records, n_labels, starts = RecordTable(), len(hasher.words_), store.starts("entries")
    done = 0
    for start in starts:
        key = PartKey("entries", start)
        require(start == done, key, f"expected entries from {done} on")
        part = load_entries(store, index, key)
        records.extend(part)
        done += len(part)
    records.join()
    require(done == store.about["places"], "entries", "some are missing")
    gone = records.labels == REMOVED
    for start in store.starts("change"):
        change = load_change(store, start, len(records.labels), n_labels)
        records.change(change)
        gone[change.places] |= records.labels[change.places] == REMOVED
        recorder.touch(starts, change.places)
    _check_labels(records, hasher)
    # entries may have been written again after a change, which then changes nothing
    require(
        bool((records.labels[gone] == REMOVED).all()), "change parts", "they bring back entries"
    )
    return records


def _check_labels(records: RecordTable, hasher: StreamHasher) -> None:
    """Raise if an entry has a label that was merged into another or dropped."""
    gone = {number for number, name in enumerate(hasher.labels_) if name is None}
    if not gone:
        return
    used = {
        *np.unique(records.labels).tolist(),
        *(n for of in records.several.values() for n in of),
    }
    require(gone.isdisjoint(used), "entries", "some have labels that are gone")


def load_entries(store: Store, index: Index, key: PartKey) -> Records:
    """Read one range of entries."""
    width = 0 if index.coder is None else index.coder.width
    n_labels = len(index.hasher.words_)
    return read_entries(store.read(key), key, store.parts[key].rows, n_labels, width)


def load_change(store: Store, start: int, n_places: int, n_labels: int) -> LabelChange:
    """Read one change of labels."""
    key = PartKey("change", start)
    change = read_change(store.read(key), key, n_places, n_labels)
    require(len(change.places) == store.parts[key].rows, key, f"{len(change.places)} entries")
    return change


def load_codes(
    store: Store, hasher: Hasher, mapping: FrozenMapping | None, coding: str, known: int = 0
) -> CodeRecords:
    """Read the codes of the unlabelled entries from place `known` on."""
    cycles = len(mapping.functions) if mapping is not None else 0
    bits = hasher.bits if coding == "home" else max(1, hasher.bits * cycles)
    homes = cycles if coding == "home" else min(cycles, 1)
    parts = []
    for start, stop in pairwise([*covering(store, "codes", known), MAX_ENTRIES]):
        key = PartKey("codes", start)
        codes = read_codes(store.read(key), key, store.parts[key].rows, bits, homes)
        require(codes.places.max(initial=-1) < stop, key, "places beyond the next part's start")
        parts.append(codes.part(codes.places >= known) if known else codes)
    return CodeRecords.joined(parts)


def _count_lost(
    store: Store, recorder: Recorder, coded: NDArray[np.bool_], kept: NDArray[np.bool_]
) -> None:
    """Count for each part the entries that have left it but still take space there."""
    for kind, there in (("codes", coded), ("features", kept)):
        for start, stop in pairwise([*store.starts(kind), len(there)]):
            key = PartKey(kind, start)
            alive = int(np.count_nonzero(there[start:stop]))
            recorder.count_lost(key, store.parts[key].rows - alive)
    rows = sum(store.parts[PartKey("features", start)].rows for start in store.starts("features"))
    require(rows >= int(np.count_nonzero(kept)), "features", "some are missing")
