"""What people find at the start, when few entries have a label, and how right labels are told.

`few`: so many rows of each label have it, beside 30 that have none. `half`: half of the labels are
unknown; of each known one half of the rows have it. All rows are entries, ingested 100 a call.

Beside every search stands FAISS by cosine; beside `predict` what a person would take instead, on
the same labelled rows: logistic regression, its C the best of three for these very queries, the
nearest mean of a label, and the nearest row. All of them know the mean of all entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.bench.datasets import Dataset
from everhash.bench.found import Asked, K, asked_of, filled, flat_answers
from everhash.bench.protocols import rank_within_label
from everhash.bench.retrieval import split_of
from everhash.bench.task import Task
from everhash.collection.collection import Collection
from everhash.errors import OptionError
from everhash.learn.centering import unit_rows

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]
BESIDE = 30
"""Rows of each label that do not have it."""
WAYS = ("relevance", "meaning", "likeness")
COSTS = (1.0, 10.0, 100.0)
TENTHS = 10
PROTOCOLS = {
    "few": f"few rows of each label have it, beside {BESIDE} that have none",
    "half": "half of the labels are unknown, half of the rows of the others have none",
}


def measure(task: Task, data: Dataset) -> dict[str, Any]:
    """Return what a collection finds by each way, and how right its guesses are."""
    if task.protocol not in PROTOCOLS:
        raise OptionError(
            f"no protocol {task.protocol!r} for few labels",
            hint=f"expected one of: {', '.join(PROTOCOLS)}",
        )
    asked = asked_by(task, data)
    few = task.protocol == "few"
    with filled(task, asked) as collection:
        ways, stated = {}, {}
        for by in WAYS:
            found = collection.search(asked.queries, K, by)
            right = asked.y[found.ids.astype(np.int64)] == asked.wanted[:, None]
            ways[by] = _shares(right)
            stated[by] = error_of(found.scores.ravel(), right.ravel())
        guessed, told = _guessed(collection, asked) if few else (None, None)
    right = asked.y[flat_answers(asked.X, asked.queries)[:, :K]] == asked.wanted[:, None]
    ways["cosine"] = _shares(right)
    del stated["likeness"]  # a cosine is no probability
    taught = sum(label is not None for label in asked.given)
    sizes = {"stream": taught, "ranked": len(asked.X), "asked": len(asked.queries)}
    return {**sizes, "ways": ways, "guessed": guessed, "told": told, "stated": stated}


def asked_by(task: Task, data: Dataset) -> Asked:
    """Return the entries of a task and its queries."""
    few = task.protocol == "few"
    rows = task.rows_a_label + BESIDE if few else task.rows_a_label
    split = split_of(replace(task, protocol="strict", rows_a_label=rows), data)
    y = data.y[split.stream]
    rank = rank_within_label(y)
    if few:
        return asked_of(data, split, rank >= task.rows_a_label)
    labels = np.random.default_rng(task.seed).permutation(np.unique(y))
    unknown = np.isin(y, labels[: len(labels) // 2])
    return asked_of(data, split, unknown | (rank >= rows // 2))


def _guessed(collection: Collection, asked: Asked) -> tuple[dict[str, float], dict[str, Any]]:
    """Return how right labels are told, by everhash and by others, and what it says of itself."""
    shares = others(asked) | {"everhash": _right(collection.predict(asked.queries), asked)}
    hasher: Any = collection.hasher
    likely = hasher.predict_proba(asked.queries)
    best = np.asarray(hasher.classes_)[likely.argmax(axis=1)] == asked.wanted
    learned = collection.stats()["learned"]
    told = {"error": error_of(likely.max(axis=1), best), "accuracy": learned["accuracy_now"]}
    return shares, told


def others(asked: Asked) -> dict[str, float]:
    """Return how right other classifiers are that have the same labelled rows."""
    from sklearn.linear_model import LogisticRegression

    center = asked.X.mean(axis=0)
    taught = np.array([label is not None for label in asked.given])
    X, y, queries = (
        unit_rows(asked.X[taught], center),
        asked.y[taught],
        unit_rows(asked.queries, center),
    )
    labels, which = np.unique(y, return_inverse=True)
    sums = np.zeros((len(labels), X.shape[1]), np.float32)
    np.add.at(sums, which, X)
    means = unit_rows(sums, np.zeros_like(center))
    models = [LogisticRegression(C=cost, max_iter=300).fit(X, y) for cost in COSTS]
    return {
        "logistic": max(_right(model.predict(queries), asked) for model in models),
        "means": _right(labels[(queries @ means.T).argmax(axis=1)], asked),
        "nearest": _right(y[(queries @ X.T).argmax(axis=1)], asked),
    }


def error_of(stated: NDArray[Any], right: NDArray[np.bool_]) -> float:
    """Return how far stated probabilities are from the share right, in tenths of them, on average.

    >>> error_of(np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False]))
    0.05
    """
    tenth = np.minimum((stated * TENTHS).astype(np.int64), TENTHS - 1)
    gaps = np.bincount(tenth, stated - right, TENTHS)
    return round(float(np.abs(gaps).sum() / len(stated)), 6)


def _shares(right: NDArray[np.bool_]) -> dict[str, float]:
    return {"first": float(right[:, 0].mean()), "ten": float(right.mean())}


def _right(labels: NDArray[Any], asked: Asked) -> float:
    return float((np.asarray(labels) == asked.wanted).mean())
