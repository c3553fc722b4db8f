"""What every table is held against: neighbours by cosine, and batch logistic regression.

Neither has a code. Cosine keeps every feature of every entry. Logistic regression sees all rows of
the stream at once and keeps one class an entry: its label where entries are stored by label, the
class it predicts where they are stored by their features. Entries are ranked by the score that it
gives their class for the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.bench.counts import Groups, ScoreRange, ranked, stacked
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split
from everhash.learn.centering import unit_rows

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
COSINE = "cosine"
LOGISTIC = "logistic"
BASELINES = (COSINE, LOGISTIC)
COST = {
    "clinc150": 100.0,
    "caltech256-cnn": 10.0,
    "caltech256-gist": 3.0,
    "cifar10-cnn": 3.0,
    "cifar10-gist": 3.0,
    "digits": 10.0,
}
"""C of logistic regression: of 1, 3, 10, 30 and 100 the best for the queries of seed 0."""
USUAL_COST = 10.0
AT_ONCE = 50
"""Queries whose distances from all entries are in memory at a time."""


@dataclass(frozen=True)
class Classifier:
    """Batch logistic regression on centred rows of unit length."""

    center: Floats
    labels: Rows
    """The labels that it knows, sorted."""
    model: Any
    """scikit-learn's; None where there is one label only, and nothing to tell apart."""

    @classmethod
    def fitted(cls, X: Floats, y: Rows, dataset: str) -> Classifier:
        """Learn from all rows at once, with the C that suits the data set."""
        from sklearn.linear_model import LogisticRegression

        center, labels = X.mean(axis=0), np.unique(y)
        if len(labels) == 1:
            return cls(center, labels, None)
        model = LogisticRegression(C=COST.get(dataset, USUAL_COST), max_iter=1000)
        return cls(center, labels, model.fit(unit_rows(X, center), y))

    def scores(self, X: Floats) -> NDArray[np.float64]:
        """Return (n, labels) a score of each label."""
        if self.model is None:
            return np.zeros((len(X), 1))
        values = np.asarray(self.model.decision_function(unit_rows(X, self.center)), np.float64)
        return np.stack([-values, values], axis=1) if values.ndim == 1 else values

    def predict(self, X: Floats) -> Rows:
        """Return the label of each row."""
        named: Rows = self.labels[self.scores(X).argmax(axis=1)]
        return named


def class_groups(scores: NDArray[np.float64], classes: Rows, truth: Rows, wanted: Rows) -> Groups:
    """Return each query's groups of entries, a group a class, in falling order of its score.

    Args:
        scores: (queries, classes) of each class; no two of a query are equal.
        classes: (entries,) the class under which each entry is stored.
        truth: (entries,) its label.
        wanted: (queries,) the label that a query asks for.
    """
    n_classes = scores.shape[1]
    labels, which = np.unique(truth, return_inverse=True)
    held = np.zeros((n_classes, len(labels) + 1), np.int64)  # the last: labels of no entry
    np.add.at(held, (classes, which), 1)
    place = np.searchsorted(labels, wanted)
    known = labels[np.minimum(place, len(labels) - 1)] == wanted
    order = np.argsort(-scores, axis=1)
    size = held.sum(axis=1)[order]
    found = held[order, np.where(known, place, len(labels))[:, None]]
    return np.cumsum(size, axis=1) - size, size, found


def score_classifier(model: Classifier, data: Dataset, split: Split, stored: Rows) -> ScoreRange:
    """Return how well queries find entries that are stored under these labels."""
    groups = class_groups(
        model.scores(data.X[split.queries]),
        np.searchsorted(model.labels, stored),
        data.y[split.entries],
        data.y[split.queries],
    )
    return ScoreRange.of(groups)


def fit_classes(data: Dataset, split: Split, taught: Rows) -> tuple[Classifier, dict[str, Any]]:
    """Return logistic regression on the stream, and the seconds that it took."""
    start = perf_counter()
    model = Classifier.fitted(data.X[split.stream], taught, data.name)
    return model, {"seconds": perf_counter() - start}


def of_classes(data: Dataset, split: Split, taught: Rows) -> dict[str, Any]:
    """Return the figures of logistic regression, with entries stored by label and by features."""
    model, figures = fit_classes(data, split, taught)
    start = perf_counter()
    predicted = model.predict(data.X[split.entries])
    figures["encoding"] = perf_counter() - start
    figures["mapping"] = {"asymmetric": score_classifier(model, data, split, predicted)}
    figures["bytes"] = {"mapping": label_bytes(len(model.labels))}
    truth = data.y[split.entries]
    if np.isin(truth, model.labels).all():
        figures["codeword"] = {"asymmetric": score_classifier(model, data, split, truth)}
        figures["bytes"]["codeword"] = label_bytes(len(model.labels))
    return figures


def score_features(data: Dataset, split: Split) -> ScoreRange:
    """Return how well the nearest entries by cosine answer, centred by the mean of the stream."""
    center = data.X[split.stream].mean(axis=0)
    entries = unit_rows(data.X[split.entries], center)
    groups = stacked(
        ranked(row, data.y[split.entries] == label)
        for rows, labels in _asked(data, split, center)
        for row, label in zip(-(rows @ entries.T), labels, strict=True)
    )
    return ScoreRange.of(groups)


def _asked(data: Dataset, split: Split, center: Floats) -> Iterator[tuple[Floats, Rows]]:
    for start in range(0, len(split.queries), AT_ONCE):
        asked = split.queries[start : start + AT_ONCE]
        yield unit_rows(data.X[asked], center), data.y[asked]


def label_bytes(labels: int) -> float:
    """Return the bytes of a label's number, packed.

    >>> label_bytes(257)
    1.125
    """
    return ceil(log2(max(2, labels))) / 8


def feature_bytes(data: Dataset) -> int:
    """Return the bytes of an entry's features in single precision."""
    return 4 * int(data.X.shape[1])
