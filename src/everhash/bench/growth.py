"""Labels that arrive over time: mAP of the labels seen so far, at several checkpoints."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.bench.baselines import BASELINES, LOGISTIC, of_classes, score_features
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import ORDERS, Split
from everhash.bench.retrieval import make, rehearse, sizes, split_of
from everhash.bench.scoring import score_codewords, score_mapping
from everhash.bench.task import Task
from everhash.errors import OptionError
from everhash.learn.stream_hasher import StreamHasher

CHECKPOINTS = 10
DISTANCES = ("hamming", "asymmetric")


def measure(task: Task, data: Dataset) -> dict[str, Any]:
    """Learn a stream whose labels arrive over time; score at ten checkpoints.

    Entries and queries are those of the labels seen so far. The area under the curve is the mean
    over the checkpoints.
    """
    if task.protocol not in ORDERS:
        raise OptionError(
            f"unknown order {task.protocol!r}", hint=f"expected one of: {', '.join(ORDERS)}"
        )
    split = split_of(task, data)
    hasher = None
    if task.method not in BASELINES:
        rehearse(task, data, split)
        hasher = make(task, data)
    seconds = 0.0
    curve: list[dict[str, Any]] = []
    for end in np.linspace(0, len(split.stream), CHECKPOINTS + 1).astype(int)[1:].tolist():
        begin = curve[-1]["rows"] if curve else 0
        start = perf_counter()
        if hasher is not None:
            learn(hasher, data, split.stream[begin:end])
        seconds += perf_counter() - start
        seen = seen_so_far(data, split, end)
        labels = len(np.unique(data.y[seen.stream]))
        figures = baseline(task, data, seen) if hasher is None else scores(hasher, data, seen)
        seconds += figures.pop("seconds", 0.0)
        curve.append({"rows": end, "labels": labels, **figures})
    width = 0 if hasher is None else hasher.width_
    areas = {"area": areas_of(curve), "seconds": seconds, "width": width}
    return {**sizes(data.y, split), **areas, "curve": curve}


def learn(hasher: StreamHasher, data: Dataset, rows: NDArray[np.int64]) -> None:
    """Learn rows in batches of 100."""
    for batch in np.array_split(rows, max(1, len(rows) // 100)):
        hasher.partial_fit(data.X[batch], data.y[batch])


def seen_so_far(data: Dataset, split: Split, end: int) -> Split:
    """Return the part of a split whose labels are among the first rows of the stream."""
    stream = split.stream[:end]
    seen = np.unique(data.y[stream])
    entries, queries = (
        rows[np.isin(data.y[rows], seen)] for rows in (split.entries, split.queries)
    )
    return Split(stream, entries, queries)


def baseline(task: Task, data: Dataset, seen: Split) -> dict[str, Any]:
    """Return the same for a baseline; logistic regression learns all rows again each time."""
    if task.method != LOGISTIC:
        return {"mapping": {"asymmetric": score_features(data, seen)}}
    figures = of_classes(data, seen, data.y[seen.stream])
    return {name: figures[name] for name in ("seconds", "mapping", "codeword")}


def scores(hasher: StreamHasher, data: Dataset, seen: Split) -> dict[str, Any]:
    """Return mAP with entries stored as bits and as codewords."""
    figures = {"mapping": score_mapping(hasher, data, seen)._asdict()}
    if hasher.assigns_codewords:
        figures["codeword"] = score_codewords(hasher, data, seen)._asdict()
    return figures


def areas_of(curve: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean over checkpoints of each tie-averaged mAP."""
    return {
        stored: {
            distance: float(np.mean([point[stored][distance].average for point in curve]))
            for distance in DISTANCES
            if distance in curve[0][stored]
        }
        for stored in ("mapping", "codeword")
        if stored in curve[0]
    }
