"""How fast the nearest codes are found, against FAISS, usearch, NumPy and the memory itself.

    python benchmarks/search_speed.py [--only uniform,clustered,real,asymmetric,postings] [--quick]

Exact top 100 of 1,000,000 codes of 64 and 128 bits, one thread, microseconds a query; 1,000 queries
at once (best of five) and 200 one by one (best, median). All contestants in one run, interleaved:
in each round every one answers the batch, then every one 40 single queries in a row.
    uniform     random codes, where nothing can be skipped; "sum" adds up the same words once, and
                no scan for one query reads them faster
    clustered   100 codewords with 10 % of the bits flipped; IVF is IndexBinaryIVF with our
                codewords as its quantizer, one list probed; its recall is printed
    real        CNN features hashed by a learned mapping, rows repeated with 1 % Gaussian jitter;
                a query has a word for each cycle, and FAISS searches with its home cycle's alone
    asymmetric  by margins; NumPy is a float32 matrix product and argpartition (the home cycle's
                margins alone), in batches of 20, because scores of 1,000 queries would take 4 GB
    postings    1,000 labels, entries known by label only; flat is IndexBinaryFlat over 1 M codewords
flat is IndexBinaryFlat, usearch its exact search (20 queries at once: it is the slowest by far).
Every Hamming distance is held against FAISS, cycle by cycle, and places against the rule (distance,
place) on three queries. Needs faiss and usearch: pip install -e ".[bench]".
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
from numpy.typing import NDArray

from everhash import OnlineHasher
from everhash.bench import datasets
from everhash.bench.machine import describe_machine
from everhash.bench.protocols import given_split, paper_split
from everhash.index.postings import Postings
from everhash.index.refresh import Odometer, choose_homes, encode
from everhash.index.segment import Segment

try:
    import faiss
    from usearch.index import MetricKind
    from usearch.index import search as usearch_search
except ImportError:
    raise SystemExit('faiss or usearch is missing: pip install -e ".[bench]"') from None

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]
Floats = NDArray[np.float32]
K, QUERIES, SINGLES, SLICE = 100, 1000, 40, 20_000
REAL = {"CIFAR-10": "cifar10-cnn", "Caltech-256": "caltech256-cnn"}


class Codes(NamedTuple):
    """Entries and queries; a query has a word and margins for each cycle."""

    bits: int
    words: Words
    cycles: Counts
    codewords: Words
    codeword_cycles: Counts
    margins: Floats
    """(q, n_cycles, bits)"""
    homes: Counts
    """(q,) the cycle of each query whose word FAISS is given."""

    @property
    def queries(self) -> Words:
        """(q, n_cycles, W) the signs of the margins."""
        return pack(self.margins > 0)

    def segment(self) -> Segment:
        arrays = (self.words, self.cycles, self.codewords, self.codeword_cycles)
        return Segment.build(*arrays, self.margins.shape[1], self.bits)


class Contestant(NamedTuple):
    """Answers queries `part`; a slow one is given fewer of them at once."""

    search: Callable[[slice], Any]
    at_once: int = QUERIES


class Times(NamedTuple):
    """Microseconds a query."""

    batch: float
    best: float
    median: float


def pack(bits: NDArray[np.bool_]) -> Words:
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64)


def make_uniform(bits: int, n: int) -> Codes:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, (n, bits // 64), dtype=np.uint64)
    margins = rng.standard_normal((QUERIES, 1, bits), dtype=np.float32)
    none, zeros = np.zeros(QUERIES, np.int64), np.zeros(n, np.int64)
    return Codes(bits, words, zeros, words[:100], zeros[:100], margins, none)


def make_clustered(bits: int, n: int) -> Codes:
    rng = np.random.default_rng(1)
    codewords = rng.random((100, bits)) < 0.5

    def near(count: int) -> NDArray[np.bool_]:
        noise: NDArray[np.bool_] = rng.random((count, bits), dtype=np.float32) < 0.1
        return codewords[rng.integers(0, 100, count)] ^ noise

    words, signs = pack(near(n)), np.where(near(QUERIES), 1, -1)
    margins = (signs * np.abs(rng.standard_normal(signs.shape))).astype(np.float32)
    none, zeros = np.zeros(QUERIES, np.int64), np.zeros(n, np.int64)
    return Codes(bits, words, zeros, pack(codewords), zeros[:100], margins[:, None], none)


def make_real(name: str, bits: int, n: int) -> Codes:
    data, rng = datasets.load(REAL[name]), np.random.default_rng(2)
    if data.is_query.any():
        split = given_split(data.y, data.is_query, stream=30, seed=0)
    else:
        split = paper_split(data.y, queries=100, stream=1000, seed=0)
    hasher = OnlineHasher(bits).partial_fit(data.X[split.stream], data.y[split.stream])
    mapping = hasher.freeze()
    Z, odometer = mapping.measure(data.X[split.entries]), Odometer.start_with(mapping, "home")
    words, cycles = np.empty((n, bits // 64), np.uint64), np.empty(n, np.int64)
    for start in range(0, n, SLICE):
        part = slice(start, min(start + SLICE, n))
        rows = Z[np.arange(part.start, part.stop) % len(Z)]
        rows += 0.01 * rng.standard_normal(rows.shape, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        columns = encode(mapping, "home", rows, odometer)
        words[part], cycles[part] = columns.words, columns.homes
    Z = mapping.measure(data.X[rng.permutation(split.queries)[:QUERIES]])
    margins = mapping.margins(Z).reshape(QUERIES, -1, bits)
    homes = choose_homes(mapping, "home", Z)[0]
    codewords = pack(mapping.words > 0)
    return Codes(bits, words, cycles, codewords, mapping.label_cycles, margins, homes)


def flat_index(words: Words, bits: int) -> Any:
    index = faiss.IndexBinaryFlat(bits)
    index.add(np.ascontiguousarray(words).view(np.uint8))
    return index


def ivf_index(codes: Codes) -> Any:
    quantizer = flat_index(codes.codewords, codes.bits)
    index = faiss.IndexBinaryIVF(quantizer, codes.bits, len(codes.codewords))
    index.add(codes.words.view(np.uint8))
    index.nprobe = 1
    index.keep = quantizer  # FAISS does not hold on to it
    return index


def require(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise SystemExit(f"wrong result: {what}")


def check_hamming(codes: Codes, distances: Counts, places: Counts) -> None:
    """Hold all distances against FAISS, one index a cycle, and three queries against the rule."""
    queries, nearest = codes.queries, []
    for cycle in np.unique(codes.cycles):
        index = flat_index(codes.words[codes.cycles == cycle], codes.bits)
        words = np.ascontiguousarray(queries[:, cycle]).view(np.uint8)
        nearest.append(index.search(words, min(K, index.ntotal))[0])
    expected = np.sort(np.concatenate(nearest, axis=1), axis=1)[:, :K]
    require(np.array_equal(distances, expected), "distances differ from FAISS")
    for query, got in zip(queries[:3], places, strict=False):
        far = np.bitwise_count(codes.words ^ query[codes.cycles]).sum(axis=1, dtype=np.int64)
        order = np.argsort(far, kind="stable")[:K]
        require(np.array_equal(got, order), "places are not by (distance, place)")


def check_margins(codes: Codes, segment: Segment, distances: Floats, places: Counts) -> None:
    """Hold three queries against the rule, and their distances against a float64 sum."""
    everyone = np.arange(len(codes.words))
    far = segment.margins_of(codes.margins[:3], everyone)
    for query in range(3):
        order = np.argsort(far[query], kind="stable")[:K]
        require(np.array_equal(places[query], order), "places are not by (distance, place)")
        margins = codes.margins[query, codes.cycles[order]].astype(np.float64)
        exact = -(margins * signs_of(codes.words[order]).T).sum(axis=1)
        require(np.allclose(distances[query], exact, rtol=1e-4, atol=1e-4), "asymmetric distances")


def signs_of(words: Words) -> Floats:
    """Return (bits, n) signs, laid out for the matrix product."""
    out = np.empty((64 * words.shape[1], len(words)), np.float32)
    for start in range(0, len(words), SLICE):
        part = np.ascontiguousarray(words[start : start + SLICE]).view(np.uint8)
        out[:, start : start + SLICE] = np.unpackbits(part, axis=1, bitorder="little").T * 2.0 - 1
    return out


def nearest_by_product(margins: Floats, signs: Floats) -> Counts:
    return np.argpartition(-margins @ signs, K, axis=1)[:, :K]


def race(contestants: dict[str, Contestant], rounds: int) -> dict[str, Times]:
    """Return the times of each contestant; all take their turn in every round."""
    batch: dict[str, list[float]] = {name: [] for name in contestants}
    single: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds):
        for name, (search, at_once) in contestants.items():
            batch[name].append(clock(search, slice(0, at_once)) / at_once)
        for name, (search, _) in contestants.items():
            first = turn * SINGLES
            for query in range(first, first + SINGLES):
                single[name].append(clock(search, slice(query, query + 1)))
    return {
        name: Times(min(batch[name]), min(single[name]), float(np.median(single[name])))
        for name in contestants
    }


def clock(search: Callable[[slice], Any], part: slice) -> float:
    start = perf_counter()
    search(part)
    return (perf_counter() - start) * 1e6


def show(what: str, bits: int, times: dict[str, Times], note: str = "") -> None:
    """Print a row for the batch, the best and the median single query; the first name is ours."""
    ours = next(iter(times))
    print(f"{what}, {bits} bits{note}")
    print(f"  {'us a query':<16}" + "".join(f"{name:>12}" for name in times))
    for field, heading in zip(Times._fields, ("batch", "one, best", "one, median"), strict=True):
        figures = {name: getattr(each, field) for name, each in times.items()}
        ratios = [f"{t / figures[ours]:.1f}x {name}" for name, t in figures.items() if name != ours]
        cells = "".join(f"{figure:12.1f}" for figure in figures.values())
        print(f"  {heading:<16}{cells}   {', '.join(ratios)}", flush=True)


def by_hamming(codes: Codes) -> tuple[Segment, dict[str, Contestant]]:
    """Check our results; return the segment, and it and FAISS as contestants."""
    segment, queries = codes.segment(), codes.queries
    check_hamming(codes, *segment.nearest_hamming(queries, K))
    flat = flat_index(codes.words, codes.bits)
    home = queries[np.arange(QUERIES), codes.homes].view(np.uint8)
    return segment, {
        "everhash": Contestant(lambda part: segment.nearest_hamming(queries[part], K)),
        "flat": Contestant(lambda part: flat.search(home[part], K)),
    }


def uniform(n: int, rounds: int) -> None:
    for bits in (64, 128):
        codes = make_uniform(bits, n)
        segment, contestants = by_hamming(codes)
        rows, queries = codes.words.view(np.uint8), codes.queries[:, 0].copy().view(np.uint8)
        contestants["usearch"] = Contestant(
            lambda part, rows=rows, queries=queries: usearch_search(
                rows, queries[part], K, MetricKind.Hamming, exact=True, threads=1
            ),
            20,
        )
        contestants["sum"] = Contestant(lambda _, words=segment.columns: words.sum(), 1)
        times = race(contestants, rounds)
        show("uniform", bits, times)
        floor, one = times["sum"].best, times["everhash"].best
        read = segment.columns.nbytes / 1e3
        print(
            f"  memory: the sum reads {read / floor:.1f} GB/s, one query {read / one:.1f} GB/s: "
            f"{one / floor:.2f} times the floor"
        )


def clustered(n: int, rounds: int) -> None:
    for bits in (64, 128):
        codes = make_clustered(bits, n)
        _, contestants = by_hamming(codes)
        ivf, queries = ivf_index(codes), codes.queries[:, 0].copy().view(np.uint8)
        contestants["IVF"] = Contestant(
            lambda part, ivf=ivf, queries=queries: ivf.search(queries[part], K)
        )
        exact = contestants["flat"].search(slice(0, QUERIES))[0]
        recall = (ivf.search(queries, K)[0] <= exact[:, -1:]).mean()
        show("clustered", bits, race(contestants, rounds), f"; recall of IVF {recall:.3f}")


def real(n: int, rounds: int) -> None:
    for name in REAL:
        for bits in (64, 128):
            codes = make_real(name, bits, n)
            segment, contestants = by_hamming(codes)
            show(name, bits, race(contestants, rounds), describe(codes, segment))


def describe(codes: Codes, segment: Segment) -> str:
    return f"; {codes.margins.shape[1]} cycles, {segment.n_words / len(codes.words):.0%} distinct"


def asymmetric(n: int, rounds: int) -> None:
    for name in ("clustered", *REAL):
        for bits in (64, 128):
            codes = make_real(name, bits, n) if name in REAL else make_clustered(bits, n)
            segment, signs, margins = codes.segment(), signs_of(codes.words), codes.margins
            check_margins(codes, segment, *segment.nearest_margins(margins, K))
            home = np.ascontiguousarray(margins[np.arange(QUERIES), codes.homes])
            contestants = race_by_margins(segment, margins, home, signs)
            show(f"asymmetric, {name}", bits, race(contestants, rounds), describe(codes, segment))


def race_by_margins(
    segment: Segment, margins: Floats, home: Floats, signs: Floats
) -> dict[str, Contestant]:
    return {
        "everhash": Contestant(lambda part: segment.nearest_margins(margins[part], K)),
        "NumPy": Contestant(lambda part: nearest_by_product(home[part], signs), 20),
    }


def postings(n: int, rounds: int) -> None:
    for bits in (64, 128):
        rng, cycle = np.random.default_rng(4), np.zeros(1000, np.int64)
        codewords = pack(rng.random((1000, bits)) < 0.5)
        queries = pack(rng.random((QUERIES, 1, bits)) < 0.5)
        contestants = {}
        for size in (n, n // 10, 10 * n):
            labels, lists = rng.integers(0, 1000, size), Postings()
            lists.append(labels, np.arange(size))
            contestants[f"{size:,}"] = Contestant(
                lambda part, lists=lists, words=codewords, queries=queries, bits=bits: (
                    lists.nearest_hamming(words, cycle, queries[part], bits, K)
                )
            )
            if size == n:
                check_postings(codewords[labels], queries, bits, contestants[f"{size:,}"])
                flat = flat_index(codewords[labels], bits)
        packed = queries[:, 0].copy().view(np.uint8)
        contestants["flat"] = Contestant(
            lambda part, flat=flat, packed=packed: flat.search(packed[part], K)
        )
        show("postings", bits, race(contestants, rounds), "; entries by label, flat over codewords")


def check_postings(words: Words, queries: Words, bits: int, ours: Contestant) -> None:
    zeros = np.zeros(len(words), np.int64)
    signs = np.unpackbits(queries.view(np.uint8), axis=2, bitorder="little") * np.float32(2) - 1
    codes = Codes(bits, words, zeros, words[:0], zeros[:0], signs, zeros[:QUERIES])
    check_hamming(codes, *ours.search(slice(0, QUERIES))[:2])


CONTESTS = {
    "uniform": uniform,
    "clustered": clustered,
    "real": real,
    "asymmetric": asymmetric,
    "postings": postings,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CONTESTS), help="contests, with commas between")
    parser.add_argument("--quick", action="store_true", help="100,000 codes, two rounds")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := set(chosen) - set(CONTESTS):
        parser.error(f"no contest {', '.join(sorted(unknown))}; there are {', '.join(CONTESTS)}")
    n, rounds = (100_000, 2) if args.quick else (1_000_000, 5)
    faiss.omp_set_num_threads(1)
    print(f"{describe_machine()}, FAISS {faiss.__version__}; load {os.getloadavg()[0]:.1f}")
    print(f"{n:,} codes, top {K}, {QUERIES:,} queries at once and {rounds * SINGLES} one by one\n")
    for name in chosen:
        CONTESTS[name](n, rounds)
        print(flush=True)


if __name__ == "__main__":
    main()
