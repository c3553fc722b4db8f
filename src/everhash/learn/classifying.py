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
    """A hasher that can also name the label of a row.

    A subclass scores labels (`_label_scores`) and knows how scores become probabilities
    (`_inverse_temperature`).
    """

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return (n,) the likeliest label of each row."""
        best: NDArray[Any] = _as_array(self.labels_)[self._scores(X).argmax(axis=1)]
        return best

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return (n, n_labels) how likely each label is, in the order of `labels_`.

        Probabilities are calibrated on rows that were scored before they were learned; those of the
        sgd learner, which keeps no account of that, are not.
        """
        scores = self._scores(X) * np.float32(self._inverse_temperature())
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def predict_best(self, X: ArrayLike, k: int = 5) -> list[list[tuple[Any, float]]]:
        """Return for each row its k likeliest labels, each with its probability, best first."""
        whole_number("k", k, least=1)
        shares, labels = self.predict_proba(X), self.labels_
        best = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        return [
            [(labels[number], float(row[number])) for number in numbers]
            for row, numbers in zip(shares, best.tolist(), strict=True)
        ]

    def score(self, X: ArrayLike, y: Any) -> float:
        """Return the share of labelled rows whose likeliest label is theirs, or one of theirs."""
        best = self._scores(X).argmax(axis=1)
        labels = as_labels(y, len(best))
        numbers = np.array([self._numbers.get(value, -1) for value in labels.values], np.int64)
        right = np.zeros(len(best), np.bool_)
        right[labels.rows] |= best[labels.rows] == numbers[labels.which]
        labelled = np.unique(labels.rows)
        return float(right[labelled].mean()) if len(labelled) else float("nan")

    def _scores(self, X: ArrayLike) -> NDArray[np.float32]:
        self._require_fitted()
        rows = as_rows(X, self.n_features_in_, type(self).__name__)
        self._check_columns(X, rows.shape[1], first=False)
        if not self._numbers:
            raise LabelError("no label was learned yet", hint="partial_fit takes y= as well")
        return self._label_scores(rows)

    def _label_scores(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, n_labels) a score for each label; the highest is the likeliest."""
        raise NotImplementedError

    def _inverse_temperature(self) -> float:
        """Return what scores are multiplied with before the softmax."""
        raise NotImplementedError


def _as_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array: of numbers or strings where all are, of objects otherwise."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array
