"""How good the hasher has been: rows scored before they were learned, and what follows from it.

A row is scored by what is served when it arrives, then learned, so nothing is ever judged on what
it has been taught (Dawid, 1984: prequential). All of the first thousand labelled rows are scored,
then one in four, and whenever rows have doubled, half as many of them: 250 a doubling.
Rows of labels that had not been learned yet are left out.

The same rows tell how far a word can be trusted (`trust`) and what scores are usual (`novelty`).

Scores become probabilities by softmax(s / temperature). The temperature is that with the least
log-loss on these rows, older ones counting less: at every publication their weight is halved. A
guess (`pool`) counts for some rows more. Accuracy is told of all rows, and of now: of the latest,
or while few rows have labels, of kept ones, each left out (`left_out`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.learn.growing import GrowingArray, copied
from everhash.learn.novelty import BestScores
from everhash.learn.pool import guessed_temperature
from everhash.learn.trust import ROW, Trust

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]

ALL = 1000
"""Labelled rows of which each is scored."""
DOUBLINGS = 10
"""Inverse temperatures 1, 2, 4, ... that losses are kept for."""
UNIT = 1_000_000
"""Losses are summed up in millionths, as whole numbers: no order of rows can change them."""
GUESSED_ROWS = 10
"""Rows that the guess of the temperature counts for, or one for each label if they are more."""
BEND = 0.08
"""How much more a row loses, about, at an inverse temperature of twice or half the best one."""
ENOUGH = 256
"""Rows of trust and best scores are halved while they are at least so many: publishing again and
again leaves some."""


class Accuracy(NamedTuple):
    """How rows fared that were scored before they were learned."""

    rows: int
    accuracy: float | None
    """Share of rows whose best label was theirs; None before any was scored."""
    latest: float | None
    """The same of the latest rows, each publication counting half of the next."""
    log_loss: float | None
    """Mean of -log of the probability given to their labels."""
    temperature: float


class Record:
    """Accuracy and log-loss so far, overall and for each label; trust in words, and best scores.

    Args:
        bits: of a word.
    """

    def __init__(self, bits: int) -> None:
        self.offered = 0
        self.rows = 0
        self.right = 0
        self.loss = 0
        """Of all rows, each at the temperature of its day; like `losses` in whole units."""
        self.losses = np.zeros(DOUBLINGS, np.int64)
        self.inverse_temperature = guessed_temperature(1, 1.0)
        """What scores are multiplied with; it changes at publications."""
        self.latest = np.zeros(2, np.int64)
        """Rows scored, and those that were right, halved like `losses`; a row counts `ROW`."""
        self.label_rows: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.label_right: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.trust = Trust(bits)
        self.best_scores = BestScores()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over copies: joblib may have mapped arrays read-only from disk."""
        vars(self).update(copied(state))

    def grow_to(self, n_labels: int) -> None:
        """Make room for this many labels."""
        self.label_rows.grow_to(n_labels)
        self.label_right.grow_to(n_labels)

    def pick(self, rows: Counts) -> Counts:
        """Return those of the labelled rows arriving that are to be scored."""
        numbers = self.offered + np.arange(len(rows))
        self.offered += len(rows)
        doublings = np.floor(np.log2(np.maximum(numbers, ALL) / ALL)).astype(np.int64)
        every = np.where(numbers < ALL, 1, 4 << doublings)
        picked: Counts = rows[numbers % every == 0]
        return picked

    def take(
        self, scores: Floats, nearest: Counts, distances: Counts, rows: Counts, labels: Counts
    ) -> None:
        """Take account of scored rows.

        Args:
            scores: (n, n_labels) one row of scores for each.
            nearest: (n,) the label whose word is nearest to theirs.
            distances: (n,) and how many bits differ.
            rows: which of them each of their labels belongs to, ascending; every one has a label.
            labels: the number of that label.
        """
        n = len(scores)
        right = _has(scores.argmax(axis=1), rows, labels)
        self.trust.take(distances, _has(nearest, rows, labels))
        best = scores.max(axis=1)
        self.best_scores.take(best)
        relative = (scores - best[:, None]).astype(np.float64)
        powers = np.exp(relative * self.inverse_temperature)
        self.loss += int(_losses(powers, rows, labels).sum())
        powers = np.exp(relative)
        for doubling in range(DOUBLINGS):
            self.losses[doubling] += _losses(powers, rows, labels).sum()
            powers *= powers
        self.rows += n
        self.right += int(right.sum())
        self.latest += ROW * np.array([n, right.sum()])
        np.add.at(self.label_rows.rows, labels, 1)
        np.add.at(self.label_right.rows, labels, right[rows].astype(np.int64))

    def calibrate(self, n_labels: int, usual: float) -> None:
        """Take the best temperature; from now on what was scored so far counts half.

        Newer functions have other scores.

        Args:
            n_labels: that were learned.
            usual: rows that a usual one of them has.
        """
        steps = np.arange(DOUBLINGS) - np.log2(guessed_temperature(n_labels, usual))
        rows = max(GUESSED_ROWS, n_labels)
        guess = np.rint(UNIT * rows * BEND * steps**2).astype(np.int64)
        self.inverse_temperature = _bottom(self.losses + guess)
        self.losses //= 2
        self.latest //= 2
        if self.trust.rows.sum() >= ENOUGH * ROW:
            self.trust.halve()
            self.best_scores.halve()

    def replace_latest(self, rows: int, right: int) -> None:
        """Tell accuracy of now by rows that were judged otherwise: see `left_out`."""
        self.latest = ROW * np.array([rows, right])

    def merge(self, other: Record, numbers: Counts) -> None:
        """Add what another has recorded; `numbers` are its labels' numbers here, or GONE."""
        self.offered += other.offered
        self.rows += other.rows
        self.right += other.right
        self.loss += other.loss
        self.losses += other.losses
        self.latest += other.latest
        self.trust.merge(other.trust)
        self.best_scores.merge(other.best_scores)
        named = numbers >= 0
        self.label_rows.rows[numbers[named]] += other.label_rows.rows[named]
        self.label_right.rows[numbers[named]] += other.label_right.rows[named]

    def merge_labels(self, one: int, other: int) -> None:
        """Count the rows of one label as rows of the other."""
        for counts in (self.label_rows.rows, self.label_right.rows):
            counts[other] += counts[one]
        self.drop_label(one)

    def drop_label(self, label: int) -> None:
        """Count no rows for a label."""
        self.label_rows.rows[label] = self.label_right.rows[label] = 0

    @property
    def label_accuracies(self) -> list[float | None]:
        """Share of each label's rows that were taken for it; None where none was scored."""
        pairs = zip(self.label_right.rows.tolist(), self.label_rows.rows.tolist(), strict=True)
        return [right / rows if rows else None for right, rows in pairs]

    @property
    def accuracy(self) -> Accuracy:
        """The figures over all labels."""
        share = self.right / self.rows if self.rows else None
        rows, right = self.latest.tolist()
        latest = right / rows if rows else share
        loss = self.loss / (UNIT * self.rows) if self.rows else None
        return Accuracy(self.rows, share, latest, loss, 1 / self.inverse_temperature)


def _has(guesses: Counts, rows: Counts, labels: Counts) -> NDArray[np.bool_]:
    """Return for each row whether a guess is one of its labels; see `Record.take`."""
    has = np.zeros(len(guesses), np.bool_)
    has[rows[guesses[rows] == labels]] = True
    return has


def _losses(powers: NDArray[np.float64], rows: Counts, labels: Counts) -> Counts:
    """Return -log of the share of each row's own labels in the powers of all, in whole units."""
    own = np.bincount(rows, powers[rows, labels], minlength=len(powers))
    losses = -np.log(np.maximum(own / powers.sum(axis=1), 1e-12))
    units: Counts = np.rint(UNIT * losses).astype(np.int64)
    return units


def _bottom(losses: Counts) -> float:
    """Return the inverse temperature at the bottom of a parabola through the least losses."""
    at = int(np.clip(losses.argmin(), 1, DOUBLINGS - 2))
    left, middle, right = losses[at - 1 : at + 2].tolist()
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
    return float(2 ** (at + min(1.0, max(-1.0, shift))))
