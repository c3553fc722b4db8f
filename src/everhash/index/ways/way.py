"""What a way of searching is: an object that ranks entries for one batch of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from everhash.errors import OptionError
from everhash.index.arrays import Counts, Floats
from everhash.index.columns import REMOVED, UNLABELLED

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries


class Scope(NamedTuple):
    """Which entries are searched."""

    labels: Counts | None = None
    """Only those with one of these labels, by number."""
    places: Counts | None = None
    """Only these, ascending."""
    unlabelled: bool = False
    """Only those without a label."""

    @property
    def everything(self) -> bool:
        """Whether all entries are searched."""
        return self.labels is None and self.places is None and not self.unlabelled

    def places_in(self, entries: ReadableEntries) -> Counts:
        """Return the places of all entries that are searched, ascending."""
        rows = entries.label_column
        places = np.flatnonzero(rows != REMOVED) if self.places is None else self.places
        if self.unlabelled:
            places = places[rows[places] == UNLABELLED]
        if self.labels is not None:
            having = entries.places_with(self.labels)
            places = np.intersect1d(places, having, assume_unique=True)
        return places


class Found(NamedTuple):
    """(q, m) entries in order, padded with NaN and -1."""

    scores: Floats
    likeness: Floats
    """Cosines of query and entry; NaN where they were not needed."""
    places: Counts
    numbers: Counts
    """The label each entry was found by, or has; -1 for unlabelled entries."""

    @classmethod
    def nothing(cls, n: int) -> Found:
        """Return that nothing was found for n queries."""
        empty = np.empty((n, 0), np.float32)
        return cls(empty, empty, np.empty((n, 0), np.int64), np.empty((n, 0), np.int64))

    @classmethod
    def padded(cls, rows: list[Found]) -> Found:
        """Return tables of one query each as one table, as wide as the widest."""
        shape = (len(rows), max((row.places.shape[1] for row in rows), default=0))
        scores, likeness = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
        places, numbers = np.full(shape, -1), np.full(shape, -1)
        for i, row in enumerate(rows):
            part = slice(row.places.shape[1])
            scores[i, part], likeness[i, part] = row.scores[0], row.likeness[0]
            places[i, part], numbers[i, part] = row.places[0], row.numbers[0]
        return cls(scores, likeness, places, numbers)

    @classmethod
    def beside(cls, one: Found, other: Found) -> Found:
        """Return the columns of two tables of the same queries side by side."""
        columns: Any = zip(one, other, strict=True)
        return cls._make(np.concatenate(pair, axis=1) for pair in columns)

    def widened(self, k: int) -> Found:
        """Return the table with k columns at least."""
        if self.places.shape[1] >= k:
            return self
        more = ((0, 0), (0, k - self.places.shape[1]))
        scores, likeness = (np.pad(a, more, constant_values=np.nan) for a in self[:2])
        places, numbers = (np.pad(a, more, constant_values=-1) for a in self[2:])
        return Found(scores, likeness, places, numbers)

    @classmethod
    def ranked(
        cls, scores: Floats, likeness: Floats, places: Counts, numbers: Counts, k: int | None
    ) -> Found:
        """Return the first k of one query's entries: by score, likeness, order of arrival."""
        order = np.lexsort((places, -likeness, -scores))[:k]
        return cls(scores, likeness, places, numbers).at(order[None])

    def at(self, positions: Any) -> Found:
        """Return these positions of every column."""
        return Found(
            self.scores[positions],
            self.likeness[positions],
            self.places[positions],
            self.numbers[positions],
        )


class Way:
    """A way of searching. Made for one batch of queries; a new one is a subclass in `WAYS`.

    Scores fall from the best entry on, except by distance, where they rise.
    """

    name: ClassVar[str]
    novelty: Floats
    """(q,) how unlike everything learned each query is, from 0 to 1; NaN where that is unknown."""

    def nearest(self, k: int, scope: Scope) -> Found:
        """Return the k best entries of each query."""
        raise NotImplementedError

    def within(self, r: float, scope: Scope) -> Found:
        """Return all entries whose score is at least r, or whose distance is at most r."""
        raise NotImplementedError

    def meant(self, found: Found) -> Floats | None:  # noqa: ARG002 - not every way asks what was learned
        """Return how likely entries are to have the query's label, by what was learned alone."""
        return None

    def used(self) -> list[str]:
        """Return the name of the way that each query was searched by."""
        return [self.name] * len(self.novelty)


def no_likeness() -> OptionError:
    """Return the error for a search by likeness where nothing was kept for it."""
    return OptionError(
        "entries have neither likeness codes nor features, so they have no likeness",
        hint="create the collection with {option likeness=True}, or search by meaning",
    )
