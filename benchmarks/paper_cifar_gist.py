"""The paper's first table on real CIFAR-10 GIST, and what cycles and order do on CLINC150.

    python benchmarks/paper_cifar_gist.py [--orderings 5] [--only cifar|clinc] [--no-mapping]

Protocol of the paper: 100 queries and 200 stream rows a label, 59,000 entries, mean over orderings
of the stream; strictly online otherwise (the centre comes from rows already seen). mAP is
tie-averaged. "by codeword" stores an entry as its label's codeword; "by mapping" as its bits.
"paper()" is Algorithm 1 as it is; "sgd" has averaged weights, a max-min codebook and replay;
"exact" is the default learner.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter

import numpy as np

from everhash import OnlineHasher
from everhash.bench import datasets
from everhash.bench.machine import describe_machine
from everhash.bench.protocols import Split, given_split, paper_split
from everhash.bench.scoring import score_codewords, score_mapping

BITS = (8, 16, 32, 64)
PUBLISHED = {
    "ours (Cakir et al. 2015, Table 1)": (0.41, 0.46, 0.50, 0.55),
    "ShECC, best batch method there": (0.41, 0.50, 0.57, 0.58),
}
COLUMNS = (
    ("codeword", "Hamming"),
    ("codeword", "asymmetric"),
    ("mapping", "Hamming"),
    ("mapping", "asymmetric"),
)
CYCLES = {"one cycle": None, "rho 25": 25, "rho 20 (auto)": "auto", "rho 10": 10}
Make = Callable[[int, int], OnlineHasher]
SETTINGS: dict[str, Make] = {
    "paper()": lambda bits, seed: OnlineHasher.paper(bits, random_state=seed),
    "sgd": lambda bits, seed: OnlineHasher(bits, learner="sgd", random_state=seed),
    "exact (default)": lambda bits, seed: OnlineHasher(bits, random_state=seed),
    "exact, publish=1.1": lambda bits, seed: OnlineHasher(bits, publish=1.1, random_state=seed),
}


def learn(hasher: OnlineHasher, data: datasets.Dataset, stream: np.ndarray) -> float:
    """Learn the stream in batches of 100; return the seconds it took."""
    start = perf_counter()
    for batch in np.array_split(stream, max(1, len(stream) // 100)):
        hasher.partial_fit(data.X[batch], data.y[batch])
    return perf_counter() - start


def codeword_scores(
    hasher: OnlineHasher, data: datasets.Dataset, split: Split
) -> tuple[float, float]:
    queries = split.queries
    scores = score_codewords(hasher, data.X[queries], data.y[queries], data.y[split.entries])
    return scores.hamming.average, scores.asymmetric.average


def cifar(orderings: int, mapping: bool) -> None:
    data = datasets.load("cifar10-gist")
    print(
        f"\nCIFAR-10 GIST: 2,000-row stream, 59,000 entries, 1,000 queries, {orderings} orderings"
    )
    print(f"{'setting':<36}{'index':<10}{'distance':<12}" + "".join(f"{b:>8}" for b in BITS))
    for name, figures in PUBLISHED.items():
        print(f"{name:<36}{'codeword':<10}{'Hamming':<12}" + "".join(f"{f:8.2f}" for f in figures))
    for setting, make in SETTINGS.items():
        rows = np.array(
            [
                [cifar_row(make(bits, seed), data, seed, mapping) for bits in BITS]
                for seed in range(orderings)
            ]
        )
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        for column, (index, distance) in enumerate(COLUMNS[: None if mapping else 2]):
            cells = "".join(f"{value:8.3f}" for value in mean[:, column])
            print(f"{setting:<36}{index:<10}{distance:<12}{cells}", flush=True)
        print(f"{'':<36}{'largest standard deviation':<22}{spread[:, :2].max():8.3f}")
        seconds = "".join(f"{value:8.3f}" for value in rows[:, :, -1].min(axis=0))
        print(f"{setting:<36}{'seconds of learning':<22}{seconds}", flush=True)


def cifar_row(
    hasher: OnlineHasher, data: datasets.Dataset, seed: int, mapping: bool
) -> tuple[float, ...]:
    split = paper_split(data.y, queries=100, stream=200, seed=seed)
    seconds = learn(hasher, data, split.stream)
    by_mapping = (np.nan, np.nan)
    if mapping:
        queries, entries = split.queries, split.entries
        here, there = (data.X[queries], data.y[queries]), (data.X[entries], data.y[entries])
        scores = score_mapping(hasher, *here, *there, coding="home")
        by_mapping = scores.hamming.average, scores.asymmetric.average
    return (*codeword_scores(hasher, data, split), *by_mapping, seconds)


def clinc(orderings: int) -> None:
    data = datasets.load("clinc150")
    settings: dict[str, tuple[Make, bool]] = {
        f"{learner}, {title}": (cycle_of(rho, learner), False)
        for learner in ("sgd", "exact")
        for title, rho in CYCLES.items()
    }
    settings["paper(), rho 20, sorted by label"] = (
        lambda bits, seed: OnlineHasher.paper(bits, labels_per_cycle=20, random_state=seed),
        True,
    )
    for learner in ("sgd", "exact"):
        settings[f"{learner}, rho 20, sorted by label"] = (cycle_of(20, learner), True)
    print("\nCLINC150: 150 labels, 40 rows each, k = 32, entries = all training rows by codeword")
    print(f"{'setting':<36}{'Hamming':>10}{'asymmetric':>12}{'width':>8}{'seconds':>9}")
    for name, (make, is_sorted) in settings.items():
        rows = []
        for seed in range(orderings):
            hasher = make(32, seed)
            split = given_split(data.y, data.is_query, stream=40, seed=seed)
            stream = split.stream
            if is_sorted:
                stream = stream[np.argsort(data.y[stream], kind="stable")]
            seconds = learn(hasher, data, stream)
            rows.append((*codeword_scores(hasher, data, split), hasher.width_, seconds))
        ham, asym, width, _ = np.mean(rows, axis=0)
        fastest = min(row[-1] for row in rows)
        print(f"{name:<36}{ham:10.3f}{asym:12.3f}{width:8.0f}{fastest:9.3f}", flush=True)


def cycle_of(rho: int | str | None, learner: str) -> Make:
    return lambda bits, seed: OnlineHasher(
        bits, labels_per_cycle=rho, learner=learner, random_state=seed
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orderings", type=int, default=5)
    parser.add_argument("--only", choices=("cifar", "clinc"))
    parser.add_argument("--no-mapping", action="store_true", help="leave the mapping index out")
    args = parser.parse_args()
    print(describe_machine())
    if args.only != "clinc":
        cifar(args.orderings, not args.no_mapping)
    if args.only != "cifar":
        clinc(args.orderings)


if __name__ == "__main__":
    main()
