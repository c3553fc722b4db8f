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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.bench import datasets
from everhash.bench.costs.codes import (
    QUERIES,
    K,
    load_faiss,
    make_clustered,
    make_real,
    make_uniform,
)
from everhash.bench.costs.search import (
    FEW,
    SINGLES,
    SUM,
    Contest,
    Contestant,
    Times,
    asymmetric,
    clustered,
    labelled,
    real,
    uniform,
)
from everhash.bench.datasets import Dataset
from everhash.bench.machine import describe_machine
from everhash.bench.protocols import Split, given_split, paper_split

try:
    import faiss
    from usearch.compiled import MetricKind
    from usearch.index import search as usearch_search
except ImportError:
    raise SystemExit('faiss or usearch is missing: pip install -e ".[bench]"') from None

REAL = {"CIFAR-10": "cifar10-cnn", "Caltech-256": "caltech256-cnn"}


def show(contest: Contest, times: dict[str, Times]) -> None:
    """Print the times, and how many times ours each of the others is."""
    print(f"{contest.about}\n  {'us a query':<14}" + "".join(f"{name:>12}" for name in times))
    for field, heading in zip(Times._fields, ("batch", "one, best", "one, median"), strict=True):
        figures = {name: getattr(each, field) for name, each in times.items()}
        cells = "".join(f"{figure:12.1f}" for figure in figures.values()).replace("nan", "  -")
        others = [name for name in figures if name not in (contest.ours, SUM)]
        ratios = [f"{figures[name] / figures[contest.ours]:.1f}x {name}" for name in others]
        print(f"  {heading:<14}{cells}   {', '.join(ratios)}", flush=True)


def by_usearch(words: NDArray[np.uint64], queries: NDArray[np.uint8]) -> Contestant:
    def search(part: slice) -> Any:
        rows = words.view(np.uint8)
        return usearch_search(rows, queries[part], K, MetricKind.Hamming, exact=True, threads=1)

    return Contestant(search, FEW)


def load_real(name: str) -> tuple[Dataset, Split]:
    data = datasets.load(REAL[name])
    if data.is_query.any():
        return data, given_split(data.y, data.is_query, stream=30, seed=0)
    return data, paper_split(data.y, queries=100, stream=1000, seed=0)


def race_uniform(n: int, bits: int, rounds: int) -> None:
    contest = uniform(bits, n)
    # the sum is the floor, so it stands last
    floor, codes = contest.contestants.pop(SUM), make_uniform(bits, n)
    contest.contestants["usearch"] = by_usearch(codes.words, codes.home_words)
    contest.contestants[SUM] = floor
    times = contest.race(rounds)
    show(contest, times)
    print(f"  {contest.floor(times)}")


def race_clustered(n: int, bits: int, rounds: int) -> None:
    contest = clustered(bits, n)
    show(contest, contest.race(rounds))


def race_real(n: int, bits: int, rounds: int) -> None:
    for name in REAL:
        contest = real(name, make_real(*load_real(name), bits, n))
        show(contest, contest.race(rounds))


def race_asymmetric(n: int, bits: int, rounds: int) -> None:
    for name in ("clustered", *REAL):
        made = name not in REAL
        codes = make_clustered(bits, n) if made else make_real(*load_real(name), bits, n)
        contest = asymmetric(name, codes)
        show(contest, contest.race(rounds))


def race_postings(n: int, bits: int, rounds: int) -> None:
    contest = labelled(bits, n, (n // 10, n, 10 * n))
    contest = contest._replace(about=f"postings, {bits} bits; entries:")
    show(contest, contest.race(rounds))


CONTESTS = {
    "uniform": race_uniform,
    "clustered": race_clustered,
    "real": race_real,
    "asymmetric": race_asymmetric,
    "postings": race_postings,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(CONTESTS), help="contests, with commas between")
    parser.add_argument("--quick", action="store_true", help="100,000 codes, two rounds")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := set(chosen) - set(CONTESTS):
        parser.error(f"no contest {', '.join(sorted(unknown))}; there are {', '.join(CONTESTS)}")
    n, rounds = (100_000, 2) if args.quick else (1_000_000, 5)
    load_faiss()  # on one thread
    print(f"{describe_machine()}, FAISS {faiss.__version__}")
    print(f"{n:,} codes, top {K}, {QUERIES:,} queries at once and {rounds * SINGLES} one by one")
    for name in chosen:
        print(f"\nload {os.getloadavg()[0]:.1f}")
        for bits in (64, 128):
            CONTESTS[name](n, bits, rounds)


if __name__ == "__main__":
    main()
