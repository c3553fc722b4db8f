"""Bringing a reader from one state of the file to a newer one by reading only what is new."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.collection.formats import read_entries, require
from everhash.collection.loading import (
    Loaded,
    check_head,
    covering,
    learn_lessons,
    load,
    load_change,
    load_codes,
    load_hasher,
)
from everhash.index.index import Index
from everhash.index.records import EntryColumns, LabelChange, Records, append, replay
from everhash.store.parts import Listing, PartKey
from everhash.store.store import Store


def read_newer(store: Store, parts: Listing, about: dict[str, Any], state: Loaded) -> Loaded:
    """Return the state the store is at now, given an older one, its list of parts and its head."""
    now = store.about
    check_head(store)
    if (now["epoch"], now["folds"]) != (about["epoch"], about["folds"]):
        return load(store)
    model = PartKey("model", 0)
    if parts[model] == store.parts.get(model):
        learn_lessons(store, state.hasher, about["lessons"])
    else:
        state.hasher = load_hasher(store)
    state.index.hasher = state.hasher  # numbers and words of labels never change
    _read_entries(store, state.index, about["changes"])
    return state


def _read_entries(store: Store, index: Index, known_changes: int) -> None:
    """Append new entries, and apply the writer's changes to old ones."""
    known, n_labels = index.arrived, len(index.hasher.words_)
    new = EntryColumns()
    for start in covering(store, "entries", known):
        key = PartKey("entries", start)
        records = read_entries(store.read(key), key, store.parts[key].rows, n_labels)
        new.extend(_from(records, start, known), index)
    new.join()
    total = known + len(new.labels)
    require(total == store.about["places"], "entries", "some are missing")
    names = index.hasher.labels_
    for start in store.starts("change"):
        if start >= known_changes:
            change = load_change(store, start, total, n_labels)
            replay(index, _part(change, change.places < known), names)
            new.change(_part(change, change.places >= known), known)
    codes = load_codes(store, index.hasher, index.coded_by, index.coding, known)
    append(index, new, known, codes)


def _from(records: Records, start: int, known: int) -> Records:
    """Return the records from place `known` on."""
    skip = max(0, known - start)
    several = records.several[records.several[:, 0] >= known]
    ids = None if records.ids is None else records.ids[skip:]
    return Records(records.labels[skip:], several, ids)


def _part(change: LabelChange, wanted: np.ndarray[Any, np.dtype[np.bool_]]) -> LabelChange:
    """Return the change restricted to some of its entries."""
    number = np.cumsum(wanted) - 1
    mine = wanted[change.rows]
    rows = number[change.rows[mine]]
    return LabelChange(change.places[wanted], rows, change.numbers[mine])
