"""The first rows of a stream, kept as they came until the view is settled."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import GrowingArray

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class FirstRows:
    """Rows, and the labels of each."""

    def __init__(self, n_features: int) -> None:
        self.X: GrowingArray[np.float32] = GrowingArray((n_features,), np.float32)
        self.rows: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.labels: GrowingArray[np.int64] = GrowingArray((), np.int64)

    def __len__(self) -> int:
        return len(self.X)

    def add(self, X: Floats, rows: Counts, labels: Counts) -> None:
        """Keep rows; `rows` and `labels` pair them with their labels' numbers, rows ascending."""
        n, steps = len(self), len(self.rows)
        self.X.grow_to(n + len(X))
        self.X.rows[n:] = X
        for array, new in ((self.rows, rows + n), (self.labels, labels)):
            array.grow_to(steps + len(new))
            array.rows[steps:] = new

    def find(self, X: Floats, rows: Counts, labels: Counts) -> list[int]:
        """Return where rows with these labels stand, as far as they are there: the first alike."""
        places = defaultdict(list)
        for place, name in reversed(
            list(enumerate(_names(self.X.rows, self.rows.rows, self.labels.rows)))
        ):
            places[name].append(place)
        found: list[int] = []
        for name in _names(X, rows, labels):
            if not places[name]:
                break
            found.append(places[name].pop())
        return found

    def remove(self, places: list[int]) -> None:
        """Take rows away again."""
        stay = np.ones(len(self), np.bool_)
        stay[places] = False
        number, mine = np.cumsum(stay) - 1, stay[self.rows.rows]
        kept = number[self.rows.rows[mine]]
        self.labels.replace(self.labels.rows[mine].copy())
        self.rows.replace(kept)
        self.X.replace(self.X.rows[stay].copy())

    def merge_labels(self, one: int, other: int) -> None:
        """Let rows of one label have the other instead, once."""
        rows, labels = self.rows.rows, self.labels.rows
        both = np.isin(rows, rows[labels == other]) & (labels == one)
        self.rows.replace(rows[~both].copy())
        self.labels.replace(np.where(labels == one, other, labels)[~both])

    def drop_label(self, label: int, *, keep_rows: bool) -> None:
        """Let no row have a label; those left without any go, unless they are to be kept."""
        stay = self.labels.rows != label
        self.rows.replace(self.rows.rows[stay].copy())
        self.labels.replace(self.labels.rows[stay].copy())
        if not keep_rows:
            self.remove(np.setdiff1d(np.arange(len(self)), self.rows.rows).tolist())


def _names(X: Floats, rows: Counts, labels: Counts) -> list[tuple[bytes, tuple[int, ...]]]:
    """Return what identifies each row: its features and its labels."""
    of: list[list[int]] = [[] for _ in X]
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        of[row].append(label)
    return [(x.tobytes(), tuple(sorted(mine))) for x, mine in zip(X, of, strict=True)]
