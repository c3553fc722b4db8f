"""Ways to find the nearest of many codes: ours, FAISS, usearch, a matrix product, reading memory.

A contest is a set of codes and all contestants that search them. All take turns in every round:
first each answers all queries at once, then each some of them one by one. Our results are checked
every time.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from everhash import extras
from everhash.bench.costs.codes import (
    QUERIES,
    Bytes,
    CodeSample,
    Counts,
    Expected,
    Floats,
    K,
    Words,
    expect_hamming,
    expect_margins,
    flat_index,
    load_faiss,
    make_clustered,
    make_uniform,
    signs_of,
)
from everhash.bench.costs.timing import MICROSECONDS
from everhash.index.segment import Segment

SINGLES, FEW = 40, 20
"""Single queries a round, and queries at once for contestants that cannot take 1,000."""
OURS, FLAT, IVF, USEARCH, PRODUCT, SUM = "everhash", "flat", "IVF", "usearch", "NumPy", "sum"


class Contestant(NamedTuple):
    """A function that answers the queries of a slice."""

    search: Callable[[slice], Any]
    at_once: int = QUERIES
    expected: Expected | None = None
    """Results to check the answers against; None for peers."""

    def clock(self, parts: list[slice]) -> list[float]:
        """Return the microseconds of each slice; check the results afterwards."""
        times, results = [], []
        for part in parts:
            start = perf_counter()
            results.append(self.search(part))
            times.append((perf_counter() - start) * MICROSECONDS)
        if self.expected is not None:
            for part, (distances, places, *_) in zip(parts, results, strict=True):
                self.expected.check(part, distances, places)
        return times


class Times(NamedTuple):
    """Microseconds a query."""

    batch: float
    best: float
    median: float


class Contest(NamedTuple):
    """Codes, and all contestants that search them."""

    about: str
    contestants: dict[str, Contestant]
    ours: str = OURS
    bytes_read: int = 0
    """Bytes that one query has to read, where nothing can be skipped; else 0."""

    def race(self, rounds: int) -> dict[str, Times]:
        """Return the times of each contestant."""
        batch: dict[str, list[float]] = {name: [] for name in self.contestants}
        single: dict[str, list[float]] = {name: [] for name in self.contestants}
        for turn in range(rounds):
            for name, each in self.contestants.items():
                if each.at_once > 1:
                    batch[name].append(each.clock([slice(0, each.at_once)])[0] / each.at_once)
            queries = range(turn * SINGLES, (turn + 1) * SINGLES)
            for name, each in self.contestants.items():
                single[name] += each.clock([slice(query, query + 1) for query in queries])
        return {
            name: Times(min(batch[name], default=np.nan), min(times), float(np.median(times)))
            for name, times in single.items()
        }

    def floor(self, times: dict[str, Times]) -> str:
        """Return a sentence that compares one query with reading the same words once."""
        floor, one, read = times[SUM].best, times[self.ours].best, self.bytes_read / 1e3
        return (
            f"the sum reads {read / floor:.1f} GB/s, one query {read / one:.1f} GB/s: "
            f"{one / floor:.2f} times the floor"
        )


def uniform(bits: int, n: int) -> Contest:
    """Random codes. The sum adds up their words once: no scan for one query reads them faster."""
    codes = make_uniform(bits, n)
    segment = codes.segment()
    contestants = us_and_flat(codes, segment)
    if extras.find("usearch") is not None:
        contestants[USEARCH] = by_usearch(codes.words, codes.home_words)
    contestants[SUM] = by_sum(segment.columns)
    return Contest(f"uniform, {bits} bits", contestants, bytes_read=segment.columns.nbytes)


def clustered(bits: int, n: int) -> Contest:
    """Noisy codewords; FAISS's IVF has the codewords as its quantizer and probes one list."""
    codes = make_clustered(bits, n)
    contestants, about = us_and_flat(codes, codes.segment()), f"clustered, {bits} bits"
    if load_faiss() is None:
        return Contest(about, contestants)
    quantizer = flat_index(codes.codewords, bits)
    ivf = load_faiss().IndexBinaryIVF(quantizer, bits, len(codes.codewords))
    ivf.add(codes.words.view(np.uint8))
    ivf.nprobe = 1
    contestants[IVF] = by_faiss(ivf, codes.home_words)
    exact, _ = contestants[FLAT].search(slice(0, QUERIES))
    found, _ = contestants[IVF].search(slice(0, QUERIES))
    recall = ((found >= 0) & (found <= exact[:, -1:])).mean()
    return Contest(f"{about}; recall of IVF {recall:.4f}", contestants)


def real(name: str, codes: CodeSample) -> Contest:
    """Codes of a learned mapping; FAISS searches with the word of a query's home cycle only."""
    segment = codes.segment()
    return Contest(describe(name, codes, segment), us_and_flat(codes, segment))


def asymmetric(name: str, codes: CodeSample) -> Contest:
    """By margins, against a float32 matrix product (of the home cycle only) and argpartition."""
    segment = codes.segment()
    about = describe(f"asymmetric, {name}", codes, segment)
    return Contest(about, us_and_product(codes, segment))


def describe(name: str, codes: CodeSample, segment: Segment) -> str:
    """Return a sentence about the codes: cycles, and the share of distinct ones."""
    distinct = segment.n_words / len(codes.words)
    return f"{name}, {codes.bits} bits; cycles: {codes.margins.shape[1]}, distinct: {distinct:.0%}"


def us_and_flat(codes: CodeSample, segment: Segment) -> dict[str, Contestant]:
    """Return ours and, where it is installed, FAISS's exact search."""
    queries, expected = codes.queries, expect_hamming(codes)
    ours = Contestant(lambda part: segment.nearest_hamming(queries[part], K), QUERIES, expected)
    if load_faiss() is None:
        return {OURS: ours}
    return {OURS: ours, FLAT: by_faiss(flat_index(codes.words, codes.bits), codes.home_words)}


def us_and_product(codes: CodeSample, segment: Segment) -> dict[str, Contestant]:
    """Return ours and the matrix product."""
    margins, expected = codes.margins, expect_margins(codes, segment)
    product = by_product(margins[np.arange(QUERIES), codes.homes], signs_of(codes.words))
    ours = Contestant(lambda part: segment.nearest_margins(margins[part], K), QUERIES, expected)
    return {OURS: ours, PRODUCT: product}


def by_faiss(index: Any, queries: Bytes) -> Contestant:
    """Return a contestant that searches an index of FAISS."""
    return Contestant(lambda part: index.search(queries[part], K))


def by_usearch(words: Words, queries: Bytes) -> Contestant:
    """Return a contestant that runs usearch's exact search, by far the slowest."""
    extras.require("bench")
    usearch: Any = extras.find("usearch.index")
    rows, metric = words.view(np.uint8), usearch.MetricKind.Hamming

    def search(part: slice) -> Any:
        return usearch.search(rows, queries[part], K, metric, exact=True, threads=1)

    return Contestant(search, FEW)


def by_sum(words: Words) -> Contestant:
    """Return a contestant that adds up all words."""
    return Contestant(lambda _: words.sum(), 1)


def by_product(margins: Floats, signs: Floats) -> Contestant:
    """Return a contestant that scores every entry; for 1,000 queries at once it would need 4 GB."""
    most = min(K, signs.shape[1] - 1)

    def search(part: slice) -> Counts:
        return np.argpartition(-margins[part] @ signs, most, axis=1)[:, :most]

    return Contestant(search, FEW)
