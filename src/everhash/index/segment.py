"""An immutable set of packed words, grouped for exact search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.errors import DimensionError
from everhash.index.arrays import Counts, Floats, Words, kernel_array

Places = NDArray[np.uint32]

PADDING = 64
"""Words of zeros after the last one: kernels read whole blocks."""
MANY_QUERIES = 64
"""Queries in a batch from which on a scan of all words may be worth its set-up."""
WORTH_SCANNING = 0.65
"""Share of words visited by shells above which a scan of all words is faster."""
FIRST_PROBE, LATER_PROBE = 8, 2
"""Queries that are searched by shells to measure the share: if it is unknown, and if it is high."""


class Within(NamedTuple):
    """Entries within a radius: those of query j are offsets[j] .. offsets[j + 1]."""

    offsets: Counts
    distances: Any
    places: Counts


@dataclass(eq=False)
class Segment:
    """Words that never change, searched exactly by Hamming or asymmetric distance.

    Equal words of a cycle are stored once. A distinct word costs 8 W + 16 bytes and every entry 8
    more: 32 bytes an entry for 64 bits if all differ, 8 to 14 where a quarter or fewer do. The
    shells of the groups add 8 bytes for each distance that occurs in a group.
    """

    bits: int
    columns: Words
    """(W, m + 64) distinct words in order of (cycle, nearest codeword, distance to it, value)."""
    lead: Counts
    """(m,) first place << 1 | more than one | number of places << 32."""
    starts: Counts
    """(m + 1,) where each word's places begin in `posts`."""
    posts: Places
    """(n,) places, ascending inside a word."""
    word_of: Places
    """(n,) the word of each place."""
    cycle_starts: Counts
    """(n_cycles + 1,) where each cycle's words begin."""
    centres: Words
    """(W, G) the codeword of each group: its words are nearest to it."""
    groups: Counts
    """(G, 4) cycle, first and last distance, and where the group's edges begin."""
    edges: Counts
    """Where the words of each group's distances begin; see `kernels.search.shells`."""
    share_scanned: float = float("nan")
    """Share of the words that the last batch visited; decides how to search, never the result."""

    @classmethod
    def build(
        cls,
        words: Words,
        cycles: Counts,
        codewords: Words,
        codeword_cycles: Counts,
        n_cycles: int,
        bits: int,
    ) -> Segment:
        """Group the entries.

        Args:
            words: (n, W) packed; bit t of word j is function 64 j + t of the entry's cycle, and
                bits from `bits` on are zero. Row i is the entry of place i; n < 2**31.
            cycles: (n,) cycle of each entry.
            codewords: (L, W) in any number; a cycle may have none.
            codeword_cycles: (L,) cycle of each codeword.
            n_cycles: number of cycles.
            bits: width of a word, at least 1.
        """
        if codewords.shape[1] != words.shape[1]:  # kernels read past the end of shorter ones
            raise DimensionError(expected=words.shape[1], got=codewords.shape[1], what="words")
        search, n = kernels.load_search(), len(words)
        centres, centre_cycles = _centres(codewords, codeword_cycles, n_cycles)
        centre_starts = np.searchsorted(centre_cycles, np.arange(n_cycles + 1)).astype(np.int64)
        table = np.empty((words.shape[1] + 1, n), np.uint64)  # the last row: keys of the shells
        table[:-1] = words.T
        search.shell_keys(table, kernel_array(cycles, np.int64), centres, centre_starts, bits)
        posts, word_of = np.empty(n, np.uint32), np.empty(n, np.uint32)
        new = np.empty(n, np.bool_)
        m = search.sort_columns(table, posts, new)
        columns = np.zeros((words.shape[1], m + PADDING), np.uint64)
        lead, starts = np.empty(m, np.int64), np.empty(m + 1, np.int64)
        search.lay_out(table, posts, new, columns, lead, starts, word_of)
        used, groups, edges = _shells(table[-1, :m], centre_cycles, bits)
        group_starts = np.append(edges[groups[:, 1] + groups[:, 3]], m)
        cycle_starts = group_starts[np.searchsorted(groups[:, 0], np.arange(n_cycles + 1))]
        return cls(
            bits,
            columns,
            lead,
            starts,
            posts,
            word_of,
            cycle_starts,
            np.ascontiguousarray(centres[used].T),
            groups,
            edges,
        )

    def __len__(self) -> int:
        return len(self.posts)

    @property
    def n_words(self) -> int:
        """Distinct words."""
        return len(self.lead)

    def nearest_hamming(self, queries: Words, k: int) -> tuple[Counts, Counts]:
        """Return the k nearest entries by Hamming distance.

        Args:
            queries: (q, n_cycles, W) a query's word in each cycle.
            k: results wanted, at least 1; may exceed the number of entries.

        Returns:
            (q, k) distances and places, by (distance, place); -1 if there are fewer entries.
        """
        queries = kernel_array(queries, np.uint64)
        n = len(queries)
        if n == 0 or len(self) == 0:
            return np.full((n, k), -1, np.int64), np.full((n, k), -1, np.int64)
        probe = self._probe(n)
        distances, places = self._by_shells(queries[:probe], k)
        if probe == n:
            return distances, places
        if self.share_scanned > WORTH_SCANNING:
            rest = [
                self._by_planes(part, k)
                for part in np.array_split(queries[probe:], -(-(n - probe) // 128))
            ]
        else:
            rest = [self._by_shells(queries[probe:], k)]
        return (
            np.concatenate([distances, *(d for d, _ in rest)]),
            np.concatenate([places, *(p for _, p in rest)]),
        )

    def nearest_margins(self, margins: Floats, k: int) -> tuple[Floats, Counts]:
        """Return the k nearest entries by asymmetric distance: minus the sum of sign x margin.

        Args:
            margins: (q, n_cycles, bits) finite; |margins| of a row sum to less than 1e38.
            k: results wanted, at least 1; may exceed the number of entries.

        Returns:
            (q, k) float32 distances and places, by (distance, place); inf and -1 if there are
            fewer. Sums run byte by byte in float32, so every way of searching gives the same.
        """
        margins = kernel_array(margins, np.float32)
        if len(margins) == 0 or len(self) == 0:
            shape = (len(margins), k)
            return np.full(shape, np.inf, np.float32), np.full(shape, -1, np.int64)
        distances, places, looked = kernels.load_search().search_scores(
            *self._arrays(), margins, k, True
        )
        self.share_scanned = looked / (len(margins) * self.n_words)
        return distances, places

    def within_hamming(self, queries: Words, radius: int) -> Within:
        """Return all entries at Hamming distance <= radius of each query, by (distance, place)."""
        search = kernels.load_search().within_shells
        return self._within(search, kernel_array(queries, np.uint64), int(radius), np.int64)

    def within_margins(self, margins: Floats, radius: float) -> Within:
        """Return all entries at asymmetric distance <= radius of each query, same order."""
        search = kernels.load_search().within_scores
        return self._within(search, kernel_array(margins, np.float32), float(radius), np.float32)

    def hamming_of(self, queries: Words, places: Counts) -> Counts:
        """Return (q, m) Hamming distances of each query to the entries at places (m,)."""
        out = np.empty((len(queries), len(places)), np.int64)
        self._measure(
            kernels.load_search().hamming_at, kernel_array(queries, np.uint64), places, out
        )
        return out

    def margins_of(self, margins: Floats, places: Counts) -> Floats:
        """Return (q, m) asymmetric distances of each query to the entries at places (m,)."""
        out = np.empty((len(margins), len(places)), np.float32)
        self._measure(
            kernels.load_search().scores_at, kernel_array(margins, np.float32), places, out
        )
        return out

    def _probe(self, n: int) -> int:
        """Return how many of n queries to search by shells before choosing a way for the rest."""
        if n < MANY_QUERIES or self.n_words < 4 * kernels.load_search().TILE:
            return n
        if np.isnan(self.share_scanned):
            return FIRST_PROBE
        return LATER_PROBE if self.share_scanned > WORTH_SCANNING else n

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        lists = (self.columns, self.lead, self.starts, self.posts, self.word_of)
        return (*lists, self.centres, self.groups, self.edges)

    def _by_shells(self, queries: Words, k: int) -> tuple[Counts, Counts]:
        search = kernels.load_search().search_shells
        distances, places, looked = search(*self._arrays(), queries, k, self.bits)
        self.share_scanned = looked / (len(queries) * self.n_words)
        return distances, places

    def _by_planes(self, queries: Words, k: int) -> tuple[Counts, Counts]:
        results: tuple[Counts, Counts] = kernels.load_search().search_planes(
            *self._arrays()[:5], self.cycle_starts, queries, k, self.bits
        )
        return results

    def _within(
        self, search: Any, queries: NDArray[Any], radius: float, dtype: type[np.generic]
    ) -> Within:
        offsets = np.zeros(len(queries) + 1, np.int64)
        if len(queries) == 0 or len(self) == 0:
            return Within(offsets, np.empty(0, dtype), np.empty(0, np.int64))
        arrays = (self.columns, self.starts, self.posts, self.centres, self.groups, self.edges)
        found = [search(*arrays, query, radius) for query in queries]
        np.cumsum([len(places) for _, places in found], out=offsets[1:])
        distances = np.concatenate([distances for distances, _ in found])
        return Within(offsets, distances, np.concatenate([places for _, places in found]))

    def _measure(
        self, kernel: Any, queries: NDArray[Any], places: Counts, out: NDArray[Any]
    ) -> None:
        """Write the distances of all queries to the entries at these places."""
        at = self.word_of[places].astype(np.int64)
        cycles = np.searchsorted(self.cycle_starts, at, side="right") - 1
        kernel(self.columns, at, cycles, queries, out)


def _centres(codewords: Words, cycles: Counts, n_cycles: int) -> tuple[Words, Counts]:
    """Return codewords in order of cycle; a cycle without any gets the word zero."""
    bare = np.setdiff1d(np.arange(n_cycles), cycles)
    centres = np.concatenate([codewords, np.zeros((len(bare), codewords.shape[1]), np.uint64)])
    cycles = np.concatenate([cycles, bare]).astype(np.int64)
    order = np.argsort(cycles, kind="stable")
    return np.ascontiguousarray(centres[order], np.uint64), cycles[order]


def _shells(keys: Words, centre_cycles: Counts, bits: int) -> tuple[Counts, Counts, Counts]:
    """Return the codewords that have a group, the table `groups`, and the edges of their shells.

    A key is the number of the codeword times (bits + 1), plus the distance to it; they ascend.
    """
    new = np.ones(len(keys), np.bool_)
    new[1:] = keys[1:] != keys[:-1]
    at = np.flatnonzero(new)
    shells = keys[at].astype(np.int64)
    used, first, count = np.unique(shells // (bits + 1), return_index=True, return_counts=True)
    low, high = shells[first] % (bits + 1), shells[first + count - 1] % (bits + 1)
    size = high - low + 2
    start = np.cumsum(size) - size
    ranks = np.repeat(used * (bits + 1) + low - start, size) + np.arange(size.sum())
    edges = np.append(at, len(keys))[np.searchsorted(shells, ranks)]
    groups = np.stack([centre_cycles[used], low, high, start - low], axis=1)
    return used, np.ascontiguousarray(groups, np.int64), edges
