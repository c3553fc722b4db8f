"""How likely each label is for a row: two classifiers from the same sums, in one linear map.

    ridge         w_y·(z - mu)                          see `ridge`
    class means   m_y'S (z - mu) - m_y'S m_y / 2        S = (W + l I)^-1

W is the scatter of rows about the mean of their own label, so S weighs directions by how little
rows of one label differ there (Fisher, 1936). Its penalty l is that of ridge, and at least
(10 / r)^2 mean eigenvalues, r being the rows of a usual label: with few rows the class means alone
are right most often, with many both are. While rows are few, rows without a label help to place the
means (see `mixture`).

Each of the two is measured in its own unit: what a row's own label scores above the mean of all
labels, on average over the rows learned. So the best score of a usual row is about 1, whatever the
set, and one inverse temperature is a fair guess for any (`guessed_temperature`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.learn.ridge import PENALTIES, Inverse, Moments

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

FEW = 10
"""Rows a label up to which the penalty of the class means is above 1."""
EVEN = 20
"""Rows a label from which on both classifiers have the same share."""
HELPING = 20
"""Rows of a usual label from which on rows without a label no longer help to place its mean."""
LEAST_UNIT = 1e-6


class Hints(NamedTuple):
    """Rows without a label, as the means of labels count them."""

    weight: float
    """How many of them a row with a label counts for."""
    sums: Doubles
    """(n_labels, D) of those that each label gets, about the mean of all labelled rows."""
    rows: Doubles
    """(n_labels,) how many it gets."""


class Pool(NamedTuple):
    """What turns sums of labels into their scores, until all are solved again."""

    share: float
    """Of ridge."""
    ridge_unit: float
    means_unit: float
    offset: float
    """The mean of all labels' constants."""
    within: Inverse | None
    """S; None where it is not known: then ridge has all."""
    hints: Hints | None = None

    def scores(
        self, weights: Doubles, sums: Doubles, counts: Counts, labels: Counts
    ) -> tuple[Doubles, Doubles]:
        """Return (D, n) what rows about the mean are multiplied with, and (n,) what is added.

        Args:
            weights: (D, n) by ridge.
            sums: (D, n) each label's rows about the mean.
            counts: (n,) how many they are.
            labels: (n,) the labels' numbers.
        """
        scores = weights * (self.share / self.ridge_unit)
        if self.within is None:
            return scores, np.zeros(len(labels))
        directions, constants = self._by_means(sums, counts, labels)
        part = (1 - self.share) / self.means_unit
        return scores + part * directions, part * (constants - self.offset)

    def _by_means(self, sums: Doubles, counts: Counts, labels: Counts) -> tuple[Doubles, Doubles]:
        assert self.within is not None  # noqa: S101 - the caller has looked
        means, _ = self.means(sums, counts, labels)
        directions = self.within.solve(means)
        return directions, -(means * directions).sum(axis=0) / 2

    def means(self, sums: Doubles, counts: Counts, labels: Counts) -> tuple[Doubles, Doubles]:
        """Return (D, n) the means of labels, and how much their rows count for, together.

        Rows that have no label but resemble theirs count too, see `Hints`.
        """
        if self.hints is None:
            return sums / np.maximum(counts, 1), counts.astype(np.float64)
        weight, hint_sums, hint_rows = self.hints
        some = labels < len(hint_rows)  # not those of labels that came later
        more, rows = np.zeros_like(sums), np.zeros(len(labels))
        more[:, some], rows[some] = hint_sums[labels[some]].T, hint_rows[labels[some]]
        total: Doubles = weight * counts + rows
        return (weight * sums + more) / np.maximum(total, 1), total


RIDGE_ALONE = Pool(1.0, 1.0, 1.0, 0.0, None)
"""Of a file that has no other scores."""


def make_pool(
    rows: Moments,
    weights: Doubles,
    penalty: int,
    counts: Counts,
    numbers: Counts,
    hints: Hints | None,
) -> Pool:
    """Return the pool of labels that have rows.

    Args:
        rows: that were learned.
        weights: (D, n_labels) by ridge.
        penalty: of ridge, a place among `PENALTIES`.
        counts: (n_labels,) rows of each label.
        numbers: (n_labels,) the labels' numbers.
        hints: rows without a label; None for none.
    """
    known = in_order(rows.sums, counts)
    share = min(0.5, usual_rows(counts) / (2 * EVEN))
    pool = Pool(share, 1.0, 1.0, 0.0, within_of(rows, penalty, counts), hints)
    sums, counted = rows.sums[:, known], counts[known]
    directions, constants = pool._by_means(sums, counted, numbers[known])
    offset = float(constants.mean())
    own = (directions * sums).sum() + counted @ constants
    return pool._replace(
        ridge_unit=_unit((weights[:, known] * sums).sum() / counted.sum()),
        means_unit=_unit(own / counted.sum() - offset),
        offset=offset,
    )


def within_of(rows: Moments, penalty: int, counts: Counts) -> Inverse:
    """Return S for rows with so many of each label; `penalty` is that of ridge."""
    return rows.within(max(float(PENALTIES[penalty]), (FEW / usual_rows(counts)) ** 2))


def in_order(sums: Doubles, counts: Counts) -> Counts:
    """Return labels that have rows in an order that depends on their rows alone.

    Labels are numbered as they came, and numbers that are rounded add up to another last digit in
    another order.

    Args:
        sums: (D, n_labels) of each label's rows.
        counts: (n_labels,) how many they are.
    """
    ordered: Counts = np.lexsort((*sums[:3], counts))
    return ordered


def usual_rows(counts: Counts) -> float:
    """Return how many rows a usual label has, of those that have any."""
    some = counts[counts > 0]
    return float(np.median(some)) if len(some) else 0.0


def guessed_temperature(n_labels: int, usual: float) -> float:
    """Return the inverse temperature of scores before any row was judged.

    Args:
        n_labels: that were learned.
        usual: rows that a usual one of them has.
    """
    steepness = 3 - 1 / max(1.0, usual) ** 2  # one row says little of where a label ends
    return max(1.0, steepness * float(np.log(n_labels + 1)))


def _unit(score: float) -> float:
    return max(float(score), LEAST_UNIT)
