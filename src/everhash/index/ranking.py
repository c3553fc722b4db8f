"""One exact ranking over labelled and unlabelled entries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.codes import pack_bits
from everhash.index.explain import explain_hits
from everhash.index.postings import Postings
from everhash.index.query import Query
from everhash.index.searchable import Searchable
from everhash.index.segment import Segment
from everhash.matches import Explanation, Matches
from everhash.wire.options import check_k, check_radius

if TYPE_CHECKING:
    from everhash.index.hasher import Hasher
    from everhash.index.index import Index
    from everhash.index.unlabelled import Unlabelled

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class Ranked(NamedTuple):
    """(q, m) entries in order; inf, -1 and -1 where there are none."""

    distances: Floats
    places: Counts
    numbers: Counts
    """The label each was found by, or bears; -1 for unlabelled entries."""

    @classmethod
    def of(cls, parts: list[Ranked], k: int | None = None) -> Ranked:
        """Merge rankings: by distance, ties to the entry added first."""
        columns = [np.concatenate([part[i] for part in parts], axis=1) for i in range(3)]
        order = np.lexsort((columns[1], columns[0]), axis=1)[:, :k]
        return cls(*(np.take_along_axis(column, order, 1) for column in columns))


class Codewords(NamedTuple):
    """All labels' words as a segment, to measure distances to them; and the labels themselves."""

    segment: Segment
    names: NDArray[Any]
    """Labels in order of arrival, and None at the end, where number -1 finds it."""

    @classmethod
    def of(cls, hasher: Hasher) -> Codewords:
        """Take the labels as they are now."""
        names = np.empty(len(hasher.words_) + 1, dtype=object)
        for number, label in enumerate(hasher.labels_):
            names[number] = label
        having = slice(None if hasher.assigns_codewords else 0)
        words, cycles = hasher.words_[having], hasher.label_cycles_[having]
        segment = Segment.build(
            pack_bits(words > 0),
            cycles,
            pack_bits(words[:0] > 0),
            cycles[:0],
            hasher.n_cycles_,
            hasher.bits,
        )
        return cls(segment, names)


class Ranking:
    """Ranks the entries of an index for one batch of queries."""

    def __init__(
        self, index: Index, query: Query, postings: Postings, coded: Unlabelled | None
    ) -> None:
        self._index, self._query = index, query
        self._postings = postings
        self._coded = coded
        self._codewords = index._codewords()
        words = self._codewords.segment
        of = words.hamming_of if query.hamming else words.margins_of
        self._n_words = len(self._codewords.names) - 1 if index.hasher.assigns_codewords else 0
        everyone = np.arange(self._n_words)
        self._to_labels = of(query.form(query.newest), everyone).astype(np.float32)
        self._to_labels /= np.float32(self._active(labelled=True))

    def nearest(
        self,
        k: int,
        labels: Iterable[Hashable] | None,
        ids: Iterable[Any] | None,
        *,
        explain: bool,
    ) -> Matches:
        """Return the k nearest entries."""
        k = check_k(k)
        if ids is not None:
            places = np.unique(self._index.find(ids))
            return self._matches(self._among(places, labels, k), explain=explain)
        only = None if labels is None else self._index.hasher.numbers(labels)
        if only is not None and not self._index.hasher.assigns_codewords:
            places = self._index._labels.bearing(only)
            return self._matches(self._among(places, None, k), explain=explain)
        parts = [Ranked(*self._postings.nearest(self._to_labels, k, only))]
        if only is None and self._coded is not None:
            parts.append(self._coded_nearest(self._coded.searchable, k))
        return self._matches(Ranked.of(parts, k), explain=explain)

    def within(self, radius: float, *, explain: bool) -> Matches:
        """Return all entries within a radius."""
        radius = check_radius(radius)
        offsets, distances, places, numbers = self._postings.within(self._to_labels, radius)
        found = [(distances[a:b], places[a:b], numbers[a:b]) for a, b in pairwise(offsets)]
        if self._coded is not None:
            active = self._active(labelled=False)
            coded = self._coded.searchable.within(
                self._query.form(self._query.theirs), radius * active + 1e-3 * (active > 1)
            )
            for i, (far, where) in enumerate(coded):
                scaled = far / np.float32(active)
                near = scaled <= radius
                rows = (scaled[near], where[near], self._index._labels.first(where[near]))
                merged = [np.concatenate(pair) for pair in zip(found[i], rows, strict=True)]
                found[i] = (merged[0], merged[1], merged[2])
        return self._matches(Ranked.of([_padded(found)]), explain=explain)

    def _among(self, places: Counts, labels: Iterable[Hashable] | None, k: int) -> Ranked:
        """Rank a given set of entries by computing every distance."""
        only = None if labels is None else set(self._index.hasher.numbers(labels).tolist())
        listed, coded = self._index._split(places, only)
        parts = []
        if listed:
            where = np.array([place for place, _ in listed])
            numbers = np.array([number for _, number in listed])
            far = self._to_labels[:, numbers]
            shape = far.shape
            part = Ranked(far, np.broadcast_to(where, shape), np.broadcast_to(numbers, shape))
            parts.append(_once(Ranked.of([part])))
        if len(coded) and self._coded is not None:
            form = self._query.form(self._query.theirs)
            far = self._coded.searchable.distances_to(form, coded)
            far = far / np.float32(self._active(labelled=False))
            where = np.broadcast_to(coded, far.shape)
            parts.append(self._named(far, where))
        if not parts:
            nothing = np.empty((len(self._query), 0))
            return Ranked(nothing.astype(np.float32), nothing.astype(int), nothing.astype(int))
        return Ranked.of(parts, k)

    def _coded_nearest(self, searchable: Searchable, k: int) -> Ranked:
        distances, places = searchable.nearest(self._query.form(self._query.theirs), k)
        return self._named(distances / np.float32(self._active(labelled=False)), places)

    def _named(self, distances: Floats, places: Counts) -> Ranked:
        """Return coded entries with the labels they bear."""
        return Ranked(distances, places, self._index._labels.first(places))

    def _active(self, *, labelled: bool) -> int:
        """Bits to divide distances by: 1 where all entries have k of them anyway."""
        if self._index.coding == "home":
            return 1
        margins = self._query.newest if labelled else self._query.theirs
        return int(margins.shape[2])

    def _matches(self, ranked: Ranked, *, explain: bool) -> Matches:
        index = self._index
        return Matches(
            ids=index._ids.names(ranked.places),
            distances=ranked.distances,
            labels=self._codewords.names[ranked.numbers],
            counts=(ranked.places >= 0).sum(axis=1),
            novelty=self._novelty(),
            explanations=self._explained(ranked) if explain else [],
        )

    def _explained(self, ranked: Ranked) -> list[list[Explanation]]:
        names, coded = self._codewords.names, self._coded
        return explain_hits(self._index.hasher, self._query, ranked, names, coded)

    def _novelty(self) -> Floats:
        """Return the asymmetric distance to the nearest codeword; NaN without margins or words."""
        n, labels = len(self._query), self._n_words
        if not self._query.has_margins or not self._index.hasher.assigns_codewords:
            return np.full(n, np.nan, np.float32)
        if labels == 0:
            return np.full(n, np.inf, np.float32)
        words, margins = self._codewords.segment, np.ascontiguousarray(self._query.newest)
        far = words.margins_of(margins, np.arange(labels))
        nearest: Floats = far.min(axis=1)
        return nearest


def _once(ranked: Ranked) -> Ranked:
    """Keep each entry's first appearance; the others move behind the end."""
    distances, places = ranked.distances.copy(), ranked.places.copy()
    numbers = ranked.numbers.copy()
    for row in range(len(places)):
        _, first = np.unique(places[row], return_index=True)
        again = np.ones(places.shape[1], np.bool_)
        again[first] = False
        distances[row, again], places[row, again], numbers[row, again] = np.inf, -1, -1
    return Ranked.of([Ranked(distances, places, numbers)])


def _padded(found: list[tuple[Floats, Counts, Counts]]) -> Ranked:
    longest = max((len(part[0]) for part in found), default=0)
    shape = (len(found), longest)
    distances = np.full(shape, np.inf, np.float32)
    places, numbers = np.full(shape, -1), np.full(shape, -1)
    for row, (far, where, which) in enumerate(found):
        distances[row, : len(far)] = far
        places[row, : len(far)] = where
        numbers[row, : len(far)] = which
    return Ranked(distances, places, numbers)
