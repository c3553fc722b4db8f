"""By meaning: the probability that an entry has the query's label; equal ones by likeness.

    an entry with labels    P(label | query), the largest of several, of those that are searched
    an entry without        P(guess | query) x trust[d]: its word is at distance d from the codeword
                            of the label it is taken for, and trust[d] is the measured share of such
                            words that have that label
    neither                 0: nothing was learned that it could be taken for

Likeness is the cosine of the features, where those of all entries are kept; entries are found by
its estimate, with `exact=True` by itself. Entries that are equal in that too come by arrival.
Before any label was learned all have probability 0, so likeness alone ranks.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from everhash import kernels
from everhash.index.arrays import Counts, Floats
from everhash.index.cells import unit
from everhash.index.columns import UNLABELLED
from everhash.index.hasher import trust_of
from everhash.index.ways.likeness import LikenessOf
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way


class ByMeaning(Way):
    """See the module."""

    name: ClassVar = "meaning"

    def __init__(self, query: Query) -> None:
        self._entries, self._rows, self._exact = query.entries, query.likeness_rows, query.exact
        self._probabilities, self.novelty = query.posterior
        self._trust = np.require(trust_of(query.entries.hasher), requirements="W")  # for Numba
        self._likeness = LikenessOf(query.entries, self._rows)

    def nearest(self, k: int, scope: Scope) -> Found:
        """See `Way.nearest`."""
        if scope.places is not None:
            found = self._among(scope.places_in(self._entries), k, scope.labels)
        else:
            found = self._grouped(k, scope)
            if self._exact:
                return self._by_features(found, k, scope)
        return self._measured(found)

    def within(self, r: float, scope: Scope) -> Found:
        """See `Way.within`."""
        found = self._among(scope.places_in(self._entries), None, scope.labels, least=r)
        return self._measured(found)

    def meant(self, found: Found) -> Floats:
        """See `Way.meant`."""
        return found.scores

    def of(self, places: Counts, labels: Counts | None) -> tuple[Floats, Counts]:
        """Return (q, m) scores of entries of each query's own, and the labels they are found by."""
        scores = np.full(places.shape, np.nan, np.float32)
        best, there = np.full(places.shape, -1), places >= 0
        rows, mine = np.nonzero(there)[0], places[there]
        at, numbers = self._entries.label_pairs(mine)
        if labels is not None:
            at, numbers = _only(labels, at, numbers)
        guesses = self._entries.guess_column[mine]
        shares = np.zeros(len(mine), np.float32)
        taken = guesses >= 0
        shares[taken] = self._probabilities[rows[taken], guesses[taken]]
        shares *= self._trust_in(mine)
        scores[there], best[there] = _best(
            shares, at, numbers, self._probabilities[rows[at], numbers]
        )
        return scores, best

    def _trust_in(self, places: Counts) -> Floats:
        """Return how far entries may be trusted to have the labels they are taken for."""
        distances = self._entries.distance_column[places]
        trust: Floats = self._trust[np.minimum(distances, len(self._trust) - 1)]
        return trust

    def _measured(self, found: Found) -> Found:
        """Replace estimates of likeness by cosines, and order equal probabilities by them."""
        if self._entries.keep_features != "all" or found.places.size == 0:
            return found
        pages = self._entries.pages_of(np.unique(found.places[found.places >= 0]))
        cosines = pages.own_cosines(unit(self._rows), found.places)
        order = np.lexsort((found.places, -cosines, -found.scores))
        rows = np.arange(len(order))[:, None]
        return found._replace(likeness=cosines).at((rows, order))

    def _grouped(self, k: int, scope: Scope) -> Found:
        """Search the groups of the likeliest labels only."""
        given, guessed, loose = self._entries.groups(scope.labels, unlabelled=scope.unlabelled)
        search = kernels.load_likeness().search_meaning
        scores, likeness, places, labels, kinds = search(
            self._probabilities,
            self._trust,
            self._entries.distance_column,
            *given.lists,
            *guessed.lists,
            loose,
            given.several,
            self._likeness.codes,
            *self._likeness.queries,
            int(self._likeness.there),
            k,
        )
        if (places[:, -1] < 0).any():
            missing = places < 0
            scores[missing] = likeness[missing] = np.nan
        if not self._likeness.there:
            likeness[:] = np.nan
        if self._entries.hasher.assigns_codewords:
            labels[kinds != 0] = UNLABELLED
        else:  # labels are only names, and an entry that has one was not found by it
            labels = self._entries.first_labels(places)
        return Found(scores, likeness, places, labels)

    def _among(
        self,
        places: Counts,
        k: int | None,
        labels: Counts | None,
        rows: range | None = None,
        least: float = -np.inf,
    ) -> Found:
        """Rank a given set of entries by computing every score; only these labels count."""
        at, numbers = self._entries.label_pairs(places)
        if labels is not None:
            at, numbers = _only(labels, at, numbers)
        guesses = self._entries.guess_column[places]
        trust, taken, found = self._trust_in(places), guesses >= 0, []
        for row in range(len(self._rows)) if rows is None else rows:
            shares = self._probabilities[row]
            scores = np.zeros(len(places), np.float32)
            scores[taken] = shares[guesses[taken]] * trust[taken]
            scores, best = _best(scores, at, numbers, shares[numbers])
            likeness = self._likeness_to(row, places)
            near = scores >= least
            kept = (scores[near], likeness[near], places[near], best[near])
            found.append(Found.ranked(*kept, k))
        table = Found.padded(found)
        if not self._likeness.there and not self._exact:
            table.likeness[:] = np.nan
        return table

    def _likeness_to(self, row: int, places: Counts) -> Floats:
        one = slice(row, row + 1)
        if self._exact:
            pages = self._entries.pages_of(places)
            cosines: Floats = pages.cosines(unit(self._rows[one]), places)[0]
            return cosines
        estimates: Floats = self._likeness.of(places, one)[0]
        return estimates

    def _by_features(self, found: Found, k: int, scope: Scope) -> Found:
        """Order entries of equal probability by their features instead of by their codes."""
        everywhere = scope.places_in(self._entries)
        rows = []
        for row in range(len(self._rows)):
            last = found.scores[row, ~np.isnan(found.scores[row])][-1:]
            least = float(last[0]) if len(last) else 0.0
            only = self._scoring(row, everywhere, scope.labels, least)
            rows.append(self._among(only, k, scope.labels, range(row, row + 1)))
        return Found.padded(rows)

    def _scoring(self, row: int, places: Counts, labels: Counts | None, least: float) -> Counts:
        """Return the places of entries whose score is at least `least`, ascending."""
        exact, self._exact = self._exact, False
        try:
            found = self._among(places, None, labels, range(row, row + 1), least=least)
        finally:
            self._exact = exact
        return np.sort(found.places[0])


def _only(labels: Counts, at: Counts, numbers: Counts) -> tuple[Counts, Counts]:
    """Leave only these labels to entries."""
    wanted = np.isin(numbers, labels)
    return at[wanted], numbers[wanted]


def _best(scores: Floats, at: Counts, numbers: Counts, shares: Floats) -> tuple[Floats, Counts]:
    """Return the scores of entries with their best labels instead, and these; -1 for none."""
    best, order = np.full(len(scores), -1), np.lexsort((-numbers, shares))
    scores[at[order]], best[at[order]] = shares[order], numbers[order]
    return scores, best
