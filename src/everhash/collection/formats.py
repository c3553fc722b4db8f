"""What a collection's file holds of the hasher, and of what makes codes.

model      i    the hasher as its own file would hold it, in pieces
lesson     i    rows learned or forgotten since the model was written, or new labels; in the file of
                a shard also what its lead has solved
mapping    i    the mapping that unlabelled entries were encoded with, in pieces
likeness   0    what makes likeness codes

The other parts are in `entry_formats`. Everything is read back with every number checked.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.collection.part_arrays import array_of, narrowed, require, whole_numbers
from everhash.errors import CollectionFileError, InputError, ModelFileError
from everhash.index.likeness import Likeness
from everhash.learn.following import FollowingLearner, Solved
from everhash.learn.following_file import read_solved, solved_to_arrays
from everhash.learn.hasher import OnlineHasher
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher
from everhash.learn.views import View
from everhash.peers.views import VIEWS
from everhash.store.parts import DAMAGED, Arrays, PartKey, about_of, pack
from everhash.stream import MAX_FEATURE, Labels, as_label
from everhash.wire.labels import label_from_json, label_to_json

OLD_OPTIONS = {"coding", "keep_features", "certify"}
"""Of a file before version 3."""
SOLVED = "solved"
"""Marks a lesson of a shard: what its lead has solved."""
LABEL_BYTES = 64
"""Bytes that a label's name is taken to need."""


class Lesson(NamedTuple):
    """Rows that were learned or forgotten; without rows, labels that were given codewords."""

    rows: NDArray[np.float32]
    labels: Labels
    forget: bool = False
    places: NDArray[np.int64] | None = None
    """The places of the entries that teach it, one a row; None for rows that are no entries. Not
    written to the file."""


def current_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a file as version 3 has them."""
    if set(options) != OLD_OPTIONS:
        return dict(options)
    keep = "unlabelled" if options["keep_features"] else "none"
    return {**options, "keep_features": keep, "likeness": False}


def lesson_bytes(lesson: Lesson | Solved, new: int, hasher: StreamHasher) -> int:
    """Return about how many bytes a lesson adds to a file or, with new labels, to the hasher."""
    if isinstance(lesson, Solved):
        return sum(array.nbytes for array in lesson if isinstance(array, np.ndarray))
    return lesson.rows.nbytes + new * (hasher.label_bytes_ + LABEL_BYTES)


def pack_lesson(lesson: Lesson | Solved) -> bytes:
    """Return a lesson as bytes."""
    if isinstance(lesson, Solved):
        arrays, about = solved_to_arrays(lesson)
        return pack(arrays, {SOLVED: about})
    rows, labels, forget, _ = lesson
    names = [label_to_json(label) for label in labels.values]
    columns = {"rows": rows, "steps": narrowed(labels.rows), "which": narrowed(labels.which)}
    return pack(columns, {"forget": names} if forget else names)


def read_lesson_solved(arrays: Arrays, key: PartKey, hasher: StreamHasher) -> Solved | None:
    """Read a lesson that a shard's lead has solved; None if it is one of rows."""
    about = about_of(arrays, key)
    if not isinstance(about, dict) or set(about) != {SOLVED}:
        return None
    follows = isinstance(hasher, OnlineHasher) and isinstance(hasher._learner, FollowingLearner)
    require(follows, key, "only a shard follows a lead")
    assert isinstance(hasher, OnlineHasher)  # noqa: S101 - for the type checker
    try:
        return read_solved(arrays, dict(about[SOLVED]), hasher)
    except (ModelFileError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CollectionFileError(f"{key}: {error!s:.80}", hint=DAMAGED) from None


def read_lesson(arrays: Arrays, key: PartKey, n_features: int) -> Lesson:
    """Read a lesson."""
    rows = array_of(arrays, "rows", key, np.float32, (None, n_features))
    steps = whole_numbers(arrays, "steps", key, None)
    which = whole_numbers(arrays, "which", key, len(steps))
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
    about |= {"generation": mapping.generation}
    return pack(arrays | mapping.view.arrays(), about | {"view": mapping.view.kind})


def read_mapping(arrays: Arrays, key: PartKey, shape: tuple[int, int]) -> FrozenMapping:
    """Read a mapping with `shape` bits a cycle and features."""
    bits, n_features = shape
    about = about_of(arrays, key)
    names = {"labels_per_cycle", "version", "view", "generation"}
    known = isinstance(about, dict) and set(about) <= names
    require(known, key, "its counts are damaged")
    generation = about.pop("generation", -1)  # files before version 3 do not say
    require(type(generation) is int and -1 <= generation <= 2**62, key, "its counts are damaged")
    view = _read_view(arrays, key, about.pop("view", None), n_features)
    functions = array_of(arrays, "functions", key, np.float32, (None, bits, view.width))
    words = array_of(arrays, "words", key, np.int8, (None, bits))
    cycles = len(functions)
    versions = array_of(arrays, "versions", key, np.int64, (cycles * bits,))
    counts = len(about) == 2 and all(type(n) is int and 0 < n <= 2**62 for n in about.values())
    counts = counts and versions.min(initial=0) >= 0
    require(counts, key, "its counts are damaged")
    fits = cycles == max(1, -(-len(words) // about["labels_per_cycle"]))
    require(fits, key, f"{len(words)} labels do not need {cycles} cycles")
    usable = bool(np.isfinite(functions).all()) and bool(np.isin(words, (-1, 0, 1)).all())
    require(usable, key, "its values are not those of a mapping")
    return FrozenMapping(functions, view, words, versions=versions, generation=generation, **about)


def _read_view(arrays: Arrays, key: PartKey, kind: Any, n_features: int) -> View:
    """Read the view of a mapping; the oldest files do not name it."""
    found = VIEWS.get("centred" if kind is None else kind) if isinstance(kind, str | None) else None
    require(found is not None, key, f"unknown view {kind!r:.40} (known: {', '.join(VIEWS)})")
    view = None if found is None else found.read(arrays)
    fits = view is not None and view.n_features == n_features
    require(fits, key, "its view does not fit its arrays")
    assert view is not None  # noqa: S101 - for the type checker; `require` has raised
    return view


def pack_likeness(coder: Likeness) -> bytes:
    """Return what makes likeness codes as bytes."""
    return pack(coder.arrays())


def read_likeness(arrays: Arrays, key: PartKey, n_features: int) -> Likeness:
    """Read what makes likeness codes."""
    try:
        return Likeness.read(n_features, arrays)
    except InputError as error:
        raise CollectionFileError(f"{key}: {error.message_template}", hint=DAMAGED) from None
