"""How fast we are, against what people would use instead: in one process, in turns, the best.

An item is what is done and whom it is held against. What one race tells of several items is kept,
so that items that follow each other do not run it again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from everhash import OnlineHasher, kernels
from everhash.bench import datasets
from everhash.bench.costs import search, timing
from everhash.bench.costs.codes import CodeSample, make_clustered, make_real
from everhash.bench.costs.encoding import by_blocks, by_kernel, encoders, make_rows, moved
from everhash.bench.costs.learning import learners
from everhash.bench.costs.refresh import keep_fresh
from everhash.bench.costs.search import FLAT, IVF, PRODUCT, Contest, Times
from everhash.bench.costs.store import CALL, OPENED, commit_singles, reopen, reread, take_in
from everhash.bench.costs.synthetic import SYNTHETIC
from everhash.bench.costs.timing import MICROSECONDS, race
from everhash.bench.datasets import Dataset
from everhash.bench.retrieval import split_of
from everhash.bench.task import Task
from everhash.errors import DataMissingError, OptionError
from everhash.index.index import Index
from everhash.learn.options import whole_number

DIM = 512
"""Features of rows that are learned or encoded."""
SEARCH_ROUNDS, ENCODE_ROUNDS = 3, 9
MOST = 100_000_000
MISSING = 'not installed: pip install "everhash[bench]"'
A_ROW, A_QUERY = "us a row", "us a query"


class Outcome(NamedTuple):
    """What ours took, and the peer; None where it could not be measured."""

    ours: float | None
    peer: float | None
    note: str


class Item(NamedTuple):
    """What is measured, in which unit, and how many times faster than the peer it should be."""

    measure: Callable[[Task, int], Outcome]
    unit: str
    wanted: float | None = None
    """As first measured with prototypes, on another machine; None where nobody has said."""
    real: bool = False
    """Whether the task names a data set; otherwise rows and codes are made up."""


def measure(task: Task, _data: Dataset) -> dict[str, Any]:
    """Return how long ours and its peer took, and how many times faster ours is."""
    what, peer, size = read_options(task)
    item = ITEMS[what, peer]
    try:
        outcome = item.measure(task, size)
    except DataMissingError as error:
        outcome = Outcome(None, None, f"left out: {error}")
    known = outcome.ours is not None and outcome.peer is not None
    return {
        "what": what,
        "ours": outcome.ours,
        "peer": outcome.peer,
        "peer_name": peer,
        "ratio": outcome.peer / outcome.ours if known else None,  # type: ignore[operator]
        "wanted": item.wanted,
        "unit": item.unit,
        "note": outcome.note,
        "load": timing.load(),
    }


def read_options(task: Task) -> tuple[str, str, int]:
    """Return what a task measures, its peer and its size; refuse what makes no sense."""
    told = dict(task.options)
    what, peer, size = (told.pop(name, None) for name in ("what", "peer", "size"))
    if told:
        raise OptionError(f"no option {min(told)!r}", hint="there are what, peer and size")
    if (what, peer) not in ITEMS:
        known = "; ".join(f"{what} / {peer}" for what, peer in ITEMS)
        raise OptionError(f"cannot hold {what!r} against {peer!r}", hint=f"there are {known}")
    if ITEMS[what, peer].real == (task.dataset == SYNTHETIC):
        wanted = "a real one" if ITEMS[what, peer].real else repr(SYNTHETIC)
        raise OptionError(f"{what} needs {wanted} as its data set, got {task.dataset!r}")
    return what, peer, whole_number("size", size, least=1, most=MOST)


# Learning and encoding


def learning(peer: str, task: Task, size: int) -> Outcome:
    """Learn a stream by gradient steps, as the paper does: the last iterates alone."""
    best = learning_times(size, task.bits)
    note = (
        f"d = {DIM}; with averaged weights {best['+ mean']:.2f}; the matrix product alone, "
        f"which no learner can beat, {best['GEMM']:.2f}"
    )
    return Outcome(best["everhash"], best[peer], note)


@lru_cache(maxsize=1)
def learning_times(rows: int, bits: int) -> dict[str, float]:
    """Return the best time of every learner."""
    return race(learners(rows, DIM, bits), per=rows)


def encoding(cycles: int, task: Task, size: int) -> Outcome:
    """Work out margins, whose signs are the bits."""
    Z, functions = make_rows(size, DIM, task.bits, cycles)
    best = race(encoders(Z, functions), ENCODE_ROUNDS, per=size)
    ours, theirs = (moved(way, Z, functions) for way in (by_kernel, by_blocks))
    note = (
        f"d = {DIM}; the matrix product is the limit, but rows put in another order change the "
        f"margins of {theirs} of them there, of {ours} here"
    )
    return Outcome(best["everhash"], best["BLAS"], note)


# Search


def searching(codes: str, way: str, peer: str, task: Task, size: int) -> Outcome:
    """Find the 100 nearest of many codes, 1,000 queries at once or one by one."""
    if task.bits % 64 or not task.bits:
        raise OptionError(f"codes to search have 64 bits or a multiple, got {task.bits}")
    times, ours, note = search_times(codes, replace(task, options=()), size)
    if peer not in times:
        return Outcome(getattr(times[ours], way), None, f"{note}; FAISS is {MISSING}")
    return Outcome(getattr(times[ours], way), getattr(times[peer], way), note)


@lru_cache(maxsize=1)
def search_times(codes: str, task: Task, size: int) -> tuple[dict[str, Times], str, str]:
    """Return the times of everybody who searches some codes, which of them is ours, and a note."""
    kernels.load_search()
    contest = CONTESTS[codes](task, size)
    times = contest.race(SEARCH_ROUNDS)
    note = f"{size:,} codes; {contest.about}"
    return times, contest.ours, f"{note}; {contest.floor(times)}" if contest.bytes_read else note


@lru_cache(maxsize=1)
def real_codes(task: Task, size: int) -> CodeSample:
    """Return codes of a real set."""
    data = datasets.load(task.dataset)
    return make_real(data, split_of(task, data), task.bits, size)


CONTESTS: dict[str, Callable[[Task, int], Contest]] = {
    "search, uniform codes": lambda task, n: search.uniform(task.bits, n),
    "search, clustered codes": lambda task, n: search.clustered(task.bits, n),
    "search, real codes": lambda task, n: search.real(task.dataset, real_codes(task, n)),
    "search, labelled entries": lambda task, n: search.labelled(task.bits, n, (n,)),
    "asymmetric search, clustered codes": lambda task, n: search.asymmetric(
        "clustered", make_clustered(task.bits, n)
    ),
    "asymmetric search, real codes": lambda task, n: search.asymmetric(
        task.dataset, real_codes(task, n)
    ),
}
WAYS = {"at once": "batch", "one by one": "best"}


# Refresh and store


def refreshing(figure: str, task: Task, size: int) -> Outcome:
    """Keep entries up to date with gradient steps; the peer computes every bit again.

    The exact learner is no case for certificates: it seldom changes its functions, and then far.
    """
    ours, theirs, note = refresh_costs(replace(task, options=()), size)
    return Outcome(ours[figure], theirs[figure], note)


@lru_cache(maxsize=1)
def refresh_costs(task: Task, size: int) -> tuple[dict[str, float], dict[str, float], str]:
    """Return bits and microseconds, an entry and refresh, with certificates and without."""
    data = datasets.load(task.dataset)
    split = split_of(task, data)
    learned = set(split.stream.tolist())
    entries = split.entries[[row not in learned for row in split.entries.tolist()]][:size]
    hasher = OnlineHasher(task.bits, learner="sgd", random_state=task.seed)
    indexes = [Index(hasher, certify=certify) for certify in (True, False)]
    reports = list(keep_fresh(hasher, data, split.stream, entries, indexes))
    each = len(entries) * len(reports)
    ours, theirs = (
        {
            "bits": sum(report.bits_recomputed for report in of_one) / each,
            "time": sum(report.seconds for report in of_one) / each * MICROSECONDS,
        }
        for of_one in zip(*reports, strict=True)
    )
    share = ours["bits"] / theirs["bits"]
    note = (
        f"{task.dataset}, {len(entries):,} entries, {len(reports)} refreshes over "
        f"{len(split.stream):,} rows; {share:.1%} of the bits were computed again"
    )
    return ours, theirs, note


def storing(kind: str, _task: Task, size: int) -> Outcome:
    """Take rows in, 10,000 a call, each call one durable transaction."""
    call = min(CALL, size)
    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        intake = take_in(Path(folder), kind, size, call)
    ours, sqlite, rows, kept = (min(each) / call * MICROSECONDS for each in intake[:4])
    note = (
        f"{MICROSECONDS / ours:,.0f} rows/s in the best call, {size:,} rows; plain writes and "
        f"fsync of as many bytes take {kept:.2f}, of the rows as they come {rows:.2f}"
    )
    return Outcome(ours, sqlite, note)


def opening(_task: Task, size: int) -> Outcome:
    """Open a file of labelled entries and ask it something; the peer reads ids and labels."""
    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        path = take_in(Path(folder), "labelled", size, min(CALL, size)).path
        turns = [(reopen(path, 1), reread(Path(folder, "labelled.sqlite"))) for _ in range(OPENED)]
    opened, answered = (
        min(times) * 1e3 for times in zip(*(ours[:2] for ours, _ in turns), strict=True)
    )
    note = f"{size:,} entries; open after {opened:.1f} ms, then one search"
    return Outcome(answered, min(read for _, read in turns) * 1e3, note)


def load_kernels() -> None:
    """Have all kernels ready, so that nobody's time has theirs in it."""
    for load in (kernels.load, kernels.load_refresh, kernels.load_search):
        load()


def committing(_task: Task, size: int) -> Outcome:
    """Commit one labelled row after the other."""
    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = commit_singles(Path(folder), size)
    note = f"{1 / ours:,.0f} commits/s, each on disk, among {size:,} entries"
    return Outcome(ours * MICROSECONDS, theirs * MICROSECONDS, note)


def _searches() -> dict[tuple[str, str], Item]:
    """Return every contest, both ways, against everybody who is in it."""
    wanted = {
        ("search, uniform codes, at once", "FAISS flat"): 6.0,
        ("search, uniform codes, one by one", "FAISS flat"): 3.6,
        ("search, clustered codes, at once", "FAISS flat"): 115.0,
        ("search, clustered codes, at once", "FAISS IVF"): 5.7,
    }
    items = {}
    for codes in CONTESTS:
        known = {"FAISS flat": FLAT}
        if codes.startswith("asymmetric"):
            known = {"matrix product": PRODUCT}
        elif "clustered" in codes:
            known["FAISS IVF"] = IVF
        for way, figure in WAYS.items():
            for peer, name in known.items():
                run = partial(searching, codes, figure, name)
                key = f"{codes}, {way}", peer
                items[key] = Item(run, A_QUERY, wanted.get(key), real="real" in codes)
    return items


SQLITE, ALL_BITS = "SQLite", "full re-encoding"
GRADIENT = "learning, gradient steps"
ITEMS: dict[tuple[str, str], Item] = {
    (GRADIENT, "NumPy"): Item(partial(learning, "NumPy"), A_ROW, 6.4),
    (GRADIENT, "scikit-learn"): Item(partial(learning, "scikit-learn"), A_ROW, 60.0),
    ("encoding, 1 cycle", "BLAS"): Item(partial(encoding, 1), A_ROW),
    ("encoding, 13 cycles", "BLAS"): Item(partial(encoding, 13), A_ROW),
    **_searches(),
    ("refresh, gradient steps, bits", ALL_BITS): Item(
        partial(refreshing, "bits"), "bits an entry and refresh", 6.7, real=True
    ),
    ("refresh, gradient steps, time", ALL_BITS): Item(
        partial(refreshing, "time"), "us an entry and refresh", real=True
    ),
    ("store, labelled rows", SQLITE): Item(partial(storing, "labelled"), A_ROW),
    ("store, open and answer", SQLITE): Item(opening, "ms"),
    ("store, learned rows", SQLITE): Item(partial(storing, "learned"), A_ROW),
    ("store, unlabelled rows", SQLITE): Item(partial(storing, "unlabelled"), A_ROW),
    ("store, one-row commits", SQLITE): Item(committing, "us a commit"),
}
"""By what is measured, and whom it is held against."""
