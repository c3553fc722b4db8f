"""What certificates save when unlabelled entries are kept up to date, and what they cannot save.

    python benchmarks/refresh_cost.py [certificates|doubt ...] [--entries 20000] [--data NAME]

    certificates   bits flipped and computed again, with certificates and without; every code is
                   compared with a rebuild after every refresh ("wrong" must be 0)
    doubt          the share of bits in doubt if all margins were known afresh after each refresh

CIFAR-10 GIST, a 20,000-row stream, 32 bits, one cycle, a refresh after 100 rows in which a function
has changed: every time with gradient steps (paper, sgd), seldom with the exact learner, whose
functions change at publications only. mAP is tie-averaged, of the entries by their bits; 500
queries, seed 0. `everhash bench run updates` draws the paper's figure of mAP against bit updates;
`coding.py` compares home and full coding.
"""

from __future__ import annotations

from argparse import Namespace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import Index, OnlineHasher
from everhash.bench import datasets
from everhash.bench.costs.refresh import EVERY, keep_fresh
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split
from everhash.bench.retrieval import split_of
from everhash.bench.scoring import score_index
from everhash.bench.task import Task
from parts import run_parts

BITS, ROWS_A_LABEL, QUERIES = 32, 2000, 500
IN_DOUBT_AMONG, CENTRED_AFTER = 3000, 10
"""Entries whose doubt is measured, and refreshes until the centre stands still."""
HEADING = (
    f"{'setting':<28}{'refreshes':>10}{'recomputed':>12}{'share':>8}{'last tenth':>12}"
    f"{'flipped':>10}{'seconds':>9}{'wrong':>7}{'mAP Ham.':>10}{'asym.':>8}"
)


class Upkeep(NamedTuple):
    """What keeping an index up to date cost; counts are per entry."""

    refreshes: int
    recomputed: float
    share: float
    """Of all bits, computed again in a refresh: the mean over all refreshes."""
    last_share: float
    """The same over the last tenth of them."""
    flipped: float
    seconds: float
    wrong: int
    """Codes that differ from those of a rebuild, over all refreshes."""
    hamming: float
    asymmetric: float


def load(args: Namespace) -> tuple[Dataset, Split]:
    """Return a set and its split; entries are rows that are not learned."""
    data = datasets.load(args.data[0])
    task = Task("retrieval", data.name, "", rows_a_label=ROWS_A_LABEL, queries=QUERIES)
    stream, entries, queries = split_of(task, data)
    return data, Split(stream, np.setdiff1d(entries, stream)[: args.entries], queries)


def certificates(args: Namespace) -> None:
    """Print the upkeep of each learner, with certificates and without."""
    data, split = load(args)
    print(
        f"\ncertificates: {data.name}, {len(split.stream):,}-row stream, {len(split.entries):,} "
        f"unlabelled "
        f"entries; bits an entry over the whole stream\n{HEADING}"
    )
    for name, hasher, certify in (
        ("paper(), no certificate", OnlineHasher.paper(BITS), False),
        ("paper(), certified", OnlineHasher.paper(BITS), True),
        ("sgd, no certificate", sgd(), False),
        ("sgd, certified", sgd(), True),
        ("sgd, step 0.1, certified", sgd(step=0.1), True),
        ("exact, no certificate", OnlineHasher(BITS), False),
        ("exact, certified", OnlineHasher(BITS), True),
        ("exact, publish=1.25", OnlineHasher(BITS, publish=1.25), True),
        ("exact, publish=2", OnlineHasher(BITS, publish=2.0), True),
    ):
        run = keep_up(hasher, data, split, certify=certify)
        print(
            f"{name:<28}{run.refreshes:>10}{run.recomputed:12.1f}{run.share:8.1%}"
            f"{run.last_share:12.1%}{run.flipped:10.1f}{run.seconds:9.1f}{run.wrong:7}"
            f"{run.hamming:10.3f}{run.asymmetric:8.3f}",
            flush=True,
        )


def sgd(step: float = 1.0) -> OnlineHasher:
    return OnlineHasher(BITS, labels_per_cycle=None, learner="sgd", step=step)


def keep_up(hasher: OnlineHasher, data: Dataset, split: Split, *, certify: bool) -> Upkeep:
    index, reports, wrong = Index(hasher, certify=certify), [], 0
    for (report,) in keep_fresh(hasher, data, split.stream, split.entries, [index]):
        reports.append(report)
        wrong += index.verify()
    stored = len(split.entries)
    shares = [report.bits_recomputed / (stored * BITS) for report in reports]
    hamming, asymmetric = (
        score_index(index, data, split, distance) for distance in ("hamming", "asymmetric")
    )
    return Upkeep(
        len(reports),
        sum(report.bits_recomputed for report in reports) / stored,
        float(np.mean(shares)),
        float(np.mean(shares[-len(shares) // 10 :])),
        sum(report.bits_flipped for report in reports) / stored,
        sum(report.seconds for report in reports),
        wrong,
        hamming,
        asymmetric,
    )


def doubt(args: Namespace) -> None:
    """Print the share of bits whose margin is smaller than the turn of their function."""
    data, (stream, stored, _) = load(args)
    stored = stored[:IN_DOUBT_AMONG]
    hasher, shares = sgd(), []
    before: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    for batch in np.array_split(stream, max(1, len(stream) // EVERY)):
        hasher.partial_fit(data.X[batch], data.y[batch])
        mapping = hasher.freeze()
        directions = mapping.functions[0].astype(np.float64)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        sines = np.abs(mapping.measure(data.X[stored]) @ directions.T)
        if before is not None:
            turned = 2 * np.arcsin(np.linalg.norm(directions - before[0], axis=1) / 2)
            shares.append(float((before[1] <= turned).mean()))
        before = directions, np.arcsin(np.minimum(sines, 1))
    still = shares[CENTRED_AFTER:] or shares
    print(
        f"\ndoubt: bits in doubt if every margin were known afresh after each refresh, sgd: "
        f"{np.mean(still):.1%}, last tenth {np.mean(still[-len(still) // 10 :]):.1%}"
    )


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"certificates": certificates, "doubt": doubt},
        entries=20_000,
        data=("cifar10-gist",),
    )
