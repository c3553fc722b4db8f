"""Deep methods on images beside methods on features of the same images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from everhash.bench import images
from everhash.bench.reporting import tables
from everhash.bench.reporting.beaten import where_beaten
from everhash.bench.reporting.document import Bullets, Heading, ReportPart
from everhash.bench.reporting.published import DEEP_LINES, SWAPPED, published_deep
from everhash.bench.reporting.samples import (
    DISTANCES,
    OURS,
    Column,
    Pick,
    blocks,
    figure,
    largest_deviation,
    lines_of,
    mean_average_precision,
    setting,
    widths,
)
from everhash.bench.reporting.tables import NOTHING, Table
from everhash.bench.task import Row

INPUTS = {
    images.NAME: "images",
    "cifar10-gist": "GIST",
    "cifar10-cnn": "CNN features",
}
FIRST, TEN = 3, 4
"""Where a score has how right the first answer and the first ten are."""
MEASURED = (
    "By mapping: an entry is stored as its bits, and its label is not used. mAP is the mean over "
    "all orders of tied entries; first right and right among ten are by mapping and asymmetric "
    "distance, averaged over the same orders. By codeword: an entry is stored as its label's "
    "codeword; deep methods have none, and 5,000 of the entries are images whose labels they "
    "learned. Learning: seconds on one core, the best of the seeds. `logistic` and `cosine` have "
    "no code: the first keeps a class an entry, the second all features. `onehot` has one bit a "
    "label, and Hamming distance means nothing there. Bold: the best of a column."
)
DIFFERS = (
    "The three networks are small ones of our own that start from nothing (about 400,000 weights); "
    "what differs is how they are taught. Their papers' networks are larger, and that of `latent` "
    "had learned from ImageNet before."
)


def layout(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield a table a width, the published figures, and where a method beats everhash."""
    for bits in widths(rows):
        block = [row for row in rows if row["bits"] in (bits, 0)]
        yield Heading(2, f"{bits} bits")
        yield DIFFERS
        yield _table(block)
        yield f"{MEASURED} {setting(block)}"
        yield from _published(block)
        yield from _beaten(block)


def _input(row: Row) -> str:
    return INPUTS.get(row["dataset"], str(row["dataset"]))


def _right(place: int) -> Pick:
    """Return a function that reads how right the first answers are, by asymmetric distance."""

    def pick(row: Row) -> Any:
        score = (row.get("mapping") or {}).get("asymmetric") or ()
        return score[place] if len(score) > place else None

    return pick


def _scores() -> list[Column]:
    return [
        *(
            Column(f"by {stored}", name, name, mean_average_precision(stored, distance))
            for stored in ("mapping", "codeword")
            for distance, name in DISTANCES.items()
        ),
        Column("first right", "", "", _right(FIRST)),
        Column("right among ten", "", "", _right(TEN)),
    ]


def _learning() -> Column:
    return Column(
        *("learning (s)", "", "", figure("seconds")), best="low", least=True, form=tables.seconds
    )


def _parts(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """Return what was learned from, the method and the rows of each line: images first."""
    first = list(INPUTS)
    of_inputs = sorted(blocks(rows), key=lambda block: first.index(block[0]["dataset"]))
    return [
        (_input(block[0]), line, of_line)
        for block in of_inputs
        for line, of_line in lines_of(block).items()
    ]


def _table(rows: Sequence[Row]) -> Table:
    columns = [*_scores(), _learning()]
    parts = _parts(rows)
    values = [[column.value(of_line) for column in columns] for *_, of_line in parts]
    bests = [tables.best_of(column, [v[i] for v in values]) for i, column in enumerate(columns)]
    body = []
    for (source, line, of_line), cells in zip(parts, values, strict=True):
        known = published_deep(of_line[0]["dataset"], of_line[0]["method"])
        shown = (tables.shown(*each) for each in zip(columns, cells, bests, strict=True))
        body.append((line, source, *shown, f"{known.score:.3f}" if known else NOTHING))
    head = ("method", "learns from", *tables.headings(columns), "published mAP")
    return Table(head, tuple(body), words=(0, 1))


def _published(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield what the published figures were measured on, and how far ours are from them."""
    column = Column("", "", "", mean_average_precision("mapping", "hamming"))
    by_codeword = Column("", "", "", mean_average_precision("codeword", "hamming"))
    told = []
    for known in DEEP_LINES:
        there = [r for r in rows if (r["dataset"], r["method"]) == (known.dataset, known.method)]
        here = (column if known.dataset == images.NAME else by_codeword).value(there)
        if here is not None:
            told.append(f"{known.what}: {known.score:.3f} published, {here:.3f} here")
    if told:
        yield "**Published figures**, and what they were measured on:"
        yield Bullets(tuple(told))
        yield SWAPPED


def _beaten(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield where a method beats everhash on each set of features; deep methods on images."""
    deep = [row for row in rows if row["dataset"] == images.NAME]
    for name, source in INPUTS.items():
        own = [row for row in rows if row["dataset"] == name]
        if name == images.NAME or not own:
            continue
        lines = lines_of([*deep, *own])
        yield Heading(3, f"{OURS} on {source} beside the others")
        yield from where_beaten(lines, _scores())
        yield largest_deviation(lines, _scores())
