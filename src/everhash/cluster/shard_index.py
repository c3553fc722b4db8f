"""The index of a shard."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.index.arrays import Counts, Floats
from everhash.index.coded import CodedEntries
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.index.likeness import Likeness
from everhash.index.ways.likeness import LikenessOf
from everhash.index.ways.query import Query
from everhash.index.ways.relevance import ByRelevance
from everhash.index.ways.way import Scope
from everhash.matches import Matches
from everhash.stream import as_rows
from everhash.wire.ids import IdList
from everhash.wire.options import RECALL, check_k, check_radius, check_recall


class ShardIndex(Index):
    """An index whose likeness direction and mapping of unlabelled entries the lead decides."""

    def _code_likeness(self, rows: Floats, first: int) -> None:
        self._write_likeness(rows, first)

    @property
    def cells_due(self) -> bool:
        """Never: shards are searched in full, so that they answer as one machine does."""
        return False

    def places_of(self, ids: IdList) -> Counts:
        """Return the place of each id, -1 if no entry has it."""
        places = self._ids.find(ids)
        return np.where(self._is_living(places), places, -1)

    def ids_at(self, places: Counts) -> IdList:
        """Return the ids of the entries at these places."""
        return self._ids.at(places)

    def stored_at(self, places: Counts) -> StoredFeatures:
        """Return the features of the entries at these places, ascending, as they are stored."""
        return self._features.read(places)

    def check_search(self, X: Any, labels: Any) -> None:
        """Raise what is wrong with rows to search by, or else with labels to search for."""
        Query(self, X, exact=False, recall=RECALL)
        self._scope(labels, None, unlabelled=False)

    def pool(
        self, X: Any, k: Any, *, labels: Any, recall: float, ids: Any = None, **how: Any
    ) -> Matches:
        """Return what a search by relevance chooses from, each entry with its score by meaning."""
        query = Query(self, X, exact=how["exact"], recall=check_recall(recall))
        scope = self._scope(labels, ids, how["unlabelled"])
        return self._pool(query, check_k(k), scope, explain=how["explain"])

    def pool_radius(self, X: Any, r: Any, *, labels: Any, ids: Any = None, **how: Any) -> Matches:
        """Return all entries that are searched, each with its score by meaning."""
        query = Query(self, X, exact=how["exact"], recall=1.0)
        check_radius(r)
        scope = self._scope(labels, ids, how["unlabelled"])
        return self._pool(query, None, scope, explain=how["explain"])

    def _pool(self, query: Query, k: int | None, scope: Scope, *, explain: bool) -> Matches:
        way = ByRelevance(query)
        found = way.pool(k, scope).widened(k or 0)
        return self._matches(query, way, found, explain=explain)

    def estimates_at(self, X: Any, places: Counts) -> Floats:
        """Return (q, m) estimated cosines of each query with entries of its own; 0 for place -1."""
        rows = as_rows(X, self.hasher.n_features_in_, "this index")
        likeness = LikenessOf(self, rows)
        out = np.zeros(places.shape, np.float32)
        for i, mine in enumerate(places):
            there = mine >= 0
            out[i, there] = likeness.of(mine[there], slice(i, i + 1))[0]
        return out

    def take_coder(self, coder: Likeness) -> None:
        """Take over what makes likeness codes, before there are any."""
        self._coder = coder

    def turn_to(self, direction: NDArray[np.float32]) -> None:
        """Take over the direction of likeness codes, and make those of all entries again."""
        assert self._coder is not None  # noqa: S101 - entries of a shard have likeness codes
        self._coder.direction = direction
        places = self.with_features(np.arange(self.arrived))
        if len(places):
            self._table["likeness"][places] = self._coder.encode(self.features_at(places))

    def _coded_to_join(self) -> CodedEntries:
        if self._coded is None:
            self.rebase()
        assert self._coded is not None  # noqa: S101 - it was just made
        return self._coded

    def rebase(self) -> None:
        """Begin anew with unlabelled entries, of which there are none, under the newest mapping."""
        self._coded = self._new_coded(self.hasher.freeze())

    def refresh_all(self) -> None:
        """Bring unlabelled entries up to date; without any, take over the newest mapping."""
        if self.coded is None:
            self.rebase()
        self.refresh()
