"""The calls of a collection on a cluster that search it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.cluster.merging import asks_for_something_else, join_queries, merge_found
from everhash.cluster.moved import NOBODY, pick
from everhash.cluster.placement import Table
from everhash.cluster.questions import Call, Look, Search
from everhash.cluster.read_calls import ReadCalls, check_there, everywhere, holders
from everhash.collection.read_calls import drawn
from everhash.matches import Matches
from everhash.stream import as_rows
from everhash.wire.ids import IdList, as_ids


class SearchCalls(ReadCalls):
    """Searching all shards at once; what they find is merged."""

    def search(
        self,
        X: ArrayLike,
        k: int = 10,
        by: str = "meaning",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k best entries of each query."""
        options = {"labels": drawn(labels), "unlabelled": unlabelled, "exact": exact}
        options |= {"explain": explain, "payloads": payloads}
        if by == "auto":
            return self._search_auto(X, k, drawn(ids), options)
        return self._search(Call("search", (X, k, by), options), drawn(ids), k)

    def search_like(
        self,
        like: Iterable[Any],
        k: int = 10,
        by: str = "meaning",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the best entries for entries, given by their ids."""
        return self.search(
            self.features(like),
            k,
            by,
            labels=labels,
            ids=ids,
            unlabelled=unlabelled,
            exact=exact,
            explain=explain,
            payloads=payloads,
        )

    def search_radius(
        self,
        X: ArrayLike,
        r: float,
        by: str = "hamming",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return all entries no farther than r."""
        options = {"labels": drawn(labels), "unlabelled": unlabelled, "exact": exact}
        options |= {"explain": explain, "payloads": payloads}
        if by == "auto":
            return self._search_auto(X, None, drawn(ids), options, r)
        return self._search(Call("search_radius", (X, r, by), options), drawn(ids), None)

    def _search(self, call: Call, ids: Any, k: int | None) -> Matches:
        """Search all shards, each within those of the ids that it has."""
        if ids is None:
            answers = self._cluster.read(everywhere(Search(call)))
        else:
            wanted = as_ids(ids)
            answers = self._cluster.read(lambda table: _by_holder(table, wanted, call))
            check_there(wanted, answers, lambda told: told.status)
        return merge_found(list(answers.by_shard.values()), k, answers.missing)

    def _search_auto(
        self, X: ArrayLike, k: int | None, ids: Any, options: dict[str, Any], r: float = 0.0
    ) -> Matches:
        """Choose by meaning or likeness for each query, as one machine does."""

        def part(rows: Any, by: str) -> Matches:
            name, number = ("search_radius", r) if k is None else ("search", k)
            return self._search(Call(name, (rows, number, by), options), ids, k)

        part(X, "auto")  # for its errors: whatever is wrong is wrong here too
        rows = as_rows(X, self.dim, "this index")
        told = self._cluster.read(everywhere(Look(rows)))
        novel = asks_for_something_else(list(told.by_shard.values()))
        parts = [
            (np.flatnonzero(chosen), part(rows[chosen], by))
            for chosen, by in ((~novel, "meaning"), (novel, "likeness"))
            if chosen.any()
        ]
        return join_queries(parts, len(rows)) if parts else part(rows, "meaning")

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest label of each row."""
        call = Call("predict", (X,), {})
        answers = self._cluster.read(lambda table: {table.shards[0]: call})
        found: NDArray[Any] = next(iter(answers.by_shard.values()))
        return found


def _by_holder(table: Table, ids: IdList, call: Call) -> dict[int, Any]:
    """Return that each shard searches those of the ids that it may have."""
    having = dict(holders(table, ids))
    return {shard: Search(call, pick(ids, having.get(shard, NOBODY))) for shard in table.shards}
