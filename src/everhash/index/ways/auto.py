"""Auto: by meaning for queries that resemble something learned, by likeness for the others.

Where entries have neither likeness codes nor features, all queries are searched by meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from everhash.index.arrays import Counts
from everhash.index.ways.likeness import ByLikeness, has_likeness
from everhash.index.ways.meaning import ByMeaning
from everhash.index.ways.query import Query
from everhash.index.ways.way import Found, Scope, Way

NOVEL = 0.85
"""A query more novel than this share of the rows that came is searched by likeness."""


class ByAuto(Way):
    """Chooses a way for each query, and says which."""

    name: ClassVar = "auto"

    def __init__(self, query: Query) -> None:
        self.novelty = query.novelty
        novel = (self.novelty > NOVEL) & has_likeness(query.entries)
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
