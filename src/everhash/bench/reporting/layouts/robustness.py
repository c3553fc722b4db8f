"""Labels that are missing, wrong or never learned, and queries of no label at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everhash.bench.reporting import tables
from everhash.bench.reporting.document import Heading, Panel, Plot, ReportPart, Series
from everhash.bench.reporting.layouts import common
from everhash.bench.reporting.samples import (
    DISTANCES,
    Column,
    Lines,
    Where,
    at_bits,
    blocks,
    blocks_by_width,
    figure,
    lines_of,
    mean_average_precision,
    widths,
)
from everhash.bench.task import Row

MIXTURE = (
    "A share of the entries has no label and is stored as its bits (by mapping), the others as the "
    "codewords of their labels (by codeword), and all are ranked together. A method without "
    "codewords stores bits for all of them. The columns are the shares without labels."
)
NOVELTY = (
    "How often a query of a label nobody has learned is farther from all codewords, by asymmetric "
    "distance, than a query of a learned one: the area under the ROC curve, 0.5 by chance. "
    "`cosine` takes the nearest learned row instead of the nearest codeword."
)


def unlabelled(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield mAP by the share of entries without labels."""
    yield Heading(2, "Entries without labels")
    yield MIXTURE
    for bits, block in blocks_by_width(rows):
        yield Heading(3, common.block_name(block, bits))
        lines = lines_of(block)
        columns = common.score_columns("mixed", common.share_keys(block))
        yield from common.scored(lines, columns)
        what = ("unlabelled", "Entries without labels", "share of entries without labels")
        panels = {name: _of(columns, name) for name in DISTANCES.values()}
        yield _by_share(block, bits, *what, panels)
        yield from common.ties(lines)


def noise(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield mAP by the share of wrong labels in the stream."""
    yield Heading(2, "Wrong labels")
    yield "A share of the stream's rows is learned with a wrong label. The columns are the shares."
    for bits, block in blocks_by_width(rows):
        yield Heading(3, common.block_name(block, bits))
        lines = lines_of(block)
        panels: dict[str, list[Column]] = {}
        for stored, title in common.TITLES.items():
            if common.has(block, stored):
                yield common.explained(stored, lines)
                yield from common.sampled(block) if stored == "mapping" else ()
                columns = common.score_columns(stored, common.share_keys(block))
                yield from common.scored(lines, columns)
                panels |= {f"{title}, {name}": _of(columns, name) for name in DISTANCES.values()}
        yield _by_share(block, bits, "noise", "Wrong labels", "share of wrong labels", panels)
        yield from common.ties(lines)


def unseen(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield mAP for labels that were never learned, all data sets in one table."""
    yield Heading(2, "Unseen labels")
    lines = lines_of(rows)
    yield common.explained("mapping", lines)
    yield from common.sampled(rows)
    columns, panels = [], []
    for name, where, bits in _places(rows):
        both = [
            Column(name, title, title, mean_average_precision("mapping", distance), where)
            for distance, title in DISTANCES.items()
        ]
        columns += both
        panels.append(_dots(lines, name, both, "mAP by mapping"))
        columns += [_took(name, where, bits)]
    yield from common.scored(lines, columns)
    asked = [
        c for place in _places(rows) for c in common.answered(lines, place[2], place[1], place[0])
    ]
    if any(column.title == "first" for column in asked):
        yield from common.scored(lines, asked, means=common.ANSWERED)
    yield Plot(
        "unseen",
        "How well labels are found that nobody has learned",
        "mAP by mapping for labels that were not learned, mean over seeds; full: by asymmetric "
        "distance, or cosine of the features; hollow: by Hamming distance; squares: batch methods.",
        tuple(panels),
    )
    yield from common.ties(lines)


def out_of_scope(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield how well queries of labels that were never learned are recognised."""
    yield Heading(2, "Queries out of scope")
    yield NOVELTY
    lines = lines_of(rows)
    columns, panels = [], []
    for name, where, bits in _places(rows):
        columns.append(Column(name, "AUROC", "", figure("auroc"), where))
        panels.append(_dots(lines, name, columns[-1:], "area under the ROC curve"))
        columns.append(_took(name, where, bits))
    yield from common.scored(lines, columns, means="Mean over seeds. Bold: the best of a column.")
    yield Plot(
        "out-of-scope",
        "How well queries of no learned label are told from others",
        "Area under the ROC curve, mean over seeds; 0.5 is chance.",
        tuple(panels),
    )


def _of(columns: Sequence[Column], group: str) -> list[Column]:
    return [column for column in columns if column.group == group]


def _by_share(
    rows: list[Row], bits: int, what: str, title: str, x: str, panels: dict[str, list[Column]]
) -> Plot:
    shares = sorted({row["share"] for row in rows})
    ticks = tuple((share, f"{share:.0%}") for share in shares)
    lines = lines_of(rows)
    drawn = tuple(
        Panel("curves", name, x, "mAP", common.curves(lines, columns, shares), ticks)
        for name, columns in panels.items()
    )
    return Plot(
        f"{common.slug(rows, bits)}-{what}",
        f"{title}: {common.block_name(rows, bits)}",
        f"mAP by {x}, mean over seeds.",
        drawn,
        2,
    )


def _places(rows: Sequence[Row]) -> Iterator[tuple[str, Where, int]]:
    """Yield a name for each data set and width, a test for its rows, and the width."""
    there = blocks(rows)
    names = [block[0]["dataset"] for block in there]
    for block, name in zip(there, names, strict=True):
        twice = names.count(name) > 1
        for bits in widths(block):
            parts = [name]
            parts += [f"{block[0]['rows_a_label']} rows a label"] if twice else []
            parts += [f"{bits} bits"] if len(widths(block)) > 1 else []
            yield ", ".join(parts), _within(block, bits), bits


def _within(block: list[Row], bits: int) -> Where:
    keys = ("dataset", "rows_a_label", "entries", "queries")
    wanted = [block[0][key] for key in keys]
    return lambda row: [row[key] for key in keys] == wanted and at_bits(bits)(row)


def _took(name: str, where: Where, bits: int) -> Column:
    usual = common.learning(bits)
    return Column(name, "s", "", usual.pick, where, "low", True, tables.seconds)


def _dots(lines: Lines, title: str, columns: Sequence[Column], x: str) -> Panel:
    """Return a line of dots for each method, the best on top; the first column is hollow."""
    values = {line: [column.value(rows) for column in columns] for line, rows in lines.items()}
    there = [line for line, found in values.items() if any(value is not None for value in found)]
    there.sort(key=lambda line: max(value for value in values[line] if value is not None))
    series = tuple(
        Series(lines[line][0]["method"], ((value, 0.0),), (line,), open=place < len(columns) - 1)
        for line in there
        for place, value in enumerate(values[line])
        if value is not None
    )
    return Panel("dots", title, x, "", series)
