"""All methods at one width on one page, from the rows of tables 1 and 2.

python benchmarks/summary.py

It runs nothing: it reads docs/results/table1.jsonl and table2.jsonl, as `everhash bench run` wrote
them, and writes docs/results/summary.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everhash.bench.report import MARK
from everhash.bench.reporting.beaten import where_beaten
from everhash.bench.reporting.document import Heading, ReportPart, markdown
from everhash.bench.reporting.layouts.common import TITLES
from everhash.bench.reporting.samples import (
    DISTANCES,
    Column,
    Where,
    at_bits,
    lines_of,
    machines,
    mean_average_precision,
    right_answers,
    seeds,
)
from everhash.bench.reporting.tables import grid
from everhash.bench.rows import read_rows
from everhash.bench.task import Row

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
TABLES = ("table1", "table2")
BITS = 32
OPENING = (
    f"mAP at {BITS} bits, averaged over all orders of tied entries and over orderings of the "
    "stream. By codeword the label of an entry is known, which flatters; by mapping it is not; "
    "labels that nobody has learned have [a page of their own](unseen.md). `onehot` is a linear "
    "classifier whose answer is the code, `cosine` the features themselves, `logistic` batch "
    "logistic regression on all rows at once. Bold: the best of a column."
)


def main() -> None:
    rows = read_rows([RESULTS / f"{name}.jsonl" for name in TABLES])
    page = RESULTS / "summary.md"
    page.write_text(f"{MARK}\n{markdown(parts(rows))}", encoding="utf-8")
    print(page.relative_to(RESULTS.parents[1]))


def parts(rows: list[Row]) -> Iterator[ReportPart]:
    lines = lines_of(rows)
    yield Heading(1, f"All methods at {BITS} bits")
    yield OPENING
    yield (
        "Made by `python benchmarks/summary.py` from the rows of "
        f"{' and '.join(f'`everhash bench run {name}`' for name in TABLES)}. "
        f"Orderings: {seeds(rows)}. {machines(rows)}"
    )
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        columns = list(columns_of(dataset))
        yield Heading(2, dataset)
        there = {line: of for line, of in lines.items() if any(c.values(of) for c in columns)}
        yield grid(there, columns)
        yield from where_beaten(there, columns)


def columns_of(dataset: str) -> Iterator[Column]:
    """Yield the columns of a data set: mAP by each way and distance, and right first answers."""
    where = of_set(dataset)
    for stored, title in TITLES.items():
        for distance, name in DISTANCES.items():
            pick = mean_average_precision(stored, distance)
            yield Column(title, name, f"by {name}", pick, where)
        yield Column(title, "first right", "first right", right_answers(stored, 0), where)


def of_set(dataset: str) -> Where:
    return lambda row: row["dataset"] == dataset and at_bits(BITS)(row)


if __name__ == "__main__":
    main()
