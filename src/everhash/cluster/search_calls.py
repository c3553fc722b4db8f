"""The calls of a collection on a cluster that search it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.cluster.asking import Answers
from everhash.cluster.merging import judged, merge_found
from everhash.cluster.moved import NOBODY, pick
from everhash.cluster.placement import Table
from everhash.cluster.questions import Call, Checked, Found, Search
from everhash.cluster.read_calls import ReadCalls, check_there, holders
from everhash.codes import Codes
from everhash.collection.read_calls import drawn
from everhash.errors import InputError, UnknownIdError, UnknownNameError
from everhash.matches import Matches
from everhash.wire.ids import IdList, as_ids, plain_ids
from everhash.wire.options import RECALL, check_recall

POOLS = {"search": "pool", "search_radius": "pool_radius"}
"""What shards are asked instead where the lead judges relevance."""


class SearchCalls(ReadCalls):
    """Searching all shards at once; what they find is merged."""

    def search(
        self,
        X: ArrayLike | Codes,
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k best entries of each query; each shard finds that share of its nearest."""
        share = check_recall(recall)
        options = {"labels": drawn(labels), "unlabelled": unlabelled, "exact": exact}
        options |= {"recall": share, "explain": explain, "payloads": payloads}
        return self._search(Call("search", (X, k, by), options), drawn(ids), k)

    def search_like(
        self,
        like: Iterable[Any],
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the best entries for entries, given by their ids."""
        recall = check_recall(recall)
        return self.search(
            self.features(like),
            k,
            by,
            labels=labels,
            ids=ids,
            unlabelled=unlabelled,
            exact=exact,
            recall=recall,
            explain=explain,
            payloads=payloads,
        )

    def search_radius(
        self,
        X: ArrayLike | Codes,
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
        return self._search(Call("search_radius", (X, r, by), options), drawn(ids), None)

    def _search(self, call: Call, ids: Any, k: int | None) -> Matches:
        """Search all shards, each within those of the ids that it has."""
        X, number, by = call.arguments
        try:
            wanted = None if ids is None else as_ids(ids)
            if by != "relevance":
                answers, found = self._found(call, wanted)
                return merge_found(found, k, answers.missing)
            pool = Call(POOLS[call.name], (X, number), call.options)
            answers, found = self._found(pool, wanted)
            return merge_found(judged(found, k, number), k, answers.missing)
        except (InputError, UnknownNameError):
            self._check_in_order(call, ids)
            raise

    def _found(self, call: Call, ids: IdList | None) -> tuple[Answers, list[Found]]:
        """Return what each shard finds."""

        def questions(table: Table) -> dict[int, Any]:
            return {s: Search(call, mine) for s, mine in _by_holder(table, ids).items()}

        answers = self._cluster.read(questions)
        if ids is not None:
            check_there(ids, answers, answers.by_shard)
        return answers, list(answers.by_shard.values())

    def _check_in_order(self, call: Call, ids: Any) -> None:
        """Raise what one machine finds first.

        That looks at ids after rows and labels, and within a radius after everything else.
        """
        if ids is None:
            return
        checked: Any = Checked(call.arguments[0], call.options["labels"])
        first = call if call.name == "search_radius" else checked
        self._cluster.read(lambda table: {table.shards[0]: first})
        if not (there := self.has(ids)).all():
            raise UnknownIdError(plain_ids(pick(as_ids(ids), np.flatnonzero(~there)[:1]))[0])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest label of each row."""
        call = Call("predict", (X,), {})
        answers = self._cluster.read(lambda table: {table.shards[0]: call})
        found: NDArray[Any] = next(iter(answers.by_shard.values()))
        return found


def _by_holder(table: Table, ids: IdList | None) -> dict[int, IdList | None]:
    """Return for each shard those of the ids that it may have; None if there are none given."""
    if ids is None:
        return dict.fromkeys(table.shards)
    having = dict(holders(table, ids))
    return {shard: pick(ids, having.get(shard, NOBODY)) for shard in table.shards}
