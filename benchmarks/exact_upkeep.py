"""Part "upkeep" of `exact.py`: what keeping unlabelled entries up to date takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everhash import Index, OnlineHasher
from everhash.bench.datasets import Dataset
from everhash.bench.scoring import score_index
from exact_sets import CALL, Rows, Setting, load, split_of

BITS, ENTRIES, QUERIES = 32, 20_000, 500
SETTING = Setting("cifar10-gist", 2000, 100)


class Upkeep(NamedTuple):
    """What a run cost; counts are per entry."""

    refreshes: int
    recomputed: float
    flipped: float
    seconds: float
    stale: int
    """Bits older than their function, at the end."""
    wrong: int
    """Codes that differ from those of a rebuild, at the end."""
    asymmetric: float


def upkeep(_orderings: int) -> None:
    data, split = load(SETTING.name), split_of(SETTING, 0)
    stored = np.setdiff1d(split.entries, split.stream)[:ENTRIES]
    asked = np.random.default_rng(0).permutation(split.queries)[:QUERIES]
    print(
        f"\nupkeep: {SETTING.name}, {len(split.stream):,} stream rows in calls of {CALL}, "
        f"{len(stored):,} unlabelled entries that join\nafter the first call, a refresh after each "
        f"call that changed a function; {BITS} bits, ordering 0;\nbits an entry over the whole "
        f"stream, seconds of all refreshes; stale: bits at the end, wrong: codes unlike a rebuild's"
        f"\nmAP of the entries by their bits, {len(asked)} queries"
    )
    print(
        f"{'setting':<24}{'refreshes':>10}{'recomputed':>12}{'flipped':>10}{'seconds':>9}"
        f"{'stale':>7}{'wrong':>7}{'mAP asym.':>11}"
    )
    for name, hasher in {
        "paper()": OnlineHasher.paper(BITS),
        "sgd": OnlineHasher(BITS, learner="sgd"),
        "exact, publish=1.25": OnlineHasher(BITS, publish=1.25),
        "exact, publish=1.5": OnlineHasher(BITS),
        "exact, publish=2": OnlineHasher(BITS, publish=2.0),
    }.items():
        run = _run(hasher, data, split.stream, stored, asked)
        print(
            f"{name:<24}{run.refreshes:>10}{run.recomputed:12.1f}{run.flipped:10.1f}"
            f"{run.seconds:9.1f}{run.stale:>7}{run.wrong:>7}{run.asymmetric:11.3f}",
            flush=True,
        )


def _run(hasher: OnlineHasher, data: Dataset, stream: Rows, stored: Rows, asked: Rows) -> Upkeep:
    index, reports = Index(hasher), []
    for batch in np.array_split(stream, len(stream) // CALL):
        hasher.partial_fit(data.X[batch], data.y[batch])
        if len(index) == 0:
            index.add(data.X[stored])
            seen = hasher.versions_.copy()
        elif not np.array_equal(seen, hasher.versions_):
            reports.append(index.refresh())
            seen = hasher.versions_.copy()
    return Upkeep(
        len(reports),
        sum(report.bits_recomputed for report in reports) / len(stored),
        sum(report.bits_flipped for report in reports) / len(stored),
        sum(report.seconds for report in reports),
        index.stale_bits(),
        index.verify(),
        score_index(index, data.X[asked], data.y[asked], data.y[stored], "asymmetric"),
    )
