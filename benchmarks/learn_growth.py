"""How the cost of learning grows with rows and with labels: linearly, if all is well.

    python benchmarks/learn_growth.py [--rows 1000000]

Both learners ("exact" is the default one), d = 128, k = 32, batches of 10,000 rows around a centre
for each label (seed 0). Making the rows is not timed. `everhash bench run scale` measures points of
this and other curves.
"""

from __future__ import annotations

import argparse

from everhash import OnlineHasher
from everhash.bench.costs.scale import learn
from everhash.bench.costs.synthetic import Source
from everhash.bench.machine import describe_machine

DIMS, BITS, BATCH = 128, 32, 10_000


def seconds_to_learn(learner: str, rows: int, labels: int) -> tuple[float, OnlineHasher]:
    hasher = OnlineHasher(BITS, learner=learner)
    times = learn(hasher, Source(labels, DIMS), rows, BATCH)
    return sum(taken for _, taken in times), hasher


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    most = parser.parse_args().rows
    print(describe_machine())
    print(f"{'learner':<8}{'rows':>10}{'labels':>8}{'width':>8}{'seconds':>10}{'us a row':>10}")
    table = [(most // 100, 100), (most // 10, 100), (most, 100)]
    table += [(most, labels) for labels in (10, 1_000, 10_000)]
    for learner in ("exact", "sgd"):
        seconds_to_learn(learner, 1000, 10)  # kernels are loaded
        for rows, labels in table:
            total, hasher = seconds_to_learn(learner, rows, labels)
            width, each = hasher.width_, total / rows * 1e6
            figures = f"{rows:10,}{len(hasher.labels_):8,}{width:8,}{total:10.2f}{each:10.2f}"
            print(f"{learner:<8}{figures}", flush=True)


if __name__ == "__main__":
    main()
