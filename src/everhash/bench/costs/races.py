"""Races of everhash against a peer: in one process, in turns, the best round counts.

One race gives the figures of several items of `everhash.bench.costs.speed`; its result is cached,
so that items that follow each other do not run it again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from everhash import OnlineHasher, kernels
from everhash.bench import datasets
from everhash.bench.costs import search
from everhash.bench.costs.codes import CodeSample, make_clustered, make_real
from everhash.bench.costs.encoding import by_blocks, by_kernel, encoders, make_rows, moved
from everhash.bench.costs.learning import learners
from everhash.bench.costs.refresh import keep_fresh
from everhash.bench.costs.search import Contest, Times
from everhash.bench.costs.store import CALL, OPENED, commit_singles, reopen, reread, store_rows
from everhash.bench.costs.timing import MICROSECONDS, race
from everhash.bench.retrieval import split_of
from everhash.bench.task import Task
from everhash.errors import OptionError
from everhash.extras import install_hint
from everhash.index.index import Index

FEATURES = 512
"""Features of rows that are learned or encoded, where the task does not say."""
SEARCH_ROUNDS, ENCODE_ROUNDS = 3, 9


class Outcome(NamedTuple):
    """What ours took, and the peer; None where it could not be measured."""

    ours: float | None
    peer: float | None
    note: str


# Learning and encoding


def learning(peer: str, task: Task, size: int) -> Outcome:
    """Learn a stream by gradient steps, as the paper does: without averaged weights."""
    d = features_of(task)
    best = learning_times(size, d, task.bits)
    note = (
        f"d = {d}; with averaged weights {best['+ mean']:.2f}; the matrix product alone, "
        f"which no learner can beat, {best['GEMM']:.2f}"
    )
    return Outcome(best["everhash"], best[peer], note)


@lru_cache(maxsize=1)
def learning_times(rows: int, d: int, bits: int) -> dict[str, float]:
    """Return the best time of every learner."""
    return race(learners(rows, d, bits), per=rows)


def features_of(task: Task) -> int:
    """Return how many features the rows of a task have."""
    return int(dict(task.options).get("features", FEATURES))


def encoding(cycles: int, task: Task, size: int) -> Outcome:
    """Compute margins, whose signs are the bits."""
    d = features_of(task)
    Z, functions = make_rows(size, d, task.bits, cycles)
    best = race(encoders(Z, functions), ENCODE_ROUNDS, per=size)
    ours, theirs = (moved(way, Z, functions) for way in (by_kernel, by_blocks))
    note = (
        f"d = {d}; the matrix product is the limit, but rows put in another order change the "
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
        return Outcome(getattr(times[ours], way), None, f"{note}; {missing(peer)}")
    return Outcome(getattr(times[ours], way), getattr(times[peer], way), note)


def missing(peer: str) -> str:
    """Return a sentence about a peer that is not installed."""
    package = "usearch" if peer == search.USEARCH else "faiss"
    return f"{package} is not installed: {install_hint('bench')}"


@lru_cache(maxsize=1)
def search_times(codes: str, task: Task, size: int) -> tuple[dict[str, Times], str, str]:
    """Return the times of all contestants that search some codes, our name, and a note."""
    load_kernels()
    contest = CONTESTS[codes](task, size)
    times = contest.race(SEARCH_ROUNDS)
    note = f"{size:,} codes; {contest.about}"
    return times, contest.ours, f"{note}; {contest.floor(times)}" if contest.bytes_read else note


@lru_cache(maxsize=1)
def real_codes(task: Task, size: int) -> CodeSample:
    """Return codes of a real data set."""
    data = datasets.load(task.dataset)
    return make_real(data, split_of(task, data), task.bits, size)


CONTESTS: dict[str, Callable[[Task, int], Contest]] = {
    "search, uniform codes": lambda task, n: search.uniform(task.bits, n),
    "search, clustered codes": lambda task, n: search.clustered(task.bits, n),
    "search, real codes": lambda task, n: search.real(task.dataset, real_codes(task, n)),
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

    Certificates do not help the exact learner: it seldom changes its functions, and then by much.
    """
    ours, theirs, note = refresh_costs(replace(task, options=()), size)
    return Outcome(ours[figure], theirs[figure], note)


@lru_cache(maxsize=1)
def refresh_costs(task: Task, size: int) -> tuple[dict[str, float], dict[str, float], str]:
    """Return bits and microseconds per entry and refresh, with certificates and without."""
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
    """Add rows, 10,000 a call, each call one durable transaction."""
    call = min(CALL, size)
    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        times = store_rows(Path(folder), kind, size, call)
    ours, sqlite, rows, kept = (min(each) / call * MICROSECONDS for each in times[:4])
    note = (
        f"{MICROSECONDS / ours:,.0f} rows/s in the best call, {size:,} rows; plain writes and "
        f"fsync of as many bytes take {kept:.2f}, of the rows as they come {rows:.2f}"
    )
    return Outcome(ours, sqlite, note)


def opening(_task: Task, size: int) -> Outcome:
    """Open a file of labelled entries and search it; the peer reads ids and labels."""
    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        path = store_rows(Path(folder), "labelled", size, min(CALL, size)).path
        turns = [(reopen(path, 1), reread(Path(folder, "labelled.sqlite"))) for _ in range(OPENED)]
    opened, answered = (
        min(times) * 1e3 for times in zip(*(ours[:2] for ours, _ in turns), strict=True)
    )
    note = f"{size:,} entries; open after {opened:.1f} ms, then one search"
    return Outcome(answered, min(read for _, read in turns) * 1e3, note)


def load_kernels() -> None:
    """Load all kernels, so that no measured time includes it."""
    kernels.load_all()


def committing(_task: Task, size: int) -> Outcome:
    """Commit one labelled row after the other."""
    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = commit_singles(Path(folder), size)
    note = f"{1 / ours:,.0f} commits/s, each on disk, among {size:,} entries"
    return Outcome(ours * MICROSECONDS, theirs * MICROSECONDS, note)
