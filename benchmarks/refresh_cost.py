"""What it costs to keep unlabelled entries up to date, and what it buys.

    python benchmarks/refresh_cost.py [--only cifar|doubt|clinc|figure] [--entries 20000]

CIFAR-10 GIST: a 20,000-row stream, 32 bits, one cycle, as many unlabelled entries, a refresh after
100 rows in which a function has changed: always by gradient steps (paper, sgd), seldom by the exact
learner, the default, whose functions stand still between publications. After every refresh all
codes are held against a rebuild ("stale" must be 0). "recomputed" is the share of all bits computed
again in a refresh, the mean over all of them and over the last tenth. CLINC150: 150 labels that
arrive over time, cycles of 20, home against full coding. mAP is tie-averaged, of unlabelled entries
by their bits, 500 queries. The figure is the paper's: mAP against bit updates an entry.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import Index, OnlineHasher
from everhash.bench import datasets
from everhash.bench.costs.refresh import EVERY, keep_fresh
from everhash.bench.machine import describe_machine
from everhash.bench.protocols import given_split, paper_split
from everhash.bench.scoring import score_index

QUERIES = 500
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "updates.png"


class Run(NamedTuple):
    """What a run cost, and what it was worth."""

    flips: float
    """bits flipped an entry"""
    recomputed: float
    recomputed_last: float
    homes_moved: float
    stale: int
    hamming: float
    asymmetric: float
    bytes_coded: float
    """code and certificate, without features"""


def run(
    hasher: OnlineHasher,
    data: datasets.Dataset,
    stream: NDArray[np.int64],
    entries: NDArray[np.int64],
    queries: NDArray[np.int64],
    *,
    coding: str = "home",
    certify: bool = True,
    check: bool = True,
) -> Run:
    index = Index(hasher, coding=coding, certify=certify)
    flips = moved = stale = 0
    shares = []
    for (report,) in keep_fresh(hasher, data, stream, entries, [index]):
        bits = len(entries) * (hasher.bits if coding == "home" else hasher.width_)
        flips, moved = flips + report.bits_flipped, moved + report.homes_moved
        shares.append(report.bits_recomputed / bits)
        stale += index.verify() if check else 0
    hamming, asymmetric = (
        score_index(index, data.X[queries], data.y[queries], data.y[entries], distance)
        for distance in ("hamming", "asymmetric")
    )
    return Run(
        flips / len(entries),
        float(np.mean(shares)),
        float(np.mean(shares[-len(shares) // 10 :])),
        moved / len(entries),
        stale,
        hamming,
        asymmetric,
        (hasher.bits if coding == "home" else hasher.width_) * (1 + 1 / 8),
    )


def cifar(entries: int) -> None:
    data = datasets.load("cifar10-gist")
    split = paper_split(data.y, queries=100, stream=2000, seed=0)
    stored = np.setdiff1d(split.entries, split.stream)[:entries]
    queries = np.random.default_rng(0).permutation(split.queries)[:QUERIES]
    print(f"\nCIFAR-10 GIST, {len(split.stream):,}-row stream, {len(stored):,} unlabelled entries")
    print(HEADING)
    for name, hasher, certify in (
        ("paper(), no certificate", OnlineHasher.paper(32), False),
        ("paper(), certified", OnlineHasher.paper(32), True),
        ("sgd, no certificate", sgd(), False),
        ("sgd, certified", sgd(), True),
        ("sgd, step 0.1, certified", sgd(step=0.1), True),
        ("exact, no certificate", OnlineHasher(32), False),
        ("exact, certified", OnlineHasher(32), True),
    ):
        show(name, run(hasher, data, split.stream, stored, queries, certify=certify))


def sgd(rho: int | None = None, step: float = 1.0) -> OnlineHasher:
    return OnlineHasher(32, labels_per_cycle=rho, learner="sgd", step=step)


def doubt() -> None:
    """Print the share of bits in doubt if all margins were known afresh after each refresh."""
    data = datasets.load("cifar10-gist")
    split = paper_split(data.y, queries=100, stream=2000, seed=0)
    stored = np.setdiff1d(split.entries, split.stream)[:3000]
    hasher, shares = sgd(), []
    before: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    for batch in np.array_split(split.stream, len(split.stream) // EVERY):
        hasher.partial_fit(data.X[batch], data.y[batch])
        mapping = hasher.freeze()
        directions = mapping.functions[0].astype(np.float64)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        sines = np.abs(mapping.measure(data.X[stored]) @ directions.T)
        if before is not None:
            turned = 2 * np.arcsin(np.linalg.norm(directions - before[0], axis=1) / 2)
            shares.append(float((before[1] <= turned).mean()))
        before = directions, np.arcsin(np.minimum(sines, 1))
    still = shares[10:]  # until then the centre moves
    last = np.mean(still[-len(still) // 10 :])
    print("\nin doubt if every margin were known afresh after each refresh, sgd: ", end="")
    print(f"{np.mean(still):.1%}, last tenth {last:.1%}")


def clinc() -> None:
    data = datasets.load("clinc150")
    split = given_split(data.y, data.is_query, stream=40, seed=0)
    stored = np.setdiff1d(split.entries, split.stream)
    queries = np.random.default_rng(0).permutation(split.queries)[:QUERIES]
    stream = arriving(data.y[split.stream], split.stream)
    print(
        f"\nCLINC150, {len(stream):,} rows, 150 labels arriving over time, {len(stored):,} entries"
    )
    print(HEADING)
    for coding in ("home", "full"):
        for certify in (False, True):
            name = f"sgd, {coding}, {'certified' if certify else 'no certificate'}"
            result = run(sgd(20), data, stream, stored, queries, coding=coding, certify=certify)
            show(name, result)
        hasher = OnlineHasher(32, labels_per_cycle=20)
        show(f"exact, {coding}", run(hasher, data, stream, stored, queries, coding=coding))


def arriving(y: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order rows so that labels join one after the other and go on from there."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.unique(y))
    joins = {label: place / len(labels) for place, label in enumerate(labels.tolist())}
    times = [joins[label] + rng.random() * (1 - joins[label]) for label in y.tolist()]
    return rows[np.argsort(times)]


HEADING = (
    f"{'setting':<32}{'flips':>9}{'recomputed':>12}{'last tenth':>12}{'homes moved':>13}"
    f"{'stale':>7}{'mAP Ham.':>10}{'asym.':>8}{'bytes':>8}"
)


def show(name: str, r: Run) -> None:
    print(
        f"{name:<32}{r.flips:9.1f}{r.recomputed:12.1%}{r.recomputed_last:12.1%}{r.homes_moved:13.2f}"
        f"{r.stale:7}{r.hamming:10.3f}{r.asymmetric:8.3f}{r.bytes_coded:8.0f}",
        flush=True,
    )


def figure() -> None:
    """Draw mAP against bit updates an entry for several rho, as in the paper's Figure 4."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    cifar_data, clinc_data = datasets.load("cifar10-gist"), datasets.load("clinc150")
    one = paper_split(cifar_data.y, queries=100, stream=200, seed=0)
    two = given_split(clinc_data.y, clinc_data.is_query, stream=40, seed=0)
    canvas = Figure(figsize=(11, 4.4), layout="constrained")
    FigureCanvasAgg(canvas)
    panels = canvas.subplots(1, 2)
    sets = (
        (cifar_data, one, (None, 5, 4, 3, 2), "CIFAR-10 GIST, 2,000 rows"),
        (clinc_data, two, (None, 100, 50, 25, 10), "CLINC150, 6,000 rows"),
    )
    for axes, (data, split, rhos, title) in zip(panels, sets, strict=True):
        rng = np.random.default_rng(0)
        stored = rng.permutation(np.setdiff1d(split.entries, split.stream))[:5000]
        queries = rng.permutation(split.queries)[:QUERIES]
        print(f"\n{title}: {'setting':<26}{'rho':>6}{'flips':>10}{'mAP':>8}")
        for name, make, coding, distance in (
            ("paper(), all bits, Hamming", OnlineHasher.paper, "full", "hamming"),
            ("sgd, home, asymmetric", partial(OnlineHasher, learner="sgd"), "home", "asymmetric"),
            ("exact (default), home, asymmetric", OnlineHasher, "home", "asymmetric"),
        ):
            points = []
            for rho in rhos:
                hasher = make(32, labels_per_cycle=rho)
                r = run(hasher, data, split.stream, stored, queries, coding=coding, check=False)
                points.append((r.flips, getattr(r, distance)))
                print(
                    f"{'':<16}{name:<34}{rho!s:>6}{points[-1][0]:10.1f}{points[-1][1]:8.3f}",
                    flush=True,
                )
            axes.plot(*zip(*points, strict=True), "o-", label=name)
            for rho, point in zip(rhos, points, strict=True):
                text = "one cycle" if rho is None else f"rho {rho}"
                axes.annotate(text, point, (5, 4), textcoords="offset points", fontsize=8)
        axes.set_xscale("log")
        axes.set_xticks([20, 50, 100, 200, 500, 1000], minor=False)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(15, 1200)
        axes.set_xlabel("bit updates an entry (flips)")
        axes.set_ylabel("mAP of unlabelled entries, tie-averaged")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9)
    canvas.savefig(FIGURE, dpi=130)
    print(f"figure: {FIGURE.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("cifar", "doubt", "clinc", "figure"))
    parser.add_argument("--entries", type=int, default=20_000)
    args = parser.parse_args()
    print(describe_machine())
    if args.only in (None, "cifar"):
        cifar(args.entries)
    if args.only in (None, "doubt"):
        doubt()
    if args.only in (None, "clinc"):
        clinc()
    if args.only in (None, "figure"):
        figure()


if __name__ == "__main__":
    main()
