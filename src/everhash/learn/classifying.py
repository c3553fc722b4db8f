"""Labels for rows: what a hasher takes them for, how sure it is, and how often it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import LabelError
from everhash.learn.options import whole_number
from everhash.learn.stream_hasher import StreamHasher
from everhash.stream import as_labels, as_rows


class Classifying(StreamHasher):
    """A hasher that can also name the label of a row; `posterior` says how likely each is."""

    @property
    def classes_(self) -> NDArray[Any]:
        """(n_classes,) labels that are not gone, sorted where all are strings or all numbers."""
        return _as_array(self._classes())

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return (n,) the likeliest label of each row."""
        best: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return best

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return (n, n_classes) how likely each label is, in the order of `classes_`.

        Probabilities are calibrated on rows that were scored before they were learned; those of the
        sgd learner, which keeps no account of that, are not. While there is nothing to tell labels
        apart by, all are equally likely.
        """
        self._require_fitted()
        rows = as_rows(X, self.n_features_in_, type(self).__name__)
        self._check_columns(X, rows.shape[1], first=False)
        if not self._numbers:
            raise LabelError("no label was learned yet", hint="give some rows a label")
        shares = self.posterior(rows).probabilities[:, self.numbers(self._classes())]
        return shares if shares.any() else np.full_like(shares, 1 / shares.shape[1])

    def predict_best(self, X: ArrayLike, k: int = 5) -> list[list[tuple[Any, float]]]:
        """Return for each row its k likeliest labels, each with its probability, best first."""
        whole_number("k", k, least=1)
        shares, labels = self.predict_proba(X), self._classes()
        best = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        return [
            [(labels[place], float(row[place])) for place in places]
            for row, places in zip(shares, best.tolist(), strict=True)
        ]

    def score(self, X: ArrayLike, y: Any) -> float:
        """Return the share of labelled rows whose likeliest label is theirs, or one of theirs."""
        best = self.predict_proba(X).argmax(axis=1)
        labels = as_labels(y, len(best))
        places = {label: place for place, label in enumerate(self._classes())}
        numbers = np.array([places.get(value, -1) for value in labels.values], np.int64)
        right = np.zeros(len(best), np.bool_)
        right[labels.rows] |= best[labels.rows] == numbers[labels.which]
        labelled = np.unique(labels.rows)
        return float(right[labelled].mean()) if len(labelled) else float("nan")

    def _classes(self) -> list[Any]:
        labels: list[Any] = [label for label in self.labels_ if label is not None]
        kinds = {type(label) for label in labels}
        return sorted(labels) if kinds <= {str} or kinds <= {int, float, bool} else labels


def _as_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array: of numbers or strings where all are, of objects otherwise."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array
