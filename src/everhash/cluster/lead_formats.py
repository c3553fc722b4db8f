"""The parts of the lead's file: packed, and read back with every value checked; see `lead_file`."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.cluster.answers import from_json, to_json
from everhash.cluster.effects_reading import is_count
from everhash.cluster.lead_state import LeadState
from everhash.cluster.placement import SLOTS, Table
from everhash.cluster.shard_state import is_mark
from everhash.cluster.writes import Record
from everhash.collection.formats import Lesson, lesson_bytes, read_lesson
from everhash.collection.part_arrays import array_of, require
from everhash.errors import (
    CodebookWarning,
    CollectionFileError,
    InputError,
    ModelFileError,
    UnknownNameError,
)
from everhash.learn.exact import ExactLearner
from everhash.learn.following import FollowingLearner, learner_of
from everhash.learn.hasher import OnlineHasher
from everhash.learn.rotated_view import GRID
from everhash.learn.split_sums import SplitSums
from everhash.learn.triangles import square, triangle
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.parts import DAMAGED, Arrays, PartKey, about_of, pack
from everhash.store.store import Store

STATE, OWN, CODER = PartKey("lead", 0), PartKey("own", 0), PartKey("likeness", 0)
KINDS = {"model", "lesson", "own", "record", "answer", "lead", "likeness"}
COUNTS = ("seq", "arrived", "next_id", "coded", "generation")
HEAD = ("model_bytes", "lesson_bytes", "lessons")
REQUEST = 64
"""Characters of a request's name at the most."""


def check_head(store: Store) -> int:
    """Check that the head is consistent and fits the parts; return how many copies a shard has."""
    about, copies = store.about, store.about.get("copies")
    counted = type(copies) is int and all(is_count(about.get(name)) for name in HEAD)
    require(counted, "head", "it is not that of a cluster's lead, or damaged")
    most = limits.COPIES
    require(1 <= int(copies or 0) <= most, "head", f"{copies} copies of each shard (most: {most})")
    require({key.kind for key in store.parts} <= KINDS, "head", "parts of an unknown kind")
    for key in (STATE, CODER):
        require(key in store.parts, key, "it is missing")
    for kind, most in (("lead", 1), ("own", 1), ("likeness", 1), ("lesson", about["lessons"])):
        starts = store.starts(kind)
        numbered = starts == list(range(len(starts))) and len(starts) <= most
        require(numbered, f"{kind} parts", "some are missing, or more than the head counts")
    require(len(store.starts("lesson")) == about["lessons"], "lesson parts", "some are missing")
    return int(copies or 0)


# What was learned


def read_model(store: Store) -> OnlineHasher:
    """Read the hasher as it was when it was last written whole."""
    starts = store.starts("model")
    require(starts == list(range(len(starts))), "model", "some of it is missing")
    data = b"".join(store.read_bytes(PartKey("model", start)) for start in starts)
    require(len(data) == store.about["model_bytes"], "model", "some of it is missing")
    try:
        hasher = hasher_from_bytes(data, "model")
    except ModelFileError as error:
        raise CollectionFileError(error.message_template, hint=DAMAGED) from None
    learner = hasher._learner if isinstance(hasher, OnlineHasher) else None
    leads = isinstance(learner, ExactLearner) and not isinstance(learner, FollowingLearner)
    require(leads and not learner.learns_unlabelled, "model", "it is not one that a lead has")  # type: ignore[union-attr]
    assert isinstance(hasher, OnlineHasher)  # noqa: S101 - for the type checker
    return hasher


def learn_lessons(store: Store, hasher: OnlineHasher) -> None:
    """Learn what came after the model; together it takes no more bytes than the model."""
    total, counted = 0, store.about["lesson_bytes"]
    require(counted <= store.about["model_bytes"], "lesson parts", "they outgrew the model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodebookWarning)  # it was given when the rows were learned
        for start in store.starts("lesson"):
            key = PartKey("lesson", start)
            lesson = read_lesson(store.read(key), key, hasher.n_features_in_)
            require(len(lesson.rows) == store.parts[key].rows, key, f"{len(lesson.rows)} rows")
            total += lesson_bytes(lesson, 0, hasher)
            require(total <= counted, key, "it outgrows what the head counts")
            try:
                _learn(hasher, lesson)
            except (InputError, UnknownNameError) as error:
                message = f"{key}: {error.message_template}"
                raise CollectionFileError(message, hint=DAMAGED) from None
            except (AssertionError, ArithmeticError, np.linalg.LinAlgError):
                # who publishes needs the products of shards; such a write is written with the model
                raise CollectionFileError(f"{key}: it cannot be learned", hint=DAMAGED) from None
    require(total == counted, "lesson parts", "they are less than the head counts")


def _learn(hasher: OnlineHasher, lesson: Lesson) -> None:
    """Learn or forget what was learned or forgotten before; its products are with the shards."""
    rows, labels, forget, _ = lesson
    hasher.check_room(labels.values)
    if len(rows) == 0:
        hasher.assign(labels.values)
    elif forget:
        hasher.forget_rows(rows, labels)
    else:
        hasher.learn_rows(rows, labels)
    sums = learner_of(hasher).memory.sums
    if isinstance(sums, SplitSums):
        sums.decided()


def pack_own(hasher: OnlineHasher) -> bytes:
    """Return the products of rows that no shard has as bytes."""
    sums = learner_of(hasher).memory.sums
    assert isinstance(sums, SplitSums)  # noqa: S101 - rows are summed up by now
    return pack({"own": triangle(sums.own_products).astype(np.int64)})


def read_own(store: Store, width: int, rows: int) -> NDArray[np.float64]:
    """Read the products of rows that no shard has, of so many rows at the most."""
    require(OWN in store.parts, OWN, "it is missing")
    own = array_of(store.read(OWN), "own", OWN, np.int64, (width * (width + 1) // 2,))
    most = min(GRID * GRID * rows, 2**62)
    fits = own.min(initial=0) >= -most and own.max(initial=0) <= most
    require(bool(fits), OWN, "they are not products of rows")
    lower: NDArray[np.float64] = square(own.astype(np.float64), width)
    require(bool((lower.diagonal() >= 0).all()), OWN, "they are not products of rows")
    return lower


# Counts and the table of shards


def pack_state(state: LeadState, mark: str) -> bytes:
    """Return counts and table as bytes, and the mark of the last write."""
    counts = {name: int(getattr(state, name)) for name in COUNTS}
    return pack({}, {**counts, "table": asdict(state.table), "mark": mark})


def read_state(arrays: Arrays) -> tuple[dict[str, int], Table, str]:
    """Read counts, table and mark; a file of an older version has no mark."""
    about = about_of(arrays, STATE)
    known = isinstance(about, dict) and set(about) | {"mark"} == {*COUNTS, "table", "mark"}
    require(known, STATE, "its counts are damaged")
    counts = {name: about[name] for name in COUNTS}
    usual = all(type(value) is int and -1 <= value <= 2**63 for value in counts.values())
    require(usual and is_mark(about.get("mark", "")), STATE, "its counts are damaged")
    return counts, _read_table(about["table"], counts["seq"]), about.get("mark", "")


def check_state(state: LeadState) -> None:
    """Check counts against each other."""
    fits = 1 <= state.seq <= 2**62 and 0 <= state.coded <= state.arrived <= 2**62
    fits = fits and state.next_id >= 0 and 0 <= state.generation <= state.hasher.generation_
    require(fits, STATE, "its counts do not fit each other")
    coder = state.coder
    require(coder.settled or len(coder.first) == state.arrived, CODER, "not the first entries")


def _read_table(told: Any, seq: int) -> Table:
    """Read the table of shards; every slot has one that there is."""
    fields = {"version", "slots", "target", "frontier", "born"}
    require(isinstance(told, dict) and set(told) == fields, STATE, "no table of shards")
    require(is_count(told["version"]) and is_count(told["frontier"]), STATE, "no table of shards")
    born: Any = told["born"]
    many = isinstance(born, dict) and 1 <= len(born) <= limits.SHARDS
    require(many, STATE, f"a cluster has from 1 to {limits.SHARDS} shards")
    numbered = list(born) == [str(shard) for shard in range(len(born))]
    begun = all(type(when) is int and 1 <= when <= seq for when in born.values())
    require(numbered and begun, STATE, "shards that have not begun")
    slots, target = (_read_slots(told[name], len(born)) for name in ("slots", "target"))
    require(slots is not None, STATE, "slots without shards")
    assert slots is not None  # noqa: S101 - for the type checker; `require` has raised
    when_born = {int(shard): when for shard, when in born.items()}
    return Table(told["version"], slots, target, told["frontier"], when_born)


def _read_slots(told: Any, shards: int) -> tuple[int, ...] | None:
    if told is None:
        return None
    fits = isinstance(told, list) and len(told) == SLOTS
    fits = fits and all(type(shard) is int and 0 <= shard < shards for shard in told)
    require(fits, STATE, "slots of shards that are not there")
    return tuple(told)


# Writes


def pack_record(record: Record) -> bytes:
    """Return a write and its effects as bytes."""
    arrays: Arrays = {
        str(shard): np.frombuffer(effects, np.uint8) for shard, effects in record.effects.items()
    }
    marks = {"before": record.before, "mark": record.mark}
    return pack(arrays, {**_told(record), **marks, "shards": list(arrays)})


def read_record(arrays: Arrays, key: PartKey, table: Table) -> Record:
    """Read a write; what it does to shards is checked there, against what they have."""
    about = about_of(arrays, key)
    request, answer = _read_told(about, key)
    before, mark = about.get("before", ""), about.get("mark", "")
    require(is_mark(before) and is_mark(mark), key, "its marks are damaged")
    shards = about.get("shards")
    known = {str(shard) for shard in table.born}
    fits = isinstance(shards, list) and all(isinstance(one, str) for one in shards)
    fits = fits and len(set(shards)) == len(shards) and set(shards) <= known
    require(fits, key, "effects on shards that are not there")
    effects = {
        int(shard): array_of(arrays, shard, key, np.uint8, (None,)).tobytes() for shard in shards
    }
    return Record(key.start, request, answer, effects, before, mark)


def pack_answer(record: Record) -> bytes:
    """Return what a write was answered as bytes."""
    return pack({}, _told(record))


def read_answer(arrays: Arrays, key: PartKey) -> tuple[str, Any]:
    """Read whose write it was, and what it was answered."""
    return _read_told(about_of(arrays, key), key)


def _told(record: Record) -> dict[str, Any]:
    return {"request": record.request, "answer": to_json(record.answer)}


def _read_told(about: Any, key: PartKey) -> tuple[str, Any]:
    request = about.get("request") if isinstance(about, dict) else None
    named = isinstance(request, str) and 1 <= len(request) <= REQUEST
    require(named, key, "nobody has asked for it")
    return str(request), from_json(about.get("answer"), key)
