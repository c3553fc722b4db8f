"""Auto: by meaning for queries that resemble something learned, by likeness for the others.

A query is searched by likeness if the entry nearest to it has no label that was learned: it may ask
for something that nobody has named. Queries that resemble what was learned more than nine in ten of
the rows that came are searched by meaning without that look. Where entries have neither likeness
codes nor features, all are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from everhash.index.arrays import Bools, Counts
from everhash.index.ways.likeness import ByLikeness, has_likeness
from everhash.index.ways.meaning import ByMeaning
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way

FAMILIAR = 0.1
"""A query no more novel than this is searched by meaning without a look at its nearest entry."""


class ByAuto(Way):
    """Chooses a way for each query, and says which."""

    name: ClassVar = "auto"

    def __init__(self, query: Query) -> None:
        self.novelty = query.novelty
        novel = _asks_for_something_else(query)
        self._ways: list[tuple[Counts, Way]] = []
        if not novel.all():
            self._ways.append((np.flatnonzero(~novel), ByMeaning(query.part(~novel))))
        if novel.any():
            self._ways.append((np.flatnonzero(novel), ByLikeness(query.part(novel))))

    def nearest(self, k: int, scope: Scope) -> Found:
        """See `Way.nearest`."""
        return self._joined(lambda way: way.nearest(k, scope))

    def within(self, r: float, scope: Scope) -> Found:
        """See `Way.within`."""
        return self._joined(lambda way: way.within(r, scope))

    def used(self) -> list[str]:
        """See `Way.used`."""
        names = [""] * len(self.novelty)
        for rows, way in self._ways:
            for row in rows.tolist():
                names[row] = way.name
        return names

    def _joined(self, search: Callable[[Way], Found]) -> Found:
        """Search each query in its own way, and put results back in order."""
        found: list[Found] = [Found.nothing(1)] * len(self.novelty)
        for rows, way in self._ways:
            table = search(way)
            for i, row in enumerate(rows.tolist()):
                found[row] = table.at(slice(i, i + 1))
        return Found.padded(found)


def _asks_for_something_else(query: Query) -> Bools:
    """Return which queries are nearest to an entry without a label that was learned."""
    novel: Bools = (query.novelty > FAMILIAR) & has_likeness(query.entries)
    if novel.any():
        some = query.part(novel)
        numbers = ByLikeness(some).nearest(1, Scope()).numbers
        shares = some.posterior.probabilities
        learned = np.zeros(len(numbers), np.bool_)
        if numbers.shape[1] and shares.shape[1]:
            first = numbers[:, 0]
            learned = (first >= 0) & (shares[np.arange(len(first)), first] > 0)
        novel[novel] = ~learned
    return novel
