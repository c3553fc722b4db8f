"""What the lead has to know before it can decide a write: which shards it asks what."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from everhash.cluster.lead_state import LeadState
from everhash.cluster.moved import NOBODY, pick
from everhash.cluster.questions import All, Call, CodedBy, Find, Having, Moving, OwnSums
from everhash.collection.collection import Collection
from everhash.learn.publication import may_publish
from everhash.wire.ids import IdList, as_ids

LABEL_CALLS = ("merge_labels", "drop_label")
"""Calls that concern all entries with a label."""
MANY = 2**40


def questions_for(call: Call, state: LeadState) -> dict[int, Any]:
    """Return what has to be asked of which shard; nothing of a call that is going to be refused."""
    table = state.table
    if call.name == "grow":
        return {table.shards[0]: CodedBy()}
    if call.name == "move":
        slots = table.moving
        givers = np.unique(np.array(table.slots)[slots]).tolist()
        return {shard: Moving(slots, table.frontier, call.arguments[0]) for shard in givers}
    asked: dict[int, list[Any]] = {}
    for shard, question in _entries_asked(call, state).items():
        asked.setdefault(shard, []).append(question)
    if _needs_sums(call, state):
        for shard in table.shards:
            asked.setdefault(shard, []).append(OwnSums())
    return {shard: All(tuple(questions)) for shard, questions in asked.items()}


def _entries_asked(call: Call, state: LeadState) -> dict[int, Any]:
    """Return the questions for the entries that a write concerns."""
    table = state.table
    if call.name in LABEL_CALLS:
        label = _argument(call, "label")
        if not state.hasher._knows(label):
            return {}
        return {shard: Having(state.hasher._numbers[label]) for shard in table.shards}
    wanted = _ids_of(call)
    return {
        shard: Find(pick(wanted, which), blobs=call.name == "update")
        for shard, which in table.holders(wanted).items()
    }


def _ids_of(call: Call) -> IdList:
    """Return the ids that a call names; none if they cannot be ids."""
    if call.name == "import":
        given: IdList = call.arguments[0].ids
        return given
    try:
        ids = _argument(call, "ids")
        return NOBODY if ids is None else as_ids(ids)
    except Exception:
        return NOBODY


def _needs_sums(call: Call, state: LeadState) -> bool:
    """Whether a write may publish, which takes the products of all rows."""
    if state.learner.memory.sums is None or call.name in ("refresh", "import"):
        return False
    if call.name in LABEL_CALLS:
        return True
    options = state.hasher._read_options(state.hasher.n_features_in_, first=False)
    return may_publish(state.learner, _rows_of(call), options)


def _argument(call: Call, name: str) -> Any:
    """Return an argument of a call by its name; None if it has none."""
    signature = inspect.signature(getattr(Collection, call.name))
    return signature.bind(None, *call.arguments, **call.options).arguments.get(name)


def _rows_of(call: Call) -> int:
    """Return how many rows a write may teach, at the most."""
    for name in ("X", "ids"):
        values = _argument(call, name)
        if values is not None:
            return _length(values)
    return 0


def _length(values: Any) -> int:
    """Return how many values there are, at the most: many, if that cannot be seen."""
    if isinstance(values, int | np.generic):
        return 1
    try:
        return len(values)
    except TypeError:
        return MANY
