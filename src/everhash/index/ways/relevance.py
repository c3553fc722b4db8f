"""By relevance: the probability that an entry has the query's label, whether known or not.

Entries are found twice, as those of the likeliest labels (`meaning`) and as the nearest ones
(`likeness`), and then judged together: `everhash.index.relevance` says how. With few labels, and
for what nobody has labelled, that finds what the nearest entries tell; with many what labels do.

Where entries have neither likeness codes nor features, all are searched by meaning.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from everhash.index.arrays import Floats
from everhash.index.hasher import rows_learned
from everhash.index.relevance import NEAR, Pairs, relevance, usual_rows
from everhash.index.ways.likeness import ByLikeness, has_likeness
from everhash.index.ways.meaning import ByMeaning
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way


class ByRelevance(Way):
    """See the module."""

    name: ClassVar = "relevance"

    def __init__(self, query: Query) -> None:
        self._query, self.novelty = query, query.novelty
        self._meaning = ByMeaning(query)
        self._judges = has_likeness(query.entries)

    def nearest(self, k: int, scope: Scope) -> Found:
        """See `Way.nearest`."""
        if not self._judges:
            return self._meaning.nearest(k, scope)
        return self._judged(self.pool(k, scope)).at((slice(None), slice(k)))

    def within(self, r: float, scope: Scope) -> Found:
        """See `Way.within`."""
        if not self._judges:
            return self._meaning.within(r, scope)
        found = self._judged(self.pool(None, scope))
        counts = (found.scores >= r).sum(axis=1)  # NaN is not
        there = np.arange(found.places.shape[1]) < counts[:, None]
        wide = slice(int(counts.max(initial=0)))
        return Found(
            np.where(there, found.scores, np.nan),
            np.where(there, found.likeness, np.nan),
            np.where(there, found.places, -1),
            np.where(there, found.numbers, -1),
        ).at((slice(None), wide))

    def meant(self, found: Found) -> Floats:
        """See `Way.meant`."""
        return self._meaning.of(found.places, None)[0]

    def pool(self, k: int | None, scope: Scope) -> Found:
        """Return the entries among which are the k best, each once, with scores by meaning.

        Without k all that are searched are returned.
        """
        if k is None:
            return self._meaning.within(-np.inf, scope)
        k = max(k, NEAR)
        meant, near = self._meaning.nearest(k, scope), self._likeness.nearest(k, scope)
        found = _once(Found.beside(near, meant))
        scores, numbers = self._meaning.of(found.places, scope.labels)
        return found._replace(scores=scores, numbers=numbers)

    @cached_property
    def _likeness(self) -> ByLikeness:
        return ByLikeness(self._query, self._query.likeness_rows)

    def _judged(self, found: Found) -> Found:
        """Return entries in the order of their relevance."""
        scores = relevance(self.pairs(found))
        order = np.lexsort((found.places, -found.likeness, -scores), axis=1)
        rows = np.arange(len(order))[:, None]
        return found._replace(scores=scores).at((rows, order))

    def pairs(self, found: Found) -> Pairs:
        """Return what their relevance is judged by."""
        entries = self._query.entries
        guesses, rows = entries.guess_column, usual_rows(rows_learned(entries.hasher))
        there = found.places >= 0
        own = found.numbers.copy()
        bare = there & (own < 0)
        own[bare] = guesses[found.places[bare]]
        return Pairs(found.scores, found.likeness, found.numbers >= 0, own, found.places, rows)


def _once(found: Found) -> Found:
    """Leave out what an entry is found by a second time; entries come in order of arrival."""
    absent = np.iinfo(np.int64).max
    for _ in range(2):  # the second time what was found before goes to the end
        places = np.where(found.places < 0, absent, found.places)
        order = np.argsort(places, axis=1, kind="stable")
        found = found.at((np.arange(len(order))[:, None], order))
        again = found.places[:, 1:] == found.places[:, :-1]
        columns: Any = zip(found, (np.nan, np.nan, -1, -1), strict=True)
        for column, nothing in columns:
            column[:, 1:][again] = nothing
    return found
