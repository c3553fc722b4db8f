"""Checking all of a file, and naming what is damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from everhash.collection.attachments import place_of, read_blob
from everhash.collection.loading import load
from everhash.errors import CollectionFileError
from everhash.index.columns import REMOVED
from everhash.index.index import Index
from everhash.store import sqlite_version
from everhash.store.attached import Tally
from everhash.store.parts import PartKey
from everhash.store.sqlite_errors import typed_errors
from everhash.store.store import Store

BATCH = 2048
"""Entries whose features are read at a time."""
ROUNDING = 1e-4
"""Share of its largest weight by which a function may differ from what another machine, or an
earlier version, has composed of the same classifiers."""


@dataclass(frozen=True)
class Verification:
    """The result of reading all of a file."""

    path: str
    parts: int
    entries: int
    problems: tuple[str, ...]
    """What is damaged, one line each; empty if nothing is."""
    sqlite: str = sqlite_version.VERSION
    """The version of SQLite that has read it."""
    wal_reset_bug: bool = field(default_factory=sqlite_version.has_wal_reset_bug)
    """Whether that SQLite can damage a file that several programs write."""


def verify(path: str | os.PathLike[str]) -> Verification:
    """Read everything in a collection's file, compare checksums, and encode entries again.

    Damage is reported, not raised; a file that is missing or cannot be read at all is an error.
    """
    try:
        store = Store.open(Path(path), readonly=True)
    except CollectionFileError as error:
        return Verification(str(path), 0, 0, (error.message,))
    try:
        with store.reading():
            store.load_listing()
            problems = [*_structure(store), *_checksums(store)]
            entries = 0
            if not problems:
                index = load(store).index
                entries = len(index)
                problems += [*_contents(index), *islice(_attached(store, index), 20)]
    except CollectionFileError as error:
        return Verification(str(path), len(store.parts), 0, (error.message,))
    finally:
        store.close()
    return Verification(str(path), len(store.parts), entries, tuple(problems))


def _structure(store: Store) -> Iterator[str]:
    """Have SQLite check its pages."""
    with typed_errors(store.name):
        found = [row[0] for row in store.run("PRAGMA integrity_check(20)").fetchall()]
    yield from (f"{store.name}: {line}" for line in found if line != "ok")


def _checksums(store: Store) -> Iterator[str]:
    for key in sorted(store.parts):
        try:
            store.read_bytes(PartKey(*key))
        except CollectionFileError as error:
            yield error.message


def _contents(index: Index) -> Iterator[str]:
    """Encode entries again."""
    if wrong := index.verify():
        yield f"{wrong} codes are not what their features give"
    if _changed_unnoticed(index):
        yield "functions that count as unchanged are not those that codes were made with"
    if wrong := _wrong_likeness(index):
        yield f"{wrong} likeness codes are not what their features give"
    if wrong := _wrong_cells(index):
        yield f"{wrong} entries are not in the cells that are nearest to them"


def _changed_unnoticed(index: Index) -> bool:
    """Whether a refresh would leave out functions that have changed."""
    old, new = index.mapping, index.hasher.freeze()
    if old is None or not old.view.same_as(new.view):
        return False
    known, width = len(old.versions), old.functions.shape[2]
    same = old.versions == new.versions[:known]
    before, now = (each.functions.reshape(-1, width)[:known] for each in (old, new))
    moved = np.abs(before[same] - now[same]).max(axis=1, initial=0)
    return bool((moved > ROUNDING * np.abs(now[same]).max(axis=1, initial=0)).any())


def _wrong_likeness(index: Index) -> int:
    """Read all features that are kept; return how many likeness codes they do not give."""
    wrong, coder = 0, index.coder
    places = index.with_features(np.arange(index.arrived))
    for start in range(0, len(places), BATCH):
        part = places[start : start + BATCH]
        rows = index.features_at(part)
        if coder is not None:
            same = (coder.encode(rows) == index.likeness_column[part]).all(axis=1)
            wrong += int((~same).sum())
    return wrong


def _wrong_cells(index: Index) -> int:
    """Return how many entries are not in the cell that their features give."""
    wrong, cells = 0, index.cells
    places = index.with_features(np.arange(0 if cells is None else index.arrived))
    for start in range(0, len(places), BATCH):
        part = places[start : start + BATCH]
        assert cells is not None  # noqa: S101 - there would be no places
        wrong += int((cells.nearest(index.features_at(part)) != cells.numbers[part]).sum())
    return wrong


def _attached(store: Store, index: Index) -> Iterator[str]:
    """Check all payloads and thumbnails, and count them."""
    rows = total = 0
    gone = index.label_column == REMOVED
    for blob in store.all_attached():
        rows, total = rows + 1, total + (blob.checksum if type(blob.checksum) is int else 0)
        try:
            read_blob(blob.number, blob.checked(store.name))
        except CollectionFileError as error:
            yield error.message
        if gone[place_of(blob.number)]:
            yield f"attached {blob.number}: its entry was removed"
    if store.attached not in (None, Tally(rows, total)):
        yield f"{store.name}: attached blobs are missing, or more than the head counts"
