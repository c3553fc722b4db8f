"""Labels for rows: what a hasher takes them for, how sure it is, and how often it is right."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import LabelError
from everhash.learn.options import whole_number
from everhash.learn.stream_hasher import StreamHasher
from everhash.stream import as_labels, as_rows


class Classifying(StreamHasher):
    """A hasher that can also name the label of a row; `posterior` says how likely each is."""

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return (n,) the likeliest label of each row."""
        living, labels = self._living()
        places = np.searchsorted(living, self._best(X))
        best: NDArray[Any] = _as_array(labels)[places]
        return best

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return (n, n_labels) how likely each label is, in the order of `labels_`.

        Probabilities are calibrated on rows that were scored before they were learned; those of the
        sgd learner, which keeps no account of that, are not. While there is nothing to tell labels
        apart by, all are equally likely.
        """
        self._require_fitted()
        rows = as_rows(X, self.n_features_in_, type(self).__name__)
        self._check_columns(X, rows.shape[1], first=False)
        if not self._numbers:
            raise LabelError("no label was learned yet", hint="partial_fit takes y= as well")
        shares = self.posterior(rows).probabilities
        if not shares.any():
            shares[:, self._living()[0]] = 1 / len(self._numbers)
        return shares

    def predict_best(self, X: ArrayLike, k: int = 5) -> list[list[tuple[Any, float]]]:
        """Return for each row its k likeliest labels, each with its probability, best first."""
        whole_number("k", k, least=1)
        living, labels = self._living()
        shares = self.predict_proba(X)[:, living]
        best = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        return [
            [(labels[number], float(row[number])) for number in numbers]
            for row, numbers in zip(shares, best.tolist(), strict=True)
        ]

    def score(self, X: ArrayLike, y: Any) -> float:
        """Return the share of labelled rows whose likeliest label is theirs, or one of theirs."""
        best = self._best(X)
        labels = as_labels(y, len(best))
        numbers = np.array([self._numbers.get(value, -1) for value in labels.values], np.int64)
        right = np.zeros(len(best), np.bool_)
        right[labels.rows] |= best[labels.rows] == numbers[labels.which]
        labelled = np.unique(labels.rows)
        return float(right[labelled].mean()) if len(labelled) else float("nan")

    def _best(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the number of each row's likeliest label."""
        best: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return best

    def _living(self) -> tuple[NDArray[np.int64], list[Hashable]]:
        """Return the numbers of labels that are not gone, ascending, and the labels."""
        labels = [label for label in self.labels_ if label is not None]
        return self.numbers(labels), labels


def _as_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array: of numbers or strings where all are, of objects otherwise."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array
