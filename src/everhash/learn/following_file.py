"""What files hold of a follower, and of what its lead has solved; see `following`.

about     names: [number, label] of labels that are new or renamed, null for one that is gone
          figures, inverse_temperature, summing
arrays    labels, classifiers, counted, counts, changes, center, trust, best_scores

A follower's own file has all of that for all labels, and beside it the sums of its own rows:
own_rows in its state, and the arrays own_total and own_gram, a lower triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.learn.exact_file import MAX_WEIGHT, narrow
from everhash.learn.following import FIGURES, LATEST, FollowingLearner, Solved, everything, follow
from everhash.learn.hasher import OnlineHasher
from everhash.learn.model_format import (
    MAX_COUNT,
    Arrays,
    Shape,
    array_of,
    count_of,
    list_of,
    require,
)
from everhash.learn.novelty import BINS
from everhash.learn.options import Options
from everhash.learn.record import DOUBLINGS
from everhash.learn.sums import Sums
from everhash.learn.triangles import square, triangle
from everhash.stream import MAX_FEATURE, as_label
from everhash.wire.labels import label_from_json, label_to_json

ARRAYS = {
    "labels": (np.int64, 1), "classifiers": (np.float32, 2), "pooled": (np.float32, 2),
    "counted": (np.int64, 1),
    "counts": (np.int64, 2), "changes": (np.int64, 1), "center": (np.float32, 1),
    "trust": (np.int64, 2), "best_scores": (np.int64, 1),
}  # fmt: skip


def solved_to_arrays(solved: Solved) -> tuple[Arrays, dict[str, Any]]:
    """Return what a file holds of something that was solved: arrays, and JSON."""
    about = {
        "names": [[n, None if name is None else label_to_json(name)] for n, name in solved.names],
        "figures": solved.figures,
        "inverse_temperature": solved.inverse_temperature,
        "summing": solved.summing,
    }
    return {name: getattr(solved, name) for name in ARRAYS}, about


def read_solved(arrays: Arrays, about: dict[str, Any], hasher: OnlineHasher) -> Solved:
    """Read what a lead has solved, for a follower at the state before."""
    known, width = len(hasher._names), hasher._learner.view.width
    names = []
    for pair in list_of(about["names"]):
        number, name = pair
        names.append((count_of(number, MAX_COUNT), None if name is None else _label(name)))
    new = [number for number, _ in names if number >= known]
    require(new == list(range(known, known + len(new))), "new labels are not numbered in order")
    total = known + len(new)
    heat = about["inverse_temperature"]
    require(isinstance(heat, float) and 0.5 <= heat <= 2.0**DOUBLINGS, f"temperature {heat!r:.20}")
    require(isinstance(about["summing"], bool), "it does not say whether rows are summed up")
    arrays = {"pooled": arrays["classifiers"], **arrays}  # files of before have one of the two
    found = {name: array_of(arrays, name, *kind) for name, kind in ARRAYS.items()}
    for name in ("labels", "counted"):
        numbers = found[name]
        require(bool((np.diff(numbers) > 0).all()), f"{name} do not ascend")
        require(numbers.max(initial=-1) < total, f"{name} are more than there are")
    opened = max(1, -(-total // hasher._begun.labels_per_cycle))
    fits = found["classifiers"].shape == (len(found["labels"]), width)
    fits = fits and found["pooled"].shape == found["classifiers"].shape
    fits = fits and found["counts"].shape == (len(found["counted"]), 3)
    fits = fits and found["trust"].shape == (2, hasher.bits + 1)
    fits = fits and found["best_scores"].shape == (BINS,)
    fits = fits and found["changes"].shape == (opened,)
    fits = fits and found["center"].shape == (hasher.n_features_in_,)
    require(fits, "its arrays do not fit each other")
    served = (found["classifiers"], found["pooled"])
    require(
        all(bool((np.abs(weights) < MAX_WEIGHT).all()) for weights in served),
        "classifier weights are out of range",
    )
    require(bool((np.abs(found["center"]) < MAX_FEATURE).all()), "the center is out of range")
    right = (found["trust"][1] <= found["trust"][0]).all()
    require(bool(right and (found["trust"] >= 0).all()), "more words were right than there are")
    told = dict.fromkeys(LATEST, 0) | dict(about["figures"])  # files of before lack the latest
    figures = {name: count_of(told[name], MAX_COUNT) for name in FIGURES}
    require(figures["latest_right"] <= figures["latest_rows"], "more were right than there are")
    return Solved(
        names=names,
        figures=figures,
        inverse_temperature=heat,
        summing=about["summing"],
        **found,
    )


def _label(name: Any) -> Any:
    return as_label(label_from_json(name))


def write(hasher: OnlineHasher, learner: FollowingLearner, state: dict[str, Any]) -> Arrays:
    """Add to a file's state what a follower knows; return its arrays."""
    arrays, about = solved_to_arrays(everything(hasher)._replace(names=[]))
    own = learner.memory.own
    state["follows"] = about
    state["own_rows"] = None if own is None else own.rows
    if own is not None:
        arrays |= {"own_total": narrow(own.total), "own_gram": narrow(triangle(own.gram))}
    return arrays


def shapes(options: Options, d: int, n_labels: int, state: dict[str, Any]) -> dict[str, Shape]:
    """Return the shapes that arrays of a good file have, as far as options and labels say."""
    n, width = n_labels, options.seen_width(d)
    known: dict[str, Shape] = {
        "labels": (n,),
        "classifiers": (n, width),
        "counted": (n,),
        "counts": (n, 3),
        "changes": (options.cycles_of(n),),
        "center": (d,),
        "trust": (2, options.bits + 1),
        "best_scores": (BINS,),
    }
    if state["own_rows"] is not None or dict(state["follows"])["summing"]:
        known |= {"own_total": (width - 1,), "own_gram": ((width - 1) * width // 2,)}
    return known


def read(hasher: OnlineHasher, state: dict[str, Any], arrays: Arrays) -> None:
    """Bring a follower, whose labels have their words, to where its file was written."""
    learner = hasher._learner
    assert isinstance(learner, FollowingLearner)  # noqa: S101 - the caller has made it
    while len(learner.served.functions) * hasher._begun.labels_per_cycle < len(hasher._names):
        learner.open_cycle()
    learner.meet(len(hasher._names))
    follow(hasher, read_solved(arrays, dict(state["follows"]), hasher))
    rows = state["own_rows"]
    require((rows is None) == (learner.memory.own is None), "its own sums do not fit")
    if rows is not None:
        require(type(rows) is int and abs(rows) < MAX_COUNT, f"{rows!r:.20} rows of its own")
        learner.memory.own = _read_own(arrays, rows, learner.view.width - 1)


def _read_own(arrays: Arrays, rows: int, width: int) -> Sums:
    """Read sums; those of a shard may be of rows that another one has added."""
    sums = Sums(width)
    sums.rows = rows
    sums.total = _numbers(arrays, "own_total", width)
    sums.gram = square(_numbers(arrays, "own_gram", width * (width + 1) // 2), width)
    return sums


def _numbers(arrays: Arrays, name: str, length: int) -> Any:
    kind = np.int32 if arrays[name].dtype == np.int32 else np.float64
    numbers = array_of(arrays, name, kind, 1, (length,)).astype(np.float64)
    whole = bool((np.abs(numbers) < MAX_COUNT).all() and (numbers == np.rint(numbers)).all())
    require(whole, f"{name} is not a sum of rows")
    return numbers
