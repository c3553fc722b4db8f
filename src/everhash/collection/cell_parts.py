"""What a collection's file holds of cells.

centroids  0    the centroids of cells, and how a search of them goes
cells      s    the cells of the entries from place s on
"""

from __future__ import annotations

import numpy as np

from everhash.collection.part_arrays import Counts, array_of, narrowed, require, whole_numbers
from everhash.collection.pieces import covering, delete_all, many_small
from everhash.index.cells import Cells
from everhash.index.clustering import MOST_EFFORT
from everhash.index.columns import REMOVED
from everhash.index.index import Index
from everhash.store.parts import Arrays, PartKey, about_of, pack
from everhash.store.store import Store
from everhash.store.transaction import Transaction

CENTROIDS = PartKey("centroids", 0)
MAX_CELLS = 65_536
"""Cells a collection can have: the square root of the most entries, and some."""
UNIT = 1e-3
"""How far the length of a centroid may be from 1."""


def write_cells(change: Transaction, cells: Cells, first: int, *, whole: bool, most: int) -> None:
    """Write the cells of entries from a place on, and with `whole` the centroids before.

    `most` is how many entries a part has at the most.
    """
    stop = len(cells.numbers)
    if whole:
        delete_all(change, "cells")
        change.put(CENTROIDS, 0, pack_centroids(cells))
        change.about["epoch"] += 1  # readers have the cells that were there before
    for start in range(first, stop, most):
        _write_range(change, cells, start, min(start + most, stop))
    for starts in iter(lambda: many_small(change, "cells", most), []):
        for start in starts:
            change.delete(PartKey("cells", start))
        _write_range(change, cells, starts[0], stop)


def _write_range(change: Transaction, cells: Cells, start: int, stop: int) -> None:
    numbers = narrowed(cells.numbers[start:stop].astype(np.int64))
    change.put(PartKey("cells", start), stop - start, pack({"numbers": numbers}))


def pack_centroids(cells: Cells) -> bytes:
    """Return what a file has to hold of cells besides those of entries."""
    about = {"made_at": cells.made_at, "effort": cells.effort, "recall": cells.recall}
    return pack({"centroids": cells.centroids, "middles": cells.middles}, about)


def read_centroids(arrays: Arrays, key: PartKey, n_features: int, width: int) -> Cells:
    """Read cells without entries, whose signs have so many words."""
    centroids = array_of(arrays, "centroids", key, np.float32, (None, n_features))
    require(0 < len(centroids) <= MAX_CELLS, key, f"{len(centroids)} centroids")
    lengths = np.sqrt(np.square(centroids, dtype=np.float64).sum(axis=1))
    require(bool((np.abs(lengths - 1) < UNIT).all()), key, "centroids that are not of unit length")
    middles = array_of(arrays, "middles", key, np.float32, (len(centroids),))
    sound = bool((np.abs(middles) <= 1 + UNIT).all())  # so NaN is refused too
    require(sound, key, "middles that are no cosines")
    about = about_of(arrays, key)
    known = isinstance(about, dict) and set(about) == {"made_at", "effort", "recall"}
    require(known, key, "it does not say when cells were made")
    counts = type(about["made_at"]) is int and 0 < about["made_at"] <= 2**31
    counts = counts and type(about["effort"]) is int and 0 < about["effort"] <= MOST_EFFORT
    counts = counts and type(about["recall"]) is float and 0 <= about["recall"] <= 1
    require(counts, key, "its counts are damaged")
    centroids = np.require(centroids, requirements=["C", "W"])
    cells = Cells(centroids, middles, width, about["made_at"])
    cells.effort, cells.recall = about["effort"], about["recall"]
    return cells


def load_cells(store: Store, index: Index) -> Cells | None:
    """Read the centroids of cells; None while all entries are in one."""
    key = CENTROIDS
    if key not in store.parts:
        require(not store.starts("cells"), "cells", "they have no centroids")
        return None
    coder = index.coder
    fits = coder is not None and coder.settled and index.keep_features == "all"
    require(fits, key, "this collection cannot have cells")
    assert coder is not None  # noqa: S101 - for the type checker; `require` has raised
    return read_centroids(store.read(key), key, index.hasher.n_features_in_, coder.width - 1)


def load_cell_numbers(store: Store, index: Index, cells: Cells, known: int = 0) -> Counts:
    """Read the cells of entries from place `known` on; -1 of those that were removed."""
    parts = [np.empty(0, np.int64)]
    done = None
    for start in covering(store, "cells", known):
        key = PartKey("cells", start)
        require(start == (done if done is not None else min(start, known)), key, "a gap before it")
        numbers = whole_numbers(store.read(key), "numbers", key, store.parts[key].rows, least=-1)
        done = start + len(numbers)
        parts.append(numbers[max(0, known - start) :])
    numbers = np.concatenate(parts)
    labels = index.label_column[known:]
    require(len(numbers) == len(labels), "cells", f"{len(numbers)} for {len(labels)} entries")
    require(bool((numbers < len(cells)).all()), "cells", "they have no centroid")
    numbers[labels == REMOVED] = -1
    require(bool((numbers[labels != REMOVED] >= 0).all()), "cells", "some entries have none")
    return numbers
