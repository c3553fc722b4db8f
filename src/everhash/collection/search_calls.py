"""The calls of a collection that search it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import Codes
from everhash.collection.attachments import read_payloads
from everhash.collection.read_calls import ReadCalls, drawn
from everhash.collection.stored_features import NotAtHandError
from everhash.errors import OptionError
from everhash.index.index import Index
from everhash.learn.classifying import Classifying
from everhash.matches import Matches
from everhash.wire.options import RECALL

READING = ("relevance", "likeness")
"""Ways of searching that read features."""


class Only(NamedTuple):
    """What a search is restricted to, and how it answers."""

    labels: Any
    ids: Any
    unlabelled: bool
    exact: bool
    explain: bool


class SearchCalls(ReadCalls):
    """Searching by rows or entries, within a radius, and naming labels."""

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
        """Return the k best entries of each query; see `Index.search` for the options.

        With `payloads` the matches have the payloads of the entries found. These are read from the
        file: the search waits for a commit that is under way, and a reader catches up first. So it
        does for features that are not at hand, and a reader for every search by relevance or
        likeness.
        """
        only = Only(drawn(labels), drawn(ids), unlabelled, exact, explain)
        return self._search(
            lambda index: index.search(X, k, by, recall=recall, **only._asdict()),
            payloads=payloads,
            features=exact or by in READING,
        )

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
        """Return the best entries for entries, given by their ids; see `Index.search_like`.

        Their features are read from the file: the search waits for a commit that is under way, and
        a reader catches up first. Options are those of `search`.
        """
        like = drawn(like)
        only = Only(drawn(labels), drawn(ids), unlabelled, exact, explain)
        return self._search(
            lambda index: index.search_like(like, k, by, recall=recall, **only._asdict()),
            payloads=payloads,
            features=True,
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
        """Return all entries no farther than r, nearest first; options are those of `search`.

        By relevance, meaning and likeness, all whose probability or cosine is at least r.
        """
        only = Only(drawn(labels), drawn(ids), unlabelled, exact, explain)
        return self._search(
            lambda index: index.search_radius(X, r, by, **only._asdict()),
            payloads=payloads,
            features=exact or by in READING,
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return (n,) the likeliest label of each row; see `OnlineHasher.predict`."""
        with self._in_memory() as state:
            if not isinstance(state.hasher, Classifying):
                raise OptionError(
                    f"the method {state.hasher.method} cannot name labels",
                    hint="a collection by the method `everhash` can",
                )
            return state.hasher.predict(X)

    def _search(
        self, search: Callable[[Index], Matches], *, payloads: bool, features: bool
    ) -> Matches:
        """Search memory, and the file at the same state for what is only there."""
        if not payloads and not (features and self._store.readonly):
            memory, quick = self._in_memory(), suppress(NotAtHandError)
            with quick, memory as state, state.features.without_file():
                return search(state.index)
        with self._in_file():
            with self._in_memory() as state:
                matches = search(state.index)
                if not payloads:
                    return matches
                found = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
                places = state.index.find(matches.ids[found])
            flat = iter(read_payloads(self._store, places))
        rows = [list(islice(flat, n)) for n in matches.counts.tolist()]
        return replace(matches, payloads=rows)
