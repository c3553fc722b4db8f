"""Bringing a reader from one state of the file to a newer one by reading only what is new."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.collection.cell_parts import load_cell_numbers
from everhash.collection.loading import (
    Loaded,
    check_head,
    learn_lessons,
    load,
    load_change,
    load_codes,
    load_entries,
    load_hasher,
)
from everhash.collection.part_arrays import require
from everhash.collection.pieces import covering
from everhash.index.export import LabelChange, RecordTable
from everhash.index.index import Index
from everhash.store.parts import Listing, PartKey
from everhash.store.store import Store


def read_newer(store: Store, parts: Listing, about: dict[str, Any], state: Loaded) -> Loaded:
    """Return the state the store is at now, given an older one, its list of parts and its head."""
    now = store.about
    check_head(store)
    if (now["epoch"], now["folds"]) != (about["epoch"], about["folds"]):
        newest = load(store)
        if newest.index.continues(state.index):
            newest.index.numbering = state.index.numbering
        return newest
    model = PartKey("model", 0)
    if parts[model] == store.parts.get(model):
        learn_lessons(store, state.hasher, about["lessons"])
    else:
        state.hasher = load_hasher(store)
        state.index.hasher = state.hasher  # numbers and words of labels never change
        state.index.labels_changed()  # their names may
    _read_entries(store, state.index, about["changes"])
    state.features.dropped = []  # only a writer makes room
    state.features.complete = False
    return state


def _read_entries(store: Store, index: Index, known_changes: int) -> None:
    """Append new entries, and apply the writer's changes to old ones."""
    known, n_labels = index.arrived, len(index.hasher.words_)
    new = RecordTable(known)
    for start in covering(store, "entries", known):
        records = load_entries(store, index, PartKey("entries", start))
        skip = max(0, known - start)
        new.extend(records.after(skip, known) if skip else records)
    new.join()
    total = known + len(new.labels)
    require(total == store.about["places"], "entries", "some are missing")
    changes = [
        load_change(store, start, total, n_labels)
        for start in store.starts("change")
        if start >= known_changes
    ]
    for change in changes:
        new.change(change.part(change.places >= known))
    codes = load_codes(store, index.hasher, index.coded_by, index.coding, known)
    index.append(new, codes)
    if index.cells is not None:
        index.list_cells(index.cells, load_cell_numbers(store, index, index.cells, known))
    for change in _in_effect([change.part(change.places < known) for change in changes]):
        index.apply(change)


def _in_effect(changes: list[LabelChange]) -> list[LabelChange]:
    """Return what changes do together: the last one of each entry.

    What came before may name labels that are gone, and entries whose features are. Entries that
    lose their labels come first: they are coded like others, which may be about to leave.
    """
    seen: set[int] = set()
    left = []
    for change in reversed(changes):
        last = np.array([place not in seen for place in change.places.tolist()], np.bool_)
        seen.update(change.places.tolist())
        left.append(change.part(last))
    return sorted(left, key=lambda change: change.removed or len(change.rows) > 0)
