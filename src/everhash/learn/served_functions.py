"""What the exact learner serves: a classifier a label, and the functions that follow from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.learn import seeds
from everhash.learn.growing import GrowingArray
from everhash.learn.rotated_view import Rotated
from everhash.learn.views import margins_by, word_scores
from everhash.products import product

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]

BLOCK = 256
"""Functions drawn at a time. Bounds memory; results do not depend on it."""


class ServedFunctions:
    """Classifiers of labels; W_c = sum over labels y of cycle c of word_y a_y'.

    Args:
        words: (n_labels, k) each label's word; they are handed out elsewhere.
        view: how rows are seen; only its sizes matter here.
        labels_per_cycle: label number i lives in cycle i // labels_per_cycle.
        seed: of the directions that functions have before anything was learned.
    """

    def __init__(
        self, words: GrowingArray[np.int8], view: Rotated, labels_per_cycle: int, seed: int
    ) -> None:
        self._words, self._rho, self._seed = words, labels_per_cycle, seed
        self._turned = view.signs.shape[2]
        self._constant = view.constant
        width = view.width
        self.classifiers: GrowingArray[np.float32] = GrowingArray((width,), np.float32)
        self.pooled: GrowingArray[np.float32] = GrowingArray((width,), np.float32)
        """(n_labels, w) what says how likely labels are; see `pool`."""
        self.known: GrowingArray[np.bool_] = GrowingArray((), np.bool_)
        """(n_labels,) which of them have been learned."""
        self.functions: GrowingArray[np.float32] = GrowingArray(
            (words.rows.shape[1], width), np.float32
        )
        self.changes: GrowingArray[np.int64] = GrowingArray((), np.int64)
        """(n_cycles,) how often labels of a cycle were solved alone."""
        self.moved: GrowingArray[np.bool_] = GrowingArray((), np.bool_)
        """(n_labels,) which classifiers have changed since `take_moved`."""
        self._unknown: tuple[int, Counts] | None = None
        self.publications = 0
        """How often all were."""

    @property
    def n_labels(self) -> int:
        """Labels that have words."""
        return len(self._words)

    def meet(self, n_labels: int) -> None:
        """Make room for this many labels."""
        self.classifiers.grow_to(n_labels)
        self.pooled.grow_to(n_labels)
        self.known.grow_to(n_labels)
        self.moved.grow_to(n_labels)

    def open_cycle(self) -> None:
        """Append functions for labels to come."""
        cycle = len(self.functions)
        self.functions.grow_to(cycle + 1)
        self.changes.grow_to(cycle + 1)
        self.compose(cycle)

    def count_change(self, label: int) -> None:
        """Take note that a label's cycle is about to change."""
        self.changes.rows[label // self._rho] += 1

    def serve(self, labels: Counts, weights: Doubles, mean: Doubles) -> None:
        """Serve classifiers of rows seen from their mean, (D, n) one a column."""
        self._set(self.classifiers.rows, labels, weights, np.zeros(len(labels)), mean)
        self.known.rows[labels] = weights.any(axis=0)
        self.moved.rows[labels] = True
        self._unknown = None
        for cycle in np.unique(labels // self._rho).tolist():
            self.compose(cycle)

    def forget(self, labels: Counts) -> None:
        """Serve nothing for labels that have no rows."""
        self.classifiers.rows[labels] = 0
        self.pooled.rows[labels] = 0
        self.known.rows[labels] = False
        self.moved.rows[labels] = True
        self._unknown = None
        for cycle in np.unique(labels // self._rho).tolist():
            self.compose(cycle)

    def judge(self, labels: Counts, scores: Doubles, constants: Doubles, mean: Doubles) -> None:
        """Serve what says how likely labels are: what `Pool.scores` gives for them."""
        self._set(self.pooled.rows, labels, scores, constants, mean)
        self.moved.rows[labels] = True

    def _set(
        self, served: Floats, labels: Counts, weights: Doubles, constants: Doubles, mean: Doubles
    ) -> None:
        served[labels, :-1] = weights.T
        served[labels, -1] = (constants - weights.T @ mean) / self._constant

    def take_moved(self) -> Counts:
        """Return the labels whose classifiers have changed since the last call."""
        moved = np.flatnonzero(self.moved.rows)
        self.moved.rows[moved] = False
        return moved

    def take_over(
        self,
        labels: Counts,
        classifiers: Floats,
        pooled: Floats,
        changes: Counts,
        publications: int,
    ) -> None:
        """Serve classifiers that were solved elsewhere."""
        self.classifiers.rows[labels] = classifiers
        self.pooled.rows[labels] = pooled
        self.known.rows[labels] = classifiers.any(axis=1)
        self._unknown = None
        self.changes.replace(changes)
        self.publications = publications
        for cycle in np.unique(labels // self._rho).tolist():
            self.compose(cycle)

    @property
    def updates(self) -> Counts:
        """(n_cycles, k) how often each function has changed."""
        k = self.functions.rows.shape[1]
        return np.repeat(self.publications + self.changes.rows[:, None], k, axis=1)

    def restore(self, classifiers: Floats, pooled: Floats, changes: Counts) -> None:
        """Serve classifiers as they were read from a file; there are words for all of them."""
        self.classifiers.replace(classifiers)
        self.pooled.replace(pooled)
        self.known.replace((classifiers != 0).any(axis=1))
        self.moved.replace(np.zeros(len(classifiers), np.bool_))
        self._unknown = None
        self.functions.grow_to(len(changes))
        for cycle in range(len(changes)):
            self.compose(cycle)
        self.changes.replace(changes)

    def scores(self, Z: Floats) -> Floats:
        """Return (n, n_labels) scores of seen rows by the labels' own classifiers.

        They are -inf for labels that were not learned; where none was, all are the same.
        """
        return self._scored(self.classifiers.rows, Z)

    def pooled_scores(self, Z: Floats) -> Floats:
        """Return the scores that say how likely labels are; see `scores`."""
        return self._scored(self.pooled.rows, Z)

    def _scored(self, served: Floats, Z: Floats) -> Floats:
        scores = margins_by(served[None], Z)
        unknown = self.unknown
        if 0 < len(unknown) < scores.shape[1]:
            scores[:, unknown] = -np.inf
        return scores

    @property
    def unknown(self) -> Counts:
        """The labels that were not learned, by number."""
        unknown = self._unknown
        if unknown is None or unknown[0] != len(self.known):
            self._unknown = unknown = (len(self.known), np.flatnonzero(~self.known.rows))
        return unknown[1]

    def nearest_words(self, Z: Floats, scores: Floats) -> tuple[Counts, Counts]:
        """Return the label whose word is nearest to each row's in its home, and the bits between.

        Only labels that were learned count: whether others have words depends on the batch that
        they come in. Equally near words: the smallest number.

        Args:
            Z: (n, w) seen rows.
            scores: (n, n_labels) what `scores` gives for them, with labels learned.
        """
        homes, known = self._homes(scores), self.known.rows
        nearest, distances = np.empty((2, len(Z)), np.int64)
        for cycle in np.unique(homes).tolist():
            mine = np.flatnonzero(homes == cycle)
            bits = margins_by(self.functions.rows[cycle : cycle + 1], Z[mine]) > 0
            first = cycle * self._rho
            labels = first + np.flatnonzero(known[first : first + self._rho])
            signs = np.where(bits, np.float32(1), np.float32(-1))
            words = self._words.rows[labels].astype(np.float32)
            agree = product(signs, words.T)  # exact: whole numbers
            nearest[mine] = labels[agree.argmax(axis=1)]
            distances[mine] = (signs.shape[1] - agree.max(axis=1)) / 2
        return nearest, distances

    def _homes(self, scores: Floats) -> Counts:
        """Return the cycle of the learned label whose word fits best, as an index chooses it."""
        cycles, k = self.functions.rows.shape[:2]
        if cycles == 1:
            return np.zeros(len(scores), np.int64)
        margins = np.empty((len(scores), cycles * k), np.float32)
        learned = np.where(self.known.rows, scores, np.float32(0))
        words = np.require(self._words.rows, requirements="W")
        kernels.load().word_margins_into(learned, words, self._rho, margins)
        fits = word_scores(margins, words, self._rho)
        fits[:, self.unknown] = -np.inf
        homes: Counts = fits.argmax(axis=1) // self._rho
        return homes

    def compose(self, cycle: int) -> None:
        """Make a cycle's functions of its words and classifiers.

        Whoever reads a file composes them anew, maybe on another machine, and stored codes are
        those of the same functions only to the last bit: so sums go label by label, not by BLAS,
        whose order of summation depends on the processor and on threads.
        """
        members = slice(cycle * self._rho, (cycle + 1) * self._rho)
        classifiers = self.classifiers.rows[members]
        if classifiers.any():
            functions = self.functions.rows[cycle]
            signed, functions[:] = np.empty_like(functions), 0
            words = self._words.rows[members].astype(np.float32)
            for word, classifier in zip(words, classifiers, strict=True):
                functions += np.multiply(word[:, None], classifier, out=signed)
        else:
            self._direct_at_random(self.functions.rows[cycle], cycle)

    def _direct_at_random(self, functions: Floats, cycle: int) -> None:
        """Let functions be directions among turned rows, without features or bias."""
        rng = seeds.generator(self._seed, seeds.WEIGHTS, cycle)
        for start in range(0, len(functions), BLOCK):
            block = functions[start : start + BLOCK]
            directions = np.zeros(block.shape)
            directions[:, : self._turned] = rng.standard_normal((len(block), self._turned))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            block[:] = directions
