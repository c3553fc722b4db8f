"""Every online method on the same streams: retrieval, learning time, and what refreshing costs.

    python benchmarks/online_peers.py [--rows FILE] [--report] [--quick] [--orderings 5]
        [--data NAME ...] [--only METHOD ...] [--bits N ...]

CIFAR-10 by the paper's protocol: 100 queries and 200 stream rows a label, 59,000 entries; with CNN
features also 2,000 stream rows a label. CLINC150 with 13 and 100 stream rows a label of its 120
that are not test rows, all of these as entries, 1,000 of its test rows as queries. Streams come in
a random order, another one for each seed. Methods have their defaults; those that must know the
number of labels beforehand are told. Methods that keep all rows learn the longer streams in their
first ordering only: their time grows with the square of the length. Everything runs on one thread.

Figures are written to FILE, a line of JSON for each run, and a run that has its line is not done
again; tables are made from these lines alone (--report).
"""

from __future__ import annotations

import os

os.environ.update(  # before NumPy and Numba start their threads
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Self

import peer_products
from everhash import kernels, peers
from everhash.bench import datasets
from everhash.bench.machine import describe_machine
from everhash.bench.peers_run import COSINE, Task, run
from peer_tables import report

Row = dict[str, Any]


class Plan(NamedTuple):
    """What is run on a set."""

    bits: tuple[int, ...]
    rows_a_label: tuple[int, ...]
    quick: int
    """Rows a label that are enough to see everything run: 600 in all."""
    entries: int = 100_000
    """The most, which is all of them."""
    queries: int = 1000


PLANS = {
    "cifar10-gist": Plan((8, 16, 32, 64), (200,), 60),
    "cifar10-cnn": Plan((32, 64), (200, 2000), 60),
    "clinc150": Plan((32, 64), (13, 100), 4),
}
MIDDLE = 32
"""Bits of codes that look for unseen labels, and of learning that is held against its products."""


class Job(NamedTuple):
    """A line to be written: of kind "run", or "products" for learning against its products."""

    kind: str
    task: Task

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return the job that a row came of."""
        return cls(row["kind"], Task(**{field.name: row[field.name] for field in fields(Task)}))

    def do(self, data: datasets.Dataset) -> Row:
        """Return its row."""
        start = perf_counter()
        measure = run if self.kind == "run" else peer_products.measure
        figures = measure(self.task, data)
        taken = {"taken": perf_counter() - start, "machine": describe_machine()}
        return {"kind": self.kind, **asdict(self.task), **figures, **taken}


def quick(plan: Plan) -> Plan:
    """Return a small part of a plan."""
    return Plan((MIDDLE,), (plan.quick,), plan.quick, entries=1000, queries=100)


def jobs(name: str, plan: Plan, args: argparse.Namespace) -> Iterator[Job]:
    """Yield what is to be done on a set, ordering by ordering, so that a part makes a table."""
    plan = quick(plan) if args.quick else plan
    widths = [bits for bits in plan.bits if bits in (args.bits or plan.bits)]
    for seed, rows, method in product(range(args.orderings), plan.rows_a_label, args.only):
        if seed > 0 and rows > plan.rows_a_label[0] and keeps_rows(method):
            continue
        for bits in widths if has_bits(method) else (0,):
            task = Task(name, method, bits, seed, rows, False, plan.entries, plan.queries)
            yield Job("run", task)
            if bits in (0, MIDDLE):
                yield Job("run", Task(**{**asdict(task), "unseen": True}))
            timed = seed == 0 and rows == plan.rows_a_label[0] and method in peer_products.PRODUCTS
            if timed and bits in (0, MIDDLE):
                yield Job("products", task)


def has_bits(method: str) -> bool:
    return method != COSINE and "bits" in peers.get(method).get_params()


def keeps_rows(method: str) -> bool:
    """Whether learning goes over all rows so far again and again, which long streams forbid."""
    return method != COSINE and peers.describe(method).stores_rows


def done(data: datasets.Dataset, missing: list[Job]) -> Iterator[Row]:
    """Do jobs on one set, and say on stderr how far they are."""
    for i, job in enumerate(missing, 1):
        task, row = job.task, job.do(data)
        what = f"{job.kind} {task.method} {task.bits or '-'} bits" + ", unseen" * task.unseen
        stream = f"{data.name}, {row['stream']:,} rows, ordering {task.seed}"
        print(f"{i}/{len(missing)} {stream}: {what}: {row['taken']:.1f} s", file=sys.stderr)
        yield row


def main(plans: dict[str, Plan], methods: list[str], orderings: int, text: str) -> None:
    """Do what is missing, and print the tables of everything."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--rows", type=Path, help="where figures are kept")
    parser.add_argument("--report", action="store_true", help="print the tables of --rows only")
    parser.add_argument("--quick", action="store_true", help="one small run of each method")
    parser.add_argument("--orderings", type=int, default=orderings)
    parser.add_argument("--data", nargs="+", choices=list(plans), default=list(plans))
    parser.add_argument("--only", nargs="+", choices=methods, default=methods, metavar="METHOD")
    parser.add_argument("--bits", nargs="+", type=int)
    args = parser.parse_args()
    args.orderings = 1 if args.quick else args.orderings
    for load in (kernels.load, kernels.load_refresh, kernels.load_peers, kernels.load_forest):
        load()  # here, so that it is in nobody's time
    rows: list[Row] = []
    if args.rows is not None and args.rows.exists():
        rows = [json.loads(line) for line in args.rows.read_text().splitlines()]
    there = {Job.of(row) for row in rows}
    for name in () if args.report else args.data:
        missing = [job for job in jobs(name, plans[name], args) if job not in there]
        for row in done(datasets.load(name), missing) if missing else ():
            rows.append(row)
            if args.rows is not None:
                with args.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    report([row for row in rows if row["dataset"] in args.data and row["method"] in args.only])


if __name__ == "__main__":
    online = [name for name in peers.names() if peers.describe(name).online]
    main(PLANS, [*online, COSINE], orderings=5, text=__doc__ or "")
