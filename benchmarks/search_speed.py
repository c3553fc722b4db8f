"""How fast the nearest codes are found, against FAISS, usearch, NumPy and the memory itself.

    python benchmarks/search_speed.py [--only uniform,clustered,real,asymmetric,postings] [--quick]

Exact top 100 of 1,000,000 codes of 64 and 128 bits, one thread, microseconds a query; 1,000 queries
at once (best of five) and 200 one by one (best, median). All contestants in one run, interleaved:
in each round every one answers the batch, then every one 40 single queries in a row.
    uniform     random codes, where nothing can be skipped; "sum" adds up the same words once, from
                the cache if they fit as the scan does: no scan for one query reads them faster
    clustered   100 codewords with 10 % of the bits flipped; IVF is IndexBinaryIVF with our
                codewords as its quantizer, one list probed; its recall is printed
    real        CNN features hashed by a learned mapping, rows repeated with 1 % Gaussian jitter;
                a query has a word for each cycle, and FAISS searches with its home cycle's alone
    asymmetric  by margins; NumPy is a float32 matrix product and argpartition (the home cycle's
                margins alone), in batches of 20, because scores of 1,000 queries would take 4 GB
    postings    1,000 labels, entries known by label only; flat is over the codewords of 1 M entries
flat is IndexBinaryFlat, usearch its exact search (20 queries at once: it is the slowest by far).
All our Hamming distances are held against FAISS, cycle by cycle, and the places of three queries
against the rule (distance, place), every time. Needs faiss and usearch: pip install -e ".[bench]".
"""

from __future__ import annotations

import os

os.environ.update(  # before NumPy, Numba and FAISS start their threads
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from everhash.bench.machine import describe_machine
from everhash.index.postings import Postings
from everhash.index.segment import Segment
from search_data import (
    QUERIES,
    REAL,
    Bytes,
    Codes,
    Counts,
    Expected,
    Floats,
    K,
    Words,
    expect_hamming,
    expect_margins,
    flat_index,
    make_clustered,
    make_real,
    make_uniform,
    pack,
    signs_of,
)

try:
    import faiss
    from usearch.compiled import MetricKind
    from usearch.index import search as usearch_search
except ImportError:
    raise SystemExit('faiss or usearch is missing: pip install -e ".[bench]"') from None

SINGLES, FEW = 40, 20
"""Single queries a round, and queries at once for contestants that cannot take 1,000."""
LABELS = 1000


class Contestant(NamedTuple):
    """Answers the queries of a slice; ours knows what is right."""

    search: Callable[[slice], Any]
    at_once: int = QUERIES
    expected: Expected | None = None

    def clock(self, parts: list[slice]) -> list[float]:
        """Return the microseconds each slice took; check the results when all is over."""
        times, results = [], []
        for part in parts:
            start = perf_counter()
            results.append(self.search(part))
            times.append((perf_counter() - start) * 1e6)
        if self.expected is not None:
            for part, (distances, places, *_) in zip(parts, results, strict=True):
                self.expected.hold(part, distances, places)
        return times


class Times(NamedTuple):
    """Microseconds a query."""

    batch: float
    best: float
    median: float


def race(contestants: dict[str, Contestant], rounds: int) -> dict[str, Times]:
    """Return the times of each contestant; all take their turn in every round."""
    batch: dict[str, list[float]] = {name: [] for name in contestants}
    single: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds):
        for name, each in contestants.items():
            if each.at_once > 1:
                batch[name].append(each.clock([slice(0, each.at_once)])[0] / each.at_once)
        queries = range(turn * SINGLES, (turn + 1) * SINGLES)
        for name, each in contestants.items():
            single[name] += each.clock([slice(query, query + 1) for query in queries])
    return {
        name: Times(min(batch[name], default=np.nan), min(times), float(np.median(times)))
        for name, times in single.items()
    }


def show(title: str, times: dict[str, Times], ours: str = "everhash") -> None:
    """Print the times, and how many times ours each of the others is."""
    print(f"{title}\n  {'us a query':<14}" + "".join(f"{name:>12}" for name in times))
    for field, heading in zip(Times._fields, ("batch", "one, best", "one, median"), strict=True):
        figures = {name: getattr(each, field) for name, each in times.items()}
        cells = "".join(f"{figure:12.1f}" for figure in figures.values()).replace("nan", "  -")
        others = [name for name in figures if name not in (ours, "sum")]
        ratios = [f"{figures[name] / figures[ours]:.1f}x {name}" for name in others]
        print(f"  {heading:<14}{cells}   {', '.join(ratios)}", flush=True)


def by_faiss(index: Any, queries: Bytes) -> Contestant:
    return Contestant(lambda part: index.search(queries[part], K))


def by_usearch(words: Words, queries: Bytes) -> Contestant:
    def search(part: slice) -> Any:
        rows = words.view(np.uint8)
        return usearch_search(rows, queries[part], K, MetricKind.Hamming, exact=True, threads=1)

    return Contestant(search, FEW)


def by_sum(words: Words) -> Contestant:
    return Contestant(lambda _: words.sum(), 1)


def by_product(margins: Floats, signs: Floats) -> Contestant:
    def search(part: slice) -> Counts:
        return np.argpartition(-margins[part] @ signs, K, axis=1)[:, :K]

    return Contestant(search, FEW)


def by_label(lists: Postings, codewords: Words, queries: Words) -> Contestant:
    cycles, bits = np.zeros(len(codewords), np.int64), 64 * codewords.shape[1]
    return Contestant(lambda part: lists.nearest_hamming(codewords, cycles, queries[part], bits, K))


def us_and_flat(codes: Codes, segment: Segment) -> dict[str, Contestant]:
    queries, expected = codes.queries, expect_hamming(codes)
    flat = by_faiss(flat_index(codes.words, codes.bits), codes.home_words)
    ours = Contestant(lambda part: segment.nearest_hamming(queries[part], K), QUERIES, expected)
    return {"everhash": ours, "flat": flat}


def us_and_product(codes: Codes, segment: Segment) -> dict[str, Contestant]:
    margins, expected = codes.margins, expect_margins(codes, segment)
    product = by_product(margins[np.arange(QUERIES), codes.homes], signs_of(codes.words))
    ours = Contestant(lambda part: segment.nearest_margins(margins[part], K), QUERIES, expected)
    return {"everhash": ours, "NumPy": product}


def describe(name: str, codes: Codes, segment: Segment) -> str:
    distinct = segment.n_words / len(codes.words)
    return f"{name}, {codes.bits} bits; cycles: {codes.margins.shape[1]}, distinct: {distinct:.0%}"


def uniform(n: int, bits: int, rounds: int) -> None:
    codes = make_uniform(bits, n)
    segment = codes.segment()
    contestants = us_and_flat(codes, segment)
    contestants["usearch"] = by_usearch(codes.words, codes.home_words)
    contestants["sum"] = by_sum(segment.columns)
    times = race(contestants, rounds)
    show(f"uniform, {bits} bits", times)
    floor, one, read = times["sum"].best, times["everhash"].best, segment.columns.nbytes / 1e3
    print(
        f"  the sum reads {read / floor:.1f} GB/s, one query {read / one:.1f} GB/s: "
        f"{one / floor:.2f} times the floor"
    )


def clustered(n: int, bits: int, rounds: int) -> None:
    codes = make_clustered(bits, n)
    contestants = us_and_flat(codes, codes.segment())
    ivf = faiss.IndexBinaryIVF(flat_index(codes.codewords, bits), bits, len(codes.codewords))
    ivf.add(codes.words.view(np.uint8))
    ivf.nprobe = 1
    contestants["IVF"] = by_faiss(ivf, codes.home_words)
    exact, _ = contestants["flat"].search(slice(0, QUERIES))
    found, _ = contestants["IVF"].search(slice(0, QUERIES))
    recall = ((found >= 0) & (found <= exact[:, -1:])).mean()
    show(f"clustered, {bits} bits; recall of IVF {recall:.4f}", race(contestants, rounds))


def real(n: int, bits: int, rounds: int) -> None:
    for name in REAL:
        codes = make_real(name, bits, n)
        segment = codes.segment()
        show(describe(name, codes, segment), race(us_and_flat(codes, segment), rounds))


def asymmetric(n: int, bits: int, rounds: int) -> None:
    for name in ("clustered", *REAL):
        codes = make_real(name, bits, n) if name in REAL else make_clustered(bits, n)
        segment = codes.segment()
        times = race(us_and_product(codes, segment), rounds)
        show(describe(f"asymmetric, {name}", codes, segment), times)


def postings(n: int, bits: int, rounds: int) -> None:
    rng, none = np.random.default_rng(4), np.zeros(n, np.int64)
    codewords = pack(rng.random((LABELS, bits)) < 0.5)
    margins = rng.standard_normal((QUERIES, 1, bits), dtype=np.float32)
    queries, contestants = pack(margins > 0), {}
    for size in (n // 10, n, 10 * n):
        labels, lists = rng.integers(0, LABELS, size), Postings()
        lists.append(labels, np.arange(size))
        contestants[f"{size:,}"] = by_label(lists, codewords, queries)
        if size == n:
            words = codewords[labels]
    codes = Codes(bits, words, none, codewords, none[:LABELS], margins, none[:QUERIES])
    ours = f"{n:,}"
    contestants[ours] = contestants[ours]._replace(expected=expect_hamming(codes))
    contestants["flat"] = by_faiss(flat_index(words, bits), codes.home_words)
    show(f"postings, {bits} bits; entries:", race(contestants, rounds), ours)


CONTESTS = {each.__name__: each for each in (uniform, clustered, real, asymmetric, postings)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(CONTESTS), help="contests, with commas between")
    parser.add_argument("--quick", action="store_true", help="100,000 codes, two rounds")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := set(chosen) - set(CONTESTS):
        parser.error(f"no contest {', '.join(sorted(unknown))}; there are {', '.join(CONTESTS)}")
    n, rounds = (100_000, 2) if args.quick else (1_000_000, 5)
    faiss.omp_set_num_threads(1)
    print(f"{describe_machine()}, FAISS {faiss.__version__}")
    print(f"{n:,} codes, top {K}, {QUERIES:,} queries at once and {rounds * SINGLES} one by one")
    for name in chosen:
        print(f"\nload {os.getloadavg()[0]:.1f}")
        for bits in (64, 128):
            CONTESTS[name](n, bits, rounds)


if __name__ == "__main__":
    main()
