"""What a hasher's file holds of how likely labels are; see `pool` and `exact_file`.

state     pool: share, ridge_unit, means_unit, offset, weight (of hints; 0 without any); null where
          labels are as likely as their own classifiers say
          unlabelled: met; null where such rows are not kept
          helped_by
arrays    pooled, latest; unlabelled, in half precision where that loses nothing; with hints
          hint_sums and hint_rows; once rows are summed up, within, a lower triangle

Files of before have none of this: labels are then as likely as their own classifiers say, until all
are solved again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.learn.exact import ExactLearner
from everhash.learn.model_format import MAX_COUNT, Arrays, Shape, array_of, count_of, require
from everhash.learn.pool import RIDGE_ALONE, Hints, Pool
from everhash.learn.ridge import Factor
from everhash.learn.triangles import square, triangle
from everhash.learn.unlabelled import MOST
from everhash.stream import MAX_FEATURE

MAX_SCALE = 1e30
UNITS = ("share", "ridge_unit", "means_unit", "offset")


def write(learner: ExactLearner, state: dict[str, Any], arrays: Arrays) -> None:
    """Add what the learner knows to a file."""
    pool, rows = learner.pool, learner.unlabelled
    state["pool"] = None
    if pool.within is not None:
        weight = 0.0 if pool.hints is None else pool.hints.weight
        state["pool"] = {name: getattr(pool, name) for name in UNITS} | {"weight": weight}
    state["helped_by"] = learner.helped_by
    state["unlabelled"] = None if rows is None else {"met": rows.met}
    arrays |= {"pooled": learner.served.pooled.rows, "latest": learner.record.latest}
    if rows is not None:
        with np.errstate(over="ignore"):
            half = rows.rows.astype(np.float16)
        exact = np.array_equal(half.astype(np.float32), rows.rows)
        arrays["unlabelled"] = half if exact else rows.rows
    if pool.hints is not None:
        arrays["hint_sums"], arrays["hint_rows"] = pool.hints.sums, pool.hints.rows
    if learner.memory.sums is not None and isinstance(pool.within, Factor):
        arrays["within"] = triangle(pool.within.lower)


def shapes(d: int, n_labels: int, width: int, state: dict[str, Any]) -> dict[str, Shape]:
    """Return the shapes that arrays of a good file have."""
    if "pool" not in state:
        return {}
    known: dict[str, Shape] = {"pooled": (n_labels, width), "latest": (2,)}
    if state["unlabelled"] is not None:
        known["unlabelled"] = (None, d)
    if state["pool"] is None:
        return known
    if dict(state["pool"])["weight"]:
        known |= {"hint_sums": (None, width - 1), "hint_rows": (None,)}
    if state["rows"] is not None:
        known["within"] = ((width - 1) * width // 2,)
    return known


def read(learner: ExactLearner, state: dict[str, Any], arrays: Arrays) -> None:
    """Bring the learner to where the file was written; its rows and classifiers are there."""
    learner.pool = RIDGE_ALONE
    if "pool" not in state:
        return
    latest = array_of(arrays, "latest", np.int64, 1, (2,))
    require(bool(latest[1] <= latest[0]), "more rows were right than there are")
    learner.record.latest = latest.copy()
    learner.helped_by = count_of(state["helped_by"], MAX_COUNT)
    _read_unlabelled(learner, state["unlabelled"], arrays)
    if state["pool"] is None:
        return
    require(bool(state["has_inverse"]), "labels are judged by what nobody has solved")
    units = [dict(state["pool"])[name] for name in (*UNITS, "weight")]
    sound = all(type(unit) is float and abs(unit) < MAX_SCALE for unit in units)
    sound = sound and 0 <= units[0] <= 1 and min(units[1], units[2]) > 0 and units[4] >= 0
    require(sound, "the units of scores are out of range")
    share, ridge, means, offset, weight = units
    hints = _hints(learner, arrays, weight)
    within = None if learner.memory.sums is None else _within(learner, arrays)
    learner.pool = Pool(share, ridge, means, offset, within, hints)


def _hints(learner: ExactLearner, arrays: Arrays, weight: float) -> Hints | None:
    if weight == 0:
        return None
    rows = array_of(arrays, "hint_rows", np.float64, 1)
    sums = array_of(arrays, "hint_sums", np.float64, 2, (len(rows), learner.view.width - 1))
    fits = len(rows) <= learner.n_labels and bool((rows >= 0).all())
    require(fits and bool((np.abs(sums) < MAX_COUNT).all()), "hints are out of range")
    return Hints(weight, sums, rows)


def _within(learner: ExactLearner, arrays: Arrays) -> Factor:
    width = learner.view.width - 1
    packed = array_of(arrays, "within", np.float32, 1, (width * (width + 1) // 2,))
    lower = square(packed, width)
    usable = bool((np.abs(packed) < MAX_SCALE).all() and (lower.diagonal() > 0).all())
    require(usable, "the matrix factor is invalid")
    return Factor(lower)


def _read_unlabelled(learner: ExactLearner, said: Any, arrays: Arrays) -> None:
    require((said is None) == (learner.unlabelled is None), "rows without a label do not fit")
    if learner.unlabelled is None:
        return
    kind = np.float16 if arrays["unlabelled"].dtype == np.float16 else np.float32
    rows = array_of(arrays, "unlabelled", kind, 2, (None, learner.view.n_features))
    rows = rows.astype(np.float32)
    require(bool((np.abs(rows) < MAX_FEATURE).all()), "rows without a label are out of range")
    met = count_of(said["met"], MAX_COUNT)
    require(len(rows) <= min(MOST, met), "more rows without a label are kept than there may be")
    learner.unlabelled.restore(rows, met)
