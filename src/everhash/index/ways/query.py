"""A batch of queries, and what the ways of searching need to know about them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from everhash.codes import Codes
from everhash.errors import OptionError
from everhash.index.arrays import Counts, Floats
from everhash.index.entry_query import codes_of, probabilities_of, rows_of
from everhash.index.hasher import n_features_of, posterior_of
from everhash.index.queries import EncodedQueries
from everhash.learn.posterior import Posterior
from everhash.stream import as_rows

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries


class Query:
    """Rows that were checked, or codes, and what the hasher says of them.

    Args:
        entries: that are searched.
        X: (n, d) rows, or packed codes, which only Hamming distance can compare.
        exact: read features where codes would do.
        recall: share of the nearest entries to find on average, by likeness.
    """

    def __init__(
        self, entries: ReadableEntries, X: ArrayLike | Codes, *, exact: bool, recall: float
    ) -> None:
        self.entries, self.exact, self.recall = entries, exact, recall
        self._codes = X if isinstance(X, Codes) else None
        self._rows: Floats | None = None
        if not isinstance(X, Codes):
            self._rows = as_rows(X, n_features_of(entries.hasher), "this index")

    def __len__(self) -> int:
        return len(self._codes.words) if self._codes is not None else len(self.rows)

    @property
    def rows(self) -> Floats:
        """The rows; an error if the queries are codes."""
        if self._rows is None:
            raise OptionError("codes have no features", hint='pass rows, or {option by="hamming"}')
        return self._rows

    @property
    def likeness_rows(self) -> Floats:
        """The rows that likeness is estimated for, beside something else that ranks."""
        return self.rows

    @cached_property
    def posterior(self) -> Posterior:
        """How likely each label is, and how novel each query."""
        return posterior_of(self.entries.hasher, self.rows)

    @property
    def novelty(self) -> Floats:
        """(n,) how unlike everything learned; NaN for codes."""
        if self._rows is None:
            return np.full(len(self), np.nan, np.float32)
        return self.posterior.novelty

    def encoded(self, by: str) -> EncodedQueries:
        """Return margins under the mappings in use."""
        X: ArrayLike | Codes = self.rows if self._codes is None else self._codes
        entries = self.entries
        return EncodedQueries.of(X, entries.hasher, entries.mapping, by, entries.coding)


class EntryQuery(Query):
    """Entries as queries: by their features if they are kept, else by their labels and bits."""

    def __init__(
        self, entries: ReadableEntries, places: Counts, *, exact: bool, recall: float
    ) -> None:
        self.entries, self.exact, self.recall = entries, exact, recall
        self._codes, self._places = None, places
        rows, self._known = rows_of(entries, places)
        self._rows = as_rows(rows, n_features_of(entries.hasher), "this index")

    @property
    def rows(self) -> Floats:
        """The features of the entries; an error if some are not kept."""
        self.entries.features_at(self._places[~self._known], "so it has no likeness to others")
        return super().rows

    @cached_property
    def posterior(self) -> Posterior:
        """As for rows; an entry without features has its own labels for certain."""
        assert self._rows is not None  # noqa: S101 - set by the constructor
        shares, novelty = posterior_of(self.entries.hasher, self._rows)
        unknown = ~self._known
        shares[unknown] = probabilities_of(self.entries, self._places[unknown], shares.shape[1])
        novelty[unknown] = 0
        return Posterior(shares, novelty)

    def encoded(self, by: str) -> EncodedQueries:
        """Return margins; of entries without features the codes stand in for them."""
        assert self._rows is not None  # noqa: S101 - set by the constructor
        return codes_of(self.entries, self._rows, self._places, self._known, by)

    @property
    def likeness_rows(self) -> Floats:
        """The rows that likeness is estimated for; zeros, like nothing, without features."""
        assert self._rows is not None  # noqa: S101 - set by the constructor
        return self._rows
