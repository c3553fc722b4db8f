"""One exact ranking over entries found by codeword and entries found by their bits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.codes import pack_bits
from everhash.index.arrays import Counts, Floats
from everhash.index.coded import CodedEntries
from everhash.index.explain import explain_hits
from everhash.index.hasher import Hasher
from everhash.index.queries import EncodedQueries
from everhash.index.segment import Segment
from everhash.index.stored import StoredEntries
from everhash.matches import Matches
from everhash.wire.options import check_k, check_radius


class Ranked(NamedTuple):
    """(q, m) entries in order; padded with inf, -1 and -1."""

    distances: Floats
    places: Counts
    numbers: Counts
    """The label each entry was found by, or has; -1 for unlabelled entries."""

    @classmethod
    def of(cls, parts: list[Ranked], k: int | None = None) -> Ranked:
        """Merge rankings: by distance, ties to the entry added first."""
        columns = [np.concatenate([part[i] for part in parts], axis=1) for i in range(3)]
        order = np.lexsort((columns[1], columns[0]), axis=1)[:, :k]
        return cls(*(np.take_along_axis(column, order, 1) for column in columns))

    @classmethod
    def padded(cls, found: list[tuple[Floats, Counts, Counts]]) -> Ranked:
        """Return lists of different lengths, one a query, as one table."""
        shape = (len(found), max((len(part[0]) for part in found), default=0))
        distances = np.full(shape, np.inf, np.float32)
        places, numbers = np.full(shape, -1), np.full(shape, -1)
        for row, (far, where, which) in enumerate(found):
            distances[row, : len(far)] = far
            places[row, : len(far)] = where
            numbers[row, : len(far)] = which
        return cls(distances, places, numbers)

    def without_repeats(self) -> Ranked:
        """Keep each entry's first appearance, and turn the others into padding."""
        distances, places = self.distances.copy(), self.places.copy()
        numbers = self.numbers.copy()
        for row in range(len(places)):
            _, first = np.unique(places[row], return_index=True)
            again = np.ones(places.shape[1], np.bool_)
            again[first] = False
            distances[row, again], places[row, again], numbers[row, again] = np.inf, -1, -1
        return Ranked.of([Ranked(distances, places, numbers)])


class Codewords(NamedTuple):
    """The codewords of all labels as a segment, to compute distances to them; and the labels."""

    segment: Segment
    names: NDArray[Any]
    """Labels in order of arrival, and None at the end, where number -1 finds it."""

    @classmethod
    def of(cls, hasher: Hasher) -> Codewords:
        """Read the labels and codewords that a hasher has now."""
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
    """Ranks entries for one batch of queries."""

    def __init__(
        self,
        entries: StoredEntries,
        queries: EncodedQueries,
        codewords: Codewords,
        coded: CodedEntries | None,
    ) -> None:
        self._entries, self._queries = entries, queries
        self._codewords, self._coded = codewords, coded
        words = codewords.segment
        distances_to = words.hamming_of if queries.hamming else words.margins_of
        self._n_words = len(codewords.names) - 1 if entries.hasher.assigns_codewords else 0
        form = queries.form(queries.for_codewords)
        self._to_labels = distances_to(form, np.arange(self._n_words)).astype(np.float32)
        self._to_labels /= np.float32(self._divisor(queries.for_codewords))

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
        hasher = self._entries.hasher
        if ids is not None:
            places = np.unique(self._entries.find(ids))
            return self._matches(self._among(places, labels, k), explain=explain)
        only = None if labels is None else hasher.numbers(labels)
        if only is not None and not hasher.assigns_codewords:
            places = self._entries._labels.places_with(only)
            return self._matches(self._among(places, None, k), explain=explain)
        parts = [Ranked(*self._entries._postings.nearest(self._to_labels, k, only))]
        if only is None and self._coded is not None:
            parts.append(self._named(*self._coded.search.nearest(self._coded_form(), k)))
        return self._matches(Ranked.of(parts, k), explain=explain)

    def within(self, radius: float, *, explain: bool) -> Matches:
        """Return all entries within a radius."""
        radius = check_radius(radius)
        postings = self._entries._postings
        offsets, distances, places, numbers = postings.within(self._to_labels, radius)
        found = [(distances[a:b], places[a:b], numbers[a:b]) for a, b in pairwise(offsets)]
        if self._coded is not None:
            divisor = self._divisor(self._queries.for_codes)
            reach = radius * divisor + 1e-3 * (divisor > 1)
            for i, coded in enumerate(self._coded.search.within(self._coded_form(), reach)):
                far, where, which = self._named(*coded)
                near = far <= radius
                found[i] = (
                    np.concatenate([found[i][0], far[near]]),
                    np.concatenate([found[i][1], where[near]]),
                    np.concatenate([found[i][2], which[near]]),
                )
        return self._matches(Ranked.of([Ranked.padded(found)]), explain=explain)

    def _among(self, places: Counts, labels: Iterable[Hashable] | None, k: int) -> Ranked:
        """Rank a given set of entries by computing every distance."""
        only = None if labels is None else set(self._entries.hasher.numbers(labels).tolist())
        listed, coded = self._split(places, only)
        parts = []
        if listed:
            where, numbers = np.array(listed).T
            far = self._to_labels[:, numbers]
            tables = (np.broadcast_to(column, far.shape) for column in (where, numbers))
            parts.append(Ranked.of([Ranked(far, *tables)]).without_repeats())
        if len(coded) and self._coded is not None:
            far = self._coded.search.distances_to(self._coded_form(), coded)
            parts.append(self._named(far, np.broadcast_to(coded, far.shape)))
        return Ranked.of(parts, k) if parts else Ranked.padded([_NOTHING] * len(self._queries))

    def _split(self, places: Counts, only: set[int] | None) -> tuple[list[tuple[int, int]], Counts]:
        """Return (place, label number) pairs of entries by codeword, and places of coded ones."""
        labels, coded = self._entries._labels, self._entries.coded_among(places)
        listed = [
            (place, number)
            for place in np.setdiff1d(places, coded, assume_unique=True).tolist()
            for number in labels.of(place)
            if only is None or number in only
        ]
        if only is not None:
            wanted = [not only.isdisjoint(labels.of(place)) for place in coded.tolist()]
            coded = coded[np.array(wanted, np.bool_)]
        return listed, coded

    def _coded_form(self) -> NDArray[Any]:
        """Return the queries as the coded entries' segments take them."""
        return self._queries.form(self._queries.for_codes)

    def _named(self, distances: Floats, places: Counts) -> Ranked:
        """Return coded entries with the labels they have; distances by the active bit if needed."""
        scaled = distances / np.float32(self._divisor(self._queries.for_codes))
        return Ranked(scaled, places, self._entries._labels.first(places))

    def _divisor(self, margins: Floats) -> int:
        """Return what to divide distances by: 1 if all entries have k active bits anyway."""
        return 1 if self._entries.coding == "home" else int(margins.shape[2])

    def _matches(self, ranked: Ranked, *, explain: bool) -> Matches:
        names, hasher = self._codewords.names, self._entries.hasher
        return Matches(
            ids=self._entries._ids.names(ranked.places),
            distances=ranked.distances,
            labels=names[ranked.numbers],
            counts=(ranked.places >= 0).sum(axis=1),
            novelty=self._novelty(),
            explanations=explain_hits(hasher, self._queries, ranked, names, self._coded)
            if explain
            else [],
        )

    def _novelty(self) -> Floats:
        """Return the asymmetric distance to the nearest codeword; NaN without margins or words."""
        n = len(self._queries)
        if not self._queries.has_margins or not self._entries.hasher.assigns_codewords:
            return np.full(n, np.nan, np.float32)
        if self._n_words == 0:
            return np.full(n, np.inf, np.float32)
        margins = np.ascontiguousarray(self._queries.for_codewords)
        far = self._codewords.segment.margins_of(margins, np.arange(self._n_words))
        nearest: Floats = far.min(axis=1)
        return nearest


_NOTHING = (np.empty(0, np.float32), np.empty(0, np.int64), np.empty(0, np.int64))
