"""What a hasher's file holds of the exact learner; see `model_file`.

state     n_features, lessons, publications, published_rows, searched_rows, penalty, has_inverse,
          settled, rows (of sums; None while rows are kept), record: offered, rows, right, loss,
          inverse_temperature
arrays    center, mean, counts, solved, published, classifiers, changes, losses, label_rows,
          label_right, trust_rows, trust_right, best_scores (these three came later: files may lack
          them all)
          while rows are kept: few, few_rows, few_labels
          afterwards: total, label_sums, gram and, with has_inverse, factor

Gram and factor are lower triangles, row after row. Sums are whole numbers, in 32 bits where they
fit and else in float64. Functions are not there: they follow from words and classifiers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import ModelFileError
from everhash.learn import pool_file
from everhash.learn.blas import one_thread
from everhash.learn.exact import ExactLearner
from everhash.learn.first_rows import FirstRows
from everhash.learn.model_format import (
    DAMAGED,
    MAX_COUNT,
    Arrays,
    Shape,
    array_of,
    count_of,
    require,
)
from everhash.learn.novelty import BINS
from everhash.learn.options import Options
from everhash.learn.pool import RIDGE_ALONE, within_of
from everhash.learn.record import DOUBLINGS, Record
from everhash.learn.ridge import PENALTIES, Factor, FewRows
from everhash.learn.rotated_view import GRID
from everhash.learn.row_memory import FIRST_ROWS
from everhash.learn.sums import Sums
from everhash.learn.triangles import square, triangle
from everhash.stream import MAX_FEATURE

Doubles = NDArray[np.float64]

MAX_WEIGHT = 1e30
"""No learning gets there; margins of larger functions could overflow."""
COUNTED = ("lessons", "published_rows", "searched_rows")
RECORDED = ("offered", "rows", "right", "loss")
MEANING = ("trust_rows", "trust_right", "best_scores")


def write(learner: ExactLearner, state: dict[str, Any], arrays: Arrays) -> None:
    """Add what the learner knows to a file."""
    memory, record = learner.memory, learner.record
    state |= {name: getattr(learner, name) for name in COUNTED}
    state |= {
        "n_features": learner.view.n_features,
        "publications": learner.served.publications,
        "penalty": learner.penalty,
        "has_inverse": learner.inverse is not None,
        "settled": memory.settled,
        "rows": None if memory.sums is None else memory.sums.rows,
        "record": {name: getattr(record, name) for name in (*RECORDED, "inverse_temperature")},
    }
    arrays |= {
        "center": learner.view.center,
        "mean": learner.mean,
        "counts": memory.counts.rows,
        "solved": learner.solved.rows,
        "published": learner.published.rows,
        "classifiers": learner.served.classifiers.rows,
        "changes": learner.served.changes.rows,
        "losses": record.losses,
        "label_rows": record.label_rows.rows,
        "label_right": record.label_right.rows,
        "trust_rows": record.trust.rows,
        "trust_right": record.trust.right,
        "best_scores": record.best_scores.rows,
    }
    if memory.sums is not None:
        _write_sums(memory.sums, arrays)
        if isinstance(learner.inverse, Factor):
            arrays["factor"] = triangle(learner.inverse.lower)
    elif memory.few is not None:
        few = memory.few
        arrays |= {"few": few.X.rows, "few_rows": few.rows.rows, "few_labels": few.labels.rows}
    pool_file.write(learner, state, arrays)


def _write_sums(sums: Sums, arrays: Arrays) -> None:
    arrays["total"] = narrow(sums.total)
    arrays["label_sums"] = narrow(sums.labels.rows)
    arrays["gram"] = narrow(triangle(sums.filed_products()))


def narrow(numbers: Doubles) -> NDArray[Any]:
    """Return whole numbers in 32 bits where they fit."""
    return numbers.astype(np.int32) if np.abs(numbers).max(initial=0) < 2**31 else numbers


def shapes(
    options: Options, d: int, n_labels: int, state: dict[str, Any], arrays: Arrays
) -> dict[str, Shape]:
    """Return the shapes that arrays of a good file have, as far as options and labels say."""
    n, width = n_labels, options.seen_width(d)
    of_labels = ("counts", "solved", "published", "label_rows", "label_right")
    known: dict[str, Shape] = {
        "center": (d,),
        "mean": (width - 1,),
        "classifiers": (n, width),
        "changes": (options.cycles_of(n),),
        "losses": (DOUBLINGS,),
        **dict.fromkeys(of_labels, (n,)),
    }
    if not arrays.keys().isdisjoint(MEANING):
        known |= {"trust_rows": (options.bits + 1,), "trust_right": (options.bits + 1,)}
        known["best_scores"] = (BINS,)
    known |= pool_file.shapes(d, n, width, state)
    if state["rows"] is None:
        return known | {"few": (None, d), "few_rows": (None,), "few_labels": (None,)}
    known |= {"total": (width - 1,), "label_sums": (n, width - 1)}
    triangles = ("gram", "factor") if _flag(state["has_inverse"]) else ("gram",)
    return known | dict.fromkeys(triangles, ((width - 1) * width // 2,))


def read(learner: ExactLearner, state: dict[str, Any], arrays: Arrays, n_cycles: int) -> None:
    """Bring the learner to where the file was written."""
    n, width = learner.n_labels, learner.view.width
    d = count_of(state["n_features"], MAX_COUNT)
    require(
        d == learner.view.n_features, f"{d} features, but a center of {learner.view.n_features}"
    )
    for name in COUNTED:
        setattr(learner, name, count_of(state[name], MAX_COUNT))
    learner.served.publications = count_of(state["publications"], MAX_COUNT)
    learner.penalty = count_of(state["penalty"], len(PENALTIES))
    memory = learner.memory
    learner.view = memory.view = memory.view.moved_to(array_of(arrays, "center", np.float32, 1))
    require(bool((np.abs(memory.view.center) < MAX_FEATURE).all()), "the center is out of range")
    memory.settled = _flag(state["settled"])
    learner.mean = array_of(arrays, "mean", np.float64, 1, (width - 1,)).copy()
    require(bool((np.abs(learner.mean) <= 1).all()), "the mean is longer than any row")
    memory.counts.replace(array_of(arrays, "counts", np.int64, 1, (n,)))
    learner.solved.replace(array_of(arrays, "solved", np.int64, 1, (n,)))
    learner.published.replace(array_of(arrays, "published", np.int64, 1, (n,)))
    _read_record(learner.record, state["record"], arrays, n)
    if state["rows"] is None:
        _read_few(learner, arrays, n)
    else:
        _read_sums(learner, arrays, count_of(state["rows"], MAX_COUNT))
    _read_served(learner, arrays, n_cycles)
    pool_file.read(learner, state, arrays)
    if _flag(state["has_inverse"]):
        _read_inverse(learner, arrays)


def _read_record(record: Record, state: dict[str, Any], arrays: Arrays, n: int) -> None:
    for name in RECORDED:
        setattr(record, name, count_of(state[name], MAX_COUNT))
    require(record.right <= record.rows <= record.offered, "more rows were right than there are")
    heat = state["inverse_temperature"]
    require(isinstance(heat, float) and 0.5 <= heat <= 2.0**DOUBLINGS, f"temperature {heat!r:.20}")
    record.inverse_temperature = heat
    record.losses = array_of(arrays, "losses", np.int64, 1, (DOUBLINGS,)).copy()
    record.label_rows.replace(array_of(arrays, "label_rows", np.int64, 1, (n,)))
    record.label_right.replace(array_of(arrays, "label_right", np.int64, 1, (n,)))
    fits = bool((record.label_right.rows <= record.label_rows.rows).all())
    require(fits, "more rows of a label were right than there are")
    if not arrays.keys().isdisjoint(MEANING):
        _read_meaning(record, arrays)


def _read_meaning(record: Record, arrays: Arrays) -> None:
    trust = record.trust
    rows = array_of(arrays, "trust_rows", np.int64, 1, trust.rows.shape)
    right = array_of(arrays, "trust_right", np.int64, 1, trust.rows.shape)
    best = array_of(arrays, "best_scores", np.int64, 1, (BINS,))
    require(bool((right <= rows).all()), "more words were right than there are")
    few = all(counts.astype(np.float64).sum() < MAX_COUNT for counts in (rows, best))
    require(few, "more rows were scored than can be counted")
    trust.replace(rows.copy(), right.copy())
    record.best_scores.replace(best.copy())


def _read_few(learner: ExactLearner, arrays: Arrays, n_labels: int) -> None:
    memory, few = learner.memory, FirstRows(learner.view.n_features)
    X = array_of(arrays, "few", np.float32, 2, (None, learner.view.n_features))
    rows = array_of(arrays, "few_rows", np.int64, 1)
    labels = array_of(arrays, "few_labels", np.int64, 1, (len(rows),))
    require(
        len(X) <= FIRST_ROWS and bool((np.abs(X) < MAX_FEATURE).all()),
        "kept rows are too many or out of range",
    )
    pairs = bool((np.diff(rows) >= 0).all()) and rows.max(initial=-1) < len(X)
    pairs = pairs and labels.max(initial=-1) < n_labels
    pairs = pairs and len(np.unique(rows * max(1, n_labels) + labels)) == len(rows)
    pairs = pairs and (learner.learns_unlabelled or len(np.unique(rows)) == len(X))
    require(pairs, "labels of kept rows do not fit them")
    counted = np.array_equal(np.bincount(labels, minlength=n_labels), memory.counts.rows)
    require(counted, "label counts do not match the kept rows")
    require(learner.published_rows <= len(X), "more rows were published than kept")
    few.add(X, rows, labels)
    memory.few = few
    memory.meet(n_labels)
    memory.total_up()


def _read_sums(learner: ExactLearner, arrays: Arrays, rows: int) -> None:
    memory, n, width = learner.memory, learner.n_labels, learner.view.width - 1
    counts = memory.counts.rows
    require(
        memory.settled and counts.max(initial=0) <= rows, "labels have more rows than there are"
    )
    total = _whole(arrays, "total", (width,), GRID * rows)
    labels = _whole(arrays, "label_sums", (n, width), GRID * rows)
    fits = bool((np.abs(labels).max(axis=1, initial=0) <= GRID * counts).all())
    require(fits, "sums of labels are beyond what their rows add up to")
    triangle = _whole(arrays, "gram", (width * (width + 1) // 2,), GRID * GRID * rows)
    lower = square(triangle, width)
    diagonal = lower.diagonal()
    require(bool((diagonal * rows >= total * total).all()), "products do not fit the sums")
    sums = Sums(width)
    sums.rows, sums.total = rows, total
    sums.labels.replace(labels)
    sums.gram = lower
    memory.few, memory.sums = None, sums


def _read_served(learner: ExactLearner, arrays: Arrays, n_cycles: int) -> None:
    served, n = learner.served, learner.n_labels
    weights = array_of(arrays, "classifiers", np.float32, 2, (n, learner.view.width))
    require(bool((np.abs(weights) < MAX_WEIGHT).all()), "classifier weights are out of range")
    pooled = weights.copy()  # files of before have no others
    if "pooled" in arrays:
        pooled = array_of(arrays, "pooled", np.float32, 2, weights.shape)
    require(bool((np.abs(pooled) < MAX_WEIGHT).all()), "weights of scores are out of range")
    served.restore(weights, pooled, array_of(arrays, "changes", np.int64, 1, (n_cycles,)))


def _read_inverse(learner: ExactLearner, arrays: Arrays) -> None:
    if learner.memory.sums is None:
        _solve_kept_rows(learner)
        return
    width = learner.view.width - 1
    triangle = array_of(arrays, "factor", np.float32, 1, (width * (width + 1) // 2,))
    lower = square(triangle, width)
    usable = bool((np.abs(triangle) < MAX_WEIGHT).all() and (lower.diagonal() > 0).all())
    require(usable, "the matrix factor is invalid")
    learner.inverse = Factor(lower)


@one_thread()
def _solve_kept_rows(learner: ExactLearner) -> None:
    """Compute the inverse anew: few rows take less time than reading it would."""
    memory = learner.memory
    assert memory.few is not None  # noqa: S101 - rows are kept where they are not summed up
    n, few = learner.published_rows, memory.few
    first = few.rows.rows < n
    taught, labels = np.unique(few.labels.rows[first], return_inverse=True)
    Z = memory.on_grid(few.X.rows[:n]) * learner.view.steps
    moments = FewRows(Z, few.rows.rows[first], labels, len(taught))
    solution = moments.solve(learner.penalty)
    if solution is None:
        raise ModelFileError("nothing can be learned from the kept rows", hint=DAMAGED)
    learner.inverse = solution.inverse
    if learner.pool is not RIDGE_ALONE:
        within = within_of(moments, learner.penalty, learner.published.rows)
        learner.pool = learner.pool._replace(within=within)


def _whole(arrays: Arrays, name: str, shape: tuple[int, ...], most: int) -> Doubles:
    """Return whole numbers up to `most`, as they were written."""
    kind = np.int32 if arrays[name].dtype == np.int32 else np.float64
    numbers: Doubles = array_of(arrays, name, kind, len(shape), shape).astype(np.float64)
    whole = kind == np.int32 or bool((numbers == np.rint(numbers)).all())
    require(whole and bool((np.abs(numbers) <= most).all()), f"{name} is not a sum of rows")
    return numbers


def _flag(value: Any) -> bool:
    require(isinstance(value, bool), f"expected true or false, got {value!r:.20}")
    return bool(value)
